"""Trees over the counts of blocks: the forest of one class, its passes over rows, its learning.

All passes answer for one class: its forest, its table log q(l) − log C(m, l), and the logarithms of
its edges' ratios, both as flat arrays.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.groups import Group
from exchangeable.data.observed import Observed, flags
from exchangeable.data.rows import Rows
from exchangeable.families.blocks.holes import passes as holes
from exchangeable.families.common import forest_kernels
from exchangeable.families.common.forests import best_tree
from exchangeable.families.common.tables import block_counts
from exchangeable.families.count_trees import kernels, learning_kernels, query_kernels
from exchangeable.families.count_trees.kernels import BinTree, CountParameters
from exchangeable.partitions import Partition, log_factorials
from exchangeable.runtime.threads import row_ranges

MOST_BINS = 8
"""Maximum number of bins for the counts of a block."""
MOST_BINS_IN_ALL = 8_000
"""A tree compares all pairs of bins of a class, which limits their number."""
CHUNK = 1 << 14
"""Number of rows that are processed together."""


@dataclass(frozen=True, eq=False)
class CountForest:
    """The blocks of one class, the bins of their counts, and a forest over the blocks.

    Attributes
    ----------
    partition : Partition
        The blocks.
    bins : array of shape (partition.table_size,)
        The bin of each block's counts, numbered from 0 in each block.
    parent : array of shape (n_blocks,)
        Each block's parent, n_blocks for a root.
    n_bins : array of shape (n_blocks,)
        Number of bins of each block.
    order : array of shape (n_blocks,)
        The blocks, parents first.
    cells : array of shape (n_blocks + 1,)
        The start of the table of each block and its parent: one line per bin of the parent.
    """

    partition: Partition
    bins: IntArray
    parent: IntArray
    n_bins: IntArray
    order: IntArray
    cells: IntArray

    @classmethod
    def of(cls, partition: Partition, bins: npt.ArrayLike, parent: npt.ArrayLike) -> Self:
        """Return the forest with these bins and parents."""
        number, above = np.asarray(bins, dtype=np.int64), np.asarray(parent, dtype=np.int64)
        n_blocks = partition.n_blocks
        n_bins = np.maximum.reduceat(number, partition.starts) + 1
        order, rank = np.empty(n_blocks, dtype=np.int64), np.empty(n_blocks + 1, dtype=np.int64)
        forest_kernels.order_nodes(above, order, rank)
        sizes = np.append(n_bins, 0)[above] * n_bins
        cells = np.concatenate([[0], np.cumsum(sizes)])
        return cls(partition, number, above, n_bins, order, cells)

    @property
    def tree(self) -> BinTree:
        """The forest in the form of the kernels."""
        starts, cells = self.partition.starts, self.cells[:-1]
        return BinTree(starts, self.bins, self.n_bins, self.order, self.parent, cells)

    @property
    def n_cells(self) -> int:
        """Number of entries of all edges' tables."""
        return int(self.cells[-1])

    def edges(self) -> IntArray:
        """Return the (block, parent) of each edge."""
        child = np.flatnonzero(self.parent < self.partition.n_blocks)
        return np.stack([child, self.parent[child]], axis=1)

    def table(self, values: FloatArray, block: int) -> FloatArray:
        """Return the part of a flat array for a block and its parent, one line per parent's bin."""
        part = values[self.cells[block] : self.cells[block + 1]]
        return part.reshape(-1, int(self.n_bins[block]))

    def bin_masses(self, masses: FloatArray) -> list[FloatArray]:
        """Return the mass of each bin of each block, given that of each count."""
        starts = self.partition.starts[1:]
        parts = zip(np.split(self.bins, starts), np.split(masses, starts), strict=True)
        return [np.bincount(number, mass).astype(np.float64) for number, mass in parts]


