"""The inner loops of trees over blocks' counts, for one class.

The counts of a block fall into bins, and P(x) = Π_b exp(table[c_b]) · Π_edges ratio[bin of the
parent's count, bin of the child's count]. Given its bin, a count does not depend on other blocks,
so messages along the tree are over bins.

Shared arguments: `rows` are `HoledRows`, `tree` is a `BinTree`, `parameters` are `CountParameters`,
``entry[b]`` is the table entry for the number of known ones of block b, ``hidden[b]`` is its number
of missing entries.
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.row_kernels import ones_of
from exchangeable.families.blocks.holes.counters import count_row, forget_row, new_counters
from exchangeable.runtime.kernels.cache import compiled, for_kernels

_compile = compiled()
_helper = for_kernels()


class BinTree(NamedTuple):
    """Blocks, the bins of their counts, and the edges between blocks.

    Attributes
    ----------
    starts : array of shape (n_blocks,)
        The start of each block's counts in the table.
    bins : array of shape (table_size,)
        The bin of each count, numbered from 0 in each block.
    n_bins : array of shape (n_blocks,)
        Number of bins of each block.
    order : array of shape (n_blocks,)
        The blocks, parents first.
    parent : array of shape (n_blocks,)
        Each block's parent, n_blocks for a root.
    cells : array of shape (n_blocks,)
        The start of the ratios of each block and its parent: one line per bin of the parent.
    """

    starts: IntArray
    bins: IntArray
    n_bins: IntArray
    order: IntArray
    parent: IntArray
    cells: IntArray


class CountParameters(NamedTuple):
    """The parameters of one class.

    Attributes
    ----------
    table : array of shape (table_size,)
        log q(l) − log C(m, l) of every block and count.
    log_ratio : array
        The logarithms of the edges' ratios.
    log_factorial : array
        log n! of all numbers up to the number of variables.
    """

    table: FloatArray
    log_ratio: FloatArray
    log_factorial: FloatArray


class BinMessages(NamedTuple):
    """Messages about the bins of every block, arrays of shape (n_blocks, largest n_bins).

    Attributes
    ----------
    evidence : array
        The weights of the bins of a block by its own entries.
    below : array
        The same by its entries and those of all blocks below it.
    message : array
        The message of a block about the bins of its parent.
    belief : array
        P(bin | known entries).
    """

    evidence: FloatArray
    below: FloatArray
    message: FloatArray
    belief: FloatArray


@_helper
def new_messages(n_bins):  # type: ignore[no-untyped-def]
    """Return the workspace for the messages of a row."""
    shape = (n_bins.size, n_bins.max())
    return BinMessages(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))


@_helper
def hidden_weight(parameters, entry, holes, s):  # type: ignore[no-untyped-def]
    """Return log(C(holes, s) · exp(table)), the weight of s hidden ones."""
    log_factorial = parameters.log_factorial
    ways = log_factorial[holes] - log_factorial[s] - log_factorial[holes - s]
    return parameters.table[entry + s] + ways


@_helper
def largest_hidden_weight(parameters, entry, holes):  # type: ignore[no-untyped-def]
    """Return the largest weight of any number of hidden ones."""
    highest = -np.inf
    for s in range(holes + 1):
        highest = max(highest, hidden_weight(parameters, entry, holes, s))
    return highest


@_helper
def _weigh_bins(parameters, entry, holes, bins, evidence):  # type: ignore[no-untyped-def]
    """Write how much a block's bins weigh given its known entries; return the log of the unit."""
    evidence[:] = 0.0
    if holes == 0:
        evidence[bins[entry]] = 1.0
        return parameters.table[entry]
    highest = largest_hidden_weight(parameters, entry, holes)
    if highest == -np.inf:
        return highest
    for s in range(holes + 1):
        term = hidden_weight(parameters, entry, holes, s)
        evidence[bins[entry + s]] += np.exp(term - highest)
    return highest


@_helper
def collect(tree, parameters, ratio, entry, hidden, messages):  # type: ignore[no-untyped-def]
    """Pass messages from the leaves to the roots; return log P of the known entries.

    Writes `evidence`, `below` and `message`; `ratio` are the edges' ratios.
    """
    bins, n_bins, parent, cells = tree.bins, tree.n_bins, tree.parent, tree.cells
    evidence, below, message = messages.evidence, messages.below, messages.message
    n_blocks, total = n_bins.size, 0.0
    for b in range(n_blocks):
        total += _weigh_bins(parameters, entry[b], hidden[b], bins, evidence[b])
        below[b] = evidence[b]
    if total == -np.inf:
        return total
    for b in tree.order[::-1]:
        p, width = parent[b], n_bins[b]
        if p == n_blocks:
            total += np.log(below[b].sum())
            continue
        highest = 0.0
        for above in range(n_bins[p]):
            line = ratio[cells[b] + above * width : cells[b] + (above + 1) * width]
            weight = 0.0
            for z in range(width):
                weight += line[z] * below[b, z]
            message[b, above] = weight
            below[p, above] *= weight
            highest = max(highest, below[p, above])
        if highest == 0.0:
            return -np.inf
        below[p] /= highest
        total += np.log(highest)
    return total


