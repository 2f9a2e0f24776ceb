"""Inner loops over binary rows: their ones, sums and hashes.

Rows are (bits, indptr, indices), of which one form is empty. Weights are empty where all are 1.
"""

import numpy as np
from numba import njit

from exchangeable.runtime.bits import load_bits

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def ones_of(bits, indptr, indices, row, buffer):  # type: ignore[no-untyped-def]
    """Return the variables that are on in a row; `buffer` is where those of packed rows go."""
    if indptr.size == 0:
        return buffer[: load_bits(bits[row], buffer)]
    return indices[indptr[row] : indptr[row + 1]]


@_compile
def sum_ones(bits, indptr, indices, members, weights, total):  # type: ignore[no-untyped-def]
    """Add w·x_j over the rows in `members` to total[j]."""
    buffer = np.empty(total.size, dtype=np.int32)
    for i in range(members.size):
        w = weights[i] if weights.size else 1.0
        ones = ones_of(bits, indptr, indices, members[i], buffer)
        for at in range(ones.size):
            total[ones[at]] += w


@_compile
def sum_bytes(bytes_, members, total):  # type: ignore[no-untyped-def]
    """Add x_j over the rows in `members` to total[j], where the rows are bytes of 0 and 1."""
    # Bytes are added as bytes, 255 rows at a time: that keeps the loop at memory speed.
    partial = np.zeros(total.size, dtype=np.uint8)
    for begin in range(0, members.size, 255):
        partial[:] = 0
        for i in range(begin, min(begin + 255, members.size)):
            row = bytes_[members[i]]
            for j in range(total.size):
                partial[j] += row[j]
        for j in range(total.size):
            total[j] += partial[j]


@_compile
def hash_rows(bits, indptr, indices, keys, hashes):  # type: ignore[no-untyped-def]
    """Write the sum of the random keys of each row's ones: equal for equal rows."""
    buffer = np.empty(keys.shape[0], dtype=np.int32)
    for row in range(hashes.shape[0]):
        ones = ones_of(bits, indptr, indices, row, buffer)
        for at in range(ones.size):
            hashes[row, 0] += keys[ones[at], 0]
            hashes[row, 1] += keys[ones[at], 1]
