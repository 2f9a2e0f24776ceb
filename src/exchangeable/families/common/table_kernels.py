"""Inner loops over tables by count: counts of rows in blocks, histograms, look-ups.

Rows are `RowArrays`, tables `TableArrays`. Weights are empty if all are 1. Masks have one
bit-packed row per block with the block's variables on; there are none if the ones of rows are
listed instead. A buffer has space for the ones of a row.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.row_kernels import ones_of
from exchangeable.runtime.kernels.bits import popcount
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import copy, inlined
from exchangeable.runtime.kernels.vectors import logarithm

_compile = compiled()

MASK_COST = 12
"""Up to this many blocks are counted by masks, each at the cost of a pass over a row's words."""
MASK_WORDS = 64
"""More blocks are counted by masks too if they have at most this many words in all."""


LEAST = 2.0**-1022
"""The least normal number."""


class ScoreRoom(NamedTuple):
    """Intermediate results of `score_rows`.

    Attributes
    ----------
    counts : array of shape (n_blocks,)
        The number of ones of a row in each block; zero at the beginning.
    buffer : array of shape (n_variables,)
        The ones of a row.
    base : array of shape (n_classes,)
        The scores of a row without ones, except for blocks that must have one.
    impossible, missing : arrays of shape (n_classes,)
        The number of blocks that must have a one, and the number of those without one in a row.
    """

    counts: npt.NDArray[np.int32]
    buffer: npt.NDArray[np.int32]
    base: FloatArray
    impossible: IntArray
    missing: IntArray


@inlined
def _count_masked(words, mask):  # type: ignore[no-untyped-def]
    """Return the number of ones of a packed row among those of a mask."""
    count = np.uint64(0)
    for w in range(words.size):
        count += popcount(words[w] & mask[w])
    return np.int64(count)


@_compile
def count_blocks(rows, members, labels, masks, buffer, counts):  # type: ignore[no-untyped-def]
    """Write the number of ones of each member row in each block to counts[block, member]."""
    n_blocks, indptr, bits = counts.shape[0], rows.indptr, rows.bits
    if masks.shape[0]:
        for i in range(members.size):
            for b in range(n_blocks):
                counts[b, i] = _count_masked(bits[members[i]], masks[b])
        return
    if n_blocks == 1:
        for i in range(members.size):
            counts[0, i] = indptr[members[i] + 1] - indptr[members[i]]
        return
    for i in range(members.size):
        ones = ones_of(rows, members[i], buffer)
        for k in range(ones.size):
            counts[labels[ones[k]], i] += 1


@_compile
def add_histogram(rows, members, weights, labels, starts, masks, counts, buffer, histogram):  # type: ignore[no-untyped-def]
    """Add the member rows' weights to histogram[start of block + count in block].

    `counts`, the numbers of ones of a row in each block, is zero at the beginning and at the end.
    """
    n_blocks, bits = starts.size, rows.bits
    if masks.shape[0]:
        for i in range(members.size):
            w = weights[i] if weights.size else 1.0
            for b in range(n_blocks):
                histogram[starts[b] + _count_masked(bits[members[i]], masks[b])] += w
        return
    total = 0.0
    for i in range(members.size):
        w = weights[i] if weights.size else 1.0
        total += w
        ones = ones_of(rows, members[i], buffer)
        for k in range(ones.size):
            counts[labels[ones[k]]] += 1
        # Only blocks with a one are visited: all other rows of the total have none.
        for k in range(ones.size):
            b = labels[ones[k]]
            if counts[b] > 0:
                histogram[starts[b] + counts[b]] += w
                histogram[starts[b]] -= w
                counts[b] = 0
    for b in range(n_blocks):
        none = histogram[starts[b]] + total
        # With weights a difference may leave rounding errors instead of zero.
        histogram[starts[b]] = none if none > 1e-13 * total else 0.0


@_compile
def score_rows(rows, first, last, tables, workspace, out):  # type: ignore[no-untyped-def]
    """Write Σ_b values[start of b + count in b] for the rows first..last and all classes.

    The labels of a variable for all classes lie together: one cache line serves them all, and the
    counters of different classes do not wait for each other.
    """
    labels, first_block, starts, values = tables
    counts, buffer, base, impossible, missing = workspace
    n_classes, n_blocks = labels.shape[1], starts.size
    for y in range(n_classes):
        base[y], impossible[y] = 0.0, 0
        for b in range(first_block[y], first_block[y + 1]):
            if values[starts[b]] == -np.inf:
                impossible[y] += 1
            else:
                base[y] += values[starts[b]]
    for row in range(first, last):
        ones = ones_of(rows, row, buffer)
        for k in range(ones.size):
            block = labels[ones[k]]
            for y in range(n_classes):
                counts[block[y]] += 1
        if n_blocks <= 2 * ones.size * n_classes:
            for y in range(n_classes):
                total = 0.0
                for b in range(first_block[y], first_block[y + 1]):
                    total += values[starts[b] + counts[b]]
                    counts[b] = 0
                out[row, y] = total
            continue
        copy(base, out[row])
        copy(impossible, missing)
        for k in range(ones.size):
            block = labels[ones[k]]
            for y in range(n_classes):
                b = block[y]
                if counts[b] > 0:
                    zero = values[starts[b]]
                    if zero == -np.inf:
                        missing[y] -= 1
                        zero = 0.0
                    out[row, y] += values[starts[b] + counts[b]] - zero
                    counts[b] = 0
        for y in range(n_classes):
            if missing[y] > 0:
                out[row, y] = -np.inf


@_compile
def fill_table(histogram, starts, first_block, alpha, weights, log_factorial, table):  # type: ignore[no-untyped-def]
    """Write log((h + alpha) / (weight + alpha·(m + 1))) − log C(m, l) for every block and count.

    The blocks of class y are ``first_block[y]..first_block[y + 1]``, its weight is ``weights[y]``.
    In a block about which nothing is known, neither rows nor smoothing, all counts are equally
    likely. Logarithms of all entries are one vector loop, however small blocks are.
    """
    for y in range(weights.size):
        for b in range(first_block[y], first_block[y + 1]):
            end = starts[b + 1] if b + 1 < starts.size else table.size
            seen, share = histogram[starts[b] : end], table[starts[b] : end]
            m = share.size - 1
            mass = weights[y] + alpha * (m + 1)
            for count in range(share.size):
                share[count] = (seen[count] + alpha) / mass if mass > 0 else 1.0 / (m + 1.0)
    for i in range(table.size):
        log_share = logarithm(max(table[i], LEAST))
        table[i] = log_share if table[i] > 0.0 else -np.inf
    for b in range(starts.size):
        entries = table[starts[b] : starts[b + 1] if b + 1 < starts.size else table.size]
        m = entries.size - 1
        for count in range(entries.size):
            log_ways = log_factorial[m] - log_factorial[count] - log_factorial[m - count]
            entries[count] -= log_ways
