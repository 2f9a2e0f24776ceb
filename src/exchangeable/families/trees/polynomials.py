"""Forests over the variables, their count polynomials, and expectations given the count."""

from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common import forest_kernels
from exchangeable.families.trees.kernels import tilts as by_tilts
from exchangeable.families.trees.kernels.merges import Merges, plan_merges
from exchangeable.families.trees.kernels.workspace import Workspace
from exchangeable.runtime.threads import row_ranges, run

LARGEST_SLOPE, LARGEST_PAIR = 60.0, 15.0
"""Natural parameters of weighted trees stay within these bounds: those of a pair that always occurs
together would otherwise grow without end."""
CLASSES_PER_WORKSPACE = 8
"""Number of classes that use the same memory one after the other."""


class Forest(NamedTuple):
    """The forest of one class in the form of the kernels: nodes ordered with parents first.

    Attributes
    ----------
    order : array of shape (n,)
        The variable of each node.
    parent : array of shape (n,)
        The parent of each node, n for a root.
    slope, pair : arrays of shape (n,)
        Natural parameters of the nodes, and of the edges to their parents.
    merges : Merges
        The order in which subtrees are multiplied.
    """

    order: IntArray
    parent: IntArray
    slope: FloatArray
    pair: FloatArray
    merges: Merges

    @classmethod
    def of(cls, slope: FloatArray, parent: npt.NDArray[Any], pair: FloatArray, y: int) -> Self:
        """Return the forest of class y; `parent` and `pair` are empty if there are no edges."""
        return cls.of_each(slope, parent, pair, (y, y + 1))[0]

    @classmethod
    def of_each(
        cls,
        slope: FloatArray,
        parent: npt.NDArray[Any],
        pair: FloatArray,
        classes: tuple[int, int],
    ) -> list[Self]:
        """Return the forests of some classes; the matrices are transposed once for all of them."""
        some = slice(*classes)
        slopes = slope[:, some].T.copy()
        if not parent.size:
            edges, above = np.zeros_like(slopes), np.full(slopes.shape, slope.shape[0], np.int32)
        else:
            edges, above = pair[:, some].T.copy(), parent[:, some].T.astype(np.int32, order="C")
        forests = []
        for own, between, parents in zip(slopes, edges, above, strict=True):
            order, nodes, merges = _shape(parents.tobytes())
            forests.append(cls(order, nodes, own[order], between[order], merges))
        return forests


@lru_cache(maxsize=64)
def _shape(parents: bytes) -> tuple[IntArray, IntArray, Merges]:
    """Return the order of a forest's nodes, their parents, and the order of products.

    Parents stay the same during EM, so this is cached. The arrays must not be modified.
    """
    order, above = nodes_of(np.frombuffer(parents, dtype=np.int32))
    n = order.size
    product, end, first = np.empty((3, n + 1), dtype=np.int64)
    left, right, leaves, following, stack = np.empty((5, n), dtype=np.int64)
    merges = Merges(product, end, left, right, leaves, np.zeros(2 * n, dtype=np.int64))
    plan_merges(above, merges, first, following, stack)
    return order, above, merges


def nodes_of(parent: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Return an order of the variables in which parents come first, and the parents in that order.

    >>> [each.tolist() for each in nodes_of(np.array([2, 0, 3]))]
    [[2, 0, 1], [3, 0, 1]]
    """
    n = parent.size
    order, node = np.empty(n, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    variables = parent.astype(np.int64)
    forest_kernels.order_nodes(variables, order, node)
    return order, node[variables[order]]


def forget_shapes() -> None:
    """Free the cache of the forests that were used last."""
    _shape.cache_clear()


class CountWeights(NamedTuple):
    """Weights of trees by count, before there is a distribution of the count.

    Attributes
    ----------
    log_weights : array of shape (reach + 1, n_classes)
        log Σ exp(score) over the rows with each number of ones.
    tilts : array of shape (n_classes, reach + 1)
        The tilt that gave each count.
    """

    log_weights: FloatArray
    tilts: FloatArray


class Expected(NamedTuple):
    """Expectations of all classes, arrays of shape (n_variables, n_classes).

    Attributes
    ----------
    ones : array
        E[x_j].
    pairs : array
        E[x_j·x_parent(j)], zero for roots.
    """

    ones: FloatArray
    pairs: FloatArray


def log_counts(
    slope: FloatArray,
    parent: npt.NDArray[Any],
    pair: FloatArray,
    reach: int,
    n_jobs: int | None = None,
) -> CountWeights:
    """Return log Σ exp(score) over the rows with each number 0..reach of ones, for every class.

    The tilts that gave these counts can be used again by `expected_pairs`.
    """
    k = slope.shape[1]
    out, tilts = np.empty((k, reach + 1)), np.empty((k, reach + 1))

    def one(classes: tuple[int, int]) -> None:
        unknown = np.full(slope.shape[0], -1, dtype=np.int8)
        forests = Forest.of_each(slope, parent, pair, classes)
        workspace = Workspace.of([forest.merges for forest in forests], reach)
        for y, forest in zip(range(*classes), forests, strict=True):
            by_tilts.log_coefficients(forest, unknown, True, reach, workspace, out[y], tilts[y])

    run(one, row_ranges(k, CLASSES_PER_WORKSPACE), n_jobs)
    return CountWeights(np.ascontiguousarray(out.T), tilts)


def _expected_of_forest(
    forest: Forest,
    unknown: npt.NDArray[np.int8],
    mass: FloatArray,
    tilts: FloatArray,
    workspace: Workspace,
    of_nodes: Expected,
) -> None:
    """Write the expectations of one class without known variables, by node.

    `tilts` are those for each count, as far as they are known.
    """
    seen = np.flatnonzero(mass > 0.0)
    top = int(seen[-1]) if seen.size else 0
    if tilts.size <= top:
        tilts, scratch = np.empty(top + 1), np.empty(top + 1)
        by_tilts.log_coefficients(forest, unknown, True, top, workspace, scratch, tilts)
    by_tilts.expected(forest, unknown, mass[: top + 1], tilts, True, workspace, *of_nodes)


def expected_pairs(
    slope: FloatArray,
    parent: npt.NDArray[Any],
    pair: FloatArray,
    counts: FloatArray,
    tilts: FloatArray | None = None,
    n_jobs: int | None = None,
) -> Expected:
    """Return E[x_j] and E[x_j·x_parent(j)] of every class, given the mass of each count.

    `tilts` are those returned by `log_counts` for the same trees.
    """
    n, k = slope.shape
    known = np.empty((k, 0)) if tilts is None else tilts
    masses = np.ascontiguousarray(counts.T)
    ones, pairs = np.empty((k, n)), np.empty((k, n))

    def one(classes: tuple[int, int]) -> None:
        forests = Forest.of_each(slope, parent, pair, classes)
        workspace = Workspace.of([forest.merges for forest in forests], counts.shape[0] - 1)
        unknown, of_nodes = np.full(n, -1, dtype=np.int8), Expected(np.empty(n), np.empty(n))
        for y, forest in zip(range(*classes), forests, strict=True):
            _expected_of_forest(forest, unknown, masses[y], known[y], workspace, of_nodes)
            ones[y, forest.order], pairs[y, forest.order] = of_nodes

    run(one, row_ranges(k, CLASSES_PER_WORKSPACE), n_jobs)
    return Expected(np.ascontiguousarray(ones.T), np.ascontiguousarray(pairs.T))
