"""Columns of any kind as features of linear scores, and the conversion to a distribution.

A column with levels has a feature for each level (nominal) or for each step up (binary, ordinal), a
count has one for each bin except the first that it reaches, a measurement x and x². A score that is
linear in them is a sum over columns, so columns are independent given the class: probabilities of
levels and of bins are exponentials of scores, and a quadratic score is a normal distribution. Terms
added to the scores of all classes do not change P(y | x), and make P(x) a good density.
Measurements of a block have only x, and a common covariance around the means of all classes, with
shared factors.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from exchangeable.arrays import FloatArray, IntArray, is_sparse
from exchangeable.data.columns.column import WITH_LEVELS
from exchangeable.data.columns.schema import typed_rows
from exchangeable.data.examples import Examples
from exchangeable.data.rows import NO_BITS, ColumnType, CountRows, Rows
from exchangeable.families.common.features import SharedTerms
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.mixed.model import MixedModel
from exchangeable.families.mixed.parts.base import Part, Prior
from exchangeable.families.mixed.parts.count_bins import CountBins
from exchangeable.families.mixed.parts.levels import Levels
from exchangeable.families.mixed.parts.normals import LOG_TWO_PI, Normals
from exchangeable.families.mixed.parts.tied import Tied
from exchangeable.families.mixture import Mixture, weighed
from exchangeable.families.problem import Problem
from exchangeable.partitions import Partition

SMOOTHING = 0.5
"""Pseudo-rows added to those with each level or bin."""
LEAST_PRECISION = 1e-3
"""Lower bound of variances in any class, in units of the column's own."""


