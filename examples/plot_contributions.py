"""
Why this class?
===============

The log-odds of two classes are a sum over the variables that are on: no approximation, no sampling.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from exchangeable import ExchangeableClassifier
from exchangeable.plotting import ContributionsDisplay

digits = load_digits()
X, y = digits.data > 7, digits.target
model = ExchangeableClassifier().fit(X[:1_500], y[:1_500])
names = [f"row {j // 8}, column {j % 8}" for j in range(64)]
row = X[1_500 + int(np.flatnonzero(y[1_500:] == 3)[0])]
display = ContributionsDisplay.from_estimator(model, row, target=3, against=8, names=names, top=10)
plt.show()

# %%
# The same on the image: blue is evidence for a three, red for an eight.

shares = np.zeros(64)
shares[display.variables] = display.shares
figure, axes = plt.subplots(1, 2, figsize=(4.8, 2.4), layout="constrained")
axes[0].imshow(row.reshape(8, 8), cmap="gray_r")
axes[1].imshow(shares.reshape(8, 8), cmap="RdBu", vmin=-4, vmax=4)
for ax in axes:
    ax.set_axis_off()
plt.show()
