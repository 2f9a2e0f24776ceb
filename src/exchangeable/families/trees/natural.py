"""Natural parameters of trees, given the probabilities of their variables and edges."""

from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.trees.model import ParentArray

LEAST = 1e-12
"""No cell of a pair has a smaller probability."""
LEAST_MEAN = 4 * LEAST
"""No variable is on, or off, with a smaller probability."""


class Edges(NamedTuple):
    """The edges of several trees, one tree per column of matrices that are read line by line.

    Attributes
    ----------
    below, above : arrays of shape (n_edges,)
        The entries of each edge's variable and of its parent.
    tree : array of shape (n_edges,)
        The tree of each edge.
    """

    below: IntArray
    above: IntArray
    tree: IntArray

    @classmethod
    def of(cls, parent: ParentArray) -> Self:
        """Return the edges, given each variable's parent in every tree, n for a root."""
        n, n_trees = parent.shape
        below = np.flatnonzero(parent.ravel() < n)
        tree = below % n_trees
        return cls(below, parent.ravel()[below].astype(np.int64) * n_trees + tree, tree)


def natural_parameters(
    means: FloatArray, both: FloatArray, edges: Edges
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (base, slope, pair) of the trees with given probabilities, one tree per column.

    Parameters
    ----------
    means : array of shape (n, n_classes)
        P(x_j = 1).
    both : array of shape (n, n_classes)
        P(x_j = 1, x_parent(j) = 1); ignored at roots.
    edges : Edges
        The edges of the trees.
    """
    below, above, tree = edges
    means = np.clip(means, LEAST_MEAN, 1 - LEAST_MEAN)
    off = np.log1p(-means)
    alone = (np.log(means) - off).ravel()
    slope, pair, log_off = alone.copy(), np.zeros(means.size), off.ravel()
    p, q = means.ravel()[below], means.ravel()[above]
    # Every cell has some probability, and the cells of an edge keep its margins, so the tree sums
    # to one whatever the probabilities are.
    least, most = np.maximum(p + q - 1, 0) + LEAST, np.minimum(p, q) - LEAST
    on = np.clip(both.ravel()[below], least, most)
    cells = (on, p - on, q - on, 1 - p - q + on)
    log_11, log_10, log_01, log_00 = (np.log(cell) for cell in cells)
    pair[below] = log_11 + log_00 - log_10 - log_01
    slope[below] += log_10 - log_00 - alone[below]
    np.add.at(slope, above, log_01 - log_00 - alone[above])
    base = off.sum(axis=0)
    base += np.bincount(tree, log_00 - log_off[below] - log_off[above], minlength=base.size)
    return base, slope.reshape(means.shape), pair.reshape(means.shape)
