"""The inner loops of trees over blocks' counts, for one class.

The counts of a block fall into bins, and P(x) = Π_b exp(table[c_b]) · Π_edges ratio[bin of the
parent's count, bin of the child's count]. Given its bin a count does not depend on other blocks, so
messages along the tree are over bins. `tree` is (starts, bins, n_bins, order, parent, cells), see
`count_trees.CountForest`; rows are `HoledRows`.
"""

import numpy as np
from numba import njit

from exchangeable.data.row_kernels import ones_of
from exchangeable.families.blocks.hole_counters import count_row, forget_row, new_counters

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def new_messages(tree):  # type: ignore[no-untyped-def]
    """Return room for `own`, `below`, `message` and `belief` of every block and bin."""
    n_bins = tree[2]
    return np.zeros((4, n_bins.size, n_bins.max()))


@_compile
def hidden_weight(table, place, holes, s, log_factorial):  # type: ignore[no-untyped-def]
    """Return log(C(holes, s) · exp(table)), the weight of s hidden ones."""
    ways = log_factorial[holes] - log_factorial[s] - log_factorial[holes - s]
    return table[place + s] + ways


@_compile
def weigh_bins(place, holes, bins, table, log_factorial, own):  # type: ignore[no-untyped-def]
    """Write how much a block's bins weigh given its known entries; return the log of the unit."""
    own[:] = 0.0
    if holes == 0:
        own[bins[place]] = 1.0
        return table[place]
    highest = -np.inf
    for s in range(holes + 1):
        highest = max(highest, hidden_weight(table, place, holes, s, log_factorial))
    if highest == -np.inf:
        return highest
    for s in range(holes + 1):
        term = hidden_weight(table, place, holes, s, log_factorial)
        own[bins[place + s]] += np.exp(term - highest)
    return highest


@_compile
def collect(tree, table, ratio, place, hidden, log_factorial, room):  # type: ignore[no-untyped-def]
    """Pass messages from the leaves to the roots; return log P of what is known.

    Afterwards ``below[b]`` weighs the bins of b by what is known of b and of all below it, and
    ``message[b]`` is what b says about the bins of its parent.
    """
    _, bins, n_bins, order, parent, cells = tree
    own, below, message = room[0], room[1], room[2]
    n_blocks, total = n_bins.size, 0.0
    for b in range(n_blocks):
        total += weigh_bins(place[b], hidden[b], bins, table, log_factorial, own[b])
        below[b] = own[b]
    if total == -np.inf:
        return total
    for at in range(n_blocks - 1, -1, -1):
        b, width = order[at], n_bins[order[at]]
        p = parent[b]
        if p == n_blocks:
            total += np.log(below[b].sum())
            continue
        highest = 0.0
        for above in range(n_bins[p]):
            line = ratio[cells[b] + above * width : cells[b] + (above + 1) * width]
            said = 0.0
            for z in range(width):
                said += line[z] * below[b, z]
            message[b, above] = said
            below[p, above] *= said
            highest = max(highest, below[p, above])
        if highest == 0.0:
            return -np.inf
        below[p] /= highest
        total += np.log(highest)
    return total


@_compile
def share_of_bins(tree, ratio, b, room, above, out):  # type: ignore[no-untyped-def]
    """Write P(bin of b | bin of its parent, what is known); roots have no parent to look at."""
    _, _, n_bins, _, parent, cells = tree
    below, message = room[1], room[2]
    width = n_bins[b]
    if parent[b] == n_bins.size:
        out[:width] = below[b, :width] / below[b].sum()
        return
    begin = cells[b] + above * width
    for z in range(width):
        out[z] = ratio[begin + z] * below[b, z] / message[b, above]


@_compile
def distribute(tree, ratio, room, mass, edges):  # type: ignore[no-untyped-def]
    """Write ``belief``, P(bin | what is known); add the mass of pairs of bins, if asked for."""
    _, _, n_bins, order, parent, cells = tree
    belief = room[3]
    share = np.empty(room.shape[2])
    for b in order:
        belief[b] = 0.0
        p, width = parent[b], n_bins[b]
        if p == n_bins.size:
            share_of_bins(tree, ratio, b, room, 0, belief[b])
            continue
        for above in range(n_bins[p]):
            if belief[p, above] > 0.0:
                share_of_bins(tree, ratio, b, room, above, share)
                for z in range(width):
                    both = belief[p, above] * share[z]
                    belief[b, z] += both
                    if edges.size:
                        edges[cells[b] + above * width + z] += mass * both


@_compile
def _score_complete(bins, n_bins, parent, cells, table, log_ratio, place):  # type: ignore[no-untyped-def]
    """Return log P of a row without holes."""
    total = 0.0
    for b in range(n_bins.size):
        total += table[place[b]]
        if parent[b] < n_bins.size:
            cell = cells[b] + bins[place[parent[b]]] * n_bins[b] + bins[place[b]]
            total += log_ratio[cell]
    return total


