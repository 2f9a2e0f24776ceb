"""The inner loops over rows with holes.

In a block of m variables of which h are not known and c are known to be on, the number s of hidden
ones has weight C(h, s)·exp(table[c + s]): P = Σ_t q(t)·C(m − o, t − c)/C(m, t) with o = m − h. A
block's entries in `table` and a pair (h, c) name such a sum; each is computed once and remembered.
"""

import numpy as np
from numba import njit

from exchangeable.engines.em_kernels import _settle
from exchangeable.engines.kernels import ones_of

_compile = njit(cache=True, nogil=True, error_model="numpy")

MEMO_BITS = 15
"""The memo holds 2^15 sums; a pair whose place is taken by another drives that one out."""


@_compile
def _hidden_ones(table, place, holes, log_factorial):  # type: ignore[no-untyped-def]
    """Return the log of the sum over the hidden ones, and their expected number."""
    highest = -np.inf
    for s in range(holes + 1):
        term = table[place + s] - log_factorial[s] - log_factorial[holes - s]
        highest = max(highest, term)
    if highest == -np.inf:
        return -np.inf, 0.0
    total, ones = 0.0, 0.0
    for s in range(holes + 1):
        term = table[place + s] - log_factorial[s] - log_factorial[holes - s]
        if term > highest - 40.0:
            share = np.exp(term - highest)
            total += share
            ones += s * share
    return highest + np.log(total) + log_factorial[holes], ones / total


@_compile
def _recall(place, holes, table, log_factorial, keys, values, means):  # type: ignore[no-untyped-def]
    """Return where the memo holds the pair's sum, which is computed if it is not there."""
    key = np.int64(place + holes * table.size)
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(64 - MEMO_BITS))
    if keys[slot] != key:
        keys[slot] = key
        values[slot], means[slot] = _hidden_ones(table, place, holes, log_factorial)
    return slot


@_compile
def _count(ones, gaps, labels, place, hidden):  # type: ignore[no-untyped-def]
    """Move each block's place on by its known ones, and count its holes."""
    for at in range(ones.size):
        block = labels[ones[at]]
        for y in range(block.size):
            place[block[y]] += 1
    for at in range(gaps.size):
        block = labels[gaps[at]]
        for y in range(block.size):
            hidden[block[y]] += 1


@_compile
def _reset(listed, labels, starts, place, hidden):  # type: ignore[no-untyped-def]
    """Undo `_count` for the blocks of some variables."""
    for at in range(listed.size):
        block = labels[listed[at]]
        for y in range(block.size):
            place[block[y]] = starts[block[y]]
            hidden[block[y]] = 0


@_compile
def _zero_scores(first_block, starts, table):  # type: ignore[no-untyped-def]
    """Return each class's score of a row of known zeros, and how many blocks forbid such a row."""
    n_classes = first_block.size - 1
    base = np.zeros(n_classes)
    forbidden = np.zeros(n_classes, dtype=np.int64)
    for y in range(n_classes):
        for b in range(first_block[y], first_block[y + 1]):
            if table[starts[b]] == -np.inf:
                forbidden[y] += 1
            else:
                base[y] += table[starts[b]]
    return base, forbidden


@_compile
def _add_scores(  # type: ignore[no-untyped-def]
    listed,
    labels,
    starts,
    sizes,
    table,
    log_factorial,
    place,
    hidden,
    stamp,
    seen,
    memo,
    joint,
    missing,
):
    """Add what the blocks of some variables are worth more than they would be without ones."""
    for at in range(listed.size):
        block = labels[listed[at]]
        for y in range(block.size):
            b = block[y]
            if seen[b] == stamp:
                continue
            seen[b] = stamp
            if hidden[b] == 0:
                value = table[place[b]]
            elif hidden[b] == sizes[b]:
                value = 0.0
            else:
                value = memo[1][_recall(place[b], hidden[b], table, log_factorial, *memo)]
            zero = table[starts[b]]
            if zero == -np.inf:
                missing[y] -= 1
                zero = 0.0
            joint[y] += value - zero


