"""Labelled, weighted rows in the form that conditional fits need: by row and by variable."""

import itertools
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import listed
from exchangeable.data.observed import flags
from exchangeable.data.rows import Rows, take_rows
from exchangeable.fitting.hybrid import kernels
from exchangeable.runtime.threads import row_ranges, run

PARTS, PART = 16, 1 << 15
"""Rows and variables are divided into at most this many parts, of at least this many entries,
whatever the number of threads."""

NO_NUMBERS = np.empty((0, 0))
ALL_SCORED = np.empty(0, dtype=np.bool_)
EACH_BY_ITSELF = np.empty(0, dtype=np.int64)


def ones_of_rows(rows: Rows) -> Rows:
    """Return rows as lists of their ones."""
    known = listed(rows)
    if known.indptr.size:
        return known
    matrix = sp.csr_array(flags(rows))
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return Rows(rows.n_rows, rows.n_variables, rows.bits[:0], indptr, indices)


@dataclass(frozen=True)
class Design:
    """Labelled rows.

    Attributes
    ----------
    rows : Rows
        The rows, as lists of their ones.
    labels : array of shape (n_rows,)
        The number of each row's class.
    weights : array of shape (n_rows,)
        Weight of each row.
    n_classes : int
        Number of classes.
    numbers : array of shape (n_rows, n_numbers) or (0, 0)
        Variables that are numbers; they follow those of `rows`.
    scored : array of bool of shape (n_variables,) or (0,)
        Which variables generative scores use; empty for all of `rows`.
    hidden_together : array of int of shape (n_variables,) or (0,)
        Group numbers of variables that are known or hidden together; empty if each is by itself.
    """

    rows: Rows
    labels: IntArray
    weights: FloatArray
    n_classes: int
    numbers: FloatArray = field(default_factory=lambda: NO_NUMBERS)
    scored: npt.NDArray[np.bool_] = field(default_factory=lambda: ALL_SCORED)
    hidden_together: IntArray = field(default_factory=lambda: EACH_BY_ITSELF)

    @property
    def n_variables(self) -> int:
        """Number of variables, including numbers."""
        return self.rows.n_variables + int(self.numbers.shape[1])

    @property
    def width(self) -> int:
        """Number of columns of the slopes: one is enough for two classes."""
        return 1 if self.n_classes == 2 else self.n_classes

    @cached_property
    def total(self) -> float:
        """The total weight of the rows."""
        return float(self.weights.sum())

    @cached_property
    def columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """First entry of each variable, and the rows in which it is on."""
        ones = np.ones(self.rows.indices.size, dtype=np.int8)
        shape = (self.rows.n_rows, self.rows.n_variables)
        matrix = sp.csr_array((ones, self.rows.indices, self.rows.indptr), shape=shape).tocsc()
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)

    @cached_property
    def ones(self) -> FloatArray:
        """The weight of the rows in which each variable is on; for numbers, times their squares."""
        weights = np.repeat(self.weights, np.diff(self.rows.indptr))
        ones = np.bincount(self.rows.indices, weights, self.rows.n_variables)
        squares = self.weights @ self.numbers**2 if self.numbers.size else np.empty(0)
        return np.concatenate([ones, squares]).astype(np.float64)

    def take(self, chosen: IntArray) -> "Design":
        """Return some of the rows."""
        rows = take_rows(self.rows, chosen)
        numbers = self.numbers[chosen] if self.numbers.size else self.numbers
        own = self.labels[chosen], self.weights[chosen]
        return Design(rows, *own, self.n_classes, numbers, self.scored, self.hidden_together)

    def scores(self, slope: FloatArray, start: FloatArray, n_jobs: int | None = None) -> FloatArray:
        """Return start + Σ_j slope[j]·x_j of each row; `start` broadcasts to all rows."""
        out = np.empty((self.rows.n_rows, slope.shape[1]))
        out[:] = start
        indptr, indices = self.rows.indptr, self.rows.indices
        lines = np.ascontiguousarray(slope[: self.rows.n_variables])

        def one(span: tuple[int, int]) -> None:
            kernels.add_lines(indptr, indices, *span, lines, out)

        run(one, self._row_spans, n_jobs)
        if self.numbers.size:
            out += self.numbers @ slope[self.rows.n_variables :]
        return out

    def settle(self, scores: FloatArray, n_jobs: int | None = None) -> float:
        """Turn scores into residuals, in place, and return the summed loss."""
        return settle(scores, self.labels, self.weights, n_jobs)

    def gather(
        self, residuals: FloatArray, n_jobs: int | None = None, out: FloatArray | None = None
    ) -> FloatArray:
        """Return the sum over rows of value times residual, for each variable.

        If `out` is given, the sums are added to it.
        """
        if out is None:
            out = np.zeros((self.n_variables, residuals.shape[1]))
        indptr, rows = self.columns

        def one(span: tuple[int, int]) -> None:
            kernels.add_lines(indptr, rows, *span, residuals, out)

        run(one, self._column_spans, n_jobs)
        if self.numbers.size:
            out[self.rows.n_variables :] += self.numbers.T @ residuals
        return out

    @cached_property
    def _row_spans(self) -> list[tuple[int, int]]:
        return _spans(self.rows.indptr)

    @cached_property
    def _column_spans(self) -> list[tuple[int, int]]:
        return _spans(self.columns[0])


def settle(
    scores: FloatArray, labels: IntArray, weights: FloatArray, n_jobs: int | None = None
) -> float:
    """Turn scores of rows into weighted residuals, in place, and return the summed loss."""

    def one(span: tuple[int, int]) -> float:
        return float(kernels.settle(scores, *span, labels, weights))

    return sum(run(one, row_ranges(len(scores), max(PART // scores.shape[1] // 8, 1)), n_jobs))


def _spans(indptr: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Divide lines into parts with about the same number of entries."""
    n_lines = indptr.size - 1
    n_parts = int(np.clip((indptr[-1] + n_lines) // PART, 1, PARTS))
    goals = np.linspace(0, indptr[-1] + n_lines, n_parts + 1)[1:-1]
    inner = np.searchsorted(indptr[:-1] + np.arange(n_lines), goals)
    cuts = np.unique([0, *inner.tolist(), n_lines]).tolist()
    return list(itertools.pairwise(cuts))
