"""Small blocks looked up several at a time.

Neighbouring small blocks of a class form a *group*. The counts of a row in the blocks of a group
are the digits of one number, and one table, over all such numbers, serves the whole group: one
look-up instead of one a block. `spread` makes these tables of the blocks' own, `gather` turns
histograms over them back into histograms of the blocks.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numba import njit

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.engines.cpu import Tables

_compile = njit(cache=True, nogil=True, error_model="numpy")

MOST_ENTRIES = 2048
"""A group's table has no more entries than this, unless a single block has."""
ROWS_AN_ENTRY = 4
"""Nor more than one for so many rows: filling larger tables would take longer than it saves."""


@dataclass(frozen=True)
class Groups:
    """Blocks of all classes, in groups.

    Attributes
    ----------
    radix : array of shape (n_blocks,)
        What the number of a group is multiplied by before the count of this block is added: 0 for
        the first block of a group.
    first_group : array of shape (n_classes + 1,)
        The groups of class y are ``first_group[y]..first_group[y + 1] - 1``.
    first_block : array of shape (n_groups + 1,)
        The blocks of each group.
    starts : array of shape (n_groups + 1,)
        Where each group's table starts.
    """

    radix: npt.NDArray[np.uint64]
    first_group: IntArray
    first_block: IntArray
    starts: IntArray

    @classmethod
    def of(cls, tables: Tables, n_rows: int) -> Self:
        """Return the groups of the blocks of all classes, for so many rows."""
        limit = min(MOST_ENTRIES, n_rows // ROWS_AN_ENTRY)
        n_blocks = tables.starts.size
        lengths = np.diff(tables.starts, append=tables.values.size)
        radix = np.empty(n_blocks, dtype=np.uint64)
        first_group = np.zeros(tables.first_block.size, dtype=np.int64)
        first_block, starts = (np.zeros(n_blocks + 1, dtype=np.int64) for _ in range(2))
        n_groups = _group(
            lengths, tables.first_block, limit, radix, first_group, first_block, starts
        )
        return cls(radix, first_group, first_block[: n_groups + 1], starts[: n_groups + 1])

    @property
    def number_type(self) -> type[np.unsignedinteger[Any]]:
        """The smallest type that holds every group's numbers."""
        return np.uint16 if np.diff(self.starts).max(initial=0) <= 1 << 16 else np.uint32

    def spread(self, tables: Tables) -> FloatArray:
        """Return the groups' tables: the sum of their blocks' values for every number."""
        spread = np.empty(self.starts[-1])
        _spread(tables.starts, tables.values, self.radix, self.first_block, self.starts, spread)
        return spread

    def gather(self, histogram: FloatArray, tables: Tables) -> FloatArray:
        """Return the blocks' histograms, laid out as `tables`; overwrites the groups'."""
        gathered = np.zeros(tables.values.size)
        _gather(tables.starts, gathered, self.first_block, self.starts, histogram)
        return gathered


@_compile
def _group(  # type: ignore[no-untyped-def]
    lengths, class_block, limit, radix, first_group, first_block, starts
):
    """Put neighbouring blocks of each class into groups while their tables stay within `limit`."""
    n_groups, at = 0, 0
    for y in range(class_block.size - 1):
        entries = 0
        for b in range(class_block[y], class_block[y + 1]):
            if entries == 0 or entries * lengths[b] > limit:
                at += entries
                first_block[n_groups], starts[n_groups] = b, at
                n_groups += 1
                radix[b] = 0
                entries = lengths[b]
            else:
                radix[b] = lengths[b]
                entries *= lengths[b]
        at += entries
        first_group[y + 1] = n_groups
    first_block[n_groups], starts[n_groups] = class_block[-1], at
    return n_groups


@_compile
def _spread(block_starts, values, radix, first_block, starts, spread):  # type: ignore[no-untyped-def]
    """Write the sum of the blocks' values for every number of every group."""
    for g in range(starts.size - 1):
        table = spread[starts[g] : starts[g + 1]]
        table[0] = 0.0
        filled = 1
        for b in range(first_block[g], first_block[g + 1]):
            end = block_starts[b + 1] if b + 1 < block_starts.size else values.size
            own = values[block_starts[b] : end]
            # From behind, so that nothing is overwritten before it is read.
            for number in range(filled - 1, -1, -1):
                before = table[number]
                for count in range(own.size):
                    table[number * own.size + count] = before + own[count]
            filled *= own.size


@_compile
def _gather(block_starts, gathered, first_block, starts, histogram):  # type: ignore[no-untyped-def]
    """Add up the numbers of every group by each of their digits, the last digit first."""
    for g in range(starts.size - 1):
        table = histogram[starts[g] : starts[g + 1]]
        left = table.size
        for b in range(first_block[g + 1] - 1, first_block[g] - 1, -1):
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
