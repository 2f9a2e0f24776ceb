"""
Filling in missing values
=========================

Half of the pixels are hidden. The known ones say which component is likely, and the component says
what is hidden: exactly, by summing over all possibilities.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from exchangeable import ExchangeableMixture

X = (load_digits().data > 7).astype(float)
rng = np.random.default_rng(0)
train, test = X[:1_500], X[1_500:]
holes = rng.random(test.shape) < 0.5
hidden = np.where(holes, np.nan, test)
mixture = ExchangeableMixture(30, random_state=0).fit(train)
completed = mixture.impute(hidden)
chances = mixture.marginals(hidden)

figure, axes = plt.subplots(4, 8, figsize=(7.2, 3.8), layout="constrained")
for column, (truth, seen, filled, chance) in enumerate(
    zip(test[:8], hidden[:8], completed[:8], chances[:8], strict=True)
):
    for row, image in enumerate((truth, seen, filled, chance)):
        axes[row, column].imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axes[row, column].set(xticks=[], yticks=[], facecolor="#f0d9c8")
for ax, name in zip(axes[:, 0], ("truth", "seen", "most\nprobable", "chance"), strict=True):
    ax.set_ylabel(name, rotation=0, ha="right", va="center")
plt.show()

# %%
# Compared with each pixel's most frequent value:

usual = np.where(holes, train.mean(axis=0) > 0.5, test)
for name, filled in (("most frequent value", usual), ("mixture", completed)):
    print(f"{name}: {(filled == test)[holes].mean():.3f} of the hidden pixels are right")