@_compile
def _count_complete(rows, row, counters):  # type: ignore[no-untyped-def]
    """Move each block's start on by its ones, for a row without holes."""
    entry, labels = counters.entry, rows.labels
    entry[:] = counters.starts
    ones = ones_of(rows.ones, row, counters.buffer)
    for k in range(ones.size):
        entry[labels[ones[k], 0]] += 1


@_compile
def score_rows(  # type: ignore[no-untyped-def]
    rows, tree, table, log_ratio, log_factorial, first, last, out
):
    """Write log P of what is known of the rows first..last."""
    # Arrays are taken out of tuples once: in a loop that costs more than the loop's work.
    starts, bins, n_bins, _, parent, cells = tree
    counters = new_counters(rows.labels, starts)
    entry, hidden = counters.entry, counters.hidden
    ratio, room = np.exp(log_ratio), new_messages(tree)
    complete = rows.holes.bits.size + rows.holes.indices.size == 0
    for row in range(first, last):
        if complete:
            _count_complete(rows, row, counters)
            out[row] = _score_complete(bins, n_bins, parent, cells, table, log_ratio, entry)
            continue
        n_touched = count_row(rows, row, counters)
        if hidden.any():
            out[row] = collect(tree, table, ratio, entry, hidden, log_factorial, room)
        else:
            out[row] = _score_complete(bins, n_bins, parent, cells, table, log_ratio, entry)
        forget_row(n_touched, counters)


@_compile
def add_sums(  # type: ignore[no-untyped-def]
    rows, tree, table, log_ratio, log_factorial, mass, counts, edges
):
    """Add the mass of rows by count in each block, and by pair of bins along each edge."""
    starts, bins, n_bins, _, parent, cells = tree
    counters = new_counters(rows.labels, starts)
    entry, hidden = counters.entry, counters.hidden
    ratio, room = np.exp(log_ratio), new_messages(tree)
    complete = rows.holes.bits.size + rows.holes.indices.size == 0
    for row in range(mass.size):
        w = mass[row]
        if w <= 0.0:
            continue
        if complete:
            _count_complete(rows, row, counters)
            for b in range(n_bins.size):
                counts[entry[b]] += w
                if parent[b] < n_bins.size:
                    cell = cells[b] + bins[entry[parent[b]]] * n_bins[b] + bins[entry[b]]
                    edges[cell] += w
            continue
        n_touched = count_row(rows, row, counters)
        if collect(tree, table, ratio, entry, hidden, log_factorial, room) > -np.inf:
            distribute(tree, ratio, room, w, edges)
            for b in range(n_bins.size):
                _spread(w, entry[b], hidden[b], bins, table, log_factorial, room, b, counts)
        forget_row(n_touched, counters)


@_compile
def _spread(mass, place, holes, bins, table, log_factorial, room, b, counts):  # type: ignore[no-untyped-def]
    """Add a row's mass to the counts that a block may have, by their probabilities."""
    own, belief = room[0, b], room[3, b]
    unit = table[place]
    for s in range(1, holes + 1):
        unit = max(unit, hidden_weight(table, place, holes, s, log_factorial))
    for s in range(holes + 1):
        z = bins[place + s]
        if belief[z] > 0.0:
            term = hidden_weight(table, place, holes, s, log_factorial)
            counts[place + s] += mass * belief[z] * np.exp(term - unit) / own[z]


@_compile
def add_pairs(binned, mass, offsets, a, out):  # type: ignore[no-untyped-def]
    """Add the mass of rows by bin in block a and bin in each block before it.

    ``binned[row, block]`` is the bin; the bins of block b are columns of `out` from offsets[b] on.
    """
    for row in range(mass.size):
        line = out[binned[row, a]]
        w = mass[row]
        for b in range(a):
            line[offsets[b] + binned[row, b]] += w


@_compile
def add_edges(binned, mass, tree, edges):  # type: ignore[no-untyped-def]
    """Add the mass of rows by pair of bins along each edge."""
    _, _, n_bins, _, parent, cells = tree
    for row in range(mass.size):
        for b in range(n_bins.size):
            if parent[b] < n_bins.size:
                edges[cells[b] + binned[row, parent[b]] * n_bins[b] + binned[row, b]] += mass[row]


@_compile
def add_gains(pairs, offsets, n_bins, a, penalty, gains):  # type: ignore[no-untyped-def]
    """Write what an edge between block a and each block before it gains, less its penalty."""
    for b in range(a):
        table = pairs[:, offsets[b] : offsets[b] + n_bins[b]]
        free = (n_bins[a] - 1) * (n_bins[b] - 1)
        gain = _information(table) - penalty * free if free > 0 else 0.0
        gains[a, b] = gain
        gains[b, a] = gain


@_compile
def _information(table):  # type: ignore[no-untyped-def]
    """Return weight times mutual information of a table of pairs."""
    rows, columns, total = table.sum(axis=1), table.sum(axis=0), table.sum()
    gain = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] > 0.0:
                gain += table[i, j] * np.log(table[i, j] * total / (rows[i] * columns[j]))
    return gain