@dataclass(frozen=True)
class CountTree:
    """One class for the passes: forest, table by count, logarithms of the edges' ratios."""

    forest: CountForest
    table: FloatArray
    log_ratio: FloatArray

    def score(self, observed: Observed, span: tuple[int, int], out: FloatArray) -> None:
        """Write log P of the known entries of some of the rows."""
        first, last = span
        self._ask(kernels.score_rows, observed, first, last, out)

    def sums(self, observed: Observed, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the expected mass of rows by count in each block, and by cell of each edge."""
        counts, edges = np.zeros(self.table.size), np.zeros(self.forest.n_cells)
        self._ask(kernels.add_sums, observed, mass, counts, edges)
        return counts, edges

    def marginals(self, observed: Observed) -> FloatArray:
        """Return P(x_j = 1 | known entries) of every row and variable."""
        out = flags(observed.ones).astype(np.float64)
        self._ask(query_kernels.marginal_rows, observed, out)
        return out

    def complete(self, observed: Observed) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion of every row, and its log-probability."""
        rows = flags(observed.ones).astype(np.int8)
        scores = np.empty(observed.n_rows)
        self._ask(query_kernels.complete_rows, observed, rows, scores)
        return rows, scores

    def draw(self, observed: Observed, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of every row, drawn from its probabilities."""
        rows = flags(observed.ones).astype(np.int8)
        for chunk, part in observed.chunks():
            of_block = rng.random((part.n_rows, self.forest.partition.n_blocks, 2))
            of_entry = rng.random((part.n_rows, observed.n_variables))
            self._ask(query_kernels.draw_rows, part, of_block, of_entry, rows[chunk])
        return rows

    def _ask(self, kernel: Callable[..., None], observed: Observed, *extra: Any) -> None:
        """Run a kernel on the rows."""
        log_factorial = log_factorials(observed.n_variables)
        parameters = CountParameters(self.table, self.log_ratio, log_factorial)
        rows = holes.holed_rows(observed, self.forest.partition)
        kernel(rows, self.forest.tree, parameters, *extra)


def cut_counts(mass: FloatArray, most: int, least: float) -> IntArray:
    """Return the bin of each count: a bin for every count, or ranges of about equal mass.

    There are at most `most` bins. Each has at least the mass `least`; only a block of one variable
    always has two bins.

    >>> cut_counts(np.array([5.0, 5, 1, 1, 1, 1, 1, 1]), 3, 1.0).tolist()
    [0, 0, 1, 1, 1, 2, 2, 2]
    """
    if mass.size == 2:
        return np.arange(2)
    crowded = mass.size > most
    bins, number = np.zeros(mass.size, dtype=np.int64), 0
    inside, unbinned = 0.0, float(mass.sum())  # mass of this bin so far, and of all from it on
    for count in range(mass.size):
        rest = unbinned - inside
        wanted = unbinned / (most - number) if crowded else 0.0
        if inside >= max(wanted, least) and rest >= least and number < most - 1:
            number, inside, unbinned = number + 1, 0.0, rest
        bins[count] = number
        inside += mass[count]
    return bins


def binned_rows(rows: Rows, group: Group, partition: Partition, bins: IntArray) -> IntArray:
    """Return the bin of each of the group's rows in each block, one line per row."""
    counts = block_counts(rows, group, partition)
    return np.ascontiguousarray(bins[partition.starts[:, None] + counts].T)


def pair_tables(
    partition: Partition, bins: IntArray, sources: Sequence[tuple[Rows, Group]]
) -> list[FloatArray]:
    """Return, for each block, the mass of its bins with those of all blocks before it.

    The sums are over rows from several sources.
    """
    n_bins, offsets = _layout(partition, bins)
    tables = [np.zeros((int(width), int(offsets[a]))) for a, width in enumerate(n_bins)]
    for binned, mass in _parts(partition, bins, sources):
        for a in range(1, partition.n_blocks):
            learning_kernels.add_pairs(binned, mass, offsets, a, tables[a])
    return tables


def best_forest(
    partition: Partition, bins: IntArray, tables: Sequence[FloatArray], penalty: float
) -> CountForest:
    """Return the forest with the largest gain, given the masses of all pairs of bins.

    The gain of an edge is weight times mutual information of the two bins, minus `penalty` for each
    parameter that it adds.
    """
    n_bins, offsets = _layout(partition, bins)
    gains = np.zeros((partition.n_blocks, partition.n_blocks))
    for a in range(1, partition.n_blocks):
        learning_kernels.write_gains(tables[a], offsets, n_bins, a, penalty, gains)
    return CountForest.of(partition, bins, best_tree(gains))


def _layout(partition: Partition, bins: IntArray) -> tuple[IntArray, IntArray]:
    """Return the number of bins of each block, and the cumulative number before it."""
    n_bins = np.maximum.reduceat(bins, partition.starts) + 1
    return n_bins, np.cumsum(n_bins) - n_bins


def edge_sums(forest: CountForest, rows: Rows, group: Group) -> FloatArray:
    """Return the mass of the group's rows by cell of each edge."""
    edges = np.zeros(forest.n_cells)
    for binned, mass in _parts(forest.partition, forest.bins, [(rows, group)]):
        learning_kernels.add_edges(binned, mass, forest.tree, edges)
    return edges


def _parts(
    partition: Partition, bins: IntArray, sources: Sequence[tuple[Rows, Group]]
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the bins and the mass of all rows, some rows at a time."""
    for rows, group in sources:
        for start, stop in row_ranges(group.members.size, CHUNK):
            part = Group(group.members[start:stop], group.weights[start:stop])
            yield binned_rows(rows, part, partition, bins), part.weights
