"""Inner loops of EM over blocks: counts, scores and posteriors, and histograms by count.

Rows are processed in tiles. With few words of bits, blocks are counted by masks and popcount, one
word of all rows of the tile at a time; with many words, each one of a row increments the counters
of its blocks. The result is one number per bundle of blocks and row (`Bundles`). Posteriors and
joint probabilities have one line per class. Weights count equal rows that were merged.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.data.row_kernels import ones_of
from exchangeable.families.blocks.bundles import gather
from exchangeable.families.common.posteriors import settle
from exchangeable.runtime.kernels.bits import short_popcount
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill, helper, inlined
from exchangeable.runtime.kernels.vectors import TILE, logarithm, single_power, vectorise

_compile = compiled()

COUNT_TILE = 1024
"""Number of rows that are counted at a time."""
ADD_TILE = 2048
"""Number of rows that are added to a class's histograms at a time."""
SCORED = 2048
"""Number of rows that are looked up in the tables of one class before those of the next."""
LOWEST = np.float32(-3e38)
"""Represents log 0 in single precision, so that differences are numbers."""
MOSTLY = 0.25
"""If more than this share of a tile's rows has some mass, rows without mass are not skipped."""


class Piece(NamedTuple):
    """The numbers of the rows first..last in all bundles.

    Row r has its numbers in column ``r - offset`` of `numbers`, which has one line per bundle.
    """

    first: int
    last: int
    offset: int
    numbers: npt.NDArray[np.unsignedinteger[Any]]


@inlined
def _four(a, b, c, d, masks, weights):  # type: ignore[no-untyped-def]
    """Return the weighted sum of the numbers of ones of four words under their masks."""
    two = short_popcount(a & masks[0]) * weights[0] + short_popcount(b & masks[1]) * weights[1]
    others = short_popcount(c & masks[2]) * weights[2] + short_popcount(d & masks[3]) * weights[3]
    return two + others


@_compile
def count_masked(words, masks, bundles, classes, piece):  # type: ignore[no-untyped-def]
    """Write the numbers of a piece's rows in the bundles of some classes (`WeightedMasks`).

    Words, masks and numbers have 16 bits. Four masks at a time save loads and stores of numbers.
    """
    first, last, offset, numbers = piece
    first_mask, word, mask, weight, _ = masks
    first_bundle = bundles.first_bundle
    for begin in range(first, last, COUNT_TILE):
        end = min(begin + COUNT_TILE, last)
        for y in classes:
            for g in range(first_bundle[y], first_bundle[y + 1]):
                number = numbers[g, begin - offset : end - offset]
                for i in range(first_mask[g], first_mask[g + 1], 4):
                    one, two = words[word[i], begin:end], words[word[i + 1], begin:end]
                    three, four = words[word[i + 2], begin:end], words[word[i + 3], begin:end]
                    bits = (mask[i], mask[i + 1], mask[i + 2], mask[i + 3])
                    each = (weight[i], weight[i + 1], weight[i + 2], weight[i + 3])
                    if i > first_mask[g]:
                        for r in range(number.size):
                            number[r] += _four(one[r], two[r], three[r], four[r], bits, each)
                    else:
                        for r in range(number.size):
                            number[r] = _four(one[r], two[r], three[r], four[r], bits, each)


@inlined
def _add_ones(words, mask, count):  # type: ignore[no-untyped-def]
    """Add the numbers of ones of words under a mask."""
    for r in range(words.size):
        count[r] += short_popcount(words[r] & mask)


@inlined
def _state(possible, on):  # type: ignore[no-untyped-def]
    """Return n(n + 1)/2 + c of n possible ones and c known ones, by operations on 16 bits alone."""
    unit = np.uint16(1)
    return ((possible >> unit) + (possible & unit)) * (possible | unit) + on


