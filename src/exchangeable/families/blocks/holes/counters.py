"""Counting a row's known ones and missing entries in every block."""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import IntArray
from exchangeable.data.row_kernels import ones_of
from exchangeable.data.rows import RowArrays
from exchangeable.runtime.kernels.bits import popcount
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import helper, inlined

_compile = compiled()


class HoledRows(NamedTuple):
    """Rows with missing entries, and the blocks in which their entries are counted.

    Attributes
    ----------
    ones, holes : RowArrays
        The entries known to be on, and the missing ones.
    masks : array of shape (n_words, n_blocks) or (0, 0)
        The bits of each block's variables; if there are none, ones and missing entries are listed.
    labels : array of shape (n_variables, n_classes)
        The block of each variable, numbered over all classes.
    """

    ones: RowArrays
    holes: RowArrays
    masks: npt.NDArray[np.uint64]
    labels: npt.NDArray[np.integer[Any]]


class Counters(NamedTuple):
    """A row's known ones and missing entries in every block, as written by `count_row`.

    Attributes
    ----------
    starts : array of shape (n_blocks,)
        The start of each block's entries in a table.
    entry : array of shape (n_blocks,)
        The entry of the known ones: each block's start plus their number.
    hidden : array of shape (n_blocks,)
        Number of missing entries of each block.
    touched : array of shape (n_blocks,)
        The blocks with a known one or a missing entry come first.
    buffer : array of shape (n_variables,)
        Workspace for the ones of a packed row.
    """

    starts: IntArray
    entry: IntArray
    hidden: IntArray
    touched: IntArray
    buffer: npt.NDArray[np.int32]

    @classmethod
    def of(cls, rows: HoledRows, starts: IntArray) -> Self:
        """Return the counters of a row of known zeros."""
        none, every = np.zeros(starts.size, dtype=np.int64), np.arange(starts.size)
        return cls(starts, starts.copy(), none, every, np.empty(len(rows.labels), dtype=np.int32))


@helper
def _touch(ones, labels, counters, n_touched, on):  # type: ignore[no-untyped-def]
    """Count some variables, known ones or missing, and list the blocks that have any."""
    starts, entry, hidden, touched = (
        counters.starts,
        counters.entry,
        counters.hidden,
        counters.touched,
    )
    for k in range(ones.size):
        block = labels[ones[k]]
        for y in range(block.size):
            b = block[y]
            if entry[b] == starts[b] and hidden[b] == 0:
                touched[n_touched] = b
                n_touched += 1
            entry[b] += on
            hidden[b] += 1 - on
    return n_touched


@inlined
def _count_masked(known, unknown, masks, entry, hidden):  # type: ignore[no-untyped-def]
    """Add the counts of a packed row's words, known ones and missing, in every block."""
    for w in range(masks.shape[0]):
        one, hole, mask = known[w], unknown[w], masks[w]
        for b in range(entry.size):
            entry[b] += np.int64(popcount(one & mask[b]))
            hidden[b] += np.int64(popcount(hole & mask[b]))


@helper
def count_row(rows, row, counters):  # type: ignore[no-untyped-def]
    """Count a row's known ones and missing entries in every block; return the touched blocks.

    The counters are those of a row of known zeros before, and again after `forget_row`.
    """
    if rows.masks.size:
        known, unknown = rows.ones.bits[row], rows.holes.bits[row]
        _count_masked(known, unknown, rows.masks, counters.entry, counters.hidden)
        return counters.starts.size
    ones = ones_of(rows.ones, row, counters.buffer)
    none, one = np.int64(0), np.int64(1)  # literals would be compiled for once more each
    n_touched = _touch(ones, rows.labels, counters, none, one)
    holes = ones_of(rows.holes, row, counters.buffer)
    return _touch(holes, rows.labels, counters, n_touched, none)


@inlined
def forget_row(n_touched, counters):  # type: ignore[no-untyped-def]
    """Undo `count_row`."""
    for i in range(n_touched):
        b = counters.touched[i]
        counters.entry[b], counters.hidden[b] = counters.starts[b], 0


@inlined
def new_counters(labels, starts):  # type: ignore[no-untyped-def]
    """Do the same as `Counters.of` inside a kernel."""
    entry, hidden = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    touched, buffer = np.empty(starts.size, np.int64), np.empty(labels.shape[0], np.int32)
    for b in range(starts.size):
        entry[b], hidden[b], touched[b] = starts[b], 0, b
    return Counters(starts, entry, hidden, touched, buffer)


@_compile
def make_masks(labels, masks):  # type: ignore[no-untyped-def]
    """Set the bits of each block's variables: masks[word, block], all zero before."""
    for j in range(labels.shape[0]):
        bit = np.uint64(1) << np.uint64(j % 64)
        for y in range(labels.shape[1]):
            masks[j // 64, labels[j, y]] |= bit
