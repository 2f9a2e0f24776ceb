"""Binary rows in the form of the kernels: packed bits, or the indices of the ones."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from exchangeable.arrays import check_number
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.threads import row_ranges, run

NO_BITS = np.empty((0, 0), dtype=np.uint64)
NO_BYTES = np.empty((0, 0), dtype=np.uint8)
NO_POINTERS = np.empty(0, dtype=np.int64)
NO_INDICES = np.empty(0, dtype=np.int32)
CHUNK = 1 << 10
"""Number of rows that a thread packs at a time."""


class RowArrays(NamedTuple):
    """Binary rows in the form of all kernels; the unused form is empty.

    Attributes
    ----------
    bits : array of shape (n_rows, n_words)
        Packed rows, 64 variables per word.
    indptr : array of shape (n_rows + 1,)
        The start of the ones of each row in `indices`.
    indices : array of shape (n_ones,)
        The variables that are on, row after row.
    """

    bits: npt.NDArray[np.uint64]
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Rows:
    """A binary matrix in one of two forms.

    A dense matrix is packed, 64 variables per word, in `bits`; `bytes_` is the byte matrix it came
    from, if there is one. A sparse matrix is stored by the variables that are on, in `indptr` and
    `indices`.
    """

    n_rows: int
    n_variables: int
    bits: npt.NDArray[np.uint64]
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    bytes_: npt.NDArray[np.uint8] = field(default_factory=lambda: NO_BYTES)

    @property
    def arrays(self) -> RowArrays:
        """The rows in the form of the kernels."""
        return RowArrays(self.bits, self.indptr, self.indices)


class ColumnType(NamedTuple):
    """What the numbers of a column stand for.

    Attributes
    ----------
    kind : str
        One of `exchangeable.data.columns.schema.KINDS`.
    n_levels : int
        Number of levels, whose values are the numbers 0, 1, …; 0 for counts and measurements.
    """

    kind: str
    n_levels: int = 0


@dataclass(frozen=True)
class TypedRows(Rows):
    """Rows whose columns are of any kind.

    Attributes
    ----------
    values : array of shape (n_rows, n_variables)
        Numbers of levels, counts, or measurements on their transformed scale; NaN if missing.
        `bits` holds the same.
    types : tuple of ColumnType
        The meaning of the values of each column.
    log_jacobian : array of shape (n_rows,)
        The difference of log-densities per unit of the user's measurements and per unit of the
        transformed scale.
    """

    values: npt.NDArray[np.float64] = field(kw_only=True)
    types: tuple[ColumnType, ...] = field(kw_only=True)
    log_jacobian: npt.NDArray[np.float64] = field(kw_only=True)

    @classmethod
    def of(
        cls,
        values: npt.NDArray[np.float64],
        types: tuple[ColumnType, ...],
        log_jacobian: npt.NDArray[np.float64] | None = None,
    ) -> "TypedRows":
        """Make rows of a matrix of numbers."""
        values = np.where(np.isnan(values), np.nan, values + 0.0)  # equal numbers have equal bits
        if log_jacobian is None:
            log_jacobian = np.zeros(len(values))
        n_rows, n_variables = values.shape
        return cls(
            n_rows,
            n_variables,
            values.view(np.uint64),
            NO_POINTERS,
            NO_INDICES,
            values=values,
            types=types,
            log_jacobian=log_jacobian,
        )


@dataclass(frozen=True)
class CountRows(Rows):
    """Rows of counts that are mostly 0 and all known.

    Attributes
    ----------
    counts : array of shape (n_indices,)
        The counts of the columns listed in `indices`.
    types : tuple of ColumnType
        The meaning of the values of each column: counts.
    """

    counts: npt.NDArray[np.float64] = field(kw_only=True)
    types: tuple[ColumnType, ...] = field(kw_only=True)

    @classmethod
    def of(cls, matrix: Any, types: tuple[ColumnType, ...]) -> "CountRows":
        """Make rows of a sparse matrix in canonical form, without stored zeros."""
        n_rows, n_variables = matrix.shape
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        counts = np.asarray(matrix.data, dtype=np.float64)
        return cls(n_rows, n_variables, NO_BITS, indptr, indices, counts=counts, types=types)

    @property
    def matrix(self) -> Any:
        """The rows as a sparse matrix."""
        shape = (self.n_rows, self.n_variables)
        return sp.csr_array((self.counts, self.indices, self.indptr), shape=shape)


def as_rows(X: Any, binarize: float | None, n_jobs: int | None = None) -> Rows:
    """Return a checked numeric matrix as rows of ones: entries that exceed `binarize`, or equal 1.

    A CSR matrix whose stored entries are all ones is not copied, nor is a byte matrix of 0 and 1,
    next to which its bits are stored. With ``binarize=None`` anything but 0 and 1 is rejected.
    """
    threshold = None if binarize is None else check_threshold(binarize)
    return _sparse_rows(X, threshold) if sp.issparse(X) else _dense_rows(X, threshold, n_jobs)


def check_threshold(binarize: Any) -> float:
    """Return the number above which entries are on."""
    threshold = check_number(binarize, "binarize")
    if not np.isfinite(threshold):
        raise ValueError(f"binarize must be a finite number or None, got {binarize}")
    return threshold


def take_rows(rows: Rows, chosen: npt.NDArray[np.int64]) -> Rows:
    """Return some of the rows."""
    if isinstance(rows, TypedRows):
        return TypedRows.of(rows.values[chosen], rows.types, rows.log_jacobian[chosen])
    if isinstance(rows, CountRows):
        return CountRows.of(rows.matrix[chosen], rows.types)
    if not rows.indptr.size:
        bits = rows.bits.take(chosen, axis=0)
        return Rows(chosen.size, rows.n_variables, bits, rows.indptr, rows.indices)
    lengths = np.diff(rows.indptr)[chosen]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    source = np.repeat(rows.indptr[chosen] - indptr[:-1], lengths) + np.arange(indptr[-1])
    return Rows(chosen.size, rows.n_variables, NO_BITS, indptr, rows.indices[source])


def _sparse_rows(X: Any, binarize: float | None) -> Rows:
    if binarize is not None and binarize < 0:
        raise ValueError(
            f"binarize={binarize} would turn every absent entry of a sparse matrix on; "
            "expected a threshold of at least 0"
        )
    matrix = X.tocsr()
    indices = matrix.indices.astype(np.int32, copy=False)
    indptr = matrix.indptr.astype(np.int64, copy=False)
    if _has_duplicates(indptr, indices, matrix.shape[1]):
        matrix = matrix.copy()
        matrix.sum_duplicates()
        indices, indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64)
    if binarize is None:
        _check_binary(matrix.data, lambda entry: (_row_of(indptr, entry), int(indices[entry])))
    on = matrix.data > (0 if binarize is None else binarize)
    if not on.all():
        indptr = np.concatenate([[0], np.cumsum(on)])[indptr]
        indices = indices[on]
    n_rows, n_variables = matrix.shape
    return Rows(n_rows, n_variables, NO_BITS, indptr, indices)


def _dense_rows(X: npt.NDArray[Any], binarize: float | None, n_jobs: int | None) -> Rows:
    if binarize is None:
        _check_binary(X, lambda entry: tuple(int(i) for i in np.unravel_index(entry, X.shape)))
    return pack_matrix(X, 0.0 if binarize is None else binarize, n_jobs).rows


class PackedMatrix(NamedTuple):
    """A matrix as rows, with facts about its numbers.

    Attributes
    ----------
    rows : Rows
        Entries that exceed the threshold are on.
    has_nan : bool
        Whether any number is NaN.
    zero_one : bool
        Whether all others are known to be 0 or 1.
    """

    rows: Rows
    has_nan: bool
    zero_one: bool


def pack_matrix(
    X: npt.NDArray[Any], threshold: float, n_jobs: int | None = None, *, looks: bool = False
) -> PackedMatrix:
    """Return a matrix of numbers as rows, in one pass over it.

    Parameters
    ----------
    X : array of shape (n_rows, n_variables)
        Numbers.
    threshold : float
        The threshold above which they are on.
    n_jobs : int, optional
        Number of threads.
    looks : bool
        Whether to check for numbers other than 0 and 1, with a threshold of 0.
    """
    n_rows, n_variables = X.shape
    bits = np.zeros((n_rows, (n_variables + 63) // 64), dtype="<u8")
    packed_bytes = bits.view(np.uint8)[:, : (n_variables + 7) // 8]
    looks = looks and threshold == 0

    def pack(span: tuple[int, int]) -> tuple[bool, bool]:
        """Pack some rows; return whether any is NaN, and whether all are known to be 0 or 1."""
        part = X[span[0] : span[1]]
        if X.dtype == np.uint8:
            has_nan, zero_one = False, 0 <= threshold < 1 and bool(part.max(initial=0) <= 1)
            on = part if zero_one else part > threshold
        else:
            on = part > threshold
            has_nan, zero_one = _seen(part, on if looks else None)
        packed_bytes[span[0] : span[1]] = np.packbits(on, axis=1, bitorder="little")
        return has_nan, zero_one

    parts = run(pack, row_ranges(n_rows, CHUNK), n_jobs)
    zero_one = all(known for _, known in parts)
    bytes_ = X if zero_one and X.dtype == np.uint8 and X.flags.c_contiguous else NO_BYTES
    rows = Rows(n_rows, n_variables, bits, NO_POINTERS, NO_INDICES, bytes_)
    return PackedMatrix(rows, any(nan for nan, _ in parts), zero_one)


def _seen(part: npt.NDArray[Any], positive: npt.NDArray[np.bool_] | None) -> tuple[bool, bool]:
    """Return whether any number is NaN, and whether all others are known to be 0 or 1."""
    if part.dtype == np.bool_ or not part.size:
        return False, True
    if positive is None and part.dtype.kind != "f":
        return False, False
    least = part.min()  # NaN if there is one
    has_nan = bool(least != least)
    if positive is None:
        return has_nan, False
    negative = (part < 0).any() if has_nan else least < 0
    return has_nan, not negative and np.array_equal(positive, part == 1)


@compiled()
def _has_duplicates(indptr, indices, n_variables):  # type: ignore[no-untyped-def]
    """Whether any row lists a variable twice."""
    last_row = np.full(n_variables, -1, dtype=np.int64)
    for row in range(indptr.size - 1):
        for i in range(indptr[row], indptr[row + 1]):
            if last_row[indices[i]] == row:
                return True
            last_row[indices[i]] = row
    return False


def _check_binary(values: npt.NDArray[Any], position: Callable[[int], tuple[int, ...]]) -> None:
    """Reject entries other than 0 and 1; `position` locates an entry in X."""
    if values.dtype == np.bool_:
        return
    bad = np.flatnonzero((values != 0) & (values != 1))
    if bad.size:
        entry = int(bad[0])
        raise ValueError(
            f"X[{', '.join(map(str, position(entry)))}] is {values.ravel()[entry]!s}; with "
            "binarize=None every entry must be 0 or 1 (give binarize a threshold to turn other "
            "numbers into them)"
        )


def _row_of(indptr: npt.NDArray[np.int64], entry: int) -> int:
    """Return the row of a stored entry."""
    return int(np.searchsorted(indptr, entry, side="right")) - 1
