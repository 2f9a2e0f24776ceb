"""
Several starts of structural EM
===============================

EM finds a local optimum; different starts find different ones. Within a run the penalised
likelihood never decreases.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from exchangeable import ExchangeableMixture
from exchangeable.plotting import EMHistoryDisplay

X = load_digits().data > 7
mixture = ExchangeableMixture(10, n_init=6, random_state=0).fit(X)
EMHistoryDisplay.from_estimator(mixture)
plt.show()

# %%
# New digits, drawn from the run that was kept:

drawn, component = mixture.sample(10, random_state=0)
figure, axes = plt.subplots(1, 10, figsize=(7.2, 1.2), layout="constrained")
for ax, image, number in zip(axes, drawn, component, strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray_r")
    ax.set_title(number, fontsize=8)
    ax.set_axis_off()
plt.show()
