"""Trees over variables: their nodes in order, their count polynomials, and which edges to have."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common import forest_kernels
from exchangeable.families.trees import kernels
from exchangeable.families.trees.polynomial_kernels import workspace
from exchangeable.runtime.threads import row_ranges, run

SHARED_ROOM = 8
"""Classes that use the same memory one after the other."""


@dataclass(frozen=True)
class Forest:
    """One class's forest as the kernels read it: nodes in an order in which parents come first.

    Attributes
    ----------
    order : array of shape (n,)
        The variable that each node is.
    parent : array of shape (n,)
        The node that is each node's parent, n for a root.
    slope, pair : arrays of shape (n,)
        Natural parameters of the nodes, and of the edges to their parents.
    """

    order: IntArray
    parent: IntArray
    slope: FloatArray
    pair: FloatArray

    @classmethod
    def of(cls, slope: FloatArray, parent: npt.NDArray[Any], pair: FloatArray, y: int) -> Self:
        """Return the forest of class y; `parent` and `pair` are empty where there are no edges."""
        n = slope.shape[0]
        if not parent.size:
            nobody = np.full(n, n, dtype=np.int64)
            return cls(np.arange(n), nobody, slope[:, y].copy(), np.zeros(n))
        order, place = np.empty(n, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
        forest_kernels.order_nodes(parent[:, y].astype(np.int64), order, place)
        return cls(order, place[parent[order, y]], slope[order, y], pair[order, y])


def log_counts(
    slope: FloatArray,
    parent: npt.NDArray[Any],
    pair: FloatArray,
    reach: int,
    n_jobs: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return log Σ exp(score) over the rows with each number 0..reach of ones, for every class.

    Also returns the tilts that served these counts, which `expected_pairs` can use again.
    """
    k = slope.shape[1]
    out, tilts = np.empty((k, reach + 1)), np.empty((k, reach + 1))

    def some(classes: tuple[int, int]) -> None:
        room = workspace(slope.shape[0], reach)
        for y in range(*classes):
            forest = Forest.of(slope, parent, pair, y)
            kernels.log_count_weights(
                forest.parent, forest.slope, forest.pair, room, out[y], tilts[y]
            )

    run(some, row_ranges(k, SHARED_ROOM), n_jobs)
    return np.ascontiguousarray(out.T), tilts


def expected_pairs(
    slope: FloatArray,
    parent: npt.NDArray[Any],
    pair: FloatArray,
    counts: FloatArray,
    tilts: FloatArray | None = None,
    n_jobs: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return E[x_j] and E[x_j·x_parent(j)] of every class, given the mass of each count.

    `tilts` are what `log_counts` has found for the same trees.
    """
    n, k = slope.shape
    known = np.empty((k, 0)) if tilts is None else tilts
    ones, pairs = np.empty((k, n)), np.empty((k, n))

    def some(classes: tuple[int, int]) -> None:
        room = workspace(n, counts.shape[0] - 1)
        for y in range(*classes):
            forest = Forest.of(slope, parent, pair, y)
            both = np.empty((2, n))
            kernels.expected_of_forest(
                forest.parent,
                forest.slope,
                forest.pair,
                counts[:, y].copy(),
                known[y],
                room,
                both,
            )
            ones[y, forest.order], pairs[y, forest.order] = both

    run(some, row_ranges(k, SHARED_ROOM), n_jobs)
    return np.ascontiguousarray(ones.T), np.ascontiguousarray(pairs.T)