@_compile
def count_states(ones, possible, masks, bundles, classes, piece):  # type: ignore[no-untyped-def]
    """Write the numbers of rows with missing entries, from states (see `holes.states`).

    `ones` are the words of the entries known to be on, `possible` those of ones and missing
    entries. A vector holds most rows if every operation is on as many bits as words and numbers.
    """
    first, last, offset, numbers = piece
    first_mask, word, mask, _ = masks
    order, worth, first_bundle, first_block, _ = bundles
    on, at_most = np.empty(COUNT_TILE, np.uint16), np.empty(COUNT_TILE, np.uint16)
    for begin in range(first, last, COUNT_TILE):
        end = min(begin + COUNT_TILE, last)
        for y in classes:
            for g in range(first_bundle[y], first_bundle[y + 1]):
                number = numbers[g, begin - offset : end - offset]
                fill(number, 0)
                for i in range(first_block[g], first_block[g + 1]):
                    m, last_mask = first_mask[order[i]], first_mask[order[i] + 1] - 1
                    one, open_ = ones[word[m], begin:end], possible[word[m], begin:end]
                    bits, value = mask[m], numbers.dtype.type(worth[i])
                    if m == last_mask:  # most blocks: no need to write the counts down
                        for r in range(number.size):
                            n, c = short_popcount(open_[r] & bits), short_popcount(one[r] & bits)
                            number[r] += _state(n, c) * value
                        continue
                    fill(on, np.uint16(0))
                    fill(at_most, np.uint16(0))
                    for k in range(m + 1, last_mask + 1):
                        _add_ones(ones[word[k], begin:end], mask[k], on)
                        _add_ones(possible[word[k], begin:end], mask[k], at_most)
                    for r in range(number.size):
                        n = numbers.dtype.type(at_most[r] + short_popcount(open_[r] & bits))
                        c = numbers.dtype.type(on[r] + short_popcount(one[r] & bits))
                        number[r] += _state(n, c) * value


@_compile
def count_walked(rows, labels, bundles, classes, piece):  # type: ignore[no-untyped-def]
    """Do the same by walking over the ones."""
    first, last, offset, numbers = piece
    order, worth, first_bundle, first_block, _ = bundles
    count = np.empty(order.size, np.uint64)
    fill(count, np.uint64(0))
    buffer = np.empty(labels.shape[0], dtype=np.int32)
    for row in range(first, last):
        ones = ones_of(rows, row, buffer)
        for k in range(ones.size):
            block = labels[ones[k]]
            for y in classes:
                count[block[y]] += np.uint64(1)
        for y in classes:
            for g in range(first_bundle[y], first_bundle[y + 1]):
                number = np.uint64(0)
                for i in range(first_block[g], first_block[g + 1]):
                    number += count[order[i]] * worth[i]
                    count[order[i]] = 0
                numbers[g, row - offset] = number


@inlined
def _look_up(table, starts, numbers, begin, end, base, score):  # type: ignore[no-untyped-def]
    """Write a base plus the entries of the bundles' tables at the rows' numbers.

    The first bundles are looked up four at a time and written, the others added.
    """
    g = 0
    if starts.size < 4:
        fill(score, base)
    while g + 4 <= starts.size:
        one, two = table[starts[g] :], table[starts[g + 1] :]
        three, four = table[starts[g + 2] :], table[starts[g + 3] :]
        in_one, in_two = numbers[g, begin:end], numbers[g + 1, begin:end]
        in_three, in_four = numbers[g + 2, begin:end], numbers[g + 3, begin:end]
        if g:
            for r in range(in_one.size):
                pair = one[in_one[r]] + two[in_two[r]]
                score[r] += pair + (three[in_three[r]] + four[in_four[r]])
        else:
            for r in range(in_one.size):
                pair = one[in_one[r]] + two[in_two[r]]
                score[r] = base + (pair + (three[in_three[r]] + four[in_four[r]]))
        g += 4
    if g + 2 <= starts.size:
        one, two = table[starts[g] :], table[starts[g + 1] :]
        in_one, in_two = numbers[g, begin:end], numbers[g + 1, begin:end]
        for r in range(in_one.size):
            score[r] += one[in_one[r]] + two[in_two[r]]
        g += 2
    if g < starts.size:
        one, in_one = table[starts[g] :], numbers[g, begin:end]
        for r in range(in_one.size):
            score[r] += one[in_one[r]]


