"""Blocks as masks of bits: the ones of a row in a block are those of its words under its masks.

Masks are few, because variables with similar means share words (`forms.Words`).
"""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import IntArray
from exchangeable.data.forms import SHORT_BITS, Words
from exchangeable.families.blocks.bundles import Bundles
from exchangeable.families.common.tables import Tables
from exchangeable.runtime.kernels.cache import compiled

_compile = compiled()

LONG_BITS = 64
"""Bits of a long word; work is measured in these, whichever words there are."""


class Masks(NamedTuple):
    """Blocks as masks: block b has those from ``first[b]`` on, mask i being of ``word[i]``."""

    first: IntArray
    word: IntArray
    mask: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, words: Words, layout: Tables) -> Self:
        """Return the masks of the blocks of all classes."""
        n_blocks = layout.starts.size
        whole = np.zeros((n_blocks, words.words.shape[0]), dtype=np.uint64)
        _make_masks(layout.labels, words.position, LONG_BITS, whole)
        first = np.zeros(n_blocks + 1, dtype=np.int64)
        word, mask = np.empty(whole.size, dtype=np.int64), np.empty(whole.size, dtype=np.uint64)
        n_masks = _list_masks(whole, first, word, mask)
        return cls(first, word[:n_masks], mask[:n_masks])

    @property
    def n_long(self) -> int:
        """Number of masks."""
        return self.word.size


class WeightedMasks(NamedTuple):
    """Bundles as masks of short words, by which their numbers are sums.

    A variable adds to the number of its bundle what the digit of its block is worth.

    Attributes
    ----------
    first : array of shape (n_bundles + 1,)
        Where the masks of each bundle begin. They are a multiple of four, the last ones empty.
    word, mask, weight : arrays of shape (n_masks,)
        The word that each is of, its bits, and what each of its ones adds.
    n_long : int
        How many masks there would be if words were long, and none empty.
    """

    first: IntArray
    word: IntArray
    mask: npt.NDArray[np.uint16]
    weight: npt.NDArray[np.uint16]
    n_long: int

    @classmethod
    def of(cls, words: Words, layout: Tables, bundles: Bundles) -> Self:
        """Return the masks of the bundles of all classes."""
        whole = np.zeros((layout.starts.size, words.words.shape[0]), dtype=np.uint16)
        _make_masks(layout.labels, words.position, SHORT_BITS, whole)
        most = whole.size + 3 * (bundles.starts.size - 1)
        first = np.zeros(bundles.starts.size, dtype=np.int64)
        word, (mask, weight) = np.zeros(most, np.int64), np.zeros((2, most), np.uint16)
        n_long = _list_weighted(whole, bundles, first, word, mask, weight)
        return cls(first, word, mask, weight, n_long)


@_compile
def _make_masks(labels, position, n_bits, masks):  # type: ignore[no-untyped-def]
    """Set the bits of each block's variables: masks[block, word], all zero before."""
    for j in range(labels.shape[0]):
        word = position[j] // n_bits
        bit = np.uint64(1) << np.uint64(position[j] % n_bits)
        for y in range(labels.shape[1]):
            masks[labels[j, y], word] |= bit


@_compile
def _list_masks(whole, first_mask, word, mask):  # type: ignore[no-untyped-def]
    """List the masks that have a bit, block after block, and return their number."""
    n_masks = 0
    for b in range(whole.shape[0]):
        for w in range(whole.shape[1]):
            if whole[b, w]:
                word[n_masks], mask[n_masks] = w, whole[b, w]
                n_masks += 1
        first_mask[b + 1] = n_masks
    return n_masks


@_compile
def _list_weighted(whole, bundles, first_mask, word, mask, weight):  # type: ignore[no-untyped-def]
    """List the masks that have a bit, bundle after bundle.

    Each bundle has a multiple of four; the last of them stay empty, as all are before. Returns how
    many masks of long words there would be.
    """
    order, worth, first_block = bundles.order, bundles.worth, bundles.first_block
    per_long = LONG_BITS // SHORT_BITS
    n_masks, n_long = 0, 0
    for g in range(first_block.size - 1):
        for i in range(first_block[g], first_block[g + 1]):
            line, last = whole[order[i]], -1
            for w in range(line.size):
                if line[w]:
                    word[n_masks], mask[n_masks], weight[n_masks] = w, line[w], worth[i]
                    n_masks += 1
                    n_long += w // per_long != last
                    last = w // per_long
        n_masks += -n_masks % 4
        first_mask[g + 1] = n_masks
    return n_long