@_compile
def _add_counts(  # type: ignore[no-untyped-def]
    listed, labels, starts, table, log_factorial, place, hidden, stamp, seen, memo, mass, histogram
):
    """Move the row's mass from the counts of zero to the counts that are expected."""
    for at in range(listed.size):
        block = labels[listed[at]]
        for y in range(block.size):
            b = block[y]
            if seen[b] == stamp or mass[y] <= 0.0:
                continue
            seen[b] = stamp
            histogram[starts[b]] -= mass[y]
            if hidden[b] == 0:
                histogram[place[b]] += mass[y]
                continue
            slot = _recall(place[b], hidden[b], table, log_factorial, *memo[:3])
            if memo[4][slot] != memo[0][slot]:
                _spread(memo[4][slot], memo[3][slot], table, log_factorial, histogram)
                memo[4][slot], memo[3][slot] = memo[0][slot], 0.0
            memo[3][slot] += mass[y]


@_compile
def _spread(key, mass, table, log_factorial, histogram):  # type: ignore[no-untyped-def]
    """Add mass to a block's histogram in proportion to the hidden counts' probabilities."""
    if key < 0 or mass <= 0.0:
        return
    place, holes = key % table.size, key // table.size
    value = _hidden_ones(table, place, holes, log_factorial)[0]
    for s in range(holes + 1):
        term = table[place + s] - log_factorial[s] - log_factorial[holes - s]
        if term > -np.inf and value > -np.inf:
            histogram[place + s] += mass * np.exp(term + log_factorial[holes] - value)


@_compile
def expect_with_holes(  # type: ignore[no-untyped-def]
    ones_arrays,
    hole_arrays,
    first,
    last,
    weights,
    clamp,
    labels,
    first_block,
    starts,
    sizes,
    table,
    log_prior,
    log_factorial,
    posterior,
    histogram,
):
    """Return the log-likelihood of some rows; write posteriors, add expected histograms.

    With an empty `histogram` the rows are only scored: `posterior` then holds log P(e | y), and
    `weights`, `clamp` and `log_prior` are not read.
    """
    n_variables = labels.shape[0]
    place, hidden = starts.copy(), np.zeros(starts.size, dtype=np.int64)
    seen = np.full(starts.size, -1, dtype=np.int64)
    buffer = np.empty(n_variables, dtype=np.int32)
    gap_buffer = np.empty(n_variables, dtype=np.int32)
    base, forbidden = _zero_scores(first_block, starts, table)
    keys = np.full(1 << MEMO_BITS, -1, dtype=np.int64)
    values, means = np.empty(keys.size), np.empty(keys.size)
    memo = (keys, values, means)
    # What rows with a pair weigh together, and whose pair that is, until it is spread.
    waiting, owner = np.zeros(keys.size), np.full(keys.size, -1, dtype=np.int64)
    log_likelihood = 0.0
    for row in range(first, last):
        ones = ones_of(*ones_arrays, row, buffer)  # type: ignore[call-arg]
        gaps = ones_of(*hole_arrays, row, gap_buffer)  # type: ignore[call-arg]
        _count(ones, gaps, labels, place, hidden)
        joint, missing = posterior[row], forbidden.copy()
        joint[:] = base
        for listed in (ones, gaps):
            _add_scores(
                listed,
                labels,
                starts,
                sizes,
                table,
                log_factorial,
                place,
                hidden,
                2 * row,
                seen,
                memo,
                joint,
                missing,
            )
        joint[missing > 0] = -np.inf
        if histogram.size:
            joint += log_prior
            known = clamp[row] if clamp.size else -1
            log_likelihood += weights[row] * _settle(joint, log_prior, known)
            mass = weights[row] * joint
            for listed in (ones, gaps):
                _add_counts(
                    listed,
                    labels,
                    starts,
                    table,
                    log_factorial,
                    place,
                    hidden,
                    2 * row + 1,
                    seen,
                    (keys, values, means, waiting, owner),
                    mass,
                    histogram,
                )
        _reset(ones, labels, starts, place, hidden)
        _reset(gaps, labels, starts, place, hidden)
    for slot in range(keys.size):
        _spread(owner[slot], waiting[slot], table, log_factorial, histogram)
    return log_likelihood


