"""The inner loops of EM over blocks: counts, scores and posteriors, and histograms by count.

Rows are taken in tiles. Where there are few words of bits, blocks are counted by masks and
popcount, a word of all rows of the tile at a time; where there are many, each one of a row moves
the counters of its blocks. What is found is one number for each group of blocks and row
(`groups.Groups`): row r stands in column r − offset. Posteriors and joint probabilities are laid
out one class a line. Weights count equal rows that were merged.
"""

import numpy as np
from numba import njit

from exchangeable.data.row_kernels import ones_of
from exchangeable.families.common.posteriors import settle
from exchangeable.runtime.bits import popcount
from exchangeable.runtime.vectors import TILE

_compile = njit(cache=True, nogil=True, error_model="numpy")

COUNT_TILE = 1024
"""Rows that are counted at a time."""
ADD_TILE = 2048
"""Rows that are added to a class's histograms at a time."""
MOSTLY = 0.6
"""Where a larger share of a tile's rows has some mass, those that have none are not left out."""


@_compile
def _count(words, begin, end, masks, mask, radix, place):  # type: ignore[no-untyped-def]
    """Write a block's count behind the others' of its group, for the rows begin..end.

    Two masks at a time halve the loads and stores of what is written.
    """
    one, bits = words[masks[0], begin:end], mask[0]
    if masks.size % 2:
        done = 1
        for r in range(one.size):
            place[r] = place[r] * radix + popcount(one[r] & bits)  # type: ignore[call-arg]
    else:
        done = 2
        two, more = words[masks[1], begin:end], mask[1]
        for r in range(one.size):
            place[r] *= radix
            place[r] += popcount(one[r] & bits) + popcount(two[r] & more)  # type: ignore[call-arg]
    for i in range(done, masks.size, 2):
        one, bits = words[masks[i], begin:end], mask[i]
        two, more = words[masks[i + 1], begin:end], mask[i + 1]
        for r in range(one.size):
            place[r] += popcount(one[r] & bits) + popcount(two[r] & more)  # type: ignore[call-arg]


@_compile
def count_masked(  # type: ignore[no-untyped-def]
    words,
    first,
    last,
    first_mask,
    word,
    mask,
    order,
    radix,
    first_block,
    first_group,
    classes,
    offset,
    numbers,
):
    """Write the numbers of the rows first..last in the groups of some classes, by masks."""
    place = np.zeros(COUNT_TILE, dtype=np.uint64)
    for begin in range(first, last, COUNT_TILE):
        end = min(begin + COUNT_TILE, last)
        at = place[: end - begin]
        for y in classes:
            for g in range(first_group[y], first_group[y + 1]):
                for i in range(first_block[g], first_block[g + 1]):
                    own = slice(first_mask[order[i]], first_mask[order[i] + 1])
                    _count(words, begin, end, word[own], mask[own], radix[i], at)
                out = numbers[g, begin - offset : end - offset]
                for r in range(at.size):
                    out[r] = at[r]


@_compile
def count_walked(  # type: ignore[no-untyped-def]
    bits,
    indptr,
    indices,
    first,
    last,
    labels,
    order,
    radix,
    first_block,
    first_group,
    classes,
    offset,
    numbers,
):
    """Do the same by walking over the ones."""
    count = np.zeros(order.size, dtype=np.uint64)
    buffer = np.empty(labels.shape[0], dtype=np.int32)
    for row in range(first, last):
        ones = ones_of(bits, indptr, indices, row, buffer)
        for at in range(ones.size):
            block = labels[ones[at]]
            for y in classes:
                count[block[y]] += np.uint64(1)
        for y in classes:
            for g in range(first_group[y], first_group[y + 1]):
                number = np.uint64(0)
                for i in range(first_block[g], first_block[g + 1]):
                    number = number * radix[i] + count[order[i]]
                    count[order[i]] = 0
                numbers[g, row - offset] = number


