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
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import inlined

_compile = compiled()

MOST_ENTRIES = 1024
"""A bundle's table has no more entries than this, unless a single block has."""
ROWS_PER_ENTRY = 8
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
    radix : array of shape (n_blocks,)
        What the number of a bundle is multiplied by before the count of ``order[i]`` is added: 0
        for the first block of a bundle.
    first_bundle : array of shape (n_classes + 1,)
        The bundles of class y are ``first_bundle[y]..first_bundle[y + 1] - 1``.
    first_block : array of shape (n_bundles + 1,)
        First block of each bundle in `order`.
    starts : array of shape (n_bundles + 1,)
        Start of each bundle's table.
    """

    order: IntArray
    radix: npt.NDArray[np.uint64]
    first_bundle: IntArray
    first_block: IntArray
    starts: IntArray

    @classmethod
    def of(cls, tables: Tables, n_rows: int) -> Self:
        """Return the bundles of the blocks of all classes, for this many rows."""
        limit = min(MOST_ENTRIES, n_rows // ROWS_PER_ENTRY)
        n_blocks, n_entries = tables.starts.size, tables.values.size
        order, longest_first, lengths = np.empty((3, n_blocks), dtype=np.int64)
        radix = np.empty(n_blocks, dtype=np.uint64)
        first_bundle = np.zeros(tables.first_block.size, dtype=np.int64)
        first, begins = np.empty((2, n_blocks + 1), dtype=np.int64)
        bundles = cls(order, radix, first_bundle, first, begins)
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

    def gather(
        self, histogram: FloatArray, classes: IntArray, tables: Tables, gathered: FloatArray
    ) -> None:
        """Add the bundles' histograms of some classes to the blocks', laid out as `tables`.

        The bundles' are overwritten.
        """
        _gather(tables.starts, gathered, self, classes, histogram)


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
    order, radix, first_bundle, first_block, starts = bundles
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
            entries, kept = 0, 0
            for i in range(n_open):
                b = blocks[i]
                if entries and entries * lengths[b] > limit:
                    blocks[kept] = b
                    kept += 1
                    continue
                order[n_done] = b
                radix[n_done] = lengths[b] if entries else 0
                entries = entries * lengths[b] if entries else lengths[b]
                n_done += 1
            n_open = kept
            start += entries
        first_bundle[y + 1] = n_bundles
    first_block[n_bundles], starts[n_bundles] = n_done, start
    return n_bundles


@_compile
def _spread(block_starts, values, bundles, spread):  # type: ignore[no-untyped-def]
    """Write the sum of the blocks' values for every number of every bundle, four at a time."""
    order, first_block, starts = bundles.order, bundles.first_block, bundles.starts
    for g in range(starts.size - 1):
        table = spread[starts[g] : starts[g + 1]]
        table[0] = 0.0
        filled = 1
        for b in order[first_block[g] : first_block[g + 1]]:
            end = block_starts[b + 1] if b + 1 < block_starts.size else values.size
            of_block = values[block_starts[b] : end]
            size = of_block.size
            # From the end, so that nothing is overwritten before it is read.
            for number in range(filled - 4, -1, -4):
                one, two = table[number], table[number + 1]
                three, four = table[number + 2], table[number + 3]
                for count in range(size):
                    value, entry = of_block[count], number * size + count
                    table[entry] = one + value
                    table[entry + size] = two + value
                    table[entry + 2 * size] = three + value
                    table[entry + 3 * size] = four + value
            for number in range(filled % 4 - 1, -1, -1):
                before = table[number]
                for count in range(size):
                    table[number * size + count] = before + of_block[count]
            filled *= size


@_compile
def _gather(block_starts, gathered, bundles, classes, histogram):  # type: ignore[no-untyped-def]
    """Add up the numbers of every bundle by each of their digits, the last digit first.

    Four numbers at a time, whose sums do not wait for each other; what is added to one sum is added
    in the order of the numbers.
    """
    order, first_bundle = bundles.order, bundles.first_bundle
    first_block, starts = bundles.first_block, bundles.starts
    for y in classes:
        for g in range(first_bundle[y], first_bundle[y + 1]):
            table = histogram[starts[g] : starts[g + 1]]
            n_numbers = table.size
            for b in order[first_block[g] : first_block[g + 1]][::-1]:
                end = block_starts[b + 1] if b + 1 < block_starts.size else gathered.size
                of_block = gathered[block_starts[b] : end]
                n_numbers //= of_block.size
                size, by_four = of_block.size, n_numbers - n_numbers % 4
                for number in range(0, by_four, 4):
                    one, two, three, four = 0.0, 0.0, 0.0, 0.0
                    for count in range(size):
                        entry = number * size + count
                        a, b = table[entry], table[entry + size]
                        c, d = table[entry + 2 * size], table[entry + 3 * size]
                        of_block[count] = of_block[count] + a + b + c + d
                        one, two, three, four = one + a, two + b, three + c, four + d
                    table[number], table[number + 1] = one, two
                    table[number + 2], table[number + 3] = three, four
                for number in range(by_four, n_numbers):
                    total = 0.0
                    for count in range(size):
                        mass = table[number * size + count]
                        of_block[count] += mass
                        total += mass
                    table[number] = total
