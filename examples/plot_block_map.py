"""
Which pixels go together
========================

Each class of handwritten digits has its own blocks: groups of pixels that are on about equally
often, in which only the number of pixels that are on matters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from exchangeable import ExchangeableClassifier
from exchangeable.plotting import BlockMapDisplay

digits = load_digits()
X, y = digits.data > 7, digits.target
model = ExchangeableClassifier().fit(X, y)

# %%
# Pixels ordered by how often they are on, coloured by block:

BlockMapDisplay.from_estimator(model, targets=[0, 1, 3, 8])
plt.show()

# %%
# The same blocks at the positions of the pixels:

figure, axes = plt.subplots(1, 4, figsize=(7.2, 2.2), layout="constrained")
for ax, digit in zip(axes, (0, 1, 3, 8), strict=True):
    label = np.empty(64)
    order = np.argsort([X[y == digit][:, block].mean() for block in model.partitions_[digit]])
    for rank, b in enumerate(order):
        label[model.partitions_[digit][b]] = rank
    ax.imshow(label.reshape(8, 8), cmap="viridis")
    ax.set_title(f"{digit}: {len(order)} blocks", fontsize=10)
    ax.set_axis_off()
plt.show()
