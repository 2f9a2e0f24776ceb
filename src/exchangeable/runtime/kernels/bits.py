"""Bits of words and of floating-point numbers inside compiled loops.

The processor's instructions are accessed through numba's intrinsics, which exist in compiled code
only. Each has a plain Python twin, which replaces it if NUMBA_DISABLE_JIT is set.
"""

import struct
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from exchangeable.runtime.kernels.loops import helper, inlined

WORD = (1 << 64) - 1
"""A word of ones."""
COMPILED: bool = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
"""Whether kernels are compiled; they also run as plain Python, for tests and debuggers."""


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _popcount(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _short_popcount(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint16(types.uint16), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _float_from_bits(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _bits_of_float(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _single_from_bits(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


def plain_popcount(word: Any) -> Any:
    """Return the number of ones of an unsigned 64-bit word."""
    return np.uint64(int(word).bit_count())


def plain_short_popcount(word: Any) -> Any:
    """Return the number of ones of an unsigned 16-bit word."""
    return np.uint16(int(word).bit_count())


def plain_float_from_bits(word: Any) -> Any:
    """Return the double whose bits are those of a 64-bit integer."""
    return np.float64(struct.unpack("<d", struct.pack("<q", int(word)))[0])


def plain_single_from_bits(word: Any) -> Any:
    """Return the number in single precision whose bits are those of a 32-bit integer."""
    return np.float32(struct.unpack("<f", struct.pack("<i", int(word)))[0])


def plain_bits_of_float(number: Any) -> Any:
    """Return the bits of a double as a 64-bit integer."""
    return np.int64(struct.unpack("<q", struct.pack("<d", float(number)))[0])


popcount: Any = _popcount if COMPILED else plain_popcount
"""The number of ones of an unsigned 64-bit word: one processor instruction."""
short_popcount: Any = _short_popcount if COMPILED else plain_short_popcount
"""The number of ones of an unsigned 16-bit word."""
float_from_bits: Any = _float_from_bits if COMPILED else plain_float_from_bits
"""The double whose bits are those of a 64-bit integer."""
single_from_bits: Any = _single_from_bits if COMPILED else plain_single_from_bits
"""The number in single precision whose bits are those of a 32-bit integer."""
bits_of_float: Any = _bits_of_float if COMPILED else plain_bits_of_float
"""The bits of a double as a 64-bit integer."""


@inlined
def _wrapping_sum(one, other):  # type: ignore[no-untyped-def]
    return one + other


@inlined
def _wrapping_product(one, other):  # type: ignore[no-untyped-def]
    return one * other


def plain_wrapping_sum(one: Any, other: Any) -> Any:
    """Return the sum of two unsigned 64-bit words modulo 2^64."""
    return np.uint64((int(one) + int(other)) & WORD)


def plain_wrapping_product(one: Any, other: Any) -> Any:
    """Return the product of two unsigned 64-bit words modulo 2^64."""
    return np.uint64(int(one) * int(other) & WORD)


wrapping_sum: Any = _wrapping_sum if COMPILED else plain_wrapping_sum
"""The sum of two unsigned 64-bit words modulo 2^64; NumPy's own would warn."""
wrapping_product: Any = _wrapping_product if COMPILED else plain_wrapping_product
"""The product of two unsigned 64-bit words modulo 2^64; NumPy's own would warn."""


@helper
def load_bits(words, ones):  # type: ignore[no-untyped-def]
    """Write the positions of the ones of a bit-packed row to `ones` and return their number."""
    n_ones = 0
    for w in range(words.size):
        word = words[w]
        while word != np.uint64(0):
            lowest = word & (~word + np.uint64(1))
            ones[n_ones] = 64 * w + np.int64(popcount(lowest - np.uint64(1)))
            n_ones += 1
            word ^= lowest
    return n_ones
