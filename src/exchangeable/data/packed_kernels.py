"""The inner loops over packed rows that run at the speed of words, not of ones."""

import numpy as np
from numba import njit

from exchangeable.data.row_kernels import ones_of
from exchangeable.runtime.bits import load_bits, popcount
from exchangeable.runtime.vectors import TILE

_compile = njit(cache=True, nogil=True, error_model="numpy")

PLANES = 8
MOST_ROWS = (1 << PLANES) - 1
"""So many rows can be added before a counter of `PLANES` bits would run over."""


@_compile
def sum_bits(bits, members, total):  # type: ignore[no-untyped-def]
    """Add x_j over the member rows to total[j].

    Every bit of a word has a counter whose binary digits lie in `PLANES` words, one a plane: a row
    is added to all 64 counters of a word by a few logical operations.
    """
    n_words = bits.shape[1]
    planes = np.zeros((PLANES, n_words), dtype=np.uint64)
    carry = np.empty(n_words, dtype=np.uint64)
    for begin in range(0, members.size, MOST_ROWS):
        planes[:] = 0
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
            count += popcount(bits[row, w])  # type: ignore[call-arg]
        lengths[row] = count


@_compile
def list_ones(bits, indptr, indices):  # type: ignore[no-untyped-def]
    """Write the variables that are on in each packed row."""
    for row in range(bits.shape[0]):
        load_bits(bits[row], indices[indptr[row] : indptr[row + 1]])


@_compile
def add_intervals(  # type: ignore[no-untyped-def]
    bits, indptr, indices, members, weights, labels, n_blocks, begins, ends, starts, histogram
):
    """Add the member rows' weights to the histograms of several runs of neighbouring blocks.

    Run i holds the blocks ``begins[i]..ends[i] - 1``; the entry of its count l is
    ``histogram[starts[i] + l]``. Weights are empty where all are 1.
    """
    before = np.zeros(n_blocks + 1, dtype=np.int64)
    buffer = np.empty(labels.size, dtype=np.int32)
    for i in range(members.size):
        w = weights[i] if weights.size else 1.0
        ones = ones_of(bits, indptr, indices, members[i], buffer)
        before[:] = 0
        for at in range(ones.size):
            before[labels[ones[at]] + 1] += 1
        for b in range(n_blocks):
            before[b + 1] += before[b]
        for run in range(begins.size):
            histogram[starts[run] + before[ends[run]] - before[begins[run]]] += w


@_compile
def _turn(bits, begin, end, columns):  # type: ignore[no-untyped-def]
    """Write the words of some packed rows as columns[word, row]."""
    for r in range(end - begin):
        row = bits[begin + r]
        for w in range(row.size):
            columns[w, r] = row[w]


@_compile
def permute_bits(bits, order, words):  # type: ignore[no-untyped-def]
    """Write variable order[p] of every packed row to bit p of words[word, row].

    A bit of all rows of a tile is moved at a time, by operations that run over rows.
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
