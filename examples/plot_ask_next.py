"""
What to ask next
================

A model with exact queries knows which answer would be most informative. Asking for ten pixels of a
digit, the most informative one each time, beats asking for ten at random.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from exchangeable import ExchangeableClassifier

digits = load_digits()
X, y = (digits.data > 7).astype(float), digits.target
model = ExchangeableClassifier().fit(X[:1_400], y[:1_400])
rows, truth = X[1_400:], y[1_400:]
rng = np.random.default_rng(0)
right = {"most telling": [], "random": []}
for name, scores in right.items():
    known = np.full(rows.shape, np.nan)
    for _ in range(12):
        scores.append((model.predict(known) == truth).mean())
        gain = model.information_gain(known) if name == "most telling" else rng.random(rows.shape)
        asked = np.where(np.isnan(known), gain, -1.0).argmax(axis=1)
        known[np.arange(len(rows)), asked] = rows[np.arange(len(rows)), asked]

figure, ax = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
for name, scores in right.items():
    ax.plot(scores, "o-", label=name)
ax.set(xlabel="pixels asked for", ylabel="digits recognised", ylim=(0, 1))
ax.legend(frameon=False)
plt.show()
