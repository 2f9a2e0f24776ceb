"""Bundles: small blocks that are looked up several at a time.

Several small blocks of a class form a *bundle*. The counts of a row in the blocks of a bundle are
the digits of one number, and one table over all such numbers serves the whole bundle: one look-up
instead of one per block. `spread` computes these tables from those of the blocks; `gather` converts
histograms over them back to histograms of the blocks.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common.tables import Tables
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import copy, inlined, total

_compile = compiled()
_sums = for_kernels(fastmath={"reassoc"})
"""For sums that vector instructions may add up in another order."""

MOST_ENTRIES = 2048
"""A bundle's table has no more entries than this, unless a single block has."""
ROWS_PER_ENTRY = 2
"""Nor more than one for this many rows: filling larger tables would take longer than it saves."""


class SortWorkspace(NamedTuple):
    """Intermediate results of sorting the blocks by length."""

    lengths: IntArray
    longest_first: IntArray
    n_longer: IntArray


class Bundles(NamedTuple):
    """Blocks of all classes, in bundles.

    Attributes
    ----------
    order : array of shape (n_blocks,)
        The blocks, one bundle after the other.
    worth : array of shape (n_blocks,)
        What a one in the block ``order[i]`` adds to the number of its bundle: the first block has
        the last digit.
    first_bundle : array of shape (n_classes + 1,)
        The bundles of class y are ``first_bundle[y]..first_bundle[y + 1] - 1``.
    first_block : array of shape (n_bundles + 1,)
        First block of each bundle in `order`.
    starts : array of shape (n_bundles + 1,)
        Start of each bundle's table.
    """

    order: IntArray
    worth: npt.NDArray[np.uint64]
    first_bundle: IntArray
    first_block: IntArray
    starts: IntArray

    @classmethod
    def of(cls, tables: Tables, n_rows: int) -> Self:
        """Return the bundles of the blocks of all classes, for this many rows."""
        limit = min(MOST_ENTRIES, n_rows // ROWS_PER_ENTRY)
        n_blocks, n_entries = tables.starts.size, tables.values.size
        order, longest_first, lengths = np.empty((3, n_blocks), dtype=np.int64)
        worth = np.empty(n_blocks, dtype=np.uint64)
        first_bundle = np.zeros(tables.first_block.size, dtype=np.int64)
        first, begins = np.empty((2, n_blocks + 1), dtype=np.int64)
        bundles = cls(order, worth, first_bundle, first, begins)
        workspace = SortWorkspace(lengths, longest_first, np.empty(n_entries + 1, dtype=np.int64))
        n_bundles = _bundle(tables.starts, n_entries, tables.first_block, limit, bundles, workspace)
        return bundles._replace(first_block=first[: n_bundles + 1], starts=begins[: n_bundles + 1])

    @property
    def number_type(self) -> type[np.unsignedinteger[Any]]:
        """The smallest type that holds every bundle's numbers."""
        return np.uint16 if np.diff(self.starts).max(initial=0) <= 1 << 16 else np.uint32

    def spread(self, tables: Tables) -> FloatArray:
        """Return the bundles' tables: the sum of their blocks' values for every number."""
        spread = np.empty(self.starts[-1])
        _spread(tables.starts, tables.values, self, spread)
        return spread


@inlined
def _sort_by_length(first, last, workspace):  # type: ignore[no-untyped-def]
    """Write the blocks first..last - 1 of a class by decreasing length; equal ones stay in order.

    Lengths are sorted by counting. The counters of a class are no more than its entries.
    """
    lengths, longest_first, n_longer = workspace
    longest = 0
    for b in range(first, last):
        longest = max(longest, lengths[b])
    for length in range(longest + 1):
        n_longer[length] = 0
    for b in range(first, last):
        n_longer[lengths[b] - 1] += 1
    for length in range(longest - 1, -1, -1):
        n_longer[length] += n_longer[length + 1]
    for b in range(first, last):
        longest_first[first + n_longer[lengths[b]]] = b
        n_longer[lengths[b]] += 1


@_compile
def _bundle(block_starts, n_entries, class_block, limit, bundles, workspace):  # type: ignore[no-untyped-def]
    """Put the blocks of each class into bundles whose tables stay within `limit`.

    The longest block that still fits comes next, so that tables are well filled. Returns the number
    of bundles.
    """
    order, worth, first_bundle, first_block, starts = bundles
    lengths = workspace.lengths
    for b in range(lengths.size):
        end = block_starts[b + 1] if b + 1 < lengths.size else n_entries
        lengths[b] = end - block_starts[b]
    n_bundles, n_done, start = 0, 0, 0
    for y in range(class_block.size - 1):
        _sort_by_length(class_block[y], class_block[y + 1], workspace)
        blocks = workspace.longest_first[class_block[y] : class_block[y + 1]]
        n_open = blocks.size
        while n_open:
            first_block[n_bundles], starts[n_bundles] = n_done, start
            n_bundles += 1
            entries, kept = 1, 0
            for i in range(n_open):
                b = blocks[i]
                if entries > 1 and entries * lengths[b] > limit:
                    blocks[kept] = b
                    kept += 1
                    continue
                order[n_done], worth[n_done] = b, entries
                entries *= lengths[b]
                n_done += 1
            n_open = kept
            start += entries
        first_bundle[y + 1] = n_bundles
    first_block[n_bundles], starts[n_bundles] = n_done, start
    return n_bundles


@_compile
def _spread(block_starts, values, bundles, spread):  # type: ignore[no-untyped-def]
    """Write the sum of the blocks' values for every number of every bundle.

    With each block the table grows by a line for each count, all made of the first line.
    """
    order, first_block, starts = bundles.order, bundles.first_block, bundles.starts
    for g in range(starts.size - 1):
        table, filled = spread[starts[g] : starts[g + 1]], 1
        for b in order[first_block[g] : first_block[g + 1]]:
            end = block_starts[b + 1] if b + 1 < block_starts.size else values.size
            of_block, first = values[block_starts[b] : end], table[:filled]
            if filled == 1:
                copy(of_block, table)
            else:
                for count in range(of_block.size - 1, -1, -1):
                    line, value = table[count * filled : (count + 1) * filled], of_block[count]
                    for number in range(filled):
                        line[number] = first[number] + value
            filled *= of_block.size


@_sums
def gather(block_starts, gathered, bundles, y, histogram):  # type: ignore[no-untyped-def]
    """Add the histograms of a class's bundles to those of its blocks. The bundles' are overwritten.

    Numbers are added up by their first digit; those that differ in it alone are then added to that
    in which it is 0.
    """
    order, first_bundle = bundles.order, bundles.first_bundle
    first_block, starts = bundles.first_block, bundles.starts
    for g in range(first_bundle[y], first_bundle[y + 1]):
        table = histogram[starts[g] : starts[g + 1]]
        n_numbers = table.size
        for b in order[first_block[g] : first_block[g + 1]][::-1]:
            end = block_starts[b + 1] if b + 1 < block_starts.size else gathered.size
            of_block = gathered[block_starts[b] : end]
            n_numbers //= of_block.size
            if n_numbers == 1:
                for count in range(of_block.size):
                    of_block[count] += table[count]
                break
            first = table[:n_numbers]
            of_block[0] += total(first)
            for count in range(1, of_block.size):
                line, mass = table[count * n_numbers : (count + 1) * n_numbers], 0.0
                for number in range(n_numbers):
                    mass += line[number]
                    first[number] += line[number]
                of_block[count] += mass
