"""The counts of all rows in the blocks of all classes, cached between passes of EM.

A pass of EM looks counts up, or adds rows up by them, and so needs the counts of each row. They are
cached if they fit into `MOST_KEPT` bytes, several blocks in one number (`Bundles`), so that
unchanged blocks are counted once; otherwise every pass counts a few rows at a time, uses their
numbers, and discards them.
"""

import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import IntArray
from exchangeable.data.examples import Examples
from exchangeable.families.blocks import kernels
from exchangeable.families.blocks.bundles import Bundles
from exchangeable.families.blocks.holes.states import state_layout
from exchangeable.families.blocks.kernels import Piece
from exchangeable.families.blocks.masks import LONG_BITS, Masks, WeightedMasks
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run

Numbers = npt.NDArray[np.unsignedinteger[Any]]

MOST_KEPT = 1 << 26
"""Maximum size in bytes of the numbers of all rows for caching them."""
PIECE = 2048
"""Number of rows that are counted at a time if numbers are not cached."""
WORTH_WALKING = 4
"""Listing a one takes as long as this many words under a mask."""
MOST_MASKS = 1 << 20
"""If blocks times words exceed this, masks are not even tried."""


@dataclass(frozen=True)
class Counter:
    """How the rows' counts in some blocks are computed: by masks, or by listing the ones.

    `layout` has an entry for every block and count, or state if rows have missing entries.
    """

    examples: Examples
    layout: Tables
    bundles: Bundles
    masks: Masks | WeightedMasks | None

    @classmethod
    def of(cls, examples: Examples, layout: Tables) -> Self:
        """Choose the method that takes fewer steps.

        Rows with missing entries have states in place of counts, which are computed by masks.
        """
        if examples.holes is not None:
            layout = state_layout(layout)
            bundles = Bundles.of(layout, examples.rows.n_rows)
            return cls(examples, layout, bundles, Masks.of(examples.open_words[0], layout))
        words, masks, bundles = examples.words, None, Bundles.of(layout, examples.rows.n_rows)
        n_words = -(-examples.rows.n_variables // LONG_BITS)
        if words is not None and layout.starts.size * n_words <= MOST_MASKS:
            masks = WeightedMasks.of(words, layout, bundles)
            if masks.n_long > WORTH_WALKING * _steps_walked(examples, layout):
                masks = None
        return cls(examples, layout, bundles, masks)

    @property
    def n_bundles(self) -> int:
        """Number of bundles of all classes."""
        return self.bundles.starts.size - 1

    @property
    def steps(self) -> float:
        """The work for the counts of a row."""
        if self.masks is None:
            return _steps_walked(self.examples, self.layout)
        n_words = 1 if self.examples.holes is None else 2
        return n_words * self.masks.n_long / WORTH_WALKING + self.n_bundles

    def write(self, classes: IntArray, piece: Piece) -> None:
        """Write the numbers of a piece's rows in the bundles of some classes."""
        if self.masks is not None and self.examples.holes is not None:
            ones, possible = (words.words for words in self.examples.open_words)
            kernels.count_states(ones, possible, self.masks, self.bundles, classes, piece)
        elif self.masks is not None and self.examples.words is not None:
            words = self.examples.words.words
            kernels.count_masked(words, self.masks, self.bundles, classes, piece)
        else:
            rows, labels = self.examples.rows.arrays, self.layout.labels
            kernels.count_walked(rows, labels, self.bundles, classes, piece)


def _steps_walked(examples: Examples, layout: Tables) -> float:
    return float(examples.mean_ones * layout.labels.shape[1] + layout.starts.size)


@dataclass(frozen=True)
class RowCounts:
    """The rows' counts in the blocks of all classes.

    Attributes
    ----------
    counter : Counter
        How they are counted.
    partitions : sequence of Partition
        The blocks of each class.
    kept : array of shape (n_bundles, n_rows), or None
        The numbers of all rows, if they are cached.
    """

    counter: Counter
    partitions: Sequence[Partition]
    kept: Numbers | None

    @classmethod
    def of(
        cls,
        examples: Examples,
        partitions: Sequence[Partition],
        known: Sequence["RowCounts"] = (),
        n_jobs: int | None = None,
    ) -> Self:
        """Count the rows, except for classes whose partition objects are among the `known`."""
        counts, uncounted = cls.begin(examples, partitions, Tables.layout(partitions), known)
        if uncounted.size:
            run(
                lambda share: counts.count(share[0], uncounted[share[1]]),
                examples.shares(uncounted.size, counts.counter.steps),
                n_jobs,
            )
        return counts

    @classmethod
    def begin(
        cls,
        examples: Examples,
        partitions: Sequence[Partition],
        layout: Tables,
        known: Sequence["RowCounts"] = (),
    ) -> tuple[Self, IntArray]:
        """Return the counts of the classes whose partition objects are among the `known`.

        They come with the classes for which `count` must still be called.
        """
        counter = Counter.of(examples, layout)
        dtype, n_rows = np.dtype(counter.bundles.number_type), examples.rows.n_rows
        if counter.n_bundles * n_rows * dtype.itemsize > MOST_KEPT:
            return cls(counter, partitions, None), np.empty(0, dtype=np.int64)
        kept = np.empty((counter.n_bundles, n_rows), dtype=dtype)
        uncounted = np.ones(len(partitions), dtype=np.bool_)
        for old in known:
            old._copy_to(kept, partitions, counter.bundles, uncounted)
        return cls(counter, partitions, kept), np.flatnonzero(uncounted)

    def count(self, span: tuple[int, int], classes: IntArray) -> None:
        """Count some rows in the blocks of some classes, if counts are cached."""
        if self.kept is not None and classes.size:
            self.counter.write(classes, Piece(*span, 0, self.kept))

    @classmethod
    def when_asked(cls, examples: Examples, layout: Tables) -> Self:
        """Return counts that are used once, and therefore not cached."""
        return cls(Counter.of(examples, layout), (), None)

    def _copy_to(
        self,
        numbers: Numbers,
        partitions: Sequence[Partition],
        bundles: Bundles,
        uncounted: npt.NDArray[np.bool_],
    ) -> None:
        """Copy the numbers of the uncounted classes whose partition objects are counted here."""
        if self.kept is None:
            return
        first = self.counter.bundles.first_bundle
        same = map(operator.is_, self.partitions, partitions)
        for y in itertools.compress(range(len(partitions)), same):
            if uncounted[y]:
                target = slice(bundles.first_bundle[y], bundles.first_bundle[y + 1])
                numbers[target] = self.kept[first[y] : first[y + 1]]
                uncounted[y] = False

    def is_of(self, partitions: Sequence[Partition]) -> bool:
        """Whether these are the counts of exactly these partitions."""
        alike = len(self.partitions) == len(partitions)
        return alike and all(map(operator.is_, self.partitions, partitions))

    @property
    def steps(self) -> float:
        """The work for the numbers of a row."""
        return self.counter.n_bundles + (self.counter.steps if self.kept is None else 0.0)

    def pieces(self, span: tuple[int, int]) -> Iterator[Piece]:
        """Yield the numbers of some rows, a few thousand rows at a time unless they are cached."""
        if self.kept is not None:
            yield Piece(*span, 0, self.kept)
            return
        counter = self.counter
        classes = np.arange(counter.layout.labels.shape[1])
        numbers = np.empty((counter.n_bundles, PIECE), dtype=counter.bundles.number_type)
        for first in range(*span, PIECE):
            piece = Piece(first, min(first + PIECE, span[1]), first, numbers)
            counter.write(classes, piece)
            yield piece
