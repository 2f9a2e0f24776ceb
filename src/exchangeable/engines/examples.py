"""Examples as EM reads them: distinct rows with their weights, in the forms its passes need."""

import zlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.engines import em_kernels
from exchangeable.engines.observed import Observed
from exchangeable.engines.rows import NO_BITS, Rows, take_rows
from exchangeable.engines.threads import row_ranges

MAX_PARTS = 32
PART_STEPS = 1_000_000
PARTIAL_BYTES = 1 << 28
MAX_LISTED_ONES = 1 << 28
MAX_PACKED = 512


@dataclass(frozen=True)
class Examples:
    """Distinct rows, how often each occurs, and the classes of those that have one.

    Attributes
    ----------
    rows : Rows
        The rows.
    weights : array of shape (n_rows,)
        How much each row counts.
    clamp : array of shape (n_rows,) or (0,)
        The known class of each row, −1 if it has none; empty if none has.
    packed : array of shape (n_rows, n_words) or (0, 0)
        The rows as bits, where they have few variables.
    holes : Rows, optional
        The entries that are not known; None where every entry is.
    """

    rows: Rows
    weights: FloatArray
    clamp: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    packed: npt.NDArray[np.uint64] = field(default_factory=lambda: NO_BITS)
    holes: Rows | None = None

    @property
    def observed(self) -> Observed:
        """The rows and their holes."""
        return Observed(self.rows, self.holes)

    @property
    def total(self) -> float:
        """The weight of all rows together."""
        return float(self.weights.sum())

    def parts(self, steps_a_row: float, partial_bytes: int = 1) -> list[tuple[int, int]]:
        """Cut the rows, by the shape of the data alone, into parts worth a thread's while.

        A part has at least `PART_STEPS` steps of work; its sums take `partial_bytes`.
        """
        most = min(MAX_PARTS, PARTIAL_BYTES // partial_bytes)
        wanted = min(most, self.rows.n_rows * steps_a_row / PART_STEPS)
        n_parts = 1 << max(0, int(wanted).bit_length() - 1)  # evenly shared by 2, 4, 8 threads
        return row_ranges(self.rows.n_rows, max(1, -(-self.rows.n_rows // n_parts)))

    @property
    def fingerprint(self) -> int:
        """A checksum of rows and weights."""
        checksum = zlib.crc32(self.weights.tobytes())
        for array in (*self.rows.arrays, *(self.holes.arrays if self.holes else ())):
            checksum = zlib.crc32(np.ascontiguousarray(array).tobytes(), checksum)
        return checksum

    @property
    def mean_ones(self) -> float:
        """The average number of ones of a row."""
        return self.rows.indices.size / max(self.rows.n_rows, 1)

    @property
    def mean_holes(self) -> float:
        """The average number of holes of a row."""
        return self.holes.indices.size / max(self.rows.n_rows, 1) if self.holes else 0.0


def merge_equal_rows(
    observed: Observed, weights: FloatArray, clamp: IntArray | None = None
) -> tuple[Examples, IntArray]:
    """Return the distinct rows with their weights, and which of them each row is.

    Rows are compared by 128 bits of hash; rows whose classes are known and different stay apart.
    """
    rows, holes = observed.ones, observed.holes
    shape = (2, observed.n_variables, 2)
    keys = np.random.default_rng(0).integers(0, 2**64, shape, dtype=np.uint64)
    hashes = np.zeros((observed.n_rows, 2), dtype=np.uint64)
    em_kernels.hash_rows(*rows.arrays, keys[0], hashes)
    if holes is not None:
        em_kernels.hash_rows(*holes.arrays, keys[1], hashes)
    if clamp is not None:
        hashes[:, 0] += clamp.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    whole = hashes.view([("", np.uint64), ("", np.uint64)]).ravel()
    _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    # Keep the order of first occurrence, so that nothing depends on the hashes' order.
    order = np.argsort(first, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    member = place[inverse]
    distinct: FloatArray = np.bincount(member, weights, minlength=order.size).astype(np.float64)
    kept = first[order]
    chosen = take_rows(rows, kept)
    examples = Examples(
        listed(chosen),
        distinct,
        np.empty(0, dtype=np.int64) if clamp is None else clamp[kept],
        packed(chosen) if rows.n_variables <= MAX_PACKED else NO_BITS,
        None if holes is None else listed(take_rows(holes, kept)),
    )
    return examples, member


def listed(rows: Rows) -> Rows:
    """Return packed rows as lists of ones, which many passes read faster, unless they are many."""
    if rows.indptr.size or rows.n_rows == 0:
        return rows
    flags = np.unpackbits(
        rows.bits.view(np.uint8), axis=1, count=rows.n_variables, bitorder="little"
    )
    lengths = flags.sum(axis=1, dtype=np.int64)
    if lengths.sum() > MAX_LISTED_ONES:
        return rows
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return Rows(
        rows.n_rows,
        rows.n_variables,
        NO_BITS,
        indptr,
        np.nonzero(flags)[1].astype(np.int32),
    )


def packed(rows: Rows) -> npt.NDArray[np.uint64]:
    """Return rows as bits, 64 variables a word."""
    if not rows.indptr.size:
        return rows.bits
    bits = np.zeros((rows.n_rows, (rows.n_variables + 63) // 64), dtype=np.uint64)
    row = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    bit = np.uint64(1) << (rows.indices % 64).astype(np.uint64)
    np.bitwise_or.at(bits, (row, rows.indices // 64), bit)
    return bits
