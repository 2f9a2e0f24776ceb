"""
Parties that vote alike
=======================

An example of exchangeability: members of parties who vote on motions. The data are synthetic. Each
party is for or against each of 300 motions, and a few of its members, different ones each time,
vote otherwise. Which parties agree depends on the kind of motion. So given the kind, the members of
a party are exchangeable but not independent: only the number of yes votes matters.

Mixtures of four families are fitted, with the number of components chosen on other motions. Blocks
find the parties, and a single component can express that a party votes as one, for or against.
With independent members every combination of parties needs a component of its own, and trees pass
the vote from member to member, which loses a little at every step.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from exchangeable import ExchangeableMixture

warnings.simplefilter("ignore", ConvergenceWarning)  # components that have no motion are dropped

# %%
# Five parties of different size and discipline, two kinds of motions.
SIZES = (26, 20, 9, 6, 3)
REBELS = (0.03, 0.05, 0.1, 0.02, 0.2)
FOR = np.array([[0.9, 0.2, 0.6, 0.5, 0.5], [0.5, 0.6, 0.1, 0.9, 0.5]])
PARTY = np.repeat(np.arange(len(SIZES)), SIZES)


def motions(n_motions, seed):
    """Return votes, one row per motion and one column per member."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n_motions)
    line = rng.random((n_motions, len(SIZES))) < FOR[kind]
    rebels = rng.random((n_motions, PARTY.size)) < np.array(REBELS)[PARTY]
    return (line[:, PARTY] ^ rebels).astype(np.uint8)


def true_score(X):
    """Return the average log-probability under the rule by which the votes were made."""
    by_kind = np.zeros((len(X), 2))
    for party, (size, rebels) in enumerate(zip(SIZES, REBELS, strict=True)):
        yes = X[:, party == PARTY].sum(axis=1)[:, None]
        with_line = (1 - rebels) ** yes * rebels ** (size - yes)
        without = rebels**yes * (1 - rebels) ** (size - yes)
        by_kind += np.log(FOR[:, party] * with_line + (1 - FOR[:, party]) * without)
    return float(np.log(np.exp(by_kind).mean(axis=1)).mean())


train, valid, test = motions(300, 0), motions(200, 1), motions(5000, 2)

# %%
# Settings are chosen on the validation motions; the test motions are scored once.
FAMILIES = {
    "blocks": {"family": "blocks"},
    "naive Bayes": {"family": "blocks", "blocks": "independent"},
    "urns": {"family": "urns"},
    "trees": {"family": "tree"},
}
scores, chosen = {}, {}
for name, options in FAMILIES.items():
    fits = [
        ExchangeableMixture(k, random_state=0, **options).fit(train, X_valid=valid)
        for k in (1, 2, 4, 8, 16, 32)
    ]
    chosen[name] = max(fits, key=lambda fit: fit.score(valid))
    scores[name] = chosen[name].score(test)
best = true_score(test)
for name, score in scores.items():
    print(f"{name:12} {score:8.3f}  {chosen[name].weights_.size:3} components")
print(f"{'true rule':12} {best:8.3f}")

# %%
# What was lost against the rule by which the votes were made, and the blocks that were found: a
# picture of members by members, bright where two are in the same block of the largest component.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.barh(list(scores), [best - score for score in scores.values()])
left.invert_yaxis()
left.set_xlabel("log-probability lost per motion")
found = chosen["blocks"]
blocks = found.partitions_[int(np.argmax(found.weights_))]
together = np.zeros((PARTY.size, PARTY.size))
for block in blocks:
    together[np.ix_(block, block)] = 1
right.imshow(together, interpolation="nearest")
right.set_title("members in the same block")
right.set_xlabel("member, by party")
plt.show()
