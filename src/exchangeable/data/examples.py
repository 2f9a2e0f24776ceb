"""Examples as EM reads them: distinct rows with weights, in the forms that passes need."""

import itertools
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data import packed_kernels, row_kernels
from exchangeable.data.forms import CODE_BITS, Codes, Columns, Words
from exchangeable.data.observed import Observed
from exchangeable.data.rows import NO_BITS, CountRows, Rows, TypedRows, take_rows
from exchangeable.runtime.kernels.vectors import TILE
from exchangeable.runtime.threads import row_ranges

MAX_PARTS = 32
PART_STEPS = 400_000
PARTIAL_BYTES = 1 << 28
WORTH_SUMMING = 16
"""Minimum steps of work for each number of a part's sums, since these must be added up at the
end."""
MAX_LISTED_ONES = 1 << 28
MAX_PACKED = 2048
WORTH_CODING = 1.5
"""Rows are also encoded if they have this many times fewer codes than ones."""
GOLDEN, SCATTERING = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Odd numbers whose multiples look random."""
WORTH_TRANSPOSING = 2
"""Ones are also listed by variable if a variable has this many in a tile of rows."""


@dataclass(frozen=True)
class Examples:
    """Distinct rows, their weights, and the classes of those with a known class.

    Attributes
    ----------
    rows : Rows
        The rows.
    weights : array of shape (n_rows,)
        The weight of each row.
    clamp : array of shape (n_rows,) or (0,)
        The known class of each row, −1 if unknown; empty if no class is known.
    words : Words, optional
        The rows as short words of bits, if they have few variables.
    codes : Codes, optional
        The rows as codes, if they have many ones.
    columns : Columns, optional
        The ones by variable, if every variable has several in a tile.
    holes : Rows, optional
        The missing entries; None if there are none.
    derived : dict
        A cache for what depends on the rows alone, which lives as long as they do.
    """

    rows: Rows
    weights: FloatArray
    clamp: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    words: Words | None = None
    codes: Codes | None = None
    columns: Columns | None = None
    holes: Rows | None = None
    derived: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def observed(self) -> Observed:
        """The rows with their missing entries."""
        return Observed(self.rows, self.holes)

    @cached_property
    def total(self) -> float:
        """The total weight of the rows."""
        return float(self.weights.sum())

    @cached_property
    def ones_and_holes(self) -> "Examples":
        """The same rows, complete: each hole of variable j is a one of variable n + j."""
        assert self.holes is not None
        n = self.rows.n_variables
        ones, gaps = listed(self.rows), listed(self.holes)
        lengths = np.diff(ones.indptr), np.diff(gaps.indptr)
        row = np.concatenate([np.repeat(np.arange(ones.n_rows), each) for each in lengths])
        order = np.argsort(row, kind="stable")
        indices = np.concatenate([ones.indices, gaps.indices + np.int32(n)])[order]
        rows = Rows(ones.n_rows, 2 * n, NO_BITS, ones.indptr + gaps.indptr, indices)
        codes = encoded(rows, 1.0)
        columns = by_variable(rows) if codes is None else None
        return Examples(rows, self.weights, self.clamp, codes=codes, columns=columns)

    @cached_property
    def open_words(self) -> tuple[Words, Words]:
        """The bits of the entries known to be on, and of all that may be: ones and holes."""
        assert self.holes is not None
        ones = Words.of(self.rows)
        holes = Words.in_order(self.holes, np.argsort(ones.position))
        return ones.short(), Words(ones.words | holes.words, ones.position).short()

    def parts(self, steps_per_row: float, partial_bytes: int = 1) -> list[tuple[int, int]]:
        """Divide the rows, by the shape of the data alone, into parts large enough for a thread.

        A part has at least `PART_STEPS` steps of work; its sums take `partial_bytes`.
        """
        return row_parts(self.rows.n_rows, steps_per_row, partial_bytes)

    def shares(self, n_classes: int, steps_per_row: float) -> list[tuple[tuple[int, int], slice]]:
        """Divide work on every pair of a class and a row into parts large enough for a thread.

        Classes are divided first, since their sums are separate, then rows.
        """
        n_parts = len(self.parts(steps_per_row))
        n_slices = min(n_parts, n_classes)
        cuts = [n_classes * i // n_slices for i in range(n_slices + 1)]
        size = max(1, -(-self.rows.n_rows // max(1, n_parts // n_slices)))
        return [
            (span, slice(begin, end))
            for span in row_ranges(self.rows.n_rows, size) or [(0, 0)]
            for begin, end in itertools.pairwise(cuts)
        ]

    @property
    def fingerprint(self) -> int:
        """A checksum of rows and weights."""
        checksum = zlib.crc32(self.weights.tobytes())
        counts = [self.rows.counts] if isinstance(self.rows, CountRows) else []
        for array in (*self.rows.arrays, *counts, *(self.holes.arrays if self.holes else ())):
            checksum = zlib.crc32(np.ascontiguousarray(array).tobytes(), checksum)
        return checksum

    @property
    def mean_ones(self) -> float:
        """The average number of ones of a row."""
        return _mean_ones(self.rows)

    @property
    def mean_holes(self) -> float:
        """The average number of missing entries of a row."""
        return _mean_ones(self.holes) if self.holes else 0.0


def row_parts(n_rows: int, steps_per_row: float, partial_bytes: int = 1) -> list[tuple[int, int]]:
    """Divide rows into parts large enough for a thread, as in `Examples.parts`."""
    most = min(MAX_PARTS, PARTIAL_BYTES // partial_bytes)
    least = max(PART_STEPS, WORTH_SUMMING * partial_bytes // 8)
    wanted = min(most, n_rows * steps_per_row / least)
    n_parts = 1 << max(0, int(wanted).bit_length() - 1)  # evenly shared by 2, 4, 8 threads
    size = max(1, -(-n_rows // n_parts))
    return row_ranges(n_rows, size) or [(0, 0)]


def _mean_ones(rows: Rows) -> float:
    """Return the average number of ones of a row; for packed rows an estimate."""
    if not rows.indptr.size:
        return rows.n_variables / 2
    return rows.indices.size / max(rows.n_rows, 1)


def merge_equal_rows(
    observed: Observed, weights: FloatArray, clamp: IntArray | None = None
) -> tuple[Examples, IntArray]:
    """Return the distinct rows with their weights, and the distinct row of each row.

    Rows are compared by 128-bit hashes; rows with different known classes stay separate.
    """
    rows, holes = observed.ones, observed.holes
    if isinstance(rows, TypedRows):
        return _merge_typed(rows, holes, weights, clamp)
    if isinstance(rows, CountRows):
        kept, member = distinct_rows(_count_hashes(rows, clamp))
        distinct = np.bincount(member, weights, minlength=kept.size).astype(np.float64)
        known = np.empty(0, dtype=np.int64) if clamp is None else clamp[kept]
        return Examples(take_rows(rows, kept), distinct, known), member
    kept, member = distinct_rows(row_hashes(observed, clamp))
    distinct = np.bincount(member, weights, minlength=kept.size).astype(np.float64)
    known = np.empty(0, dtype=np.int64) if clamp is None else clamp[kept]
    gaps = None if holes is None else take_rows(holes, kept)
    return prepared(take_rows(rows, kept), distinct, known, gaps), member


def row_hashes(observed: Observed, clamp: IntArray | None = None) -> npt.NDArray[np.uint64]:
    """Return 128 bits of hash of each row, its holes and, where there are some, its class."""
    if isinstance(observed.ones, CountRows):
        return _count_hashes(observed.ones, clamp)
    if isinstance(observed.ones, TypedRows):
        return number_hashes(observed.ones.values, clamp)
    shape = (2, observed.n_variables, 2)
    keys = np.random.default_rng(0).integers(0, 2**64, shape, dtype=np.uint64)
    hashes = np.zeros((observed.n_rows, 2), dtype=np.uint64)
    row_kernels.hash_rows(observed.ones.arrays, keys[0], hashes)
    if observed.holes is not None:
        row_kernels.hash_rows(observed.holes.arrays, keys[1], hashes)
    if clamp is not None:
        hashes[:, 0] += clamp.astype(np.uint64) * GOLDEN
    return hashes


def number_hashes(values: FloatArray, clamp: IntArray | None = None) -> npt.NDArray[np.uint64]:
    """Return 128 bits of hash of each row of numbers and its class; all NaNs are equal."""
    rng = np.random.default_rng(0)
    hashes = np.zeros((len(values), 2), dtype=np.uint64)
    bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.uint64)
    for part in hashes.T:
        for column in bits.T:
            mixed = (column ^ rng.integers(0, 2**64, dtype=np.uint64)) * GOLDEN
            mixed ^= mixed >> np.uint64(29)
            part += mixed * SCATTERING
    if clamp is not None:
        hashes[:, 0] += clamp.astype(np.uint64) * GOLDEN
    return hashes


def _count_hashes(rows: CountRows, clamp: IntArray | None) -> npt.NDArray[np.uint64]:
    """Return 128 bits of hash of each row of sparse counts and its class."""
    rng = np.random.default_rng(0)
    hashes = np.zeros((rows.n_rows, 2), dtype=np.uint64)
    filled = np.flatnonzero(np.diff(rows.indptr))
    for part in hashes.T:
        column = rng.integers(0, 2**64, rows.n_variables, dtype=np.uint64)[rows.indices]
        mixed = (column ^ rows.counts.astype(np.uint64)) * GOLDEN
        mixed ^= mixed >> np.uint64(29)
        part[filled] = np.add.reduceat(mixed * SCATTERING, rows.indptr[filled])
    if clamp is not None:
        hashes[:, 0] += clamp.astype(np.uint64) * GOLDEN
    return hashes


def distinct_rows(hashes: npt.NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """Return where each distinct row occurs first, in that order, and the number of each row."""
    ordered = np.lexsort(hashes.T)  # which keeps equal rows in their order
    sorted_hashes = hashes[ordered]
    new = np.ones(len(hashes), dtype=np.bool_)
    new[1:] = (sorted_hashes[1:] != sorted_hashes[:-1]).any(axis=1)
    first, inverse = ordered[new], np.empty_like(ordered)
    inverse[ordered] = np.cumsum(new) - 1
    # Keep the order of first occurrence, so that nothing depends on the order of hashes.
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return first[order], rank[inverse]


def prepared(rows: Rows, weights: FloatArray, clamp: IntArray, holes: Rows | None) -> Examples:
    """Return examples in the forms that passes over them need."""
    if holes is not None:
        return Examples(rows, weights, clamp, holes=holes)
    rows = listed(rows)
    words = None if rows.n_variables > MAX_PACKED else Words.of(rows).short()
    codes = encoded(rows)
    columns = by_variable(rows) if codes is None else None
    return Examples(rows, weights, clamp, words, codes, columns)


def _merge_typed(
    rows: TypedRows, holes: Rows | None, weights: FloatArray, clamp: IntArray | None
) -> tuple[Examples, IntArray]:
    """Return the distinct rows of columns of any kind, in the order of their first occurrence."""
    columns = [rows.bits] if clamp is None else [rows.bits, clamp[:, None].view(np.uint64)]
    whole = np.ascontiguousarray(np.concatenate(columns, axis=1))
    keys = whole.view(np.dtype((np.void, whole.shape[1] * whole.itemsize))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    member, kept = rank[inverse], first[order]
    distinct: FloatArray = np.bincount(member, weights, minlength=order.size).astype(np.float64)
    known = np.empty(0, dtype=np.int64) if clamp is None else clamp[kept]
    gaps = None if holes is None else take_rows(holes, kept)
    return Examples(take_rows(rows, kept), distinct, known, holes=gaps), member


def row_lengths(rows: Rows) -> IntArray:
    """Return the number of ones of each row."""
    if rows.indptr.size or rows.n_rows == 0:
        return np.diff(rows.indptr)
    lengths = np.empty(rows.n_rows, dtype=np.int64)
    packed_kernels.count_ones(rows.bits, lengths)
    return lengths


def listed(rows: Rows) -> Rows:
    """Return packed rows as lists of ones, which many passes read faster, unless there are many."""
    if rows.indptr.size or rows.n_rows == 0:
        return rows
    lengths = row_lengths(rows)
    if lengths.sum() > MAX_LISTED_ONES:
        return rows
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.empty(indptr[-1], dtype=np.int32)
    packed_kernels.list_ones(rows.bits, indptr, indices)
    return Rows(rows.n_rows, rows.n_variables, NO_BITS, indptr, indices)


def encoded(rows: Rows, least: float = WORTH_CODING) -> Codes | None:
    """Return listed rows as codes, if they have at least this many times fewer codes than ones."""
    n_codes = -(-rows.n_variables // CODE_BITS)
    if not rows.indptr.size or n_codes * rows.n_rows * least > rows.indices.size:
        return None
    return Codes.of(rows)


def by_variable(rows: Rows) -> Columns | None:
    """Return the ones of listed rows by variable, if most variables have some in every tile."""
    n_lists = (rows.n_rows // TILE + 1) * rows.n_variables
    if not rows.indptr.size or WORTH_TRANSPOSING * n_lists > rows.indices.size:
        return None
    return Columns.of(rows)
