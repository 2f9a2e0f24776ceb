"""Independent counts in bins: classes differ in the probabilities of bins, not within bins.

P(x | y) = P(bin of x | y)·P(x | bin), where the last factor is that of one negative binomial
distribution for all classes. So any score that depends only on the bin defines a distribution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from exchangeable.arrays import FloatArray, IntArray, is_sparse
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.algebra.totals import (
    LEAST_MEAN,
    MOST,
    SMALLEST_SIZE,
    TAIL,
    fit_columns,
    log_pairs,
)
from exchangeable.families.mixed.parts.base import Arrays, Part, PartSums, Prior
from exchangeable.families.mixed.parts.counts import check_largest
from exchangeable.families.mixed.parts.levels import Levels
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import CLOSE, check_columns, needed, numbers

LOWS = np.array([0, 1, 2, 4, 8, 16, 32], dtype=np.int64)
"""The lowest counts of bins; a column has those that occur."""
FARTHEST_SIZE = 1e9
"""Represents the infinite size of Poisson's distribution."""


@dataclass(frozen=True)
class CountBins(Levels):
    """Distributions of counts that are categorical over bins, one for each column and class.

    Attributes
    ----------
    log_shares : array of shape (n_bins, n_classes)
        Log-probabilities of the bins of all columns, one column after another.
    lows : array of shape (n_bins,)
        The lowest count of each bin; 0 begins a column.
    usual : array of shape (2, n_columns)
        Mean and size of the negative binomial distribution within the bins of each column.
    """

    name: ClassVar[str] = "count bins"
    kinds: ClassVar[tuple[str, ...]] = ("count",)
    shared: ClassVar[tuple[str, ...]] = ("lows", "usual")
    lows: IntArray
    usual: FloatArray

    @cached_property
    def starts(self) -> IntArray:
        """The start of each column's bins."""
        return np.flatnonzero(self.lows == 0)

    @cached_property
    def sizes(self) -> IntArray:
        """Number of bins of each column."""
        return np.diff(np.append(self.starts, self.lows.size))

    @classmethod
    def first(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        values: Any,
        mass: FloatArray,
        prior: Prior,
    ) -> Self:
        """Return the frequencies of bins, and the distribution within bins over all rows."""
        everything = mass.sum(axis=1, keepdims=True)
        largest, histogram = _histogram(values, everything)
        lows = np.concatenate([LOWS[(LOWS == 0) | (end >= LOWS)] for end in largest])
        usual = np.stack([each[:, 0] for each in fit_columns(histogram, largest + 1)])
        usual[1] = np.minimum(usual[1], FARTHEST_SIZE)
        blank = cls(columns, types, np.zeros((lows.size, mass.shape[1])), lows, usual)
        return blank.following(blank.sums(values, mass), prior)

    def bins(self, values: FloatArray, columns: IntArray) -> FloatArray:
        """Return the bin of each count of some columns, NaN if missing."""
        known = np.where(np.isnan(values), 0, values)
        most = int(self.sizes.max())
        table = np.full((self.columns.size, most), np.iinfo(np.int64).max)
        for rank in range(most):
            having = self.sizes > rank
            table[having, rank] = self.lows[self.starts[having] + rank]
        found = (known[..., None] >= table[columns]).sum(axis=-1) - 1.0
        return np.where(np.isnan(values), np.nan, found)

    @cached_property
    def _log_mass(self) -> FloatArray:
        """Log-probability of each bin under the overall distribution."""
        out = np.empty(self.lows.size)
        column = np.repeat(np.arange(self.columns.size), self.sizes)
        last = np.append(self.lows[1:] == 0, True)
        means, sizes = self.usual[:, column]
        share = sizes / (sizes + means)
        out[last] = stats.nbinom.logsf(self.lows[last] - 1, sizes[last], share[last])
        for low, following in pairwise(LOWS):
            here = np.flatnonzero((self.lows == low) & ~last)
            counts = np.arange(low, following, dtype=np.float64)
            each = log_pairs(counts, means[here, None], sizes[here, None])
            out[here] = special.logsumexp(each, axis=1)
        return out

    def _inside(self, counts: FloatArray, columns: IntArray, cells: IntArray) -> FloatArray:
        """Return log P of counts given their bins."""
        means, sizes = self.usual[:, columns]
        return np.asarray(log_pairs(counts, means, sizes) - self._log_mass[cells])

    def score(self, values: Any) -> FloatArray:
        """Return log P of the known entries."""
        if is_sparse(values):
            return self._sparse_score(values)
        everywhere = np.broadcast_to(np.arange(self.columns.size), values.shape)
        bins = self.bins(values, everywhere)
        known = ~np.isnan(values)
        cells = np.where(known, self.starts + np.nan_to_num(bins), 0).astype(np.int64)
        inside = self._inside(np.nan_to_num(values), everywhere, cells)
        return np.asarray(super().score(bins) + np.where(known, inside, 0.0).sum(axis=1)[:, None])

    def _sparse_score(self, values: Any) -> FloatArray:
        """Return log P of rows whose counts are mostly 0."""
        at, n_rows = values.indices.astype(np.int64), values.shape[0]
        cells = self.starts[at] + self.bins(values.data, at).astype(np.int64)
        columns = np.arange(self.columns.size)
        zeros = self.log_shares[self.starts]
        nothing = self._inside(np.zeros(columns.size), columns, self.starts)
        out = np.tile(zeros.sum(axis=0) + nothing.sum(), (n_rows, 1))
        row = np.repeat(np.arange(n_rows), np.diff(values.indptr))
        more = self._inside(values.data, at, cells) - nothing[at]
        each = self.log_shares[cells] - zeros[at] + more[:, None]
        filled = np.flatnonzero(np.diff(values.indptr))
        if filled.size:
            out[np.unique(row)] += np.add.reduceat(each, values.indptr[filled], axis=0)
        return out

    def sums(self, values: Any, mass: FloatArray) -> PartSums:
        """Return the mass of each bin."""
        if not is_sparse(values):
            everywhere = np.broadcast_to(np.arange(self.columns.size), values.shape)
            return super().sums(self.bins(values, everywhere), mass)
        at = values.indices.astype(np.int64)
        cells = self.starts[at] + self.bins(values.data, at).astype(np.int64)
        levels = np.zeros((self.lows.size, mass.shape[1]))
        levels[self.starts] = mass.sum(axis=0)
        row = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        for y in range(mass.shape[1]):
            weight = mass[row, y]
            levels[:, y] += np.bincount(cells, weight, minlength=self.lows.size)
            levels[:, y] -= np.bincount(self.starts[at], weight, minlength=self.lows.size)
        return {"levels": np.maximum(levels, 0.0)}

    def prepare(self, values: Any, spans: Sequence[tuple[int, int]]) -> Any:
        """Return the rows unchanged: bins have no codes."""
        return Part.prepare(self, values, spans)

    def reading(self, prepared: Any) -> Any:
        """Return a plain pass over rows."""
        return Part.reading(self, prepared)

    def on_page(self) -> Arrays:
        """Return the parameters, the mass of bins, and the largest count of each column."""
        ends = np.array([self.shares(j, 0).size - 1 for j in range(self.columns.size)])
        return {**self.encode(), "mass": self._log_mass, "ends": ends}

    @property
    def page_steps(self) -> float:
        """Approximate number of logarithms or exponentials of an answer on the page."""
        return 4.0 * self.n_classes * sum(self.shares(j, 0).size for j in range(self.columns.size))

    def shares(self, column: int, y: int) -> FloatArray:
        """Return the probabilities of the counts 0, 1, … of a column."""
        begin, n_bins = self.starts[column], self.sizes[column]
        mean, size = self.usual[:, column]
        tail = TAIL * np.exp(self._log_mass[begin + n_bins - 1])
        end = int(stats.nbinom.isf(tail, size, size / (size + mean)))
        end = max(end, int(self.lows[begin + n_bins - 1])) + 1
        counts = np.arange(end + 1.0)
        columns = np.full(end + 1, column)
        cells = begin + self.bins(counts, columns).astype(np.int64)
        log_p = self.log_shares[cells, y] + self._inside(counts, columns, cells)
        return np.asarray(np.exp(log_p))

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""
        log_shares, lows, usual = needed(arrays, ("log_shares", "lows", "usual"))
        k = log_shares.shape[1] if log_shares.ndim == 2 else 0
        good = lows.dtype == np.int64 and lows.ndim == 1 and lows.size > 0 and lows[0] == 0
        rank = np.searchsorted(LOWS, lows) if good else np.zeros(1, dtype=np.int64)
        good = good and np.isin(lows, LOWS).all() and (lows == 0).sum() == columns.size
        if not good or not ((np.diff(rank) == 1) | (lows[1:] == 0)).all():
            raise ModelFileError("lows are not the bins of the columns")
        shares = numbers(log_shares, "log_shares", (lows.size, k), low=-np.inf, high=CLOSE)
        usual = numbers(usual, "usual", (2, columns.size), low=LEAST_MEAN, high=FARTHEST_SIZE)
        if usual[0].max() > MOST or usual[1].min() < 0.9 * SMALLEST_SIZE:
            raise ModelFileError("usual holds a mean or size that is out of range")
        part = cls(columns, types, shares, lows, usual)
        check_columns(part.log_shares, part.starts, "log_shares")
        return part


def _histogram(values: Any, weight: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the largest count of each column, and the weight of all counts of all columns."""
    if is_sparse(values):
        largest = values.max(axis=0).toarray().ravel().astype(np.int64)
        row = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        column, counts = values.indices.astype(np.int64), values.data.astype(np.int64)
    else:
        largest = np.nan_to_num(np.nanmax(values, axis=0, initial=0.0)).astype(np.int64)
        row, column = np.nonzero(np.nan_to_num(values) > 0)
        counts = values[row, column].astype(np.int64)
    check_largest(largest)
    starts = np.concatenate([[0], np.cumsum(largest + 1)])
    histogram = np.bincount(starts[column] + counts, weight[row, 0], minlength=int(starts[-1]))
    seen = np.bincount(column, weight[row, 0], minlength=largest.size)
    whole = np.full(largest.size, weight.sum())
    if not is_sparse(values):
        whole = (~np.isnan(values)).T @ weight[:, 0]
    histogram[starts[:-1]] = np.maximum(whole - seen, 0.0)
    return largest, np.ascontiguousarray(histogram[:, None], dtype=np.float64)
