"""The counts of all rows in the blocks of all classes, kept from one pass of EM to the next.

A pass of EM looks counts up, or adds rows up by them, and needs the counts of each row for that.
They are kept while they fit into `MOST_KEPT` bytes, several blocks in one number (`Groups`), so
that blocks which do not change are counted once; beyond that every pass counts a few rows, uses
what it has found, and forgets it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numba import njit

from exchangeable.arrays import IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.forms import Words
from exchangeable.families.blocks import kernels
from exchangeable.families.blocks.bundles import Groups
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run

_compile = njit(cache=True, nogil=True, error_model="numpy")

Numbers = npt.NDArray[np.unsignedinteger[Any]]

MOST_KEPT = 1 << 26
"""Bytes that the numbers of all rows may take to be kept."""
PIECE = 2048
"""Rows that are counted at a time where numbers are not kept."""
WORTH_WALKING = 4
"""A step of walking over ones takes as long as so many words under a mask."""
MOST_MASKS = 1 << 20
"""Where blocks times words are more than this, masks are not even tried."""


@dataclass(frozen=True)
class Masks:
    """Blocks as masks: block b has those from ``first[b]`` on, mask i being of ``word[i]``."""

    first: IntArray
    word: IntArray
    mask: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, words: Words, layout: Tables) -> Self:
        """Return the masks of the blocks of all classes."""
        n_blocks = layout.starts.size
        whole = np.zeros((n_blocks, words.words.shape[0]), dtype=np.uint64)
        _make_masks(layout.labels, words.position, whole)
        first = np.zeros(n_blocks + 1, dtype=np.int64)
        word, mask = np.empty(whole.size, dtype=np.int64), np.empty(whole.size, dtype=np.uint64)
        n_masks = _list_masks(whole, first, word, mask)
        return cls(first, word[:n_masks], mask[:n_masks])


@dataclass(frozen=True)
class Counter:
    """How the rows' counts in some blocks are found: by masks, or by walking over the ones."""

    examples: Examples
    layout: Tables
    groups: Groups
    masks: Masks | None

    @classmethod
    def of(cls, examples: Examples, layout: Tables) -> Self:
        """Choose the way that takes fewer steps."""
        words, masks = examples.words, None
        if words is not None and layout.starts.size * len(words.words) <= MOST_MASKS:
            masks = Masks.of(words, layout)
            if masks.word.size > WORTH_WALKING * _steps_walked(examples, layout):
                masks = None
        return cls(examples, layout, Groups.of(layout, examples.rows.n_rows), masks)

    @property
    def n_groups(self) -> int:
        """Number of groups of all classes."""
        return self.groups.starts.size - 1

    @property
    def steps(self) -> float:
        """How much work the counts of a row are."""
        if self.masks is None:
            return _steps_walked(self.examples, self.layout)
        return self.masks.word.size / WORTH_WALKING + self.n_groups

    def write(
        self, first: int, last: int, classes: IntArray, numbers: Numbers, offset: int = 0
    ) -> None:
        """Write the numbers of the rows first..last in the groups of some classes.

        That of row r in group g goes to ``numbers[g, r - offset]``.
        """
        groups = self.groups
        common = (groups.order, groups.radix, groups.first_block, groups.first_group)
        if self.masks is not None and self.examples.words is not None:
            kernels.count_masked(
                self.examples.words.words,
                first,
                last,
                self.masks.first,
                self.masks.word,
                self.masks.mask,
                *common,
                classes,
                offset,
                numbers,
            )
        else:
            kernels.count_walked(
                *self.examples.rows.arrays,
                first,
                last,
                self.layout.labels,
                *common,
                classes,
                offset,
                numbers,
            )


def _steps_walked(examples: Examples, layout: Tables) -> float:
    return float(examples.mean_ones * layout.labels.shape[1] + layout.starts.size)


