"""The plain twins of the intrinsics, against the compiled ones and against NumPy."""

import numpy as np
import pytest
from numba import njit

from exchangeable.runtime import pool
from exchangeable.runtime.kernels import bits

WORDS = [0, 1, 2, 3, 255, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1, 0x9E3779B97F4A7C15]
FLOATS = [0.0, -0.0, 1.0, -1.0, np.pi, 5e-324, 2.3e-308, 1.7e308, np.inf, -np.inf]


@njit
def popcount(word):
    return bits.popcount(word)


@njit
def short_popcount(word):
    return bits.short_popcount(word)


@njit
def float_from_bits(word):
    return bits.float_from_bits(word)


@njit
def single_from_bits(word):
    return bits.single_from_bits(word)


@njit
def bits_of_float(number):
    return bits.bits_of_float(number)


@njit
def look(numbers):
    return pool._look(numbers)


@njit
def wrapping_sum(one, other):
    return bits.wrapping_sum(one, other)


@njit
def wrapping_product(one, other):
    return bits.wrapping_product(one, other)


@pytest.mark.parametrize("word", WORDS)
def test_popcount(word):
    assert bits.plain_popcount(np.uint64(word)) == popcount(np.uint64(word)) == word.bit_count()
    assert isinstance(bits.plain_popcount(np.uint64(word)), np.uint64)


@pytest.mark.parametrize("word", [word & 0xFFFF for word in WORDS])
def test_short_popcount(word):
    short = np.uint16(word)
    assert bits.plain_short_popcount(short) == short_popcount(short) == word.bit_count()
    assert isinstance(bits.plain_short_popcount(short), np.uint16)


@pytest.mark.parametrize("number", FLOATS)
def test_bits_of_floats(number):
    word = np.array(number).view(np.int64)[()]
    assert bits.plain_bits_of_float(number) == bits_of_float(number) == word
    for back in (bits.plain_float_from_bits(word), float_from_bits(word)):
        assert np.array(back).view(np.int64) == word


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, -2.5, 1e-45, 3e38, np.inf])
def test_bits_of_single_precision(number):
    word = np.array(number, dtype=np.float32).view(np.int32)[()]
    for back in (bits.plain_single_from_bits(word), single_from_bits(word)):
        assert np.array(back, dtype=np.float32).view(np.int32) == word


@pytest.mark.parametrize("one", WORDS)
@pytest.mark.parametrize("other", WORDS)
def test_words_wrap_around(one, other):
    words = np.uint64(one), np.uint64(other)
    total, product = np.uint64((one + other) % 2**64), np.uint64(one * other % 2**64)
    assert bits.plain_wrapping_sum(*words) == wrapping_sum(*words) == total
    assert bits.plain_wrapping_product(*words) == wrapping_product(*words) == product


@pytest.mark.parametrize("n_variables", [1, 63, 64, 65, 200])
def test_ones_of_packed_rows(n_variables):
    row = np.random.default_rng(n_variables).random(n_variables) < 0.4
    packed = np.zeros(8 * ((n_variables + 63) // 64), dtype=np.uint8)
    packed[: (n_variables + 7) // 8] = np.packbits(row, bitorder="little")
    words, ones = packed.view("<u8"), np.empty(n_variables, dtype=np.int32)
    n_ones = bits.load_bits(words, ones)
    np.testing.assert_array_equal(ones[:n_ones], np.flatnonzero(row))


def test_a_number_is_loaded():
    numbers = np.array([-7, 3])
    assert pool._plain_load(numbers) == look(numbers) == -7
