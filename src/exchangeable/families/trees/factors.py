"""Factors that log-odds of trees are products of, and the natural parameters these lead to."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import check_forest, needed

MOST_ODDS = 20.0
"""Log-odds are at most this."""
LARGEST = 1e6
"""No number of a factor is larger."""
MADE_AT_ONCE = 1 << 18
"""Log-odds that are made at a time, so that making them takes little memory beside them."""
FactorArray = npt.NDArray[np.float32]


class Factors(NamedTuple):
    """What log-odds are products of: those of class y are loadings[group[y]] @ (points[:, y], 1).

    Attributes
    ----------
    loadings : array of shape (n_groups, n_lines, rank + 1)
        A line for each variable: its log-odds given its parent off. Where there are edges, as many
        more: given its parent on.
    points : array of shape (rank, n_classes)
        The numbers of each class.
    group : array of shape (n_classes,)
        The group of each class.
    parent : array of shape (n_variables, n_groups), or (0, 0) where there are no edges
        Each variable's parent, the number of variables for a root; classes of a group share them.
    """

    loadings: FactorArray
    points: FactorArray
    group: npt.NDArray[np.int32]
    parent: npt.NDArray[np.int32]

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.parent) or self.loadings.shape[1]

    @property
    def n_numbers(self) -> int:
        """How many there are, without those that no class reads: of roots given a parent on."""
        n_groups, _, width = self.loadings.shape
        n = self.n_variables
        edges = int((self.parent < n).sum())
        return int(width * (n * n_groups + edges) + self.points.size)

    @property
    def n_odds(self) -> int:
        """How many log-odds they stand for."""
        return int(self.loadings.shape[1] * self.group.size)

    def odds(self) -> FloatArray:
        """Return the log-odds, shape (n_lines, n_classes)."""
        odds = np.empty((self.loadings.shape[1], self.group.size))
        for number, loadings in enumerate(self.loadings.astype(np.float64)):
            mine = np.flatnonzero(self.group == number)
            odds[:, mine] = loadings[:, :-1] @ self.points[:, mine] + loadings[:, -1:]
        return np.clip(odds, -MOST_ODDS, MOST_ODDS, out=odds)

    def only(self, classes: IntArray) -> Self:
        """Return the factors of some of the classes."""
        loadings, points, group, parent = self
        kept, mine = np.unique(group[classes], return_inverse=True)
        every = kept.size == len(loadings)
        return type(self)(
            loadings if every else loadings[kept],
            np.ascontiguousarray(points[:, classes]),
            mine.ravel().astype(np.int32),
            parent if every or not parent.size else np.ascontiguousarray(parent[:, kept]),
        )

    def stretches(self, most: int) -> Iterator[slice]:
        """Yield stretches of classes that have at most so many log-odds, or are one class."""
        step = max(1, most // self.loadings.shape[1])
        for begin in range(0, self.group.size, step):
            yield slice(begin, min(begin + step, self.group.size))


class Natural(NamedTuple):
    """Natural parameters of plain trees, as `TreeModel` has them."""

    base: FloatArray
    slope: FloatArray
    parent: npt.NDArray[np.int32]
    pair: FloatArray

    @classmethod
    def of(cls, factors: Factors) -> Self:
        """Return those that factors stand for."""
        n, k = factors.n_variables, factors.group.size
        edges = (n, k) if factors.parent.size else (0, 0)
        whole = cls(np.empty(k), np.empty((n, k)), np.empty(edges, dtype=np.int32), np.empty(edges))
        for some in factors.stretches(MADE_AT_ONCE):
            few = factors.only(np.arange(some.start, some.stop))
            odds = few.odds()
            if not factors.parent.size:
                whole.base[some] = -np.logaddexp(0.0, odds).sum(axis=0)
                whole.slope[:, some] = odds
                continue
            whole.parent[:, some] = few.parent[:, few.group]
            natural = natural_of_odds(odds, whole.parent[:, some])
            whole.base[some], whole.slope[:, some], whole.pair[:, some] = natural
        return whole


def natural_of_odds(
    odds: FloatArray, parent: npt.NDArray[np.int32]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (base, slope, pair) of trees with given log-odds, one tree per column.

    Parameters
    ----------
    odds : array of shape (2 * n_variables, n_classes)
        Log-odds of each variable given its parent off, and given its parent on; the latter are not
        read at roots.
    parent : array of shape (n_variables, n_classes)
        Each variable's parent, n_variables for a root.
    """
    n, k = parent.shape
    off, edge = odds[:n], parent < n
    empty = np.logaddexp(0.0, off)
    pair = np.where(edge, odds[n:] - off, 0.0)
    below = np.where(edge, empty - np.logaddexp(0.0, odds[n:]), 0.0)
    slope = np.concatenate([off, np.zeros((1, k))])
    np.add.at(slope, (parent, np.arange(k)), below)
    return -empty.sum(axis=0), np.ascontiguousarray(slope[:n]), pair


def checked(arrays: Mapping[str, npt.NDArray[Any]]) -> Factors:
    """Return factors that were read, having checked that they go together."""
    loadings, points, group, parent = needed(arrays, Factors._fields)
    for name, array, axes in (("loadings", loadings, 3), ("points", points, 2)):
        if array.dtype != np.float32 or array.ndim != axes:
            raise ModelFileError(f"{name} are {array.dtype} of shape {array.shape}")
        if array.size and not (array.min() >= -LARGEST and array.max() <= LARGEST):  # or NaN
            raise ModelFileError(f"{name} hold numbers that are too large, or none")
    n_groups, n_lines, width = loadings.shape
    if not loadings.size or not points.shape[1] or len(points) != width - 1:
        raise ModelFileError(f"loadings of {loadings.shape} do not go with points {points.shape}")
    if group.dtype != np.int32 or group.shape != points.shape[1:]:
        raise ModelFileError(f"group is {group.dtype} of shape {group.shape}")
    if group.min() < 0 or group.max() >= n_groups:
        raise ModelFileError("group holds a number that is out of range")
    shape = (n_lines // 2, n_groups) if parent.size else (0, 0)
    if parent.dtype != np.int32 or parent.shape != shape or (parent.size and n_lines % 2):
        raise ModelFileError(f"parent is {parent.dtype} of shape {parent.shape}")
    check_forest(parent, n_lines // 2)
    return Factors(loadings, points, group, parent)