@dataclass(frozen=True)
class Counted:
    """The rows' counts in the blocks of all classes.

    Attributes
    ----------
    counter : Counter
        How they are counted.
    partitions : sequence of Partition
        The blocks of each class.
    kept : array of shape (n_groups, n_rows), or None
        The numbers of all rows, where they are kept.
    """

    counter: Counter
    partitions: Sequence[Partition]
    kept: Numbers | None

    @classmethod
    def of(
        cls,
        examples: Examples,
        partitions: Sequence[Partition],
        known: Sequence["Counted"] = (),
        n_jobs: int | None = None,
    ) -> Self:
        """Count the rows, but for those classes whose very partition is among the `known`."""
        counted, left = cls.begin(examples, partitions, Tables.layout(partitions), known)
        if left.size:
            run(
                lambda share: counted.count(share[0], left[share[1]]),
                examples.shares(left.size, counted.counter.steps),
                n_jobs,
            )
        return counted

    @classmethod
    def begin(
        cls,
        examples: Examples,
        partitions: Sequence[Partition],
        layout: Tables,
        known: Sequence["Counted"] = (),
    ) -> tuple[Self, IntArray]:
        """Return the counts of the classes whose very partition is among the `known`.

        The classes that `count` must still be called for come with them.
        """
        counter = Counter.of(examples, layout)
        dtype, n_rows = np.dtype(counter.groups.number_type), examples.rows.n_rows
        if counter.n_groups * n_rows * dtype.itemsize > MOST_KEPT:
            return cls(counter, partitions, None), np.empty(0, dtype=np.int64)
        kept = np.empty((counter.n_groups, n_rows), dtype=dtype)
        left = [
            y
            for y, partition in enumerate(partitions)
            if not any(old._copy(y, partition, counter.groups, kept) for old in known)
        ]
        return cls(counter, partitions, kept), np.array(left, dtype=np.int64)

    def count(self, span: tuple[int, int], classes: IntArray) -> None:
        """Count some rows in the blocks of some classes, where counts are kept."""
        if self.kept is not None and classes.size:
            self.counter.write(*span, classes, self.kept)

    @classmethod
    def when_asked(cls, examples: Examples, layout: Tables) -> Self:
        """Return counts that are used once, and so are not kept."""
        return cls(Counter.of(examples, layout), (), None)

    def _copy(self, y: int, partition: Partition, groups: Groups, numbers: Numbers) -> bool:
        """Copy the numbers of a class if its partition is the same; say whether it was."""
        if self.kept is None or self.partitions[y] is not partition:
            return False
        first = self.counter.groups.first_group
        to = slice(groups.first_group[y], groups.first_group[y + 1])
        numbers[to] = self.kept[first[y] : first[y + 1]]
        return True

    def is_of(self, partitions: Sequence[Partition]) -> bool:
        """Whether these are the counts of exactly these partitions."""
        return all(own is other for own, other in zip(self.partitions, partitions, strict=True))

    @property
    def steps(self) -> float:
        """How much work it is to have the numbers of a row."""
        return self.counter.n_groups + (self.counter.steps if self.kept is None else 0.0)

    def pieces(self, span: tuple[int, int]) -> Iterator[tuple[int, int, int, Numbers]]:
        """Yield (first, last, offset, numbers): row r has its numbers in column r − offset."""
        if self.kept is not None:
            yield *span, 0, self.kept
            return
        counter = self.counter
        classes = counter.layout.labels.shape[1]
        numbers = np.empty((counter.n_groups, PIECE), dtype=counter.groups.number_type)
        for first in range(*span, PIECE):
            last = min(first + PIECE, span[1])
            counter.write(first, last, np.arange(classes), numbers, first)
            yield first, last, first, numbers


@_compile
def _make_masks(labels, position, masks):  # type: ignore[no-untyped-def]
    """Set the bits of each block's variables: masks[block, word], all zero before."""
    for j in range(labels.shape[0]):
        word = position[j] >> 6
        bit = np.uint64(1) << np.uint64(position[j] & 63)
        for y in range(labels.shape[1]):
            masks[labels[j, y], word] |= bit


@_compile
def _list_masks(whole, first_mask, word, mask):  # type: ignore[no-untyped-def]
    """List the masks that have a bit, block after block, and return their number."""
    found = 0
    for b in range(whole.shape[0]):
        for w in range(whole.shape[1]):
            if whole[b, w]:
                word[found], mask[found] = w, whole[b, w]
                found += 1
        first_mask[b + 1] = found
    return found
