"""Independent measurements: a normal distribution for each column and class."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed import kernels
from exchangeable.families.mixed.parts.base import Ask, Normal, Part, PartSums, Prior
from exchangeable.families.mixed.rows.passes import PartPass
from exchangeable.storage.checks import needed, numbers

LEAST_VARIANCE = 1e-12
"""Lower bound of variances, in units of the column's own."""
LOG_TWO_PI = float(np.log(2 * np.pi))
FARTHEST = 1e150


@dataclass(frozen=True)
class Normals(Part):
    """Normal distributions, one for each column and class.

    Attributes
    ----------
    means, variances : array of shape (n_columns, n_classes)
        The parameters.
    """

    name: ClassVar[str] = "normals"
    kinds: ClassVar[tuple[str, ...]] = ("continuous",)
    parameters: ClassVar[tuple[str, ...]] = ("means", "variances")
    means: FloatArray
    variances: FloatArray

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return int(2 * self.means.size)

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return weighted means and variances; a second pass around the means saves digits."""
        shape = (columns.size, n_classes)
        blank = cls(columns, types, np.zeros(shape), np.ones(shape))
        rough = blank.following((yield blank.sums), prior)
        return rough.following((yield rough.sums), prior)

    def score(self, values: FloatArray) -> FloatArray:
        """Return log P of the known entries."""
        joint = np.zeros((self.n_classes, len(values)))
        self.reading([np.ascontiguousarray(values.T)]).add_scores(0, joint)
        return joint.T

    def sums(self, values: FloatArray, mass: FloatArray) -> PartSums:
        """Return mass, and first and second moments around the current means."""
        rows = self.reading([np.ascontiguousarray(values.T)])
        return rows.sums(0, np.ascontiguousarray(mass.T))

    def prepare(self, values: FloatArray, spans: Sequence[tuple[int, int]]) -> list[FloatArray]:
        """Return the rows with a line per column."""
        return [np.ascontiguousarray(values[slice(*span)].T) for span in spans]

    def reading(self, prepared: Sequence[FloatArray]) -> "NormalPass":
        """Return a pass over rows that have a line per column."""
        return NormalPass(self, prepared)

    def carried(self, sums: PartSums, after: Self) -> PartSums:
        """Return the moments around other means."""
        weight, first, second = (sums[name] for name in ("weight", "first", "second"))
        gap = self.means - after.means
        return {
            "weight": weight,
            "first": first + weight * gap,
            "second": second + 2 * gap * first + weight * gap**2,
        }

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the means and variances of the rows and the pseudo-rows together."""
        rows, *pooled = _pseudo_rows(prior, len(self.means))
        means, variances = self.means.copy(), np.empty_like(self.variances)
        moments = sums["weight"], sums["first"], sums["second"]
        kernels.move_normals(moments, rows, tuple(pooled), LEAST_VARIANCE, means, variances)
        return type(self)(self.columns, self.types, means, variances)

    def log_prior(self, prior: Prior) -> float:
        """Return the expected score of the pseudo-rows."""
        rows, mean, variance = _pseudo_rows(prior, len(self.means))
        square = (variance + (self.means - mean) ** 2) / self.variances
        return -0.5 * rows * float((np.log(self.variances) + square).sum())

    def predictive(self, values: FloatArray, column: int, y: int) -> Normal:
        """Return the column's distribution, the same for every row."""
        mean, variance = self.means[column, y], self.variances[column, y]
        return Normal(np.full(len(values), mean), np.full(len(values), variance))

    def complete(self, values: FloatArray, y: int) -> FloatArray:
        """Return the rows with missing entries replaced by means."""
        return np.where(np.isnan(values), self.means[:, y], values)

    def draw(self, values: FloatArray, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with missing entries drawn."""
        drawn = rng.normal(self.means[:, y], np.sqrt(self.variances[:, y]), values.shape)
        return np.where(np.isnan(values), drawn, values)

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""
        means, variances = needed(arrays, ("means", "variances"))
        shape = (columns.size, means.shape[1] if means.ndim == 2 else 0)
        return cls(
            columns,
            types,
            numbers(means, "means", shape, low=-FARTHEST, high=FARTHEST),
            numbers(variances, "variances", shape, low=LEAST_VARIANCE, high=FARTHEST),
        )


class NormalPass(PartPass):
    """A pass over measurements, which have a line per column.

    Parameters
    ----------
    part : Normals
        The part.
    rows : sequence of array of shape (n_columns, n_rows)
        The measurements, for each span.
    """

    def __init__(self, part: Normals, rows: Sequence[FloatArray]) -> None:
        self.rows, self.means = rows, part.means
        self.precisions = 1 / part.variances
        self.constants = -0.5 * (LOG_TWO_PI + np.log(part.variances))

    def add_scores(self, span: int, joint: FloatArray) -> None:
        """Add log P of the known entries of a span."""
        own = self.rows[span]
        kernels.score_normals(own, self.means, self.precisions, self.constants, joint)

    def sums(self, span: int, mass: FloatArray) -> PartSums:
        """Return mass, and first and second moments around the current means."""
        weight, first, second = np.zeros((3, *self.means.shape))
        kernels.sum_normals(self.rows[span], self.means, mass, weight, first, second)
        return {"weight": weight, "first": first, "second": second}


def _pseudo_rows(prior: Prior, n_columns: int) -> tuple[float, FloatArray, FloatArray]:
    """Return the number of pseudo-rows, and their means and variances."""
    if prior.pooled is None:
        return 0.0, np.zeros((n_columns, 1)), np.ones((n_columns, 1))
    return prior.strength, prior.pooled.means, prior.pooled.variances
