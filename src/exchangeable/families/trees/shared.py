"""Many classes whose trees have the same edges: processed together, not one after another.

The trees of a neural mixture are of this kind: thousands of trees with the same edges, or a few
different ones.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.observed import Observed, flags
from exchangeable.families.trees.kernels.shared import (
    WIDTH,
    marginals_shared,
    mark_active,
    score_shared,
)
from exchangeable.families.trees.polynomials import nodes_of
from exchangeable.runtime.threads import row_ranges, run

FEWEST = 64
"""Minimum average number of classes with the same edges that makes it worthwhile."""
MOST_LOG_ODDS = 30.0
"""Messages are multiplied without logarithms, which probabilities closer to 0 or 1 could defeat."""
NEGLIGIBLE = 1e-22
"""Classes with a smaller share of a row do not change its marginals."""
STRETCHES = 8
"""Groups of classes that a thread scores at a time."""


class Conditionals(NamedTuple):
    """Trees with the same edges in the form of the kernels, nodes ordered with parents first.

    Attributes
    ----------
    parent : array of shape (n,)
        The parent of each node, n for a root.
    given_off, given_on : arrays of shape (n_stretches, n, WIDTH)
        P(node on | parent off) and P(node on | parent on); those of a root are equal. Groups of
        `WIDTH` trees lie together, the last one padded.
    """

    parent: IntArray
    given_off: FloatArray
    given_on: FloatArray


class SharedTrees(NamedTuple):
    """Some classes with the same edges.

    Attributes
    ----------
    classes : array
        Their numbers.
    order : array of shape (n,)
        The variable of each node.
    trees : Conditionals
        Their parameters.
    log_totals : array
        log Σ_x P(x | y), zero up to rounding.
    """

    classes: IntArray
    order: IntArray
    trees: Conditionals
    log_totals: FloatArray

    @property
    def columns(self) -> slice | IntArray:
        """The classes, as a slice if they are consecutive, so that nothing is copied."""
        begin, end = int(self.classes[0]), int(self.classes[-1]) + 1
        return slice(begin, end) if end - begin == self.classes.size else self.classes

    def score(self, states: npt.NDArray[np.int8], out: FloatArray, n_jobs: int | None) -> None:
        """Write log P(e | y) of rows with missing entries into the columns of these classes."""
        ordered, active = self._known(states)
        found = np.empty((len(states), self.classes.size))

        def one(some: tuple[int, int]) -> None:
            score_shared(ordered, active, self.trees, some, *self._room(), found)

        run(one, row_ranges(len(self.trees.given_off), STRETCHES), n_jobs)
        out[:, self.classes] = found + self.log_totals

    def add_marginals(
        self, states: npt.NDArray[np.int8], shares: FloatArray, least: FloatArray, out: FloatArray
    ) -> None:
        """Add Σ_y share_y·P(x_j = 1 | e, y) over these classes, without those below `least`."""
        ordered, active = self._known(states)
        by_node = np.zeros(states.shape)
        mine = np.ascontiguousarray(shares[:, self.classes])
        marginals_shared(ordered, active, self.trees, mine, least, *self._room(), by_node)
        out[:, self.order] += by_node

    def _known(
        self, states: npt.NDArray[np.int8]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
        """Return rows in the order of the nodes, and which nodes have known values below them."""
        ordered = np.ascontiguousarray(states[:, self.order])
        active = np.empty((len(states), self.order.size + 1), dtype=np.bool_)
        mark_active(ordered, self.trees.parent, active)
        return ordered, active

    def _room(self) -> tuple[FloatArray, FloatArray]:
        """Return the workspace for messages, and for the logarithms of their scales."""
        return np.empty((3, self.order.size + 1, WIDTH)), np.empty((3, WIDTH))


def share_edges(
    base: FloatArray, slope: FloatArray, parent: npt.NDArray[np.int32], pair: FloatArray
) -> list[SharedTrees]:
    """Return the classes by the edges they share, none if there are too many different ones."""
    left, groups = np.arange(base.size), list[IntArray]()
    while left.size:
        if (len(groups) + 1) * FEWEST > base.size:
            return []
        same = (parent[:, left] == parent[:, left[:1]]).all(axis=0)
        groups.append(left[same])
        left = left[~same]
    found = [_shared(classes, base, slope, parent, pair) for classes in groups]
    shared = [each for each in found if each is not None]
    return shared if len(shared) == len(found) else []


def _shared(
    classes: IntArray,
    base: FloatArray,
    slope: FloatArray,
    parent: npt.NDArray[np.int32],
    pair: FloatArray,
) -> SharedTrees | None:
    """Return classes with the same edges, None if some probabilities are too close to 0 or 1."""
    order, above = nodes_of(parent[:, classes[0]])
    off, on, log_totals = conditional_odds(slope[order][:, classes], above, pair[order][:, classes])
    if max(np.abs(off).max(), np.abs(on).max()) > MOST_LOG_ODDS:
        return None
    trees = Conditionals(above, _in_stretches(expit(off)), _in_stretches(expit(on)))
    return SharedTrees(classes, order, trees, base[classes] + log_totals)


def conditional_odds(
    slope: FloatArray, above: IntArray, pair: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each node's log-odds given its parent off and on, and log Σ_x exp(score of x).

    Lines are nodes in an order with parents first, `above` their parents; columns are trees.
    """
    n, n_trees = slope.shape
    off = np.concatenate([slope, np.zeros((1, n_trees))])
    on = slope + np.where(above[:, None] < n, pair, 0.0)
    log_totals = np.zeros(n_trees)
    for v in range(n - 1, -1, -1):  # of what is below a node, relative to the node off
        on[v] += off[v] - slope[v]
        down, up = np.logaddexp(0.0, off[v]), np.logaddexp(0.0, on[v])
        log_totals += down
        off[above[v]] += up - down
    return off[:n], on, log_totals


