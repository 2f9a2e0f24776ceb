"""The inner loops on the CPU, compiled by numba on first use and cached.

Every kernel takes binary rows as (bits, indptr, indices) of which one form is empty, and holds no
lock, so that `threads.run` can spread calls over the cores. Weights are empty where all are 1.
"""

import numpy as np
from numba import njit

from exchangeable.engines.bits import block_masks, load_bits, popcount

_compile = njit(cache=True, nogil=True, error_model="numpy")

MASK_COST = 12
"""Up to so many blocks are counted by masks, each at the cost of a pass over a row's words."""


@_compile
def load_ones(bits, indptr, indices, row, ones):  # type: ignore[no-untyped-def]
    """Write the variables that are on in a row to `ones` and return their number."""
    if indptr.size == 0:
        return load_bits(bits[row], ones)
    start, stop = indptr[row], indptr[row + 1]
    for at in range(start, stop):
        ones[at - start] = indices[at]
    return stop - start


@_compile
def sum_ones(bits, indptr, indices, members, weights, total):  # type: ignore[no-untyped-def]
    """Add w·x_j over the rows in `members` to total[j]."""
    ones = np.empty(total.size, dtype=np.int32)
    for i in range(members.size):
        w = weights[i] if weights.size else 1.0
        n_on = load_ones(bits, indptr, indices, members[i], ones)
        for at in range(n_on):
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
def count_blocks(bits, indptr, indices, members, labels, counts):  # type: ignore[no-untyped-def]
    """Write the number of ones of each member row in each block to counts[block, member]."""
    n_blocks = counts.shape[0]
    if indptr.size == 0 and n_blocks <= MASK_COST:
        masks = block_masks(labels, n_blocks)
        for i in range(members.size):
            words = bits[members[i]]
            for b in range(n_blocks):
                count = np.uint64(0)
                for w in range(words.size):
                    count += popcount(words[w] & masks[b, w])  # type: ignore[call-arg]
                counts[b, i] = count
        return
    ones = np.empty(labels.size, dtype=np.int32)
    for i in range(members.size):
        n_on = load_ones(bits, indptr, indices, members[i], ones)
        for at in range(n_on):
            counts[labels[ones[at]], i] += 1


@_compile
def add_histogram(  # type: ignore[no-untyped-def]
    bits, indptr, indices, members, weights, labels, starts, histogram
):
    """Add the member rows' weights to histogram[start of block + count in block]."""
    counts = np.zeros(starts.size, dtype=np.int64)
    ones = np.empty(labels.size, dtype=np.int32)
    total = 0.0
    for i in range(members.size):
        w = weights[i] if weights.size else 1.0
        total += w
        n_on = load_ones(bits, indptr, indices, members[i], ones)
        for at in range(n_on):
            counts[labels[ones[at]]] += 1
        # Only blocks with a one are visited: the rows with none are what is left of the total.
        for at in range(n_on):
            b = labels[ones[at]]
            if counts[b] > 0:
                histogram[starts[b] + counts[b]] += w
                histogram[starts[b]] -= w
                counts[b] = 0
    for b in range(starts.size):
        left = histogram[starts[b]] + total
        # With weights a difference may leave dust where nothing is.
        histogram[starts[b]] = left if left > 1e-13 * total else 0.0


@_compile
def score_rows(  # type: ignore[no-untyped-def]
    bits, indptr, indices, first, last, labels, starts, table, out
):
    """Write Σ_b table[start of b + count in b] for the rows first..last of one class."""
    n_blocks = starts.size
    counts = np.zeros(n_blocks, dtype=np.int64)
    ones = np.empty(labels.size, dtype=np.int32)
    # The score of a row without ones, leaving out the blocks that cannot be without.
    base, n_impossible = 0.0, 0
    for b in range(n_blocks):
        if table[starts[b]] == -np.inf:
            n_impossible += 1
        else:
            base += table[starts[b]]
    for row in range(first, last):
        n_on = load_ones(bits, indptr, indices, row, ones)
        for at in range(n_on):
            counts[labels[ones[at]]] += 1
        if n_blocks <= n_on:
            total = 0.0
            for b in range(n_blocks):
                total += table[starts[b] + counts[b]]
                counts[b] = 0
            out[row] = total
            continue
        total, missing = base, n_impossible
        for at in range(n_on):
            b = labels[ones[at]]
            if counts[b] > 0:
                zero = table[starts[b]]
                if zero == -np.inf:
                    missing -= 1
                    zero = 0.0
                total += table[starts[b] + counts[b]] - zero
                counts[b] = 0
        out[row] = -np.inf if missing > 0 else total


@_compile
def fill_table(histogram, starts, sizes, alpha, weight, log_factorial, table):  # type: ignore[no-untyped-def]
    """Write log((h + alpha) / (weight + alpha·(m + 1))) − log C(m, l) for every block and count.

    A block about which nothing is known, neither rows nor smoothing, has all counts equally likely.
    """
    for b in range(starts.size):
        m, start = sizes[b], starts[b]
        mass = weight + alpha * (m + 1)
        unseen = np.log(alpha / mass) if mass > 0 else -np.log(m + 1.0)
        for count in range(m + 1):
            log_choices = log_factorial[m] - log_factorial[count] - log_factorial[m - count]
            h = histogram[start + count]
            if h == 0.0:
                table[start + count] = unseen - log_choices
            else:
                table[start + count] = np.log((h + alpha) / mass) - log_choices
