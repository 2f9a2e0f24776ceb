"""The inner loops of EM over blocks: scores and posteriors, and histograms by count.

Rows are taken in tiles. Where there are few words of bits, blocks are counted by masks and
popcount, a word of all rows of the tile at a time; where there are many, each one of a row moves
the counters of its blocks. Posteriors and joint probabilities are laid out one class a line.
Weights count equal rows that were merged.
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
def score_masked(  # type: ignore[no-untyped-def]
    words,
    first,
    last,
    weights,
    clamp,
    first_mask,
    word,
    mask,
    radix,
    first_group,
    first_block,
    starts,
    table,
    log_prior,
    posterior,
):
    """Write the posteriors of the rows first..last and return their log-likelihood.

    Blocks are described by `Counters`, and `table` is what it has spread.
    """
    n_classes = log_prior.size
    joint = np.empty((n_classes, TILE))
    place = np.zeros(TILE, dtype=np.uint64)
    log_likelihood = 0.0
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        at = place[: end - begin]
        for y in range(n_classes):
            line = joint[y]
            line[:] = log_prior[y]
            for g in range(first_group[y], first_group[y + 1]):
                for b in range(first_block[g], first_block[g + 1]):
                    own = slice(first_mask[b], first_mask[b + 1])
                    _count(words, begin, end, word[own], mask[own], radix[b], at)
                values = table[starts[g] :]
                for r in range(at.size):
                    line[r] += values[at[r]]
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
def _walk(ones, labels, starts, place):  # type: ignore[no-untyped-def]
    """Write where each block's count stands in the table: its start, moved on by its ones."""
    for b in range(starts.size):
        place[b] = starts[b]
    for at in range(ones.size):
        block = labels[ones[at]]
        for y in range(block.size):
            place[block[y]] += 1


@_compile
def score_walked(  # type: ignore[no-untyped-def]
    bits,
    indptr,
    indices,
    first,
    last,
    weights,
    clamp,
    labels,
    first_block,
    starts,
    table,
    log_prior,
    posterior,
):
    """Do the same by walking over the ones."""
    n_variables, n_classes = labels.shape
    joint = np.empty((n_classes, TILE))
    place = np.empty(starts.size, dtype=np.int64)
    buffer = np.empty(n_variables, dtype=np.int32)
    log_likelihood = 0.0
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        for row in range(begin, end):
            ones = ones_of(bits, indptr, indices, row, buffer)
            _walk(ones, labels, starts, place)
            for y in range(n_classes):
                total = log_prior[y]
                for b in range(first_block[y], first_block[y + 1]):
                    total += table[place[b]]
                joint[y, row - begin] = total
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
def add_histograms_masked(  # type: ignore[no-untyped-def]
    words,
    first,
    last,
    weights,
    posterior,
    classes,
    first_mask,
    word,
    mask,
    radix,
    first_group,
    first_block,
    starts,
    histogram,
):
    """Add the posteriors of the chosen classes to their groups' histograms."""
    most = np.max(first_group[1:] - first_group[:-1])
    place = np.zeros((most, TILE + 8), dtype=np.uint64)  # lines that do not share cache sets
    kept = np.empty(TILE, dtype=np.int64)
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        for i in range(classes.size):
            share = posterior[classes[i], begin:end]
            n_groups = first_group[i + 1] - first_group[i]
            for group in range(n_groups):
                g = first_group[i] + group
                at = place[group, : end - begin]
                for b in range(first_block[g], first_block[g + 1]):
                    own = slice(first_mask[b], first_mask[b + 1])
                    _count(words, begin, end, word[own], mask[own], radix[b], at)
                for r in range(at.size):
                    at[r] += np.uint64(starts[g])
            n_kept = 0
            for r in range(share.size):
                kept[n_kept] = r
                n_kept += share[r] > 0.0
            # A row at a time: its places differ, so that no addition waits for the one before.
            for at_row in range(n_kept):
                r = kept[at_row]
                mass = weights[begin + r] * share[r]
                for group in range(n_groups):
                    histogram[place[group, r]] += mass


@_compile
def add_histograms_walked(  # type: ignore[no-untyped-def]
    bits,
    indptr,
    indices,
    first,
    last,
    weights,
    posterior,
    classes,
    labels,
    first_block,
    starts,
    histogram,
):
    """Do the same by walking over the ones."""
    n_variables, n_classes = labels.shape
    place = np.empty(starts.size, dtype=np.int64)
    buffer = np.empty(n_variables, dtype=np.int32)
    for row in range(first, last):
        ones = ones_of(bits, indptr, indices, row, buffer)
        _walk(ones, labels, starts, place)
        for y in range(n_classes):
            mass = weights[row] * posterior[classes[y], row]
            if mass > 0.0:
                for b in range(first_block[y], first_block[y + 1]):
                    histogram[place[b]] += mass
