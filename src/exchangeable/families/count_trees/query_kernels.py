"""Answers about rows with holes for one class that is a tree over counts.

Marginals, completions and draws; arguments are as in `count_tree_kernels`.
"""

import numpy as np
from numba import njit

from exchangeable.families.blocks.hole_counters import count_row, forget_row, new_counters
from exchangeable.families.blocks.query_kernels import pick, write_chances, write_drawn, write_first
from exchangeable.families.count_trees.kernels import (
    collect,
    distribute,
    hidden_weight,
    new_messages,
    share_of_bins,
)

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def marginal_rows(  # type: ignore[no-untyped-def]
    rows, tree, table, log_ratio, log_factorial, out
):
    """Write P(x_j = 1 | what is known) of every variable of every row."""
    starts, bins, n_bins = tree[0], tree[1], tree[2]
    counters = new_counters(rows.labels, starts)
    entry, hidden = counters.entry, counters.hidden
    ratio, room = np.exp(log_ratio), new_messages(tree)
    chance, no_edges = np.zeros(n_bins.size), np.empty(0)
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        chance[:] = 0.0
        if hidden.any() and (
            collect(tree, table, ratio, entry, hidden, log_factorial, room) > -np.inf
        ):
            distribute(tree, ratio, room, 0.0, no_edges)
            for b in range(n_bins.size):
                if hidden[b] > 0:
                    found = _expected(entry[b], hidden[b], bins, table, log_factorial, room, b)
                    chance[b] = found / hidden[b]
        forget_row(n_touched, counters)
        write_chances(rows, row, chance, counters.buffer, out[row])


@_compile
def _expected(place, holes, bins, table, log_factorial, room, b):  # type: ignore[no-untyped-def]
    """Return the expected number of hidden ones of a block."""
    own, belief = room[0, b], room[3, b]
    unit, found = -np.inf, 0.0
    for s in range(holes + 1):
        unit = max(unit, hidden_weight(table, place, holes, s, log_factorial))
    for s in range(1, holes + 1):
        z = bins[place + s]
        if belief[z] > 0.0:
            term = hidden_weight(table, place, holes, s, log_factorial)
            found += s * belief[z] * np.exp(term - unit) / own[z]
    return found


@_compile
def complete_rows(  # type: ignore[no-untyped-def]
    rows, tree, table, log_ratio, log_factorial, out, score
):
    """Write the most probable completion of every row, and its log-probability.

    In a block all completions with the same number of ones are equally likely; the first are on.
    """
    starts, _, n_bins, order, parent, _ = tree
    n_blocks = n_bins.size
    counters = new_counters(rows.labels, starts)
    entry, hidden = counters.entry, counters.hidden
    best = np.empty((n_blocks, n_bins.max()))
    most, choice = np.zeros((2, n_blocks, n_bins.max()), dtype=np.int64)
    chosen, wanted = np.zeros((2, n_blocks), dtype=np.int64)
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        score[row] = _climb(tree, table, log_ratio, entry, hidden, best, most, choice, chosen)
        for b in order:
            if parent[b] < n_blocks:
                chosen[b] = choice[b, chosen[parent[b]]]
            wanted[b] = most[b, chosen[b]]
        forget_row(n_touched, counters)
        write_first(rows, row, wanted, counters.buffer, out[row])


@_compile
def _climb(tree, table, log_ratio, place, hidden, best, most, choice, chosen):  # type: ignore[no-untyped-def]
    """Pass the best log-probabilities from leaves to roots; return that of the whole row.

    ``most[b, z]`` hidden ones are the best in bin z of b, ``choice[b, above]`` is the best bin of b
    given that of its parent, and `chosen` the best bin of each root.
    """
    _, bins, n_bins, order, parent, cells = tree
    n_blocks, total = n_bins.size, 0.0
    for b in range(n_blocks):
        best[b], most[b] = -np.inf, 0
        for s in range(hidden[b] + 1):
            z, value = bins[place[b] + s], table[place[b] + s]
            if value > best[b, z]:
                best[b, z], most[b, z] = value, s
    for at in range(n_blocks - 1, -1, -1):
        b = order[at]
        width, p = n_bins[b], parent[b]
        if p == n_blocks:
            chosen[b] = np.argmax(best[b, :width])
            total += best[b, chosen[b]]
            continue
        for above in range(n_bins[p]):
            begin, highest, choice[b, above] = cells[b] + above * width, -np.inf, 0
            for z in range(width):
                value = log_ratio[begin + z] + best[b, z]
                if value > highest:
                    highest, choice[b, above] = value, z
            best[p, above] += highest
    return total


@_compile
def draw_rows(  # type: ignore[no-untyped-def]
    rows, tree, table, log_ratio, log_factorial, of_block, of_entry, out
):
    """Write a random completion of every row, made of uniform numbers.

    ``of_block[row, b]`` are two numbers that choose a block's bin and its number of hidden ones,
    ``of_entry[row, j]`` says whether the next hole is one of them.
    """
    starts, bins, n_bins, order, parent, _ = tree
    counters = new_counters(rows.labels, starts)
    entry, hidden = counters.entry, counters.hidden
    ratio, room = np.exp(log_ratio), new_messages(tree)
    chosen, wanted, left = np.zeros((3, n_bins.size), dtype=np.int64)
    share = np.empty(max(room.shape[2], rows.labels.shape[0] + 1))
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        wanted[:] = 0
        left[:] = hidden
        if collect(tree, table, ratio, entry, hidden, log_factorial, room) > -np.inf:
            for b in order:
                above = chosen[parent[b]] if parent[b] < n_bins.size else 0
                share_of_bins(tree, ratio, b, room, above, share)
                chosen[b] = pick(share[: n_bins[b]], of_block[row, b, 0])
                for s in range(hidden[b] + 1):
                    share[s] = -np.inf
                    if bins[entry[b] + s] == chosen[b]:
                        share[s] = hidden_weight(table, entry[b], hidden[b], s, log_factorial)
                some = share[: hidden[b] + 1]
                some[:] = np.exp(some - some.max())
                wanted[b] = pick(some, of_block[row, b, 1])
        forget_row(n_touched, counters)
        write_drawn(rows, row, wanted, left, of_entry[row], counters.buffer, out[row])
