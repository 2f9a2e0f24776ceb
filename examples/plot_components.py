"""
How many groups?
================

Four kinds of people answer twelve questions. The likelihood of held-out people shows how
many kinds there are.
"""

import matplotlib.pyplot as plt
import numpy as np

from exchangeable import ExchangeableMixture

rng = np.random.default_rng(1)
rates = rng.beta(0.6, 0.6, size=(4, 12))
kind = rng.integers(0, 4, size=2_000)
X = rng.random((2_000, 12)) < rates[kind]
found = ExchangeableMixture.select(
    X[:1_000], X[1_000:], n_components=[1, 2, 3, 4, 5, 6, 8], n_init=3, random_state=0
)
found.plot()
plt.show()

# %%
print(found)
