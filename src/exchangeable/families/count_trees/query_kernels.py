"""Queries about incomplete rows for one class that is a tree over counts.

Marginals, completions and draws; arguments are as in `kernels`.
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.blocks.holes.counters import count_row, forget_row, new_counters
from exchangeable.families.blocks.query_kernels import pick, write_chances, write_drawn, write_first
from exchangeable.families.count_trees.kernels import (
    collect,
    distribute,
    hidden_weight,
    largest_hidden_weight,
    new_messages,
    share_of_bins,
)
from exchangeable.runtime.kernels.cache import compiled, for_kernels

_compile = compiled()
_helper = for_kernels()


class BestBins(NamedTuple):
    """The most probable completion of a row, as passed from leaves to roots.

    Attributes
    ----------
    log_best : array of shape (n_blocks, largest n_bins)
        log P of the best completion of a block and all below it, by the block's bin.
    n_hidden : array of shape (n_blocks, largest n_bins)
        The best number of hidden ones in each bin.
    choice : array of shape (n_blocks, largest n_bins)
        The best bin of a block, by the bin of its parent.
    chosen : array of shape (n_blocks,)
        The best bin of each block.
    """

    log_best: FloatArray
    n_hidden: IntArray
    choice: IntArray
    chosen: IntArray


@_compile
def marginal_rows(rows, tree, parameters, out):  # type: ignore[no-untyped-def]
    """Write P(x_j = 1 | known entries) of every variable of every row."""
    counters = new_counters(rows.labels, tree.starts)
    entry, hidden = counters.entry, counters.hidden
    ratio, messages = np.exp(parameters.log_ratio), new_messages(tree.n_bins)
    chance, no_edges = np.zeros(entry.size), np.empty(0)
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        chance[:] = 0.0
        if hidden.any() and collect(tree, parameters, ratio, entry, hidden, messages) > -np.inf:
            distribute(tree, ratio, messages, 0.0, no_edges)
            for b in range(entry.size):
                if hidden[b] > 0:
                    n_on = _expected(b, entry[b], hidden[b], tree, parameters, messages)
                    chance[b] = n_on / hidden[b]
        forget_row(n_touched, counters)
        write_chances(rows, row, chance, counters.buffer, out[row])


@_helper
def _expected(b, entry, holes, tree, parameters, messages):  # type: ignore[no-untyped-def]
    """Return the expected number of hidden ones of block b."""
    bins, evidence, belief = tree.bins, messages.evidence[b], messages.belief[b]
    unit, total = largest_hidden_weight(parameters, entry, holes), 0.0
    for s in range(1, holes + 1):
        z = bins[entry + s]
        if belief[z] > 0.0:
            term = hidden_weight(parameters, entry, holes, s)
            total += s * belief[z] * np.exp(term - unit) / evidence[z]
    return total


@_compile
def complete_rows(rows, tree, parameters, out, score):  # type: ignore[no-untyped-def]
    """Write the most probable completion of every row, and its log-probability.

    In a block all completions with the same number of ones are equally likely; the first entries
    are on.
    """
    counters = new_counters(rows.labels, tree.starts)
    entry, hidden = counters.entry, counters.hidden
    n_bins, order, parent = tree.n_bins, tree.order, tree.parent
    n_blocks = n_bins.size
    shape = (n_blocks, n_bins.max())
    best = BestBins(
        np.empty(shape),
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape, dtype=np.int64),
        np.zeros(n_blocks, dtype=np.int64),
    )
    chosen, choice, n_hidden = best.chosen, best.choice, best.n_hidden
    wanted = np.zeros(n_blocks, dtype=np.int64)
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        score[row] = _collect_best(tree, parameters, entry, hidden, best)
        for b in order:
            if parent[b] < n_blocks:
                chosen[b] = choice[b, chosen[parent[b]]]
            wanted[b] = n_hidden[b, chosen[b]]
        forget_row(n_touched, counters)
        write_first(rows, row, wanted, counters.buffer, out[row])


@_helper
def _collect_best(tree, parameters, entry, hidden, best):  # type: ignore[no-untyped-def]
    """Pass the best log-probabilities from leaves to roots; return that of the whole row.

    Only the bins of the roots are written to `best.chosen`.
    """
    bins, n_bins, parent, cells = tree.bins, tree.n_bins, tree.parent, tree.cells
    table, log_ratio = parameters.table, parameters.log_ratio
    log_best, n_hidden, choice, chosen = best.log_best, best.n_hidden, best.choice, best.chosen
    n_blocks, total = n_bins.size, 0.0
    for b in range(n_blocks):
        log_best[b], n_hidden[b] = -np.inf, 0
        for s in range(hidden[b] + 1):
            z, value = bins[entry[b] + s], table[entry[b] + s]
            if value > log_best[b, z]:
                log_best[b, z], n_hidden[b, z] = value, s
    for b in tree.order[::-1]:
        width, p = n_bins[b], parent[b]
        if p == n_blocks:
            chosen[b] = np.argmax(log_best[b, :width])
            total += log_best[b, chosen[b]]
            continue
        for above in range(n_bins[p]):
            begin, highest, choice[b, above] = cells[b] + above * width, -np.inf, 0
            for z in range(width):
                value = log_ratio[begin + z] + log_best[b, z]
                if value > highest:
                    highest, choice[b, above] = value, z
            log_best[p, above] += highest
    return total


@_compile
def draw_rows(rows, tree, parameters, of_block, of_entry, out):  # type: ignore[no-untyped-def]
    """Write a random completion of every row, from uniform numbers.

    ``of_block[row, b]`` are two numbers that choose a block's bin and its number of hidden ones,
    ``of_entry[row, j]`` chooses whether the next missing entry is one of them.
    """
    counters = new_counters(rows.labels, tree.starts)
    entry, hidden = counters.entry, counters.hidden
    bins, n_bins, parent = tree.bins, tree.n_bins, tree.parent
    ratio, messages = np.exp(parameters.log_ratio), new_messages(n_bins)
    chosen, wanted, remaining = np.zeros((3, n_bins.size), dtype=np.int64)
    share = np.empty(max(n_bins.max(), rows.labels.shape[0] + 1))
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        wanted[:] = 0
        remaining[:] = hidden
        if collect(tree, parameters, ratio, entry, hidden, messages) > -np.inf:
            for b in tree.order:
                above = chosen[parent[b]] if parent[b] < n_bins.size else 0
                share_of_bins(tree, ratio, b, messages, above, share)
                chosen[b] = pick(share[: n_bins[b]], of_block[row, b, 0])
                for s in range(hidden[b] + 1):
                    share[s] = -np.inf
                    if bins[entry[b] + s] == chosen[b]:
                        share[s] = hidden_weight(parameters, entry[b], hidden[b], s)
                by_count = share[: hidden[b] + 1]
                by_count[:] = np.exp(by_count - by_count.max())
                wanted[b] = pick(by_count, of_block[row, b, 1])
        forget_row(n_touched, counters)
        write_drawn(rows, row, wanted, remaining, of_entry[row], counters.buffer, out[row])
