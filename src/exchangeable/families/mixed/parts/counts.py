"""Independent counts: a negative binomial distribution for each column and class."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, is_sparse
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed import kernels
from exchangeable.families.mixed.algebra.totals import (
    MOST,
    checked_largest,
    checked_totals,
    draw_counts,
    fit_columns,
    highest_count,
    likeliest_count,
    log_counts,
    log_pairs,
)
from exchangeable.families.mixed.parts.base import Ask, Highest, Part, PartSums, Prior, csr_arrays
from exchangeable.families.mixed.parts.levels import score_by_table
from exchangeable.storage.checks import needed


@dataclass(frozen=True)
class Counts(Part):
    """Negative binomial distributions, one for each column and class.

    Attributes
    ----------
    means, sizes : array of shape (n_columns, n_classes)
        The parameters: the variance is mean + mean² / size, and an infinite size stands for
        Poisson's distribution.
    largest : array of shape (n_columns,)
        The largest count that is fitted.
    """

    name: ClassVar[str] = "counts"
    kinds: ClassVar[tuple[str, ...]] = ("count",)
    parameters: ClassVar[tuple[str, ...]] = ("means", "sizes")
    shared: ClassVar[tuple[str, ...]] = ("largest",)
    means: FloatArray
    sizes: FloatArray
    largest: IntArray

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return int(2 * self.means.size)

    @cached_property
    def starts(self) -> IntArray:
        """The start of each column's counts in a histogram of all."""
        return np.concatenate([[0], np.cumsum(self.largest + 1)[:-1]]).astype(np.int64)

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return the maximum likelihood parameters."""
        largest = (yield largest_counts).numbers
        check_largest(largest)
        shape = (columns.size, n_classes)
        blank = cls(columns, types, np.ones(shape), np.full(shape, np.inf), largest)
        return blank.following((yield blank.sums), prior)

    @property
    def reach(self) -> IntArray:
        """The largest count of each column."""
        return self.largest

    def reached(self, values: Any, mass: FloatArray) -> Highest:
        """Return the largest count of each column of some rows."""
        return largest_counts(values, mass)

    def widened(self, reach: IntArray) -> Self:
        """Return the part with a larger reach."""
        largest = np.maximum(self.largest, reach)
        check_largest(largest)
        return self if np.array_equal(largest, self.largest) else replace(self, largest=largest)

    def carried(self, sums: PartSums, after: Self) -> PartSums:
        """Return the mass of each count in the terms of a part with another reach."""
        if np.array_equal(self.largest, after.largest):
            return sums
        column, count = self._cells
        end = after.largest[column]
        place = after.starts[column] + np.minimum(count, end).astype(np.int64)
        histogram = np.zeros((int((after.largest + 1).sum()), sums["histogram"].shape[1]))
        np.add.at(histogram, place, sums["histogram"])
        return {"histogram": histogram}

    def score(self, values: Any) -> FloatArray:
        """Return log P of the known entries."""
        if is_sparse(values):
            return self._sparse_score(values)
        if (np.nan_to_num(values) <= self.largest).all():
            return score_by_table(values, self.starts, self._table)
        out = np.zeros((len(values), self.n_classes))
        for j in range(self.columns.size):
            known = ~np.isnan(values[:, j])
            distinct, codes = np.unique(values[known, j], return_inverse=True)
            out[known] += log_counts(distinct, self.means[j], self.sizes[j])[codes]
        return out

    def _sparse_score(self, values: Any) -> FloatArray:
        """Return log P of rows whose counts are mostly 0."""
        zeros, more = self._table[self.starts], np.array(self._table)
        more -= np.repeat(zeros, self.largest + 1, axis=0)
        out = np.tile(zeros.sum(axis=0), (values.shape[0], 1))
        kernels.score_entries(*csr_arrays(values), self.starts, self.largest, more, out)
        at = values.indices
        beyond = np.flatnonzero(values.data > self.largest[at])
        if beyond.size:
            row = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))[beyond]
            at = at[beyond]
            each = log_pairs(values.data[beyond, None], self.means[at], self.sizes[at])
            np.add.at(out, row, each - zeros[at])
        return out

    @cached_property
    def _cells(self) -> tuple[IntArray, FloatArray]:
        """The column and the count of each line of a histogram of all."""
        column = np.repeat(np.arange(self.columns.size), self.largest + 1)
        return column, (np.arange(column.size) - self.starts[column]).astype(np.float64)

    @cached_property
    def _table(self) -> FloatArray:
        """Log-probabilities of the counts of all columns, up to the largest that are fitted."""
        column, count = self._cells
        return log_pairs(count[:, None], self.means[column], self.sizes[column])

    def sums(self, values: Any, mass: FloatArray) -> PartSums:
        """Return the mass of each count; those beyond the largest count as the largest."""
        histogram = np.zeros((int((self.largest + 1).sum()), mass.shape[1]))
        if is_sparse(values):
            histogram[self.starts] = mass.sum(axis=0)
            indptr, indices, counts = csr_arrays(values)
            arrays = indptr, indices, np.minimum(counts, self.largest[indices])
            kernels.sum_entries(*arrays, self.starts, np.ascontiguousarray(mass), histogram)
            np.maximum(histogram, 0.0, out=histogram)
        else:
            if (values > self.largest).any():
                values = np.minimum(values, self.largest)
            kernels.sum_levels(values, self.starts, np.ascontiguousarray(mass), histogram)
        return {"histogram": histogram}

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the maximum likelihood parameters for counts and pseudo-rows."""
        histogram = np.ascontiguousarray(sums["histogram"] + self._pseudo_rows(prior))
        means, sizes = fit_columns(histogram, self.largest + 1)
        return replace(self, means=means, sizes=sizes)

    def _pseudo_rows(self, prior: Prior) -> FloatArray:
        """Return the prior's weight of each count of each column."""
        if prior.pooled is None:
            return np.zeros((1, 1))
        column, count = self._cells
        pooled = prior.pooled
        shares = np.exp(log_pairs(count[:, None], pooled.means[column], pooled.sizes[column]))
        whole = np.add.reduceat(shares, self.starts, axis=0)
        return np.asarray(prior.strength * shares / whole[column])

    def log_prior(self, prior: Prior) -> float:
        """Return the score of the pseudo-rows."""
        return float((self._pseudo_rows(prior) * self._table).sum())

    def predictive(self, values: FloatArray, column: int, y: int) -> FloatArray:
        """Return the probabilities of the counts, the same for every row."""
        means, sizes = self.means[column, y : y + 1], self.sizes[column, y : y + 1]
        counts = np.arange(highest_count(means, sizes) + 1.0)
        return np.tile(np.exp(log_counts(counts, means, sizes))[:, 0], (len(values), 1))

    def complete(self, values: FloatArray, y: int) -> FloatArray:
        """Return the rows with missing entries replaced by the most probable counts."""
        best = [
            likeliest_count(m, s) for m, s in zip(self.means[:, y], self.sizes[:, y], strict=True)
        ]
        return np.where(np.isnan(values), best, values)

    def draw(self, values: FloatArray, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with missing entries drawn."""
        drawn = np.array(values)
        for j in range(self.columns.size):
            open_rows = np.flatnonzero(np.isnan(values[:, j]))
            drawn[open_rows, j] = draw_counts(
                self.means[j, y], self.sizes[j, y], open_rows.size, rng
            )
        return drawn

    @property
    def page_steps(self) -> float:
        """Approximate number of logarithms or exponentials of an answer on the page."""
        ends = highest_count(self.means, self.sizes)
        return float(ends * self.means.size)

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""
        means, sizes, largest = needed(arrays, ("means", "sizes", "largest"))
        shape = (columns.size, means.shape[1] if means.ndim == 2 else 0)
        largest = checked_largest(largest, columns.size)
        means, sizes = checked_totals(means, sizes, shape)
        return cls(columns, types, means, sizes, largest)


def largest_counts(values: Any, mass: FloatArray) -> Highest:
    """Return the largest count of each column."""
    if is_sparse(values):
        largest = np.zeros(values.shape[1], dtype=np.int64)
        np.maximum.at(largest, values.indices, values.data.astype(np.int64))
        return Highest(largest)
    return Highest(np.nan_to_num(np.nanmax(values, axis=0, initial=0.0)).astype(np.int64))


def check_largest(largest: IntArray) -> None:
    """Reject counts that are too large for a table of all."""
    if largest.max(initial=0) > MOST:
        raise ValueError(
            f"a column of counts holds {largest.max():,}; the limit is {MOST:,}: say by kinds that "
            "it is continuous"
        )
