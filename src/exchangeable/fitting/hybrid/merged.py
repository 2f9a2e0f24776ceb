"""Merging variables that are on in the same single row, to make the problem smaller.

Half of the words of a collection of texts occur in only one text. The penalised slopes of such
variables are equal, so one line represents all c of them: √c times the slope. Sums of squares, and
with them all steps of the solver, are then the same as without merging. Variables that are never on
have slope 0.
"""

from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import Rows
from exchangeable.fitting.hybrid.design import Design


@dataclass(frozen=True)
class Merged:
    """Labelled rows; the first lines of slopes belong to variables, the following ones to rows.

    Attributes
    ----------
    design : Design
        The rows with the variables that are on in several of them, and all numbers.
    kept : array of shape (n_kept,)
        Which variables these are, including numbers.
    single : array of shape (n_single,)
        The variables that are on in only one row.
    line : array of shape (n_single,)
        The number of that row in `rows`.
    rows : array of shape (n_merged,)
        The rows that have such variables.
    root : array of shape (n_merged, 1)
        Square root of the number of these variables, for each of these rows.
    n_variables : int
        Total number of variables.
    """

    design: Design
    kept: IntArray
    single: IntArray
    line: IntArray
    rows: IntArray
    root: FloatArray
    n_variables: int

    @classmethod
    def of(cls, design: Design) -> "Merged":
        """Merge variables that are on in the same single row."""
        rows = design.rows
        times = np.bincount(rows.indices, minlength=rows.n_variables)
        several = times > 1
        stays = several[rows.indices]
        alone = np.flatnonzero(~stays)
        where = np.searchsorted(rows.indptr, alone, side="right") - 1
        owners, line, counts = np.unique(where, return_inverse=True, return_counts=True)
        single = rows.indices[alone].astype(np.int64)
        lines = (np.cumsum(several) - 1).astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(stays)])[rows.indptr]
        n_kept, kept_ones = int(several.sum()), lines[rows.indices[stays]]
        fewer = Rows(rows.n_rows, n_kept, rows.bits[:0], starts, kept_ones)
        numbers = np.arange(rows.n_variables, design.n_variables)
        kept = np.concatenate([np.flatnonzero(several), numbers])
        labels, weights = design.labels, design.weights
        inner = Design(fewer, labels, weights, design.n_classes, design.numbers)
        root = np.sqrt(counts)[:, None]
        return cls(inner, kept, single, line, owners.astype(np.int64), root, design.n_variables)

    @property
    def ones(self) -> FloatArray:
        """The weight of the rows in which a variable of each line is on."""
        return np.concatenate([self.design.ones, self.design.weights[self.rows]])

    @property
    def roots(self) -> FloatArray:
        """Square root of the number of variables that each line represents."""
        return np.concatenate([np.ones(self.kept.size), self.root[:, 0]])

    def apart(self, lines: FloatArray) -> FloatArray:
        """Return the slopes of all variables."""
        slope = np.zeros((self.n_variables, lines.shape[1]))
        slope[self.kept] = lines[: self.kept.size]
        slope[self.single] = (lines[self.kept.size :] / self.root)[self.line]
        return slope

    def together(self, slope: FloatArray) -> FloatArray:
        """Return the lines of slopes; those of merged variables are averaged."""
        sums = np.zeros((self.rows.size, slope.shape[1]))
        np.add.at(sums, self.line, slope[self.single])
        return np.concatenate([slope[self.kept], sums / self.root])

    def scores(self, lines: FloatArray, start: FloatArray, n_jobs: int | None) -> FloatArray:
        """Return start + Σ_j slope[j]·x_j of each row; `start` broadcasts to all rows."""
        n_kept = self.kept.size
        out = self.design.scores(lines[:n_kept], start, n_jobs)
        out[self.rows] += self.root * lines[n_kept:]
        return out

    def gather(self, residuals: FloatArray, out: FloatArray, n_jobs: int | None) -> None:
        """Add to each line the sum over rows of its value times their residuals."""
        n_kept = self.kept.size
        self.design.gather(residuals, n_jobs, out[:n_kept])
        out[n_kept:] += self.root * residuals[self.rows]
