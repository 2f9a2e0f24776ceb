"""Thousands of plain trees with few parameters each: their log-odds are products of two factors.

The log-odds of the components of a network come from its last layer, which is linear: as a matrix
they have a rank that is far below the number of variables, or nearly so. What is kept, and counted,
are the factors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common.log_linear.scores import NO_NUMBERS, NO_PARENTS
from exchangeable.families.contract import Arrays
from exchangeable.families.trees.model import ParentArray, TreeModel
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import check_forest, needed
from exchangeable.storage.limits import Budget

MOST_ODDS = 20.0
"""Log-odds are at most this."""
LARGEST = 1e6
"""No number of a factor is larger."""
STEPS_PER_ODDS = 100.0
"""What it takes to make a log-odds and what queries need of it, in nanoseconds."""
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
    parent: ParentArray

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

    def odds(self) -> FloatArray:
        """Return the log-odds, shape (n_lines, n_classes)."""
        odds = np.empty((self.loadings.shape[1], self.group.size))
        for number, loadings in enumerate(self.loadings.astype(np.float64)):
            mine = np.flatnonzero(self.group == number)
            odds[:, mine] = loadings[:, :-1] @ self.points[:, mine] + loadings[:, -1:]
        return np.clip(odds, -MOST_ODDS, MOST_ODDS, out=odds)


NO_FACTORS = Factors(
    np.empty((0, 0, 1), dtype=np.float32),
    np.empty((0, 0), dtype=np.float32),
    np.empty(0, dtype=np.int32),
    NO_PARENTS,
)


@dataclass(frozen=True)
class FactoredTrees(TreeModel):
    """Plain trees, or independent variables, that keep the factors of their log-odds.

    Attributes
    ----------
    factors : Factors
        The factors, from which everything else is computed.
    """

    kind: ClassVar[str] = "factored trees"
    factors: Factors = NO_FACTORS

    @classmethod
    def of(cls, factors: Factors) -> Self:
        """Return the trees that factors stand for."""
        odds = factors.odds()
        if not factors.parent.size:
            base = -np.logaddexp(0.0, odds).sum(axis=0)
            return cls(base, odds, NO_PARENTS, NO_NUMBERS, NO_NUMBERS, factors=factors)
        parent = np.ascontiguousarray(factors.parent[:, factors.group])
        base, slope, pair = natural_of_odds(odds, parent)
        return cls(base, slope, parent, pair, NO_NUMBERS, factors=factors)

    @property
    def n_parameters(self) -> int:
        """Number of entries of the factors."""
        return self.factors.n_numbers

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes."""
        loadings, points, group, parent = self.factors
        kept, mine = np.unique(group[classes], return_inverse=True)
        return self.of(
            Factors(
                loadings[kept],
                np.ascontiguousarray(points[:, classes]),
                mine.ravel().astype(np.int32),
                np.ascontiguousarray(parent[:, kept]) if parent.size else parent,
            )
        )

    @classmethod
    def stack(cls, models: Sequence[Any]) -> Self:
        """Return the model of all classes of several models, including their groups."""
        each = [model.factors for model in models]
        rank = max(len(factors.points) for factors in each)
        loadings, points = list[FactorArray](), list[FactorArray]()
        for factors in each:
            more = rank - len(factors.points)
            loadings.append(np.insert(factors.loadings, [len(factors.points)] * more, 0, axis=2))
            points.append(np.pad(factors.points, ((0, more), (0, 0))))
        begins = np.cumsum([0, *(len(factors.loadings) for factors in each[:-1])])
        groups = [factors.group + begin for factors, begin in zip(each, begins, strict=True)]
        return cls.of(
            Factors(
                np.concatenate(loadings),
                np.concatenate(points, axis=1),
                np.concatenate(groups).astype(np.int32),
                np.concatenate([factors.parent for factors in each], axis=1),
            )
        )

    def encode(self) -> Arrays:
        """Return the factors as arrays for a file."""
        return dict(self.factors._asdict())

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model of arrays that were read, everything checked."""
        return cls.of(_checked(arrays))

    @classmethod
    def read(cls, arrays: Mapping[str, npt.NDArray[Any]], budget: Budget | None = None) -> Self:
        """Return the model of arrays that were read, if it is small enough and adds up to one."""
        budget = budget or Budget()
        factors = _checked(arrays)
        entries = float(factors.loadings.shape[1]) * factors.group.size
        budget.spend(entries * (STEPS_PER_ODDS + len(factors.points)), f"a model of {cls.kind}")
        return super().read(arrays, budget)


def natural_of_odds(
    odds: FloatArray, parent: ParentArray
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


def _checked(arrays: Mapping[str, npt.NDArray[Any]]) -> Factors:
    """Return factors that were read."""
    loadings, points, group, parent = needed(arrays, Factors._fields)
    for name, array, axes in (("loadings", loadings, 3), ("points", points, 2)):
        if array.dtype != np.float32 or array.ndim != axes:
            raise ModelFileError(f"{name} are {array.dtype} of shape {array.shape}")
        if array.size and not np.abs(array).max() <= LARGEST:  # true for NaN too
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