def _in_stretches(chances: FloatArray) -> FloatArray:
    """Return chances of shape (n, n_trees), stretches of trees one after the other."""
    n, k = chances.shape
    filled = np.pad(chances, ((0, 0), (0, -k % WIDTH)), constant_values=0.5)
    return np.ascontiguousarray(filled.reshape(n, -1, WIDTH).swapaxes(0, 1))


def score(
    groups: Sequence[SharedTrees], observed: Observed, n_classes: int, n_jobs: int | None
) -> FloatArray:
    """Return log P(e | y) of rows with holes, shape (n_rows, n_classes)."""
    out = np.empty((observed.n_rows, n_classes))
    for part, rows in observed.chunks():
        states = rows.symbols()
        for group in groups:
            group.score(states, out[part], n_jobs)
    return out


def score_complete(
    groups: Sequence[SharedTrees],
    observed: Observed,
    parameters: tuple[FloatArray, FloatArray, npt.NDArray[np.int32], FloatArray],
) -> FloatArray:
    """Return log P(x | y) of rows without holes by products of matrices.

    `parameters` are base, slope, parent and pair.
    """
    base, slope, parent, pair = parameters
    out = np.empty((observed.n_rows, base.size))
    for part, rows in observed.chunks():
        on = flags(rows.ones).astype(np.float64)
        wide = np.pad(on, ((0, 0), (0, 1)))
        out[part] = on @ slope + base
        for group in groups:
            both = on * wide[:, parent[:, group.classes[0]]]
            out[part, group.columns] += both @ pair[:, group.columns]
    return out


def mean_marginals(
    groups: Sequence[SharedTrees], observed: Observed, shares: FloatArray
) -> FloatArray:
    """Return Σ_y share_y·P(x_j = 1 | e, y) of every row and variable."""
    states = observed.symbols()
    out = np.zeros(states.shape)
    least = NEGLIGIBLE * shares.sum(axis=1)
    for group in groups:
        group.add_marginals(states, shares, least, out)
    return out
