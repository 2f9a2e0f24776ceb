"""Inner loops over packed rows that take a step per word of 64 variables, not per one."""

import numpy as np
import numpy.typing as npt

from exchangeable.runtime.kernels.bits import load_bits, popcount
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill, inlined
from exchangeable.runtime.kernels.vectors import TILE

_compile = compiled()

PLANES = 8
MOST_ROWS = (1 << PLANES) - 1
"""Number of rows that can be added before a counter of `PLANES` bits would overflow."""


def room_for_sums(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the workspace for the counters of `sum_bits` and their carries."""
    return np.empty((PLANES + 1, bits.shape[1]), dtype=np.uint64)


@_compile
def sum_bits(bits, members, planes, total):  # type: ignore[no-untyped-def]
    """Add x_j over the member rows to total[j].

    Every bit of a word has a counter whose binary digits are in `PLANES` words, one per plane: a
    row is added to all 64 counters of a word by a few logical operations.
    """
    n_words, carry = bits.shape[1], planes[PLANES]
    for begin in range(0, members.size, MOST_ROWS):
        for p in range(PLANES):
            fill(planes[p], np.uint64(0))
        for i in range(begin, min(begin + MOST_ROWS, members.size)):
            row = bits[members[i]]
            for w in range(n_words):
                carry[w] = row[w]
            for p in range(PLANES):
                plane = planes[p]
                for w in range(n_words):
                    both = plane[w] & carry[w]
                    plane[w] ^= carry[w]
                    carry[w] = both
        for p in range(PLANES):
            for j in range(total.size):
                total[j] += (planes[p, j >> 6] >> np.uint64(j & 63) & np.uint64(1)) << np.uint64(p)


@_compile
def count_ones(bits, lengths):  # type: ignore[no-untyped-def]
    """Write the number of ones of each packed row."""
    for row in range(bits.shape[0]):
        count = np.uint64(0)
        for w in range(bits.shape[1]):
            count += popcount(bits[row, w])
        lengths[row] = count


@_compile
def list_ones(bits, indptr, indices):  # type: ignore[no-untyped-def]
    """Write the variables that are on in each packed row."""
    for row in range(bits.shape[0]):
        load_bits(bits[row], indices[indptr[row] : indptr[row + 1]])


@inlined
def _turn(bits, begin, end, columns):  # type: ignore[no-untyped-def]
    """Write the words of some packed rows as columns[word, row]."""
    for r in range(end - begin):
        row = bits[begin + r]
        for w in range(row.size):
            columns[w, r] = row[w]


@_compile
def permute_bits(bits, order, words):  # type: ignore[no-untyped-def]
    """Write variable order[p] of every packed row to bit p of words[word, row].

    One bit of all rows of a tile is moved at a time, by operations that run over rows.
    """
    columns = np.empty((bits.shape[1], TILE), dtype=np.uint64)
    for begin in range(0, bits.shape[0], TILE):
        end = min(begin + TILE, bits.shape[0])
        _turn(bits, begin, end, columns)
        for p in range(order.size):
            source = columns[order[p] >> 6]
            target = words[p >> 6, begin:end]
            down, up = np.uint64(order[p] & 63), np.uint64(p & 63)
            for r in range(target.size):
                target[r] |= (source[r] >> down & np.uint64(1)) << up


@_compile
def encode_bits(bits, width, codes):  # type: ignore[no-untyped-def]
    """Write the bits width·g..width·g + width − 1 of every packed row to codes[g, row]."""
    n_words = bits.shape[1]
    columns = np.empty((n_words, TILE), dtype=np.uint64)
    mask = np.uint64((1 << width) - 1)
    for begin in range(0, bits.shape[0], TILE):
        end = min(begin + TILE, bits.shape[0])
        _turn(bits, begin, end, columns)
        for g in range(codes.shape[0]):
            w, shift = width * g >> 6, np.uint64(width * g & 63)
            target, low = codes[g, begin:end], columns[w]
            if width * g % 64 + width <= 64 or w + 1 == n_words:
                for r in range(target.size):
                    target[r] = low[r] >> shift & mask
            else:
                high = columns[w + 1]
                back = np.uint64(64) - shift
                for r in range(target.size):
                    target[r] = (low[r] >> shift | high[r] << back) & mask
