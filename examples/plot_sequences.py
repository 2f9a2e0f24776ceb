"""
Order inside a model
====================

Machines switch on and off. Some are calm, others restless, and both are on half of the time: the
number of steps for which they are on tells nothing, the number of switches everything. A mixture
with blocks of neighbouring steps, each with the number of runs as its statistic, finds both kinds.
"""

import matplotlib.pyplot as plt
import numpy as np

from exchangeable import ExchangeableMixture

n_steps, part = 60, 15
rng = np.random.default_rng(0)
restless = rng.random(400) < 0.5
switches = rng.random((400, n_steps)) < np.where(restless[:, None], 0.5, 0.1)
series = (np.cumsum(switches, axis=1) + rng.integers(0, 2, size=(400, 1))) % 2
known = np.where(rng.random(series.shape) < 0.3, np.nan, series)  # three in ten were not recorded

parts = [(range(first, first + part), "runs") for first in range(0, n_steps, part)]
by_runs = ExchangeableMixture(2, blocks=parts, n_init=3, random_state=0).fit(known)
by_counts = ExchangeableMixture(2, n_init=3, random_state=0).fit(known)
for name, model in (("by runs", by_runs), ("by counts", by_counts)):
    right = (model.predict(known) == restless).mean()
    print(f"{name}: {max(right, 1 - right):.2f} of the machines are told apart")

# %%
# What is probable between the recorded steps of a calm machine and of a restless one:

figure, axes = plt.subplots(2, 1, figsize=(6.4, 3.6), layout="constrained", sharex=True)
for ax, kind in zip(axes, (False, True), strict=True):
    row = int(np.flatnonzero(restless == kind)[0])
    ax.plot(by_runs.marginals(known[[row]])[0], color="tab:blue", label="by runs")
    ax.plot(by_counts.marginals(known[[row]])[0], "--", color="tab:gray", label="by counts")
    ax.plot(known[row], "k.", markersize=5, label="recorded")
    ax.set(ylabel="restless" if kind else "calm", ylim=(-0.1, 1.1))
axes[0].legend(frameon=False, ncols=3, loc="upper right", fontsize="small")
axes[1].set_xlabel("step")
plt.show()
