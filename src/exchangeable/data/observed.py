"""Rows with missing entries."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import UNASSIGNED, IntArray, is_sparse
from exchangeable.data.rows import Rows, as_rows, check_threshold, pack_matrix, take_rows
from exchangeable.runtime.threads import row_ranges

DENSE_BYTES = 1 << 22
"""Rows are processed in parts whose dense form, as 64-bit numbers, fits into the processor's
cache."""


@dataclass(frozen=True)
class Observed:
    """Binary rows with missing entries: those known to be on, and those missing.

    Attributes
    ----------
    ones : Rows
        The entries known to be on.
    holes : Rows, optional
        The missing entries; None if there are none.
    """

    ones: Rows
    holes: Rows | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.ones.n_rows

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.ones.n_variables

    @classmethod
    def from_symbols(cls, symbols: npt.NDArray[np.integer[Any]]) -> Self:
        """Convert a matrix of 0, 1 and `UNASSIGNED` to rows."""
        holes = symbols == UNASSIGNED
        return cls(as_rows(symbols == 1, None), as_rows(holes, None) if holes.any() else None)

    def take(self, chosen: IntArray) -> "Observed":
        """Return some of the rows."""
        holes = None if self.holes is None else take_rows(self.holes, chosen)
        return Observed(take_rows(self.ones, chosen), holes)

    def chunks(self, copies: float = 1) -> Iterator[tuple[slice, "Observed"]]:
        """Yield slices of the rows and their rows; `copies` dense forms of them are small."""
        for start, stop in self.spans(copies):
            yield slice(start, stop), self.take(np.arange(start, stop))

    def spans(self, copies: float = 1) -> list[tuple[int, int]]:
        """Return the starts and ends of these slices."""
        return row_ranges(self.n_rows, part_rows(self.n_variables, copies))

    def symbols(self) -> npt.NDArray[np.int8]:
        """Return the rows as a matrix of 0, 1 and `UNASSIGNED`."""
        matrix = flags(self.ones).astype(np.int8)
        matrix[self.hole_flags()] = UNASSIGNED
        return matrix

    def hole_flags(self) -> npt.NDArray[np.bool_]:
        """Return a matrix that is true for missing entries."""
        if self.holes is None:
            return np.zeros((self.n_rows, self.n_variables), dtype=np.bool_)
        return flags(self.holes)


def part_rows(n_variables: int, copies: float = 1) -> int:
    """Return how many rows with this many variables are processed at once."""
    return max(1, int(DENSE_BYTES / (8 * n_variables * copies)))


def as_observed(X: Any, binarize: float | None, n_jobs: int | None = None) -> Observed:
    """Return a checked numeric matrix as rows, with NaN for missing entries.

    In a sparse matrix a stored NaN is missing, an entry that is not stored a known zero.
    """
    return observe_numbers(X, binarize, n_jobs, looks=False)[0]


def observe_numbers(
    X: Any, binarize: float | None, n_jobs: int | None = None, *, looks: bool = True
) -> tuple[Observed, bool]:
    """Return the result of `as_observed`, and whether all entries are known to be 0, 1 or NaN.

    Without `looks`, only bytes are checked for that.
    """
    if binarize is None or is_sparse(X):
        return _observe_stored(X, binarize, n_jobs), False
    packed = pack_matrix(X, check_threshold(binarize), n_jobs, looks=looks)
    holes = as_rows(np.isnan(X), None, n_jobs) if packed.has_nan else None
    return Observed(packed.rows, holes), packed.zero_one


def _observe_stored(X: Any, binarize: float | None, n_jobs: int | None) -> Observed:
    """Return a sparse matrix, or one that contains only 0 and 1, as rows."""
    stored = X.data if is_sparse(X) else X
    if stored.dtype.kind != "f" or not stored.size or not np.isnan(stored.min()):
        return Observed(as_rows(X, binarize, n_jobs))
    if not is_sparse(X):
        gaps = np.isnan(X)
        known = as_rows(np.where(gaps, 0.0, X), binarize, n_jobs)
        return Observed(known, as_rows(gaps, None, n_jobs))
    matrix = X.tocsr().copy()
    matrix.sum_duplicates()  # an entry that is stored twice is missing if one of the two is
    gaps = np.isnan(matrix.data)
    known, holes = matrix, matrix.copy()
    known.data = np.where(gaps, 0.0, known.data)
    holes.data = gaps.astype(np.uint8)
    return Observed(as_rows(known, binarize), as_rows(holes, 0.0))


def flags(rows: Rows) -> npt.NDArray[np.bool_]:
    """Return rows as a matrix of truth values."""
    if not rows.indptr.size:
        packed = np.ascontiguousarray(rows.bits).view(np.uint8)
        unpacked = np.unpackbits(packed, axis=1, count=rows.n_variables, bitorder="little")
        return unpacked.view(np.bool_)
    matrix = np.zeros((rows.n_rows, rows.n_variables), dtype=np.bool_)
    matrix[np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), rows.indices] = True
    return matrix
