"""Answers about rows with holes for one class: marginals, completions and draws.

Rows, masks and tables are as in `hole_kernels`.
"""

import numpy as np
from numba import njit

from exchangeable.data.row_kernels import ones_of
from exchangeable.families.blocks.hole_kernels import (
    NEGLIGIBLE,
    count_row,
    forget_row,
    hidden_ones,
    highest_weight,
    new_counters,
    new_memo,
    pair_slot,
)
from exchangeable.runtime.vectors import exponential

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def _write_known(ones, row, buffer, out):  # type: ignore[no-untyped-def]
    """Write the known ones of a row, and zeros elsewhere."""
    out[:] = 0
    listed = ones_of(ones[0], ones[1], ones[2], row, buffer)
    for at in range(listed.size):
        out[listed[at]] = 1


@_compile
def write_chances(ones, gaps, row, labels, chance, buffer, out):  # type: ignore[no-untyped-def]
    """Write a row whose holes have the chance of their block."""
    _write_known(ones, row, buffer, out)
    listed = ones_of(gaps[0], gaps[1], gaps[2], row, buffer)
    for at in range(listed.size):
        out[listed[at]] = chance[labels[listed[at], 0]]


@_compile
def write_first(ones, gaps, row, labels, wanted, buffer, out):  # type: ignore[no-untyped-def]
    """Write a row whose blocks have so many hidden ones, the first holes being on."""
    _write_known(ones, row, buffer, out)
    listed = ones_of(gaps[0], gaps[1], gaps[2], row, buffer)
    for at in range(listed.size):
        b = labels[listed[at], 0]
        out[listed[at]] = wanted[b] > 0
        wanted[b] -= 1


@_compile
def write_drawn(  # type: ignore[no-untyped-def]
    ones, gaps, row, labels, wanted, left, uniform, buffer, out
):
    """Write a row whose blocks have so many hidden ones among those left, drawn by numbers."""
    _write_known(ones, row, buffer, out)
    listed = ones_of(gaps[0], gaps[1], gaps[2], row, buffer)
    for at in range(listed.size):
        j = listed[at]
        b = labels[j, 0]
        if uniform[j] * left[b] < wanted[b]:
            wanted[b] -= 1
            out[j] = 1
        left[b] -= 1


@_compile
def pick(shares, uniform):  # type: ignore[no-untyped-def]
    """Return the place that a uniform number stands for, in proportion to the shares."""
    left, last = uniform * shares.sum(), 0
    for at in range(shares.size):
        if shares[at] > 0.0:
            last = at
            left -= shares[at]
            if left < 0.0:
                return at
    return last


@_compile
def hidden_chances(ones, gaps, masks, labels, starts, sizes, table, log_factorial, out):  # type: ignore[no-untyped-def]
    """Write P(x_j = 1 | e) of every variable of every row, for one class."""
    place, hidden, blocks, buffer, _ = new_counters(labels, np.array([0, starts.size]), starts)
    keys, values, means, _, _, offsets = new_memo(out.shape[0], sizes)
    chance = np.empty(starts.size)
    for row in range(out.shape[0]):
        n_touched = count_row(ones, gaps, row, masks, labels, starts, place, hidden, blocks, buffer)
        for at in range(n_touched):
            b = blocks[at]
            if hidden[b] > 0:
                key, at_count = place[b] + hidden[b] * table.size, place[b] - starts[b]
                slot = pair_slot(key, hidden[b], at_count, offsets[b], sizes[b], keys.size)
                if keys[slot] != key:
                    keys[slot] = key
                    values[slot], means[slot] = hidden_ones(
                        table, place[b], hidden[b], log_factorial
                    )
                chance[b] = means[slot] / hidden[b]
        forget_row(n_touched, starts, place, hidden, blocks)
        write_chances(ones, gaps, row, labels, chance, buffer, out[row])


@_compile
def complete_rows(ones, gaps, masks, labels, starts, table, out, score):  # type: ignore[no-untyped-def]
    """Write the most probable completion of every row for one class, and its log-probability.

    In a block all completions with the same number of ones are equally likely; the first are on.
    """
    place, hidden, blocks, buffer, _ = new_counters(labels, np.array([0, starts.size]), starts)
    wanted = np.zeros(starts.size, dtype=np.int64)
    for row in range(out.shape[0]):
        n_touched = count_row(ones, gaps, row, masks, labels, starts, place, hidden, blocks, buffer)
        score[row] = 0.0
        for b in range(starts.size):
            wanted[b] = 0
            for s in range(1, hidden[b] + 1):
                if table[place[b] + s] > table[place[b] + wanted[b]]:
                    wanted[b] = s
            score[row] += table[place[b] + wanted[b]]
        forget_row(n_touched, starts, place, hidden, blocks)
        write_first(ones, gaps, row, labels, wanted, buffer, out[row])


@_compile
def draw_rows(  # type: ignore[no-untyped-def]
    ones, gaps, masks, labels, starts, table, log_factorial, of_block, of_entry, out
):
    """Write a random completion of every row for one class, made of uniform numbers.

    ``of_block[row, b]`` chooses the number of hidden ones of a block, ``of_entry[row, j]`` whether
    the next hole is one of them.
    """
    place, hidden, blocks, buffer, _ = new_counters(labels, np.array([0, starts.size]), starts)
    wanted, left = np.zeros((2, starts.size), dtype=np.int64)
    shares = np.empty(labels.shape[0] + 1)
    for row in range(out.shape[0]):
        n_touched = count_row(ones, gaps, row, masks, labels, starts, place, hidden, blocks, buffer)
        for at in range(n_touched):
            b = blocks[at]
            left[b] = hidden[b]
            if hidden[b] > 0:
                uniform = of_block[row, b]
                wanted[b] = _draw_count(table, place[b], hidden[b], log_factorial, uniform, shares)
        forget_row(n_touched, starts, place, hidden, blocks)
        write_drawn(ones, gaps, row, labels, wanted, left, of_entry[row], buffer, out[row])


@_compile
def _draw_count(table, place, holes, log_factorial, uniform, shares):  # type: ignore[no-untyped-def]
    """Return the number of hidden ones that a uniform number stands for."""
    highest = highest_weight(table, place, holes, log_factorial)
    if highest == -np.inf:
        return 0
    for s in range(holes + 1):
        term = table[place + s] - log_factorial[s] - log_factorial[holes - s] - highest
        shares[s] = exponential(term) if term > -NEGLIGIBLE else 0.0
    return pick(shares[: holes + 1], uniform)