@_helper
def share_of_bins(tree, ratio, b, messages, above, out):  # type: ignore[no-untyped-def]
    """Write P(bin of b | bin of its parent, known entries); for roots `above` is ignored."""
    below, width = messages.below, tree.n_bins[b]
    if tree.parent[b] == tree.n_bins.size:
        out[:width] = below[b, :width] / below[b].sum()
        return
    begin = tree.cells[b] + above * width
    for z in range(width):
        out[z] = ratio[begin + z] * below[b, z] / messages.message[b, above]


@_helper
def distribute(tree, ratio, messages, mass, edges):  # type: ignore[no-untyped-def]
    """Write `belief`; add the mass of pairs of bins to `edges`, unless that is empty."""
    n_bins, parent, cells = tree.n_bins, tree.parent, tree.cells
    belief = messages.belief
    share = np.empty(belief.shape[1])
    for b in tree.order:
        belief[b] = 0.0
        p, width = parent[b], n_bins[b]
        if p == n_bins.size:
            # Not the literal 0, for which numba would compile the function once more.
            share_of_bins(tree, ratio, b, messages, np.int64(0), belief[b])
            continue
        for above in range(n_bins[p]):
            if belief[p, above] > 0.0:
                share_of_bins(tree, ratio, b, messages, above, share)
                for z in range(width):
                    both = belief[p, above] * share[z]
                    belief[b, z] += both
                    if edges.size:
                        edges[cells[b] + above * width + z] += mass * both


@_helper
def _score_complete(tree, parameters, entry):  # type: ignore[no-untyped-def]
    """Return log P of a complete row."""
    bins, n_bins, parent, cells = tree.bins, tree.n_bins, tree.parent, tree.cells
    table, log_ratio = parameters.table, parameters.log_ratio
    total = 0.0
    for b in range(n_bins.size):
        total += table[entry[b]]
        if parent[b] < n_bins.size:
            cell = cells[b] + bins[entry[parent[b]]] * n_bins[b] + bins[entry[b]]
            total += log_ratio[cell]
    return total


@_helper
def _add_complete(tree, entry, mass, counts, edges):  # type: ignore[no-untyped-def]
    """Add the mass of a complete row by count in each block, and by pair of bins."""
    bins, n_bins, parent, cells = tree.bins, tree.n_bins, tree.parent, tree.cells
    for b in range(n_bins.size):
        counts[entry[b]] += mass
        if parent[b] < n_bins.size:
            cell = cells[b] + bins[entry[parent[b]]] * n_bins[b] + bins[entry[b]]
            edges[cell] += mass


@_helper
def _count_complete(rows, row, counters):  # type: ignore[no-untyped-def]
    """Add its number of ones to each block's start, for a complete row."""
    entry, labels = counters.entry, rows.labels
    entry[:] = counters.starts
    ones = ones_of(rows.ones, row, counters.buffer)
    for k in range(ones.size):
        entry[labels[ones[k], 0]] += 1


@_compile
def score_rows(rows, tree, parameters, first, last, out):  # type: ignore[no-untyped-def]
    """Write log P of the known entries of the rows first..last − 1."""
    counters = new_counters(rows.labels, tree.starts)
    entry, hidden = counters.entry, counters.hidden
    ratio, messages = np.exp(parameters.log_ratio), new_messages(tree.n_bins)
    complete = rows.holes.bits.size + rows.holes.indices.size == 0
    for row in range(first, last):
        if complete:
            _count_complete(rows, row, counters)
            out[row] = _score_complete(tree, parameters, entry)
            continue
        n_touched = count_row(rows, row, counters)
        if hidden.any():
            out[row] = collect(tree, parameters, ratio, entry, hidden, messages)
        else:
            out[row] = _score_complete(tree, parameters, entry)
        forget_row(n_touched, counters)


@_compile
def add_sums(rows, tree, parameters, mass, counts, edges):  # type: ignore[no-untyped-def]
    """Add the mass of rows by count in each block, and by pair of bins along each edge."""
    counters = new_counters(rows.labels, tree.starts)
    entry, hidden = counters.entry, counters.hidden
    ratio, messages = np.exp(parameters.log_ratio), new_messages(tree.n_bins)
    complete = rows.holes.bits.size + rows.holes.indices.size == 0
    for row in range(mass.size):
        if mass[row] <= 0.0:
            continue
        if complete:
            _count_complete(rows, row, counters)
            _add_complete(tree, entry, mass[row], counts, edges)
            continue
        n_touched = count_row(rows, row, counters)
        if collect(tree, parameters, ratio, entry, hidden, messages) > -np.inf:
            distribute(tree, ratio, messages, mass[row], edges)
            for b in range(entry.size):
                _spread(mass[row], b, entry[b], hidden[b], tree, parameters, messages, counts)
        forget_row(n_touched, counters)


@_helper
def _spread(mass, b, entry, holes, tree, parameters, messages, counts):  # type: ignore[no-untyped-def]
    """Add a row's mass to the counts that block b may have, by their probabilities."""
    bins, evidence, belief = tree.bins, messages.evidence[b], messages.belief[b]
    unit = largest_hidden_weight(parameters, entry, holes)
    for s in range(holes + 1):
        z = bins[entry + s]
        if belief[z] > 0.0:
            term = hidden_weight(parameters, entry, holes, s)
            counts[entry + s] += mass * belief[z] * np.exp(term - unit) / evidence[z]
