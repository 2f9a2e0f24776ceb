"""Exponential and logarithm that compiled loops turn into vector instructions.

The compiler cannot vectorise a loop that calls the C library, but it can inline these functions.
"""

import math

import numpy as np

from exchangeable.runtime.kernels.bits import bits_of_float, float_from_bits, single_from_bits
from exchangeable.runtime.kernels.cache import for_kernels
from exchangeable.runtime.kernels.loops import inlined, largest

vectorise = for_kernels(fastmath={"contract"})

TILE = 256
"""Number of rows of a tile: enough for vector loops, few enough for the nearest caches."""
LOG2_E = 1 / math.log(2)
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / math.factorial(n) for n in range(3, 14))
ONE, HALF, S3, S4, S5, S6 = (np.float32(1 / math.factorial(n)) for n in (1, 2, 3, 4, 5, 6))
SINGLE_LOG2_E, SINGLE_LN2 = np.float32(LOG2_E), np.float32(math.log(2))
SINGLE_LEAST = np.float32(-80.0)
SQRT_HALF = 0x3FE6A09E667F3BCD
"""The bits of √½."""
A3, A5, A7, A9, A11, A13, A15, A17, A19, A21 = (1 / n for n in range(3, 23, 2))
"""The coefficients of s³, s⁵, … s²¹ of atanh s."""


@inlined
def scaled_power(x):  # type: ignore[no-untyped-def]
    """Return e^x for −700 < x < 700, to the last bit or two, written out in its callers.

    x = n·ln 2 + r with |r| ≤ ln 2 / 2; Taylor's series of e^r to r^13 leaves less than 1e-17.
    """
    n = np.floor(x * LOG2_E + 0.5)
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    tail = C9 + r * (C10 + r * (C11 + r * (C12 + r * C13)))
    tail = C4 + r * (C5 + r * (C6 + r * (C7 + r * (C8 + r * tail))))
    power = 1.0 + r * (1.0 + r * (0.5 + r * (C3 + r * tail)))
    return power * float_from_bits((np.int64(n) + 1023) << 52)


@inlined
def single_power(x):  # type: ignore[no-untyped-def]
    """Return e^x for −80 ≤ x ≤ 0 in single precision; what is lower counts as −80.

    The error is at most 1e-6 everywhere: the relative one grows with −x, but e^x falls faster.
    """
    x = max(x, SINGLE_LEAST)
    n = np.floor(x * SINGLE_LOG2_E + HALF)
    r = x - n * SINGLE_LN2
    power = ONE + r * (ONE + r * (HALF + r * (S3 + r * (S4 + r * (S5 + r * S6)))))
    return power * single_from_bits((np.int32(n) + np.int32(127)) << np.int32(23))


@vectorise
def exponential(x):  # type: ignore[no-untyped-def]
    """Return the same by a function that is compiled by itself."""
    return scaled_power(x)


@inlined
def logarithm(x):  # type: ignore[no-untyped-def]
    """Return ln x of a positive normal number, to the last bit or two, without a call.

    x = 2^n·m with √½ ≤ m < √2, and ln m = 2·atanh s for s = (m − 1) / (m + 1), |s| < 0.172. The
    series is written out: a loop over its terms would keep its callers from being vector loops.
    """
    above = bits_of_float(x) - SQRT_HALF
    n = np.float64(above >> 52)
    m = float_from_bits((above & 0xFFFFFFFFFFFFF) + SQRT_HALF)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    tail = A13 + square * (A15 + square * (A17 + square * (A19 + square * A21)))
    tail = A5 + square * (A7 + square * (A9 + square * (A11 + square * tail)))
    series = A3 + square * tail
    return n * LN2_HIGH + (2.0 * s + (2.0 * s * square * series + n * LN2_LOW))


@inlined
def log_sum(values):  # type: ignore[no-untyped-def]
    """Return log Σ exp(values)."""
    highest, total = largest(values), 0.0
    if highest == -np.inf:
        return highest
    for i in range(values.size):
        total += np.exp(values[i] - highest)
    return highest + np.log(total)
