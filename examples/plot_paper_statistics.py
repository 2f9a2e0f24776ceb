"""
The paper's two statistics
==========================

Besides counts, the paper names two statistics under which inference stays exact: how often 01
occurs in a sequence, and how many squares of an image have more than a few pixels on (with a
threshold of 0 this is max-pooling). Here each distinguishes two classes with equal numbers of ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from exchangeable import ExchangeableClassifier, Pooled, Transitions

rng = np.random.default_rng(0)
kind = np.repeat(["patchy", "even"], 400)

# %%
# Sequences of 40 steps that are on half of the time. Patchy ones stay on or off for a long time.

switches = rng.random((800, 40)) < np.where(kind == "patchy", 0.15, 0.5)[:, None]
sequences = (np.cumsum(switches, axis=1) + rng.integers(0, 2, (800, 1))) % 2

# %%
# Images of 12 × 12 pixels, about a quarter of them on. In patchy ones ink fills whole squares.

inked = rng.random((800, 3, 3)) < 0.28
square = np.kron(inked, np.ones((1, 4, 4)))
chance = np.where((kind == "patchy")[:, None, None], 0.08 + 0.72 * square, 0.28)
images = (rng.random((800, 12, 12)) < chance).reshape(800, 144).astype(int)

# %%
# Half of the rows are learned from, the others are told apart, with a third of their entries
# missing as well.

learned = rng.permutation(800) < 400
problems = {
    "sequences": (sequences, [(range(40), Transitions(40))]),
    "images": (images, [(range(144), Pooled(12, 4, 7))]),
}
bars = {}
for name, (X, blocks) in problems.items():
    ones = X[kind == "patchy"].mean(), X[kind == "even"].mean()
    print(f"{name}: {ones[0]:.2f} of the entries are on in patchy rows, {ones[1]:.2f} in even ones")
    some = np.where(rng.random(X.shape) < 0.33, np.nan, X)
    for label, options in {"counts": {}, "its statistic": {"blocks": blocks}}.items():
        model = ExchangeableClassifier(**options).fit(X[learned], kind[learned])
        for rows, known in ((X, "all known"), (some, "a third missing")):
            bars[name, label, known] = model.score(rows[~learned], kind[~learned])
            print(f"  {label}, {known}: {bars[name, label, known]:.2f} are told right")

# %%
# Two rows of each kind, and how many rows are told right by counts and by the statistic:

shape = {"figsize": (8.6, 2.6), "width_ratios": [1, 1, 1, 1, 3]}
figure, axes = plt.subplots(1, 5, layout="constrained", **shape)
for axis, row in zip(axes, [0, 1, 400, 401], strict=False):
    axis.imshow(images[row].reshape(12, 12), cmap="Greys")
    axis.set(title=kind[row], xticks=np.arange(-0.5, 12, 4), yticks=np.arange(-0.5, 12, 4))
    axis.grid(color="tab:red", linewidth=0.6)
    axis.tick_params(labelbottom=False, labelleft=False, length=0)
axes[4].barh([" ".join(key) for key in bars], list(bars.values()), color=["0.7", "0.7", "C0", "C0"])
axes[4].set(xlim=(0.4, 1.0), xlabel="accuracy")
axes[4].tick_params(labelsize=7)
plt.show()
