"""The inner loops of EM: one pass over the rows scores them and sums what the next step needs.

Weights count equal rows that were merged. Where there are few variables, `packed` holds the rows as
bits and `masks` the blocks, and blocks are counted by popcount; where there are many both are empty
and each one of a row moves the counters of its blocks. `clamp` holds the class of rows whose class
is known and −1 for the others; it is empty if none is known.
"""

import numpy as np
from numba import njit

from exchangeable.engines.bits import popcount
from exchangeable.engines.kernels import ones_of

_compile = njit(cache=True, nogil=True, error_model="numpy")


NOTHING = 1e-14
"""A posterior below this is set to zero: what it would add is lost in rounding."""


@_compile
def _settle(joint, log_prior, clamped):  # type: ignore[no-untyped-def]
    """Turn log P(x, y) into posteriors in place and return the row's log-likelihood."""
    if clamped >= 0:
        known = joint[clamped]
        joint[:] = 0.0
        joint[clamped] = 1.0
        return known
    highest = -np.inf
    for y in range(joint.size):
        highest = max(highest, joint[y])
    if highest == -np.inf:
        # An impossible row tells nothing about its component.
        for y in range(joint.size):
            joint[y] = np.exp(log_prior[y])
        return highest
    total = 0.0
    for y in range(joint.size):
        difference = joint[y] - highest
        joint[y] = np.exp(difference) if difference > -40.0 else 0.0
        total += joint[y]
    for y in range(joint.size):
        joint[y] /= total
        if joint[y] < NOTHING:
            joint[y] = 0.0
    return highest + np.log(total)


@_compile
def make_masks(labels, masks):  # type: ignore[no-untyped-def]
    """Set the bits of each block's variables: masks[word, block], all zero before."""
    for j in range(labels.shape[0]):
        bit = np.uint64(1) << np.uint64(j % 64)
        for y in range(labels.shape[1]):
            masks[j // 64, labels[j, y]] |= bit


@_compile
def _place(row, ones, packed, masks, labels, starts, place):  # type: ignore[no-untyped-def]
    """Write where each block's count stands in the table: its start, moved on by its ones."""
    for b in range(starts.size):
        place[b] = starts[b]
    if masks.size:
        for w in range(masks.shape[0]):
            word, mask = packed[row, w], masks[w]
            for b in range(starts.size):
                place[b] += np.int64(popcount(word & mask[b]))  # type: ignore[call-arg]
        return
    for at in range(ones.size):
        block = labels[ones[at]]
        for y in range(block.size):
            place[block[y]] += 1


@_compile
def expect_blocks(  # type: ignore[no-untyped-def]
    bits,
    indptr,
    indices,
    first,
    last,
    weights,
    clamp,
    packed,
    masks,
    labels,
    first_block,
    starts,
    table,
    log_prior,
    posterior,
    histogram,
    moments,
):
    """Return the log-likelihood of some rows; write posteriors, add histograms and moments.

    ``moments[0, j, y]`` sums the posteriors of y over the rows with variable j on,
    ``moments[1, j, y]`` their squares. Moments, or both, are left out where they are empty.
    """
    n_variables, n_classes = labels.shape
    place = np.empty(starts.size, dtype=np.int64)
    buffer = np.empty(n_variables, dtype=np.int32)
    mass = np.empty(n_classes)
    mass_square = np.empty(n_classes)
    log_likelihood = 0.0
    for row in range(first, last):
        ones = ones_of(bits, indptr, indices, row, buffer)
        _place(row, ones, packed, masks, labels, starts, place)
        joint = posterior[row]
        for y in range(n_classes):
            total = log_prior[y]
            for b in range(first_block[y], first_block[y + 1]):
                total += table[place[b]]
            joint[y] = total
        w = weights[row]
        log_likelihood += w * _settle(joint, log_prior, clamp[row] if clamp.size else -1)
        if histogram.size:
            for y in range(n_classes):
                mass[y] = w * joint[y]
                mass_square[y] = mass[y] * joint[y]
                if mass[y] > 0.0:
                    for b in range(first_block[y], first_block[y + 1]):
                        histogram[place[b]] += mass[y]
        if moments.size:
            for at in range(ones.size):
                once, twice = moments[0, ones[at]], moments[1, ones[at]]
                for y in range(n_classes):
                    once[y] += mass[y]
                    twice[y] += mass_square[y]
    return log_likelihood


@_compile
def expect_singles(  # type: ignore[no-untyped-def]
    bits,
    indptr,
    indices,
    first,
    last,
    weights,
    clamp,
    base,
    slope,
    log_prior,
    posterior,
    ones_sum,
):
    """Do the same for independent variables, whose scores are ``base + Σ_j slope[j]`` over ones."""
    n_variables, n_classes = slope.shape
    buffer = np.empty(n_variables, dtype=np.int32)
    mass = np.empty(n_classes)
    log_likelihood = 0.0
    for row in range(first, last):
        ones = ones_of(bits, indptr, indices, row, buffer)
        joint = posterior[row]
        joint[:] = base
        for at in range(ones.size):
            add = slope[ones[at]]
            for y in range(n_classes):
                joint[y] += add[y]
        w = weights[row]
        log_likelihood += w * _settle(joint, log_prior, clamp[row] if clamp.size else -1)
        for y in range(n_classes):
            mass[y] = w * joint[y]
        for at in range(ones.size):
            once = ones_sum[ones[at]]
            for y in range(n_classes):
                once[y] += mass[y]
    return log_likelihood


@_compile
def add_soft_histograms(  # type: ignore[no-untyped-def]
    bits,
    indptr,
    indices,
    first,
    last,
    weights,
    posterior,
    classes,
    packed,
    masks,
    labels,
    first_block,
    starts,
    histogram,
):
    """Add the posteriors of the chosen classes to their histograms, for the rows first..last."""
    n_variables, n_classes = labels.shape
    place = np.empty(starts.size, dtype=np.int64)
    buffer = np.empty(n_variables, dtype=np.int32)
    for row in range(first, last):
        ones = ones_of(bits, indptr, indices, row, buffer)
        _place(row, ones, packed, masks, labels, starts, place)
        for y in range(n_classes):
            mass = weights[row] * posterior[row, classes[y]]
            if mass > 0.0:
                for b in range(first_block[y], first_block[y + 1]):
                    histogram[place[b]] += mass


@_compile
def hash_rows(bits, indptr, indices, keys, hashes):  # type: ignore[no-untyped-def]
    """Write the sum of the random keys of each row's ones: equal for equal rows."""
    buffer = np.empty(keys.shape[0], dtype=np.int32)
    for row in range(hashes.shape[0]):
        ones = ones_of(bits, indptr, indices, row, buffer)
        for at in range(ones.size):
            hashes[row, 0] += keys[ones[at], 0]
            hashes[row, 1] += keys[ones[at], 1]
