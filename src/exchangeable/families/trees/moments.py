"""Probabilities of variables and edges of plain trees that share their edges."""

import numpy as np
from scipy.special import expit

from exchangeable.arrays import FloatArray
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.trees.polynomials import nodes_of
from exchangeable.families.trees.shared import conditional_odds


def tree_moments(model: TreeModel) -> tuple[FloatArray, FloatArray]:
    """Return P(x_j = 1 | y), and P(x_j = 1, x_parent(j) = 1 | y) if there are edges (0 at roots).

    Both have the shape of the slopes.

    >>> model = TreeModel.make(np.zeros(1), np.log([[1.0], [3.0]]))
    >>> tree_moments(model)[0].ravel().tolist()
    [0.5, 0.75]
    """
    if not model.parent.size:
        return expit(model.slope), np.zeros(model.parent.shape)
    means, both = np.empty(model.slope.shape), np.zeros(model.slope.shape)
    parents, group = np.unique(model.parent, axis=1, return_inverse=True)
    for number, parent in enumerate(parents.T):
        own = np.flatnonzero(group.ravel() == number)
        order, above = nodes_of(parent)
        n = order.size
        odds = conditional_odds(model.slope[order][:, own], above, model.pair[order][:, own])
        given_off, given_on = expit(odds[0]), expit(odds[1])
        chances = np.zeros((n + 1, own.size))
        pairs = np.empty((n, own.size))
        for v in range(n):
            over = chances[above[v]]
            pairs[v] = over * given_on[v]
            chances[v] = (1 - over) * given_off[v] + pairs[v]
        means[np.ix_(order, own)], both[np.ix_(order, own)] = chances[:n], pairs
    return means, both
