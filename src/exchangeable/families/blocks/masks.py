"""Blocks as bit masks: the ones of a row in a block are those of its words under the masks.

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
"""Bits of a long word; work is measured in these, whatever the word size is."""


class Masks(NamedTuple):
    """Blocks as masks of short words.

    Attributes
    ----------
    first : array of shape (n_blocks + 1,)
        The first mask of each block.
    word, mask : arrays of shape (n_masks,)
        The word and the bits of each mask.
    n_long : int
        The number of masks if words were long.
    """

    first: IntArray
    word: IntArray
    mask: npt.NDArray[np.uint16]
    n_long: int

    @classmethod
    def of(cls, words: Words, layout: Tables) -> Self:
        """Return the masks of the blocks of all classes."""
        n_blocks = layout.starts.size
        whole = np.zeros((n_blocks, words.words.shape[0]), dtype=np.uint16)
        _make_masks(layout.labels, words.position, whole)
        first = np.zeros(n_blocks + 1, dtype=np.int64)
        word, mask = np.empty(whole.size, dtype=np.int64), np.empty(whole.size, dtype=np.uint16)
        n_long = _list_masks(whole, first, word, mask)
        return cls(first, word[: first[-1]], mask[: first[-1]], n_long)


class WeightedMasks(NamedTuple):
    """Bundles as masks of short words; the numbers of bundles are weighted sums of bit counts.

    A variable adds the place value of its block's digit to the number of its bundle.

    Attributes
    ----------
    first : array of shape (n_bundles + 1,)
        The first mask of each bundle. Their number is a multiple of four; the last ones are empty.
    word, mask, weight : arrays of shape (n_masks,)
        The word, the bits, and the value of each of its ones, for each mask.
    n_long : int
        The number of masks if words were long and none were empty.
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
        _make_masks(layout.labels, words.position, whole)
        most = whole.size + 3 * (bundles.starts.size - 1)
        first = np.zeros(bundles.starts.size, dtype=np.int64)
        word, (mask, weight) = np.zeros(most, np.int64), np.zeros((2, most), np.uint16)
        n_long = _list_weighted(whole, bundles, first, word, mask, weight)
        return cls(first, word, mask, weight, n_long)


@_compile
def _make_masks(labels, position, masks):  # type: ignore[no-untyped-def]
    """Set the bits of each block's variables: masks[block, word], all zero before."""
    for j in range(labels.shape[0]):
        word = position[j] // SHORT_BITS
        bit = np.uint64(1) << np.uint64(position[j] % SHORT_BITS)
        for y in range(labels.shape[1]):
            masks[labels[j, y], word] |= bit


@_compile
def _list_masks(whole, first_mask, word, mask):  # type: ignore[no-untyped-def]
    """List the masks that have a bit, block after block; return their number for long words."""
    n_masks, n_long, per_long = 0, 0, LONG_BITS // SHORT_BITS
    for b in range(whole.shape[0]):
        last = -1
        for w in range(whole.shape[1]):
            if whole[b, w]:
                word[n_masks], mask[n_masks] = w, whole[b, w]
                n_masks += 1
                n_long += w // per_long != last
                last = w // per_long
        first_mask[b + 1] = n_masks
    return n_long


@_compile
def _list_weighted(whole, bundles, first_mask, word, mask, weight):  # type: ignore[no-untyped-def]
    """List the masks that have a bit, bundle after bundle.

    Each bundle has a multiple of four; the last of them stay empty, as all are before. Returns the
    number of masks if words were long.
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
