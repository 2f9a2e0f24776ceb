"""Other forms of the same rows, computed once, that EM's many passes read faster."""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, aligned_zeros
from exchangeable.data import packed_kernels
from exchangeable.data.row_kernels import ones_of
from exchangeable.data.rows import Rows
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill

_compile = compiled()

CODE_BITS = 6
"""Number of variables per code: its tables have 2^6 lines and stay in the second-level cache."""
SHORT_BITS = 16
"""Bits of a short word."""
COLUMN_TILE = 1024
"""Rows whose ones are listed by variable at a time."""
CODED_TILE = 2048
"""Rows that are listed by the values of their codes at a time."""


@dataclass(frozen=True)
class Words:
    """Rows as bits, 64 or 16 variables per word; the first words of all rows come first.

    Attributes
    ----------
    words : array of shape (n_words, n_rows)
        The bits.
    position : array of shape (n_variables,)
        The bit of each variable. Variables are sorted by their number of ones, so that those of a
        block, which have similar means, share few words.
    """

    words: npt.NDArray[np.uint64] | npt.NDArray[np.uint16]
    position: IntArray

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Pack rows, listed ones or bits, into words of 64 bits."""
        if rows.indptr.size:
            ones = np.bincount(rows.indices, minlength=rows.n_variables)
        else:
            ones = np.zeros(rows.n_variables, dtype=np.int64)
            room = packed_kernels.room_for_sums(rows.bits)
            packed_kernels.sum_bits(rows.bits, np.arange(rows.n_rows), room, ones)
        return cls.in_order(rows, np.argsort(ones, kind="stable"))

    @classmethod
    def in_order(cls, rows: Rows, order: IntArray) -> Self:
        """Pack rows with their variables in this order."""
        position = np.empty(rows.n_variables, dtype=np.int64)
        position[order] = np.arange(rows.n_variables)
        words = np.zeros(((rows.n_variables + 63) // 64, rows.n_rows), dtype=np.uint64)
        if rows.indptr.size:
            _pack(rows.arrays, position, words)
        else:
            packed_kernels.permute_bits(rows.bits, order, words)
        return cls(words, position)

    def short(self) -> Self:
        """Return the same rows in words of 16 bits, of which a vector holds four times as many."""
        shifts = np.arange(0, 64, SHORT_BITS, dtype=np.uint64)
        quarters = (self.words[:, None] >> shifts[:, None]).astype(np.uint16)
        lines = quarters.reshape(shifts.size * len(self.words), self.words.shape[1])
        return replace(self, words=lines[: -(-self.position.size // SHORT_BITS)])


@dataclass(frozen=True)
class Columns:
    """The ones of each tile of rows, listed by variable, for sums of lines over a variable's rows.

    Attributes
    ----------
    first_one : array of shape (n_tiles, n_variables + 1)
        The start of the ones of each variable in each tile in `row`.
    row : array of shape (n_ones,)
        The row of each one, relative to the first of its tile.
    """

    first_one: IntArray
    row: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """List the ones of rows, themselves listed."""
        n_tiles = -(-rows.n_rows // COLUMN_TILE)
        first_one = np.zeros((n_tiles, rows.n_variables + 1), dtype=np.int64)
        row = np.empty(rows.indices.size, dtype=np.uint16)
        _transpose(rows.indptr, rows.indices, first_one, row)
        return cls(first_one, row)


@dataclass(frozen=True)
class Codes:
    """Rows as codes of `CODE_BITS` variables each, for sums over ones if there are many.

    A sum of lines over the ones of a row becomes a sum of fewer lines over its codes, once `expand`
    has summed the lines for every value of a code; `fold` is the inverse.

    Attributes
    ----------
    codes : array of shape (n_codes, n_rows)
        Bit i of a row's g-th code is the variable ``CODE_BITS * g + i``.
    n_variables : int
        Number of variables.
    """

    codes: npt.NDArray[np.uint8]
    n_variables: int

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Encode rows, listed ones or bits."""
        codes = np.zeros((-(-rows.n_variables // CODE_BITS), rows.n_rows), dtype=np.uint8)
        if rows.indptr.size:
            _encode(rows.indptr, rows.indices, codes)
        else:
            packed_kernels.encode_bits(rows.bits, CODE_BITS, codes)
        return cls(codes, rows.n_variables)

    def expand(self, lines: FloatArray) -> FloatArray:
        """Return the sum of the variables' lines for every code and value."""
        n_codes, width = self.codes.shape[0], lines.shape[1]
        padded = np.zeros((n_codes * CODE_BITS, width))
        padded[: self.n_variables] = lines
        padded = padded.reshape(n_codes, CODE_BITS, width)
        sums = aligned_zeros((n_codes, 1 << CODE_BITS, width))
        for i in range(CODE_BITS):
            sums[:, 1 << i : 2 << i] = sums[:, : 1 << i] + padded[:, i, None]
        return sums

    def sums_shape(self, width: int) -> tuple[int, int, int]:
        """Return the shape of sums with a line for every code and value."""
        return self.codes.shape[0], 1 << CODE_BITS, width

    def fold(self, sums: FloatArray) -> FloatArray:
        """Return, for every variable, the sum of the lines of the values that have it on."""
        lines = np.zeros((self.n_variables, sums.shape[2]))
        _fold(sums, lines)
        return lines


class CodeLists(NamedTuple):
    """Some rows, tile by tile, listed by the values of each of their codes.

    Attributes
    ----------
    first_row : array of shape (n_tiles, n_codes, n_values + 1)
        Where the rows with each value begin in the list of a code in a tile: at multiples of four.
    row : array of shape (n_tiles, n_codes, length)
        The rows, counted from the first of their tile. `CODED_TILE`, which no row is, fills up.
    """

    first_row: npt.NDArray[np.uint16]
    row: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, codes: Codes, span: tuple[int, int]) -> Self:
        """List the rows of a span."""
        n_codes, n_rows = codes.codes.shape[0], span[1] - span[0]
        n_tiles = -(-n_rows // CODED_TILE)
        lists = cls(
            np.zeros((n_tiles, n_codes, (1 << CODE_BITS) + 1), dtype=np.uint16),
            np.full((n_tiles, n_codes, CODED_TILE + (3 << CODE_BITS)), CODED_TILE, np.uint16),
        )
        _list_by_value(codes.codes, *span, lists.first_row, lists.row)
        return lists


@_compile
def _list_by_value(codes, first, last, first_row, row):  # type: ignore[no-untyped-def]
    """List rows by the values of their codes, in their order."""
    following = np.empty(1 << CODE_BITS, dtype=np.int64)
    for tile in range(first_row.shape[0]):
        begin = first + tile * CODED_TILE
        end = min(begin + CODED_TILE, last)
        for g in range(codes.shape[0]):
            value, begins, rows = codes[g, begin:end], first_row[tile, g], row[tile, g]
            for r in range(value.size):
                begins[value[r] + 1] += 1
            for v in range(following.size):
                following[v] = begins[v]
                begins[v + 1] = begins[v] + (begins[v + 1] + 3) // 4 * 4
            for r in range(value.size):
                rows[following[value[r]]] = r
                following[value[r]] += 1


@_compile
def _pack(rows, position, words):  # type: ignore[no-untyped-def]
    """Set bit position[j] of column `row` for every one: words[word, row], all zero before."""
    buffer = np.empty(position.size, dtype=np.int32)
    for row in range(words.shape[1]):
        ones = ones_of(rows, row, buffer)
        for k in range(ones.size):
            p = position[ones[k]]
            words[p >> 6, row] |= np.uint64(1) << np.uint64(p & 63)


@_compile
def _transpose(indptr, indices, first_one, row):  # type: ignore[no-untyped-def]
    """List the ones of each tile by variable."""
    n_variables = first_one.shape[1] - 1
    following = np.empty(n_variables, dtype=np.int64)
    for tile in range(first_one.shape[0]):
        begin = tile * COLUMN_TILE
        end = min(begin + COLUMN_TILE, indptr.size - 1)
        fill(following, 0)
        for k in range(indptr[begin], indptr[end]):
            following[indices[k]] += 1
        total = indptr[begin]
        for j in range(n_variables):
            first_one[tile, j] = total
            total += following[j]
            following[j] = first_one[tile, j]
        first_one[tile, n_variables] = total
        for r in range(begin, end):
            for k in range(indptr[r], indptr[r + 1]):
                row[following[indices[k]]] = r - begin
                following[indices[k]] += 1


@_compile
def _encode(indptr, indices, codes):  # type: ignore[no-untyped-def]
    """Set the bit of every one: codes[g, row], all zero before."""
    for row in range(indptr.size - 1):
        for k in range(indptr[row], indptr[row + 1]):
            codes[indices[k] // CODE_BITS, row] |= np.uint8(1 << (indices[k] % CODE_BITS))


@_compile
def _fold(sums, lines):  # type: ignore[no-untyped-def]
    """Add the line of each value of a code to those of its variables."""
    for j in range(lines.shape[0]):
        of_code, bit, line = sums[j // CODE_BITS], j % CODE_BITS, lines[j]
        for value in range(1 << CODE_BITS):
            if value >> bit & 1:
                add = of_code[value]
                for y in range(line.size):
                    line[y] += add[y]