@_compile
def hidden_chances(ones, holes, label, starts, table, log_factorial, out):  # type: ignore[no-untyped-def]
    """Write P(x_j = 1 | e) of every variable of every row, for one class.

    `ones` and `holes` are matrices of truth values; `out` has their shape.
    """
    n_rows, n_variables = ones.shape
    place, hidden = starts.copy(), np.zeros(starts.size, dtype=np.int64)
    chance = np.empty(starts.size)
    keys = np.full(1 << MEMO_BITS, -1, dtype=np.int64)
    memo = (keys, np.empty(keys.size), np.empty(keys.size))
    for row in range(n_rows):
        place[:] = starts
        hidden[:] = 0
        for j in range(n_variables):
            place[label[j]] += ones[row, j]
            hidden[label[j]] += holes[row, j]
        for b in range(starts.size):
            if hidden[b] > 0:
                slot = _recall(place[b], hidden[b], table, log_factorial, *memo)
                chance[b] = memo[2][slot] / hidden[b]
        for j in range(n_variables):
            out[row, j] = chance[label[j]] if holes[row, j] else ones[row, j]


@_compile
def complete_rows(ones, holes, label, starts, table, out, score):  # type: ignore[no-untyped-def]
    """Write the most probable completion of every row for one class, and its log-probability.

    In a block all completions with the same number of ones are equally likely; the first are on.
    """
    n_rows, n_variables = ones.shape
    place, hidden = starts.copy(), np.zeros(starts.size, dtype=np.int64)
    wanted = np.zeros(starts.size, dtype=np.int64)
    for row in range(n_rows):
        place[:] = starts
        hidden[:] = 0
        for j in range(n_variables):
            place[label[j]] += ones[row, j]
            hidden[label[j]] += holes[row, j]
        score[row] = 0.0
        for b in range(starts.size):
            wanted[b] = 0
            for s in range(1, hidden[b] + 1):
                if table[place[b] + s] > table[place[b] + wanted[b]]:
                    wanted[b] = s
            score[row] += table[place[b] + wanted[b]]
        for j in range(n_variables):
            out[row, j] = ones[row, j]
            if holes[row, j] and wanted[label[j]] > 0:
                wanted[label[j]] -= 1
                out[row, j] = 1


@_compile
def draw_rows(ones, holes, label, starts, table, log_factorial, of_block, of_entry, out):  # type: ignore[no-untyped-def]
    """Write a random completion of every row for one class, made of uniform numbers.

    ``of_block[row, b]`` chooses the number of hidden ones of a block, ``of_entry[row, j]`` whether
    the next hole is one of them.
    """
    n_rows, n_variables = ones.shape
    place, hidden = starts.copy(), np.zeros(starts.size, dtype=np.int64)
    wanted = np.zeros(starts.size, dtype=np.int64)
    for row in range(n_rows):
        place[:] = starts
        hidden[:] = 0
        for j in range(n_variables):
            place[label[j]] += ones[row, j]
            hidden[label[j]] += holes[row, j]
        for b in range(starts.size):
            wanted[b] = 0
            if hidden[b] > 0:
                wanted[b] = _draw_count(table, place[b], hidden[b], log_factorial, of_block[row, b])
        for j in range(n_variables):
            out[row, j] = ones[row, j]
            if holes[row, j]:
                b = label[j]
                if of_entry[row, j] * hidden[b] < wanted[b]:
                    wanted[b] -= 1
                    out[row, j] = 1
                hidden[b] -= 1


@_compile
def _draw_count(table, place, holes, log_factorial, uniform):  # type: ignore[no-untyped-def]
    """Return the number of hidden ones that a uniform number stands for."""
    value = _hidden_ones(table, place, holes, log_factorial)[0]
    left, last = uniform, 0
    if value == -np.inf:
        return last
    for s in range(holes + 1):
        term = table[place + s] - log_factorial[s] - log_factorial[holes - s]
        share = np.exp(term + log_factorial[holes] - value)
        if share > 0.0:
            last = s
            left -= share
            if left < 0.0:
                return s
    return last
