"""The contract of a part of a component: a block of columns of one kind.

A component is a product of parts, so scores add up and every query about a column goes to its part.
A part holds the parameters of all classes. To add one, write a file with a `Part` and name it in
`parts.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.contract import Normal
from exchangeable.families.items import ItemScale
from exchangeable.families.mixed.rows.asking import Ask, Highest, answered
from exchangeable.families.mixed.rows.passes import PartPass, PartSums, PlainPass

__all__ = [
    "Arrays",
    "Ask",
    "Highest",
    "Normal",
    "Part",
    "PartSums",
    "Prior",
    "add_sums",
    "answered",
    "csr_arrays",
    "draw_levels",
    "laid_out",
]

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Prior:
    """Pseudo-rows of every class, for one part.

    Attributes
    ----------
    alpha : float
        Laplace smoothing: the weight of each level, or of the whole training set for numbers.
    pooling : float or None
        Pseudo-rows distributed as the training set, whose own frequencies `alpha` smooths; None for
        Laplace smoothing alone.
    pooled : Part or None
        The part fitted to the training set as one class.
    row : PartSums or None
        The sums of that part over the training set, per unit of its weight.
    n_factors : int or None
        Number of factors of measurements, if it is known.
    """

    alpha: float
    pooling: float | None = None
    pooled: Any = None
    row: PartSums | None = None
    n_factors: int | None = None

    @property
    def strength(self) -> float:
        """Pseudo-rows of numbers."""
        return self.alpha if self.pooling is None else self.pooling


@dataclass(frozen=True)
class Part(ABC):
    """Distributions over some columns, one per class; missing values are NaN, and summed out.

    Parameters named `values` are the part's own columns, one line per row; parts of counts take
    sparse matrices too, in which nothing is unknown.
    """

    name: ClassVar[str]
    """Its name in files."""
    kinds: ClassVar[tuple[str, ...]]
    """Kinds of columns that it supports."""
    columns: IntArray
    types: tuple[ColumnType, ...]
    """Which columns these are, and the meaning of their numbers."""
    parameters: ClassVar[tuple[str, ...]]
    """Names of the arrays of parameters, whose last axis is that of the classes."""
    shared: ClassVar[tuple[str, ...]] = ()
    """Names of arrays that all classes share, such as the largest count of each column; when parts
    are stacked, the larger number is used."""
    alike: ClassVar[bool] = False
    """Whether columns with levels must have the same number of them."""
    latent: ClassVar[bool] = False
    """Whether sums depend on the current parameters even if no entry is missing."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(getattr(self, self.parameters[0]).shape[-1])

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Number of free parameters."""

    @classmethod
    @abstractmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Compute initial parameters: yield questions about rows, and return a part.

        Each question is answered for all rows, which may be in memory, in chunks or on a cluster.
        The answer must not depend on how equal rows are merged.
        """

    @classmethod
    def first(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        values: Any,
        mass: FloatArray,
        prior: Prior,
    ) -> Self:
        """Return parameters fitted to rows in memory, with weights `mass` in each class."""
        steps = cls.beginning(columns, types, mass.shape[1], prior)
        made: Self = answered(steps, values, mass)
        return made

    @abstractmethod
    def score(self, values: FloatArray) -> FloatArray:
        """Return log P of the known entries, shape (n_rows, n_classes)."""

    @abstractmethod
    def sums(self, values: FloatArray, mass: FloatArray) -> PartSums:
        """Return the sums for the next parameters; `mass` is the rows' weight in each class."""

    @abstractmethod
    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the parameters after one step; `careful`, after one that cannot overshoot."""

    @abstractmethod
    def log_prior(self, prior: Prior) -> float:
        """Return the log-density of the parameters under the prior, up to a constant."""

    @abstractmethod
    def predictive(self, values: FloatArray, column: int, y: int) -> FloatArray | Normal:
        """Return the distribution of a column (numbered within the part) given the known entries.

        Probabilities of levels or of the counts 0, 1, …, shape (n_rows, n_values), or `Normal`. The
        column's own entries are ignored.
        """

    @abstractmethod
    def complete(self, values: FloatArray, y: int) -> FloatArray:
        """Return the rows with missing entries replaced by the most probable ones."""

    @abstractmethod
    def draw(self, values: FloatArray, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with missing entries drawn."""

    def prepare(self, values: Any, spans: Sequence[tuple[int, int]]) -> Any:
        """Return rows, in spans, in the form that `reading` needs, for any parameters."""
        return [values[slice(*span)] for span in spans]

    def reading(self, prepared: Any) -> PartPass:
        """Return a pass over rows that were prepared."""
        return PlainPass(self, prepared)

    @property
    def reach(self) -> IntArray:
        """The largest counts that are covered; empty if there is no limit."""
        return np.empty(0, dtype=np.int64)

    def reached(self, values: Any, mass: FloatArray) -> Highest:
        """Return the reach that some rows need."""
        return Highest(self.reach)

    def widened(self, reach: IntArray) -> Self:
        """Return the part with at least a given reach."""
        return self

    def carried(self, sums: PartSums, after: Self) -> PartSums:
        """Return sums in the terms of other parameters: their reach, and their origin."""
        return sums

    def only(self, classes: IntArray) -> Self:
        """Return the part of some of the classes."""
        own: dict[str, Any] = {name: getattr(self, name)[..., classes] for name in self.parameters}
        return replace(self, **own)

    @classmethod
    def stack(cls, parts: Sequence[Self]) -> Self:
        """Return the part of all classes of several."""
        own: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=-1)
            for name in cls.parameters
        }
        common: dict[str, Any] = {
            name: np.max([getattr(p, name) for p in parts], axis=0) for name in cls.shared
        }
        return replace(parts[0], **own, **common)

    def encode(self) -> Arrays:
        """Return the parameters as arrays."""
        return {name: getattr(self, name) for name in (*self.parameters, *self.shared)}

    def on_page(self) -> Arrays:
        """Return the arrays with which a report's page computes."""
        return self.encode()

    @property
    def page_steps(self) -> float:
        """Approximate number of logarithms or exponentials of an answer on the page."""
        return 4.0 * sum(array.size for array in self.encode().values())

    @classmethod
    @abstractmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""

    def level_shares(self) -> list[FloatArray] | None:
        """Return the probabilities of each column's levels, (n_levels, n_classes) each.

        None if columns depend on each other or have no levels.
        """
        return None

    def item_scale(self) -> ItemScale | None:
        """Return the part as items of a test, if their total is sufficient."""
        return None

    def distance(self, after: Any) -> float:
        """Return how much a step has changed the parameters; 0 if one step is the whole M-step."""
        return 0.0


