"""Masses and gains of pairs of bins, for choosing the edges of a tree over counts.

``binned[row, block]`` is the bin of a row's count in a block.
"""

import numpy as np

from exchangeable.runtime.kernels.cache import compiled, for_kernels

_compile = compiled()
_helper = for_kernels()


@_compile
def add_pairs(binned, mass, offsets, a, out):  # type: ignore[no-untyped-def]
    """Add the mass of rows by bin in block a and bin in each block before it.

    The bins of block b are the columns of `out` from offsets[b] on.
    """
    for row in range(mass.size):
        line = out[binned[row, a]]
        for b in range(a):
            line[offsets[b] + binned[row, b]] += mass[row]


@_compile
def add_edges(binned, mass, tree, edges):  # type: ignore[no-untyped-def]
    """Add the mass of rows by pair of bins along each edge of a `BinTree`."""
    n_bins, parent, cells = tree.n_bins, tree.parent, tree.cells
    for row in range(mass.size):
        for b in range(n_bins.size):
            if parent[b] < n_bins.size:
                edges[cells[b] + binned[row, parent[b]] * n_bins[b] + binned[row, b]] += mass[row]


@_compile
def write_gains(pairs, offsets, n_bins, a, penalty, gains):  # type: ignore[no-untyped-def]
    """Write the gain of an edge between block a and each block before it, minus its penalty.

    `pairs` was written by `add_pairs`; the penalty applies to each free parameter of the edge.
    """
    for b in range(a):
        table = pairs[:, offsets[b] : offsets[b] + n_bins[b]]
        free = (n_bins[a] - 1) * (n_bins[b] - 1)
        gain = _information(table) - penalty * free if free > 0 else 0.0
        gains[a, b] = gain
        gains[b, a] = gain


@_helper
def _information(table):  # type: ignore[no-untyped-def]
    """Return weight times mutual information of a table of pairs."""
    rows, columns, total = table.sum(axis=1), table.sum(axis=0), table.sum()
    gain = 0.0
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            if table[i, j] > 0.0:
                gain += table[i, j] * np.log(table[i, j] * total / (rows[i] * columns[j]))
    return gain