@dataclass(frozen=True)
class MixedFeatures:
    """Features of some rows.

    Attributes
    ----------
    types : tuple of ColumnType
        What the numbers of each column stand for.
    discrete : list of Levels
        The parts of columns with levels, and of counts, fitted to all rows as one class.
    normals : Normals or None
        That of single measurements.
    tied : Tied or None
        That of the measurements of a block.
    ones : Rows
        The binary features.
    numbers : array of shape (n_rows, n_numbers)
        The single measurements, then their squares, and then those of a block.
    columns : array of shape (n_features,)
        The column of each feature.
    cells : array of shape (n_ones_features, 2)
        The first and last cell of each binary feature; a cell is a level or bin of a column.
    """

    types: tuple[ColumnType, ...]
    discrete: list[Levels]
    normals: Normals | None
    tied: Tied | None
    ones: Rows
    numbers: FloatArray
    columns: IntArray
    cells: IntArray

    @classmethod
    def of(cls, examples: Examples, problem: Problem) -> "MixedFeatures":
        """Return the features of rows, some of whose measurements may form a block.

        Missing levels and counts are drawn from the column's values; missing numbers have their
        mean, or in a block their expectation given the others.
        """
        rows: Any = examples.rows
        if not isinstance(rows, CountRows):
            rows = typed_rows(examples.observed)
        values = rows.matrix if isinstance(rows, CountRows) else _filled(rows.values)
        weights, types = examples.weights[:, None], rows.types
        kinds = np.array([kind.kind for kind in types])
        parts: list[Levels] = []
        for part, chosen in ((Levels, np.isin(kinds, WITH_LEVELS)), (CountBins, kinds == "count")):
            own = np.flatnonzero(chosen)
            if own.size:
                mine = tuple(types[j] for j in own)
                found = part.first(own, mine, _some(values, own), weights, Prior(SMOOTHING))
                parts.append(found)
        block = _block(problem, kinds)
        own = np.setdiff1d(np.flatnonzero(kinds == "continuous"), block)
        normals, tied, numbers = None, None, np.empty((rows.n_rows, 0))
        if own.size:
            measured, mine = rows.values[:, own], tuple(types[j] for j in own)
            normals = Normals.first(own, mine, measured, weights, Prior(0.0))
            numbers = np.concatenate([measured, measured**2], axis=1)
            squares = normals.variances[:, 0] + normals.means[:, 0] ** 2
            usual = np.concatenate([normals.means[:, 0], squares])
            numbers = np.where(np.isnan(numbers), usual, numbers)
        if block.size:
            mine = tuple(types[j] for j in block)
            values_ = np.ascontiguousarray(rows.values[:, block])
            tied = Tied.of(block, mine, values_, examples.weights, examples.clamp)
            numbers = np.concatenate([numbers, tied.filled], axis=1)
        matrices, columns, cells, begin = [], [], list[IntArray](), 0
        for part_ in parts:
            ranges, of = _ranges(part_)
            matrices.append(_ones(part_, _some(values, part_.columns), ranges, of))
            columns.append(part_.columns[of])
            cells.append(ranges + begin)
            begin += len(part_.log_shares)
        width = sum(matrix.shape[1] for matrix in matrices)
        together = sp.csr_array(sp.hstack(matrices)) if matrices else sp.csr_array((rows.n_rows, 0))
        together.sort_indices()
        indptr, indices = together.indptr.astype(np.int64), together.indices.astype(np.int32)
        ones = Rows(rows.n_rows, width, NO_BITS, indptr, indices)
        everything = np.concatenate([*columns, own, own, block]).astype(np.int64)
        pairs = np.concatenate(cells) if cells else np.empty((0, 2), dtype=np.int64)
        return cls(types, parts, normals, tied, ones, numbers, everything, pairs)

    @cached_property
    def scored(self) -> npt.NDArray[np.bool_]:
        """Which features generative scores use: for counts whether they are 0, else all ones."""
        kinds = np.array([kind.kind for kind in self.types])
        repeats = (kinds[self.columns] == "count") & np.append(
            False, self.columns[1:] == self.columns[:-1]
        )
        found = np.asarray(~repeats)
        found[len(self.cells) :] = False
        return found

    @property
    def hidden_together(self) -> IntArray:
        """Those of a count, if all columns are counts."""
        only_counts = all(kind.kind == "count" for kind in self.types)
        return self.columns if only_counts else np.empty(0, dtype=np.int64)

    @cached_property
    def _cell_column(self) -> IntArray:
        """The column of each cell."""
        found = [np.repeat(part.columns, part.sizes) for part in self.discrete]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    @cached_property
    def _starts(self) -> IntArray:
        """The first cell of each column, column after column of all parts."""
        sizes = [part.sizes for part in self.discrete]
        lengths = np.concatenate(sizes) if sizes else np.empty(0, dtype=np.int64)
        return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64) if sizes else lengths

    @cached_property
    def _target(self) -> FloatArray:
        """The frequency of each cell in all rows."""
        found = [np.exp(part.log_shares[:, 0]) for part in self.discrete]
        return np.concatenate(found) if found else np.empty(0)

    def _cell_scores(self, scores: LogLinear) -> FloatArray:
        """Return the score of each cell in each class."""
        steps: FloatArray = np.zeros((self._target.size + 1, scores.slope.shape[1]))
        slope = scores.slope[: len(self.cells)]
        np.add.at(steps, self.cells[:, 0], slope)
        np.subtract.at(steps, self.cells[:, 1] + 1, slope)
        return np.asarray(np.cumsum(steps, axis=0)[:-1])

    def start(self, scores: LogLinear) -> FloatArray:
        """Return terms under which every column is distributed nearly as in the rows."""
        own = np.asarray(np.log(self._target) - self._cell_scores(scores).mean(axis=1))
        if self.normals is None:
            return own
        once, twice = self._curves(scores)
        precision = 1 / np.maximum(self.normals.variances[:, 0], 1e-6)
        tight = 0.5 * precision + twice.mean(axis=1) - twice.max(axis=1)
        tight = np.maximum(tight, 0.05 * precision)
        first = precision * self.normals.means[:, 0] - once.mean(axis=1)
        return np.concatenate([own, first, np.log(tight)])

    @property
    def together(self) -> IntArray:
        """The columns that depend on each other within a class."""
        return np.empty(0, dtype=np.int64) if self.tied is None else self.tied.part.columns

    def _curves(self, scores: LogLinear) -> tuple[FloatArray, FloatArray]:
        """Return the scores of x and x² of each single measurement in each class."""
        slope = scores.slope[len(self.cells) : len(scores.slope) - self.together.size]
        half = len(slope) // 2
        return slope[:half], slope[half:]

    def _line(self, scores: LogLinear) -> FloatArray:
        """Return the scores of the measurements of a block in each class."""
        return scores.slope[len(scores.slope) - self.together.size :]

    def shared(self, scores: LogLinear, terms: FloatArray) -> SharedTerms:
        """Return the effect of some shared terms on scores."""
        n = self._target.size
        own = self._cell_scores(scores) + terms[:n, None]
        k, width = scores.slope.shape[1], len(self.types)
        log_totals, slope = np.zeros((width, k)), np.empty_like(terms)
        parts: list[Any] = []
        if n:
            highest = np.maximum.reduceat(own, self._starts, axis=0)
            place = np.repeat(np.arange(self._starts.size), np.diff(np.append(self._starts, n)))
            share = np.exp(own - highest[place])
            whole = np.add.reduceat(share, self._starts, axis=0)
            share /= whole[place]
            log_totals[self._cell_column[self._starts]] = highest + np.log(whole)
            parts.append(lambda grown: (grown[self._cell_column] * share).sum(axis=1))
            slope[:n] = self._target
        gain = float(terms[:n] @ self._target)
        if self.normals is not None:
            mean, precision, tight = self._normals(scores, terms)
            at = self.normals.columns
            log_totals[at] = 0.5 * (LOG_TWO_PI - np.log(precision) + mean**2 * precision)
            usual, spread = self.normals.means[:, 0], self.normals.variances[:, 0]
            squares, m = spread + usual**2, at.size
            second = -self._curves(scores)[1].max(axis=1) - tight
            gain += float(terms[n : n + m] @ usual + second @ squares)
            slope[n : n + m], slope[n + m :] = usual, -tight * squares
            parts.append(lambda grown: (grown[at] * mean).sum(axis=1))
            parts.append(lambda grown: -tight * (grown[at] * (mean**2 + 1 / precision)).sum(axis=1))
        if self.tied is not None:
            log_totals[self.together[0]] = self.tied.log_totals(self._line(scores))
            parts.append(lambda grown: np.empty(0))
        return SharedTerms(
            log_totals, gain, slope, lambda grown: np.concatenate([part(grown) for part in parts])
        )

    def _normals(
        self, scores: LogLinear, terms: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return means and precisions of measurements, and how far below all the second term is."""
        n, m = self._target.size, len(self.normals.columns) if self.normals is not None else 0
        once, twice = self._curves(scores)
        tight = np.exp(np.clip(terms[n + m :], np.log(LEAST_PRECISION), 25.0))
        precision = 2 * (twice.max(axis=1, keepdims=True) + tight[:, None] - twice)
        mean = (once + terms[n : n + m, None]) / precision
        return mean, precision, tight

    def mixture(self, scores: LogLinear, terms: FloatArray) -> Mixture:
        """Return independent columns whose P(y | x) is the softmax of the scores."""
        found = self.shared(scores, terms)
        own = self._cell_scores(scores) + terms[: self._target.size, None]
        own = own - found.log_totals[self._cell_column]
        parts, begin = list[Part](), 0
        for part in self.discrete:
            end = begin + len(part.log_shares)
            parts.append(replace(part, log_shares=np.ascontiguousarray(own[begin:end])))
            begin = end
        if self.normals is not None:
            mean, precision, _ = self._normals(scores, terms)
            parts.append(replace(self.normals, means=mean, variances=1 / precision))
        labels = np.arange(len(self.types), dtype=np.int64)
        if self.tied is not None:
            parts.append(self.tied.weighed(self._line(scores)))
            labels[self.together] = self.together[0]
            labels = Partition.from_labels(labels).labels.astype(np.int64)
        model = MixedModel(self.types, parts, labels)
        return weighed(model, scores.base + found.log_totals.sum(axis=0))[0]


def _block(problem: Problem, kinds: npt.NDArray[Any]) -> IntArray:
    """Return the measurements that depend on each other: those of the largest block."""
    known = problem.known_partitions(kinds.size)
    blocks = [] if known is None else known[0].blocks
    found = [each[kinds[each] == "continuous"] for each in blocks]
    largest = max(found, key=len, default=np.empty(0, dtype=np.int64))
    return np.asarray(largest if largest.size > 1 else largest[:0], dtype=np.int64)


def _some(values: Any, columns: IntArray) -> Any:
    """Return some columns."""
    if columns.size == values.shape[1]:
        return values
    own = values[:, columns]
    return own if is_sparse(own) else np.ascontiguousarray(own)


def _filled(values: FloatArray) -> FloatArray:
    """Return values with missing ones drawn at random from their column."""
    filled, rng = np.array(values), np.random.default_rng(0)
    for column in filled.T:
        holes = np.isnan(column)
        if holes.any():
            column[holes] = rng.choice(column[~holes], holes.sum()) if not holes.all() else 0.0
    return filled


def _ranges(part: Levels) -> tuple[IntArray, IntArray]:
    """Return the first and last cell with each feature of a part, and the column of each.

    A nominal column has a feature for each level; others have one for each cell except the first,
    which is on from that cell on.
    """
    firsts, lasts, columns = list[IntArray](), list[IntArray](), list[IntArray]()
    for j, (begin, size, kind) in enumerate(zip(part.starts, part.sizes, part.types, strict=True)):
        nominal = kind.kind == "nominal"
        first = np.arange(begin + (0 if nominal else 1), begin + size)
        firsts.append(first)
        lasts.append(first if nominal else np.full(first.size, begin + size - 1))
        columns.append(np.full(first.size, j))
    pairs = np.stack([np.concatenate(firsts), np.concatenate(lasts)], axis=1)
    return pairs.astype(np.int64), np.concatenate(columns).astype(np.int64)


def _ones(part: Levels, values: Any, ranges: IntArray, of: IntArray) -> Any:
    """Return which features of a part are on in each row, as a sparse matrix."""
    if is_sparse(values):
        assert isinstance(part, CountBins)
        at = values.indices.astype(np.int64)
        bins = part.bins(values.data, at).astype(np.int64)
        row = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        before = np.searchsorted(of, np.arange(part.columns.size))
        column = np.repeat(before[at] - np.cumsum(bins) + bins, bins) + np.arange(bins.sum())
        data = np.ones(column.size, dtype=np.int8)
        return sp.csr_array((data, (np.repeat(row, bins), column)), (values.shape[0], of.size))
    if isinstance(part, CountBins):
        values = part.bins(values, np.broadcast_to(np.arange(values.shape[1]), values.shape))
    cells = values[:, of] + part.starts[of]
    return sp.csr_array((cells >= ranges[:, 0]) & (cells <= ranges[:, 1]))