def add_sums(parts: Sequence[PartSums]) -> PartSums:
    """Return the sums of several sets of rows together."""
    total = {name: array.copy() for name, array in parts[0].items()}
    for part in parts[1:]:
        for name, array in part.items():
            total[name] += array
    return total


def laid_out(histogram: FloatArray, n_lines: int) -> FloatArray:
    """Return a histogram with more lines, or fewer, the last of which has all the rest.

    >>> laid_out(np.array([[1.0], [2.0], [3.0]]), 2).ravel().tolist()
    [1.0, 5.0]
    """
    wide = np.zeros((n_lines, histogram.shape[1]))
    kept = min(n_lines, len(histogram))
    wide[:kept] = histogram[:kept]
    wide[-1] += histogram[kept:].sum(axis=0)
    return wide


def csr_arrays(matrix: Any) -> tuple[IntArray, IntArray, FloatArray]:
    """Return a sparse matrix in the form of the kernels: pointers, columns and numbers."""
    return (
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int64, copy=False),
        matrix.data.astype(np.float64, copy=False),
    )


def draw_levels(shares: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a level for every row, drawn from its probabilities."""
    heights = np.cumsum(shares, axis=1)
    uniform = rng.random((len(shares), 1)) * heights[:, -1:]
    drawn = np.minimum((heights <= uniform).sum(axis=1), shares.shape[1] - 1)
    return np.asarray(drawn, dtype=np.float64)
