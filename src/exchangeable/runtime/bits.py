"""Counting bits inside compiled loops."""

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def popcount(typing_context: Any, word: Any) -> Any:
    """Return the number of ones of an unsigned 64-bit word: one processor instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def float_from_bits(typing_context: Any, word: Any) -> Any:
    """Return the double whose bits are those of a 64-bit integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def bits_of_float(typing_context: Any, number: Any) -> Any:
    """Return the bits of a double as a 64-bit integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@njit(cache=True, nogil=True)
def load_bits(words, ones):  # type: ignore[no-untyped-def]
    """Write the positions of the ones of a bit-packed row to `ones` and return their number."""
    found = 0
    for w in range(words.size):
        word = words[w]
        while word != np.uint64(0):
            lowest = word & (~word + np.uint64(1))
            ones[found] = 64 * w + popcount(lowest - np.uint64(1))  # type: ignore[call-arg]
            found += 1
            word ^= lowest
    return found


@njit(cache=True, nogil=True)
def block_masks(labels, n_blocks):  # type: ignore[no-untyped-def]
    """Return one bit-packed row a block with the block's variables on."""
    masks = np.zeros((n_blocks, (labels.size + 63) // 64), dtype=np.uint64)
    for j in range(labels.size):
        masks[labels[j], j // 64] |= np.uint64(1) << np.uint64(j % 64)
    return masks
