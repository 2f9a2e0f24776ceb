"""The inner loops of EM over blocks: counts, scores and posteriors, and histograms by count.

Rows are taken in tiles. Where there are few words of bits, blocks are counted by masks and
popcount, a word of all rows of the tile at a time; where there are many, each one of a row moves
the counters of its blocks. What is found is one number for each group of blocks and row
(`groups.Groups`): row r stands in column r − offset. Posteriors and joint probabilities are laid
out one class a line. Weights count equal rows that were merged.
"""

import numpy as np
from numba import njit

from exchangeable.engines.bits import popcount
from exchangeable.engines.kernels import ones_of
from exchangeable.engines.posteriors import TILE, settle

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def _count(words, begin, end, masks, mask, radix, place):  # type: ignore[no-untyped-def]
    """Write a block's count behind the others' of its group, for the rows begin..end."""
    for i in range(masks.size):
        column, bits = words[masks[i], begin:end], mask[i]
        if i == 0:
            for r in range(column.size):
                place[r] = place[r] * radix + popcount(column[r] & bits)  # type: ignore[call-arg]
        else:
            for r in range(column.size):
                place[r] += popcount(column[r] & bits)  # type: ignore[call-arg]


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
    place = np.zeros(TILE, dtype=np.uint64)
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
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
            row = joint[y]
            row[:] = log_prior[y]
            for g in range(first_group[y], first_group[y + 1]):
                values = table[starts[g] :]
                at = numbers[g, begin - offset : end - offset]
                for r in range(at.size):
                    row[r] += values[at[r]]
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
def _add_to_four(histogram, starts, numbers, kept, mass):  # type: ignore[no-untyped-def]
    """Add masses by the numbers of the rows kept in four groups: no addition waits for another."""
    one, two = histogram[starts[0] :], histogram[starts[1] :]
    three, four = histogram[starts[2] :], histogram[starts[3] :]
    at_one, at_two, at_three, at_four = numbers[0], numbers[1], numbers[2], numbers[3]
    for at in range(kept.size):
        r, add = kept[at], mass[at]
        one[at_one[r]] += add
        two[at_two[r]] += add
        three[at_three[r]] += add
        four[at_four[r]] += add


@_compile
def _add_to_two(histogram, starts, numbers, kept, mass):  # type: ignore[no-untyped-def]
    """Do the same in two groups."""
    one, two = histogram[starts[0] :], histogram[starts[1] :]
    at_one, at_two = numbers[0], numbers[1]
    for at in range(kept.size):
        r, add = kept[at], mass[at]
        one[at_one[r]] += add
        two[at_two[r]] += add


@_compile
def _add_to_one(histogram, starts, numbers, kept, mass):  # type: ignore[no-untyped-def]
    """Do the same in one group."""
    one, at_one = histogram[starts[0] :], numbers[0]
    for at in range(kept.size):
        one[at_one[kept[at]]] += mass[at]


@_compile
def add_counted(  # type: ignore[no-untyped-def]
    first, last, offset, numbers, weights, posterior, lines, classes, first_group, starts, histogram
):
    """Add the posteriors, line ``lines[i]`` that of class ``classes[i]``, by number."""
    column = np.empty(TILE, dtype=np.int64)
    mass = np.empty(TILE)
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        for i in range(classes.size):
            share = posterior[lines[i], begin:end]
            n_kept = 0
            for r in range(share.size):
                column[n_kept] = begin - offset + r
                mass[n_kept] = weights[begin + r] * share[r]
                n_kept += share[r] > 0.0
            rows = (column[:n_kept], mass[:n_kept])
            g, end_group = first_group[classes[i]], first_group[classes[i] + 1]
            while g + 4 <= end_group:
                _add_to_four(histogram, starts[g:], numbers[g:], *rows)
                g += 4
            if g + 2 <= end_group:
                _add_to_two(histogram, starts[g:], numbers[g:], *rows)
                g += 2
            if g < end_group:
                _add_to_one(histogram, starts[g:], numbers[g:], *rows)
