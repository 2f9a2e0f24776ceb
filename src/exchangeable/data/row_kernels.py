"""Inner loops over binary rows, packed or listed: their ones, sums and hashes.

Rows are `RowArrays`. Weights are empty where all are 1.
"""

import numpy as np

from exchangeable.runtime.kernels.bits import load_bits, wrapping_sum
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill, helper

_compile = compiled()


# Inlined, so that taking the arrays out of their tuple costs nothing in a loop over rows.
@helper
def ones_of(rows, row, buffer):  # type: ignore[no-untyped-def]
    """Return the variables that are on in a row; those of packed rows are written to `buffer`."""
    if rows.indptr.size == 0:
        return buffer[: load_bits(rows.bits[row], buffer)]
    return rows.indices[rows.indptr[row] : rows.indptr[row + 1]]


@_compile
def sum_ones(rows, members, weights, total):  # type: ignore[no-untyped-def]
    """Add w·x_j over the rows in `members` to total[j]."""
    buffer = np.empty(total.size, dtype=np.int32)
    for i in range(members.size):
        w = weights[i] if weights.size else 1.0
        ones = ones_of(rows, members[i], buffer)
        for k in range(ones.size):
            total[ones[k]] += w


@_compile
def sum_powers_of_bytes(bytes_, weights, shares, by_value, sums):  # type: ignore[no-untyped-def]
    """Add the weight w of every packed row with variable j on to sums[0, j], w·share to sums[1, j].

    Eight variables are summed at a time: ``by_value[byte, value]`` has space for two sums, all
    zero.
    """
    for row in range(weights.size):
        mass, square, values = weights[row], weights[row] * shares[row], bytes_[row]
        for i in range(by_value.shape[0]):
            total = by_value[i, values[i]]
            total[0] += mass
            total[1] += square
    for j in range(sums.shape[1]):
        of_byte, bit = by_value[j // 8], j % 8
        for value in range(256):
            if value >> bit & 1:
                sums[0, j] += of_byte[value, 0]
                sums[1, j] += of_byte[value, 1]


@_compile
def sum_bytes(bytes_, members, total):  # type: ignore[no-untyped-def]
    """Add x_j over the rows in `members` to total[j], where the rows are bytes of 0 and 1."""
    # Bytes are added as bytes, 255 rows at a time, which keeps the loop at memory speed.
    partial = np.empty(total.size, dtype=np.uint8)
    for begin in range(0, members.size, 255):
        fill(partial, 0)
        for i in range(begin, min(begin + 255, members.size)):
            row = bytes_[members[i]]
            for j in range(total.size):
                partial[j] += row[j]
        for j in range(total.size):
            total[j] += partial[j]


@_compile
def hash_rows(rows, keys, hashes):  # type: ignore[no-untyped-def]
    """Add the random keys of each row's ones to its hashes: the sums are equal for equal rows."""
    buffer = np.empty(keys.shape[0], dtype=np.int32)
    for row in range(hashes.shape[0]):
        ones = ones_of(rows, row, buffer)
        for k in range(ones.size):
            hashes[row, 0] = wrapping_sum(hashes[row, 0], keys[ones[k], 0])
            hashes[row, 1] = wrapping_sum(hashes[row, 1], keys[ones[k], 1])