@_compile
def _look_up(table, starts, numbers, begin, end, score):  # type: ignore[no-untyped-def]
    """Add what the groups' tables hold for the rows' numbers, up to four groups at a time."""
    g = 0
    while g + 4 <= starts.size:
        one, two = table[starts[g] :], table[starts[g + 1] :]
        three, four = table[starts[g + 2] :], table[starts[g + 3] :]
        at_one, at_two = numbers[g, begin:end], numbers[g + 1, begin:end]
        at_three, at_four = numbers[g + 2, begin:end], numbers[g + 3, begin:end]
        for r in range(at_one.size):
            pair = one[at_one[r]] + two[at_two[r]]
            score[r] += pair + (three[at_three[r]] + four[at_four[r]])
        g += 4
    if g + 2 <= starts.size:
        one, two = table[starts[g] :], table[starts[g + 1] :]
        at_one, at_two = numbers[g, begin:end], numbers[g + 1, begin:end]
        for r in range(at_one.size):
            score[r] += one[at_one[r]] + two[at_two[r]]
        g += 2
    if g < starts.size:
        one, at_one = table[starts[g] :], numbers[g, begin:end]
        for r in range(at_one.size):
            score[r] += one[at_one[r]]


@_compile
def score_counted(  # type: ignore[no-untyped-def]
    first,
    last,
    offset,
    numbers,
    weights,
    clamp,
    first_group,
    starts,
    table,
    log_prior,
    posterior,
):
    """Write the posteriors of the rows first..last and return their log-likelihood.

    `table` is what the groups have spread.
    """
    n_classes = log_prior.size
    joint = np.empty((n_classes, TILE))
    log_likelihood = 0.0
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        for y in range(n_classes):
            joint[y] = log_prior[y]
            own = slice(first_group[y], first_group[y + 1])
            _look_up(table, starts[own], numbers[own], begin - offset, end - offset, joint[y])
        log_likelihood += settle(
            joint,
            end - begin,
            weights[begin:end],
            clamp[begin:end],
            log_prior,
            posterior[:, begin:end],
        )
    return log_likelihood


@_compile
def _add_masses(histogram, starts, numbers, rows, mass):  # type: ignore[no-untyped-def]
    """Add masses by the numbers of some rows, an array or a range, to the groups' histograms.

    Many rows have the same number: where additions to several groups take turns, none waits for
    the one before.
    """
    g = 0
    while g + 4 <= starts.size:
        one, two = histogram[starts[g] :], histogram[starts[g + 1] :]
        three, four = histogram[starts[g + 2] :], histogram[starts[g + 3] :]
        at_one, at_two = numbers[g], numbers[g + 1]
        at_three, at_four = numbers[g + 2], numbers[g + 3]
        for at, r in enumerate(rows):
            one[at_one[r]] += mass[at]
            two[at_two[r]] += mass[at]
            three[at_three[r]] += mass[at]
            four[at_four[r]] += mass[at]
        g += 4
    if g + 2 <= starts.size:
        one, two = histogram[starts[g] :], histogram[starts[g + 1] :]
        at_one, at_two = numbers[g], numbers[g + 1]
        for at, r in enumerate(rows):
            one[at_one[r]] += mass[at]
            two[at_two[r]] += mass[at]
        g += 2
    if g < starts.size:
        one, at_one = histogram[starts[g] :], numbers[g]
        for at, r in enumerate(rows):
            one[at_one[r]] += mass[at]


@_compile
def add_counted(  # type: ignore[no-untyped-def]
    first, last, offset, numbers, weights, posterior, lines, classes, first_group, starts, histogram
):
    """Add the posteriors, line ``lines[i]`` that of class ``classes[i]``, by number.

    Rows without a share in the class are passed over where they are many.
    """
    kept, mass = np.empty(ADD_TILE, dtype=np.int64), np.empty(ADD_TILE)
    for i in range(classes.size):
        own = slice(first_group[classes[i]], first_group[classes[i] + 1])
        of_class, begins = numbers[own], starts[own]
        for begin in range(first, last, ADD_TILE):
            end = min(begin + ADD_TILE, last)
            share, weight = posterior[lines[i], begin:end], weights[begin:end]
            n_kept = 0
            for r in range(share.size):
                n_kept += share[r] > 0.0
            if n_kept > MOSTLY * share.size:
                for r in range(share.size):
                    mass[r] = weight[r] * share[r]
                rows = range(begin - offset, end - offset)
                _add_masses(histogram, begins, of_class, rows, mass)
                continue
            n_kept = 0
            for r in range(share.size):
                kept[n_kept], mass[n_kept] = begin - offset + r, weight[r] * share[r]
                n_kept += share[r] > 0.0
            _add_masses(histogram, begins, of_class, kept[:n_kept], mass)
