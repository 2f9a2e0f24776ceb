"""Small blocks looked up several at a time.

Small blocks of a class form a *group*. The counts of a row in the blocks of a group are the digits
of one number, and one table, over all such numbers, serves the whole group: one look-up instead of
one a block. `spread` makes these tables of the blocks' own, `gather` turns
histograms over them back into histograms of the blocks.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numba import njit

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common.tables import Tables

_compile = njit(cache=True, nogil=True, error_model="numpy")

MOST_ENTRIES = 1024
"""A group's table has no more entries than this, unless a single block has."""
ROWS_AN_ENTRY = 8
"""Nor more than one for so many rows: filling larger tables would take longer than it saves."""


@dataclass(frozen=True)
class Groups:
    """Blocks of all classes, in groups.

    Attributes
    ----------
    order : array of shape (n_blocks,)
        The blocks, one group after the other.
    radix : array of shape (n_blocks,)
        What the number of a group is multiplied by before the count of the block at this place of
        `order` is added: 0 for the first block of a group.
    first_group : array of shape (n_classes + 1,)
        The groups of class y are ``first_group[y]..first_group[y + 1] - 1``.
    first_block : array of shape (n_groups + 1,)
        Where the blocks of each group begin in `order`.
    starts : array of shape (n_groups + 1,)
        Where each group's table starts.
    """

    order: IntArray
    radix: npt.NDArray[np.uint64]
    first_group: IntArray
    first_block: IntArray
    starts: IntArray

    @classmethod
    def of(cls, tables: Tables, n_rows: int) -> Self:
        """Return the groups of the blocks of all classes, for so many rows."""
        limit = min(MOST_ENTRIES, n_rows // ROWS_AN_ENTRY)
        return cls(*_group(tables.starts, tables.values.size, tables.first_block, limit))

    @property
    def number_type(self) -> type[np.unsignedinteger[Any]]:
        """The smallest type that holds every group's numbers."""
        return np.uint16 if np.diff(self.starts).max(initial=0) <= 1 << 16 else np.uint32

    def spread(self, tables: Tables) -> FloatArray:
        """Return the groups' tables: the sum of their blocks' values for every number."""
        spread = np.empty(self.starts[-1])
        _spread(tables.starts, tables.values, self.order, self.first_block, self.starts, spread)
        return spread

    def gather(
        self, histogram: FloatArray, classes: IntArray, tables: Tables, gathered: FloatArray
    ) -> None:
        """Add to the blocks' histograms of some classes, laid out as `tables`, those of the groups.

        The groups' are overwritten.
        """
        common = (self.order, self.first_block, self.starts, self.first_group)
        _gather(tables.starts, gathered, *common, classes, histogram)


@_compile
def _group(block_starts, n_entries, class_block, limit):  # type: ignore[no-untyped-def]
    """Put the blocks of each class into groups whose tables stay within `limit`.

    The longest block that still fits comes next, so that tables are filled well. Returned are the
    arrays of `Groups`.
    """
    n_blocks = block_starts.size
    order, radix = np.empty(n_blocks, dtype=np.int64), np.empty(n_blocks, dtype=np.uint64)
    first_group = np.zeros(class_block.size, dtype=np.int64)
    first_block, starts = np.zeros(n_blocks + 1, np.int64), np.zeros(n_blocks + 1, np.int64)
    lengths = np.diff(np.append(block_starts, n_entries))
    n_groups, done, at = 0, 0, 0
    for y in range(class_block.size - 1):
        blocks = class_block[y] + np.argsort(-lengths[class_block[y] : class_block[y + 1]])
        left = blocks.size
        while left:
            first_block[n_groups], starts[n_groups] = done, at
            n_groups += 1
            entries, kept = 0, 0
            for i in range(left):
                b = blocks[i]
                if entries and entries * lengths[b] > limit:
                    blocks[kept] = b
                    kept += 1
                    continue
                order[done] = b
                radix[done] = lengths[b] if entries else 0
                entries = entries * lengths[b] if entries else lengths[b]
                done += 1
            left = kept
            at += entries
        first_group[y + 1] = n_groups
    first_block[n_groups], starts[n_groups] = done, at
    return order, radix, first_group, first_block[: n_groups + 1], starts[: n_groups + 1]


@_compile
def _spread(block_starts, values, order, first_block, starts, spread):  # type: ignore[no-untyped-def]
    """Write the sum of the blocks' values for every number of every group."""
    for g in range(starts.size - 1):
        table = spread[starts[g] : starts[g + 1]]
        table[0] = 0.0
        filled = 1
        for b in order[first_block[g] : first_block[g + 1]]:
            end = block_starts[b + 1] if b + 1 < block_starts.size else values.size
            own = values[block_starts[b] : end]
            # From behind, so that nothing is overwritten before it is read.
            for number in range(filled - 1, -1, -1):
                before = table[number]
                for count in range(own.size):
                    table[number * own.size + count] = before + own[count]
            filled *= own.size


@_compile
def _gather(  # type: ignore[no-untyped-def]
    block_starts, gathered, order, first_block, starts, first_group, classes, histogram
):
    """Add up the numbers of every group by each of their digits, the last digit first."""
    for y in classes:
        for g in range(first_group[y], first_group[y + 1]):
            table = histogram[starts[g] : starts[g + 1]]
            left = table.size
            for b in order[first_block[g] : first_block[g + 1]][::-1]:
                end = block_starts[b + 1] if b + 1 < block_starts.size else gathered.size
                own = gathered[block_starts[b] : end]
                left //= own.size
                for number in range(left):
                    total = 0.0
                    for count in range(own.size):
                        mass = table[number * own.size + count]
                        own[count] += mass
                        total += mass
                    table[number] = total