@inlined
def _look_up_classes(piece, start, stop, log_prior, bundles, table, joint):  # type: ignore[no-untyped-def]
    """Write log P(x, y) of the rows start..stop, one line per class.

    All rows are looked up in the tables of one class before the next, so that these stay in the
    cache.
    """
    offset, numbers = piece[2], piece[3]
    first_bundle, starts = bundles.first_bundle, bundles.starts
    for y in range(log_prior.size):
        of_class = slice(first_bundle[y], first_bundle[y + 1])
        own, of_rows = starts[of_class], numbers[of_class]
        _look_up(table, own, of_rows, start - offset, stop - offset, log_prior[y], joint[y])


@_compile
def score_numbers(piece, priors, bundles, table, posterior):  # type: ignore[no-untyped-def]
    """Write the posteriors of a piece's rows and return their log-likelihood.

    `table` holds the tables of the bundles, as computed by `Bundles.spread`.
    """
    first, last = piece[0], piece[1]
    joint = np.empty((priors.log_prior.size, SCORED))
    log_likelihood = 0.0
    for start in range(first, last, SCORED):
        stop = min(start + SCORED, last)
        _look_up_classes(piece, start, stop, priors.log_prior, bundles, table, joint)
        for begin in range(start, stop, TILE):
            end = min(begin + TILE, stop)
            log_likelihood += settle(joint, begin - start, begin, end, priors, posterior)
    return log_likelihood


@vectorise
def _log_sums(joint, first, last, highest, total):  # type: ignore[no-untyped-def]
    """Write the highest of each column of a tile, and the sum of e^x relative to it."""
    for r in range(last - first):
        highest[r] = LOWEST
        total[r] = np.float32(0.0)
    for y in range(joint.shape[0]):
        line = joint[y, first:last]
        for r in range(line.size):
            highest[r] = max(highest[r], line[r])
    for y in range(joint.shape[0]):
        line = joint[y, first:last]
        for r in range(line.size):
            total[r] += single_power(line[r] - highest[r])


@_compile
def limit_single(tables, log_prior):  # type: ignore[no-untyped-def]
    """Return by how much log P of a row may be wrong (see `passes.single_error`)."""
    _, first_block, starts, values = tables
    most, most_blocks = 0.0, 0
    for y in range(log_prior.size):
        of_class, most_blocks = -log_prior[y], max(most_blocks, first_block[y + 1] - first_block[y])
        for b in range(first_block[y], first_block[y + 1]):
            end, highest = starts[b + 1] if b + 1 < starts.size else values.size, 0.0
            for i in range(starts[b], end):
                highest = max(highest, abs(values[i]))
            of_class += highest
        most = max(most, of_class)
    return 2.0**-23 * (most_blocks + 2) * most + 2e-6 * (log_prior.size + 1)


@_compile
def estimate_numbers(piece, weights, log_prior, bundles, table):  # type: ignore[no-untyped-def]
    """Return an approximate log-likelihood of a piece's rows, in single precision, faster.

    `passes.single_error` bounds its error.
    """
    first, last = piece[0], piece[1]
    joint = np.empty((log_prior.size, SCORED), np.float32)
    highest, total = np.empty(TILE, np.float32), np.empty(TILE, np.float32)
    log_sums = np.empty(TILE)
    log_likelihood = 0.0
    for start in range(first, last, SCORED):
        stop = min(start + SCORED, last)
        _look_up_classes(piece, start, stop, log_prior, bundles, table, joint)
        for begin in range(start, stop, TILE):
            end = min(begin + TILE, stop)
            _log_sums(joint, begin - start, end - start, highest, total)
            log_sum, weight = log_sums[: end - begin], weights[begin:end]
            for r in range(log_sum.size):
                log_sum[r] = np.float64(highest[r]) + logarithm(np.float64(total[r]))
            for r in range(log_sum.size):
                log_likelihood += weight[r] * log_sum[r]
    return log_likelihood


