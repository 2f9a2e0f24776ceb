"""
Correlation in the distribution of counts
=========================================

Ten yes-or-no answers to a survey all depend on the same mood. Half of the people say yes to each;
if the answers were independent, five out of ten would be the most frequent count. The block learns
that most people say yes to nearly all of them, or to nearly none.
"""

import matplotlib.pyplot as plt
import numpy as np

from exchangeable import ExchangeableMixture
from exchangeable.plotting import CountDistributionDisplay

rng = np.random.default_rng(0)
mood = rng.beta(0.5, 0.5, size=(1_000, 1))
X = rng.random((1_000, 10)) < mood
model = ExchangeableMixture(1, blocks="full", random_state=0).fit(X)
CountDistributionDisplay.from_estimator(model, X=X)
plt.show()

# %%
# With the same number of parameters, the likelihood is much higher:

independent = ExchangeableMixture(1, blocks="independent", random_state=0).fit(X)
print(f"one block:   {model.score(X):.3f} nats per row")
print(f"independent: {independent.score(X):.3f} nats per row")
