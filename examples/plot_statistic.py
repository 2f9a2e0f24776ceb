"""
A statistic of your own
=======================

Weather comes in spells. What matters is not how many days were wet but how often the weather
changed: the number of runs. Two lines make it a statistic with every exact query.
"""

import matplotlib.pyplot as plt
import numpy as np

from exchangeable import EVM, Count, FiniteState

n = 14
rng = np.random.default_rng(0)
changes = rng.random((800, n)) < 0.2
wet = (np.cumsum(changes, axis=1) + rng.integers(0, 2, size=(800, 1))) % 2

runs = FiniteState(n, lambda last, day: (day, int(day != last)), start=None)
spells = EVM(runs).fit(wet[:600], alpha=0.1)
counted = EVM(Count(n)).fit(wet[:600], alpha=0.1)
print(f"by runs:   {spells.score_samples(wet[600:]).mean():.2f} nats a fortnight")
print(f"by counts: {counted.score_samples(wet[600:]).mean():.2f}")

# %%
# What the two models say about the other days, if the third was wet and the tenth dry:

evidence = {2: 1, 9: 0}
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.plot(range(1, n + 1), spells.marginals(evidence), "o-", label="by runs")
ax.plot(range(1, n + 1), counted.marginals(evidence), "s--", label="by counts")
ax.set(xlabel="day", ylabel="probability of rain", ylim=(-0.05, 1.05))
ax.legend(frameon=False)
plt.show()
