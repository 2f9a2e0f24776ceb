"""
Scoring anomalies
=================

A density model says how unusual a row is. Here threes and eights are usual, and some sevens and
ones are mixed in; rows may have missing values.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import RocCurveDisplay

from exchangeable import ExchangeableMixture

digits = load_digits()
X, y = (digits.data > 7).astype(float), digits.target
usual = np.isin(y, (3, 8))
mixture = ExchangeableMixture(5, n_init=3, random_state=0).fit(X[usual][:250])
rows = np.concatenate([X[usual][250:], X[np.isin(y, (1, 7))]])
odd = np.arange(len(rows)) >= usual.sum() - 250

figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
rng = np.random.default_rng(0)
for share in (0.0, 0.3, 0.6):
    hidden = np.where(rng.random(rows.shape) < share, np.nan, rows)
    score = mixture.anomaly_score(hidden)
    RocCurveDisplay.from_predictions(odd, score, ax=ax, name=f"{share:.0%} hidden")
ax.set_title("sevens and ones among threes and eights")
plt.show()
