"""
Counting, which naive Bayes cannot do
=====================================

Is the number of ones odd? No single variable says anything about it, so naive Bayes guesses. A
block of exchangeable variables models how many are on, which is all that matters.
"""

import matplotlib.pyplot as plt
from sklearn.naive_bayes import BernoulliNB

from exchangeable import ExchangeableClassifier
from exchangeable.datasets import make_boolean

functions = ("parity", "counting", "threshold", "exact")
scores = {"naive Bayes": [], "exchangeable blocks": []}
for function in functions:
    X, y = make_boolean(function, n_samples=4_000, n_variables=100, random_state=0)
    for name, model in (
        ("naive Bayes", BernoulliNB()),
        ("exchangeable blocks", ExchangeableClassifier()),
    ):
        model.fit(X[:2_000], y[:2_000])
        scores[name].append(model.score(X[2_000:], y[2_000:]))

# %%
# Four functions of how many of 100 variables are on:

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for shift, (name, heights) in zip((-0.2, 0.2), scores.items(), strict=True):
    bars = ax.bar([i + shift for i in range(len(functions))], heights, width=0.38, label=name)
    ax.bar_label(bars, fmt="%.2f", fontsize=8)
ax.set_xticks(range(len(functions)), functions)
ax.set_ylabel("accuracy on new rows")
ax.set_ylim(0, 1.15)
ax.legend(frameon=False, ncols=2, loc="upper center")
plt.show()
