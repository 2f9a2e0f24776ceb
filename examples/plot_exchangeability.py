"""
Are these variables exchangeable?
=================================

Exchangeable variables have equal means, equal variances and equal covariances. The report tests all
three in each block and says which one fails.
"""

import matplotlib.pyplot as plt
import numpy as np

from exchangeable.plotting import ExchangeabilityDisplay

rng = np.random.default_rng(0)
common = rng.random((2_000, 1))
alike = rng.random((2_000, 6)) < common
one_higher = alike.copy()
one_higher[:, 0] |= rng.random(2_000) < 0.15
pairs = rng.random((2_000, 3)) < 0.5
paired = np.repeat(pairs, 2, axis=1) ^ (rng.random((2_000, 6)) < 0.2)
X = np.concatenate([alike, one_higher, paired], axis=1)
display = ExchangeabilityDisplay.from_data(X, blocks=[range(6), range(6, 12), range(12, 18)])
display.ax_.set_xticks(range(3), ["alike", "one mean higher", "in pairs"])
plt.show()

# %%
# The same in numbers:

print(display.report)