@helper
def _add_masses(histogram, starts, numbers, line, column, mass):  # type: ignore[no-untyped-def]
    """Add masses to the bundles' histograms, by the numbers from a line and a column on.

    Many rows have the same number: with additions to several bundles in turn, none waits for the
    one before. So a bundle is only processed alone if it is the only one.
    """
    g, end = 0, column + mass.size
    if starts.size == 5:
        one, two, three = histogram[starts[0] :], histogram[starts[1] :], histogram[starts[2] :]
        four, five = histogram[starts[3] :], histogram[starts[4] :]
        in_one, in_two = numbers[line, column:end], numbers[line + 1, column:end]
        in_three, in_four = numbers[line + 2, column:end], numbers[line + 3, column:end]
        in_five = numbers[line + 4, column:end]
        for r in range(mass.size):
            added = mass[r]
            one[in_one[r]] += added
            two[in_two[r]] += added
            three[in_three[r]] += added
            four[in_four[r]] += added
            five[in_five[r]] += added
        return
    while starts.size - g > 6 or starts.size - g == 4:
        one, two = histogram[starts[g] :], histogram[starts[g + 1] :]
        three, four = histogram[starts[g + 2] :], histogram[starts[g + 3] :]
        in_one, in_two = numbers[line + g, column:end], numbers[line + g + 1, column:end]
        in_three, in_four = numbers[line + g + 2, column:end], numbers[line + g + 3, column:end]
        for r in range(mass.size):
            added = mass[r]
            one[in_one[r]] += added
            two[in_two[r]] += added
            three[in_three[r]] += added
            four[in_four[r]] += added
        g += 4
    while starts.size - g > 4 or starts.size - g == 3:
        one, two = histogram[starts[g] :], histogram[starts[g + 1] :]
        three, in_three = histogram[starts[g + 2] :], numbers[line + g + 2, column:end]
        in_one, in_two = numbers[line + g, column:end], numbers[line + g + 1, column:end]
        for r in range(mass.size):
            added = mass[r]
            one[in_one[r]] += added
            two[in_two[r]] += added
            three[in_three[r]] += added
        g += 3
    if starts.size - g >= 2:
        one, two = histogram[starts[g] :], histogram[starts[g + 1] :]
        in_one, in_two = numbers[line + g, column:end], numbers[line + g + 1, column:end]
        for r in range(mass.size):
            added = mass[r]
            one[in_one[r]] += added
            two[in_two[r]] += added
        g += 2
    if g < starts.size:
        one, in_one = histogram[starts[g] :], numbers[line + g, column:end]
        for r in range(mass.size):
            added = mass[r]
            one[in_one[r]] += added


@_compile
def add_by_number(piece, span, weights, posterior, lines, bundles, block_starts, sums):  # type: ignore[no-untyped-def]
    """Add posteriors by number; those of the class ``lines[0][i]`` are in line ``lines[1][i]``.

    `sums` are those of the bundles, which begin at 0 with the first rows of the span, and those of
    the blocks, to which they are added with the last ones, while they are in the nearest cache.
    Rows without a share in the class are left out where they are many.
    """
    first, last, offset, numbers = piece
    (classes, line_of), (histogram, gathered) = lines, sums
    first_bundle, starts = bundles.first_bundle, bundles.starts
    masses = np.empty(ADD_TILE)
    for i in range(classes.size):
        line = first_bundle[classes[i]]
        tables = starts[line : first_bundle[classes[i] + 1]]
        if first == span[0]:
            fill(histogram[starts[line] : starts[first_bundle[classes[i] + 1]]], 0.0)
        for begin in range(first, last, ADD_TILE):
            end = min(begin + ADD_TILE, last)
            share, weight = posterior[line_of[i], begin:end], weights[begin:end]
            mass, n_kept = masses[: share.size], 0
            for r in range(share.size):
                mass[r] = weight[r] * share[r]
                n_kept += share[r] > 0.0
            if n_kept > MOSTLY * share.size:
                _add_masses(histogram, tables, numbers, line, begin - offset, mass)
                continue
            for r in range(share.size):
                if share[r] > 0.0:
                    for g in range(tables.size):
                        histogram[tables[g] + numbers[line + g, begin - offset + r]] += mass[r]
        if last == span[1]:
            gather(block_starts, gathered, bundles, classes[i], histogram)
