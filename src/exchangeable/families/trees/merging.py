"""Merging plain trees with the same edges, by averaging their probabilities.

No rows are drawn. The expected score of one tree under another is a product of its probabilities
and the other's parameters, and trees that are merged become the one with their average
probabilities. Each tree counts as `ROWS` rows, which EM distributes over the fewer trees
(Vasconcelos and Lippman, "Learning mixture hierarchies", NIPS 1998).
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.mixture import Mixture
from exchangeable.families.trees.model import ParentArray, TreeModel
from exchangeable.families.trees.moments import tree_moments
from exchangeable.families.trees.natural import Edges, natural_parameters

ROWS = 3.0
"""Number of rows that a tree represents."""
ITERATIONS = 10
ROUNDS = 16
"""Number of rounds in which the initial trees are chosen, far from those of the rounds before."""
CELLS = 1 << 22
"""Number of scores (pairs of an old and a new tree) held at a time."""
NOTHING = 1e-12
"""Smaller divergences and shares are rounding."""


class _Trees(NamedTuple):
    """Trees with the same edges, one per column.

    Attributes
    ----------
    chances : array
        The probability of each variable, followed by those of each edge if there are edges.
    parent : array
        The parents; empty if there are no edges.
    """

    chances: FloatArray
    parent: ParentArray

    def only(self, some: IntArray) -> "_Trees":
        """Return some of the trees."""
        return _Trees(self.chances[:, some], self.parent[:, some] if self.parent.size else NONE)

    def model(self) -> TreeModel:
        """Return the trees in natural parameters."""
        k = self.chances.shape[1]
        n = len(self.parent) or len(self.chances)
        parent = self.parent if self.parent.size else np.full((n, k), n, dtype=np.int32)
        pairs = self.chances[n:] if self.parent.size else np.zeros((n, k))
        base, slope, pair = natural_parameters(self.chances[:n], pairs, Edges.of(parent))
        if not self.parent.size:
            return TreeModel.make(base, slope)
        return TreeModel.make(base, slope, np.ascontiguousarray(parent), pair)

    def terms(self) -> tuple[FloatArray, FloatArray]:
        """Return the scores of the empty row, and the factors of the probabilities of others."""
        model = self.model()
        return model.base, np.concatenate([model.slope, model.pair]) if model.pair.size else (
            model.slope
        )


NONE = np.empty((0, 0), dtype=np.int32)


def merged(mixture: Mixture, n_classes: int, rng: np.random.Generator) -> Mixture:
    """Return a similar mixture of at most this many plain trees.

    Trees with different edges are not merged: at least one of each kind remains.
    """
    model: TreeModel = mixture.model  # type: ignore[assignment]
    shares = np.exp(mixture.log_prior)
    means, pairs = tree_moments(model)
    if not model.parent.size:
        groups, chances, parent = [np.arange(shares.size)], means, NONE
    else:
        kinds, kind = np.unique(model.parent, axis=1, return_inverse=True)
        groups = [np.flatnonzero(kind.ravel() == number) for number in range(kinds.shape[1])]
        chances, parent = np.concatenate([means, pairs]), model.parent
    everything = _Trees(chances, parent)
    groups_merged = []
    for group in groups:
        mass = shares[group].sum()
        count = max(1, min(int(n_classes * mass), group.size))
        groups_merged.append(_fewer(everything.only(group), shares[group], count, rng))
    weights = np.concatenate([share for _, share in groups_merged])
    return Mixture(TreeModel.stack([trees.model() for trees, _ in groups_merged]), np.log(weights))


def _fewer(
    trees: _Trees, shares: FloatArray, count: int, rng: np.random.Generator
) -> tuple[_Trees, FloatArray]:
    """Return fewer trees with the same edges, and their shares."""
    if count >= shares.size:
        return trees, shares
    chosen = _far_apart(trees, shares, count, rng)
    few, weights = trees.only(chosen), np.full(chosen.size, shares.sum() / chosen.size)
    for _ in range(ITERATIONS):
        base, terms = few.terms()
        start = ROWS * base + np.log(weights)
        totals, sums = np.zeros(weights.size), np.zeros(few.chances.shape)
        for part in _parts(shares.size, weights.size):
            scores = trees.chances[:, part].T @ (ROWS * terms) + start
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            scores *= (shares[part] / scores.sum(axis=1))[:, None]
            totals += scores.sum(axis=0)
            sums += trees.chances[:, part] @ scores
        alive = np.flatnonzero(totals > NOTHING * shares.sum())
        few = few.only(alive)._replace(chances=sums[:, alive] / totals[alive])
        weights = totals[alive] * (shares.sum() / totals[alive].sum())
    return few, weights


def _far_apart(trees: _Trees, shares: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return initial trees, by k-means++ with divergences: in each round some that are far off."""
    base, terms = trees.terms()
    own = base + (trees.chances * terms).sum(axis=0)
    far, chosen = np.ones(shares.size), list[IntArray]()
    for left in range(ROUNDS, 0, -1):
        wanted = -(-(count - sum(each.size for each in chosen)) // left)
        chances = np.where(far > NOTHING, shares * far, 0.0)
        wanted = min(wanted, int((chances > 0).sum()))
        if not wanted:
            break
        picked = rng.choice(shares.size, wanted, replace=False, p=chances / chances.sum())
        chosen.append(picked)
        off = np.full(shares.size, -np.inf)
        for part in _parts(shares.size, wanted):
            scores = trees.chances[:, part].T @ terms[:, picked] + base[picked]
            off[part] = scores.max(axis=1)
        gap = own - off
        far = gap if left == ROUNDS else np.minimum(far, gap)
        far[picked] = 0.0
    return np.sort(np.concatenate(chosen))


def _parts(n_trees: int, n_few: int) -> list[slice]:
    """Return the trees in parts, with a limited number of scores each."""
    size = max(1, CELLS // n_few)
    return [slice(begin, begin + size) for begin in range(0, n_trees, size)]
