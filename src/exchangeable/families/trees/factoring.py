"""Factorising the log-odds of trees: principal component analysis for the exponential family.

For each tree, the loss is the divergence from it of the tree whose log-odds are the products, a sum
over its variables (Collins, Dasgupta and Schapire, "A generalization of principal components
analysis to the exponential family", NIPS 2001). Points and loadings are updated in turn by steps of
Newton's method; a step that does not reduce the loss is rejected.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from exchangeable.arrays import FloatArray
from exchangeable.families.mixture import Mixture
from exchangeable.families.trees.factored import FactoredTrees
from exchangeable.families.trees.factors import Factors
from exchangeable.families.trees.model import ParentArray, TreeModel
from exchangeable.families.trees.moments import tree_moments

STEPS = 12
LEAST_CHANCE = 1e-6
"""No variable is on, or off, with a smaller probability."""
DAMPING = 1e-3
"""Added to the diagonal of second derivatives, relative to its mean."""
NO_MASS = 1e-12


class Target(NamedTuple):
    """The probabilities to approximate, one row for each variable and state of its parent.

    Attributes
    ----------
    chances : array of shape (n_lines, n_classes)
        The probability of the variable.
    mass : array of shape (n_lines, n_classes)
        The probability that the parent is in this state.
    """

    chances: FloatArray
    mass: FloatArray

    def cost(self, odds: FloatArray) -> FloatArray:
        """Return the cost of each log-odds."""
        return np.asarray(self.mass * (np.logaddexp(0.0, odds) - self.chances * odds))

    def slopes(self, odds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much costs fall with each log-odds, and their second derivatives."""
        chances = expit(odds)
        return self.mass * (self.chances - chances), self.mass * chances * (1 - chances)


def factored(mixture: Mixture, rank: int) -> Mixture:
    """Return the mixture of trees whose log-odds are products of factors of a given rank."""
    model: TreeModel = mixture.model  # type: ignore[assignment]
    kinds, group = edges_shared(model)
    chances, mass = conditionals(model)
    shares = np.exp(mixture.log_prior)
    loadings = np.zeros((kinds.shape[1] or 1, len(chances), rank + 1))
    points = np.zeros((rank, shares.size))
    for number in range(len(loadings)):
        mine = np.flatnonzero(group == number)
        target = Target(chances[:, mine], mass[:, mine])
        loadings[number], points[:, mine] = factors_near(target, shares[mine], rank)
    single = loadings.astype(np.float32), points.astype(np.float32)
    return Mixture(FactoredTrees(Factors(*single, group, kinds)), mixture.log_prior)


def edges_shared(model: TreeModel) -> tuple[ParentArray, ParentArray]:
    """Return the distinct edge sets of trees, one per column, and the set of each tree."""
    if not model.parent.size:
        return model.parent, np.zeros(model.n_classes, dtype=np.int32)
    kinds, group = np.unique(model.parent, axis=1, return_inverse=True)
    return np.ascontiguousarray(kinds), group.ravel().astype(np.int32)


def conditionals(model: TreeModel) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of variables given their parents, and of the parents' states.

    The rows are those of `Factors`: parents off, and then on if there are edges.
    """
    means, pairs = tree_moments(model)
    if not model.parent.size:
        return np.clip(means, LEAST_CHANCE, 1 - LEAST_CHANCE), np.ones(means.shape)
    n, k = means.shape
    above = np.concatenate([means, np.zeros((1, k))])[model.parent, np.arange(k)]
    both = np.where(model.parent < n, pairs, 0.0)
    given_off = (means - both) / np.maximum(1 - above, NO_MASS)
    given_on = np.where(above > NO_MASS, both / np.maximum(above, NO_MASS), 0.5)
    chances = np.concatenate([given_off, given_on])
    mass = np.concatenate([1 - above, above])
    return np.clip(chances, LEAST_CHANCE, 1 - LEAST_CHANCE), np.maximum(mass, 0.0)


def factors_near(target: Target, shares: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """Return loadings and points whose products have a low weighted cost.

    They are initialised by the principal components of log-odds.
    """
    odds = np.where(target.mass.any(axis=1, keepdims=True), logit(target.chances), 0.0)
    middle = odds.mean(axis=1, keepdims=True)
    left, sizes, right = np.linalg.svd(odds - middle, full_matrices=False)
    some = min(rank, sizes.size)
    loadings = np.zeros((len(odds), rank + 1))
    loadings[:, :some], loadings[:, -1:] = left[:, :some] * sizes[:some], middle
    points = np.zeros((rank, shares.size))
    points[:some] = right[:some]
    by_line = Target(target.chances.T, (target.mass * shares).T)
    for _ in range(STEPS):
        points = _stepped(target, loadings[:, :-1], points, loadings[:, -1:])
        wide = np.concatenate([points, np.ones((1, shares.size))])
        loadings = _stepped(by_line, wide.T, loadings.T, np.zeros((1, 1))).T
    return loadings, points


def _stepped(
    target: Target, design: FloatArray, coefficients: FloatArray, offset: FloatArray
) -> FloatArray:
    """Return coefficients, one column for each column of the target, after a successful step."""
    odds = design @ coefficients + offset
    fall, bend = target.slopes(odds)
    width = design.shape[1]
    squares = (design[:, :, None] * design[:, None, :]).reshape(len(design), -1)
    second = (bend.T @ squares).reshape(-1, width, width)
    diagonal = np.einsum("kaa->k", second) / width
    second += (DAMPING * diagonal + NO_MASS)[:, None, None] * np.eye(width)
    step = np.linalg.solve(second, (fall.T @ design)[:, :, None])[:, :, 0].T
    before, better = target.cost(odds).sum(axis=0), coefficients
    left = np.arange(coefficients.shape[1])
    for part in (1.0, 0.25):
        tried = coefficients[:, left] + part * step[:, left]
        own = Target(target.chances[:, left], target.mass[:, left])
        pays = own.cost(design @ tried + offset).sum(axis=0) < before[left]
        better = better.copy()
        better[:, left[pays]] = tried[:, pays]
        left = left[~pays]
    return better
