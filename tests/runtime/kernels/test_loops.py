"""Loops that are written out in kernels do what NumPy does."""

import numpy as np
import pytest

from exchangeable.runtime.kernels import loops


@pytest.fixture
def values():
    return np.random.default_rng(0).normal(size=37)


def test_copies_and_fills(values):
    target = np.zeros(40)
    loops.copy(values, target)
    np.testing.assert_array_equal(target, [*values, 0, 0, 0])
    loops.fill(target[:5], 2.5)
    np.testing.assert_array_equal(target, [*[2.5] * 5, *values[5:], 0, 0, 0])


def test_divides(values):
    divided = values.copy()
    loops.divide(divided, 3.0)
    np.testing.assert_array_equal(divided, values / 3.0)


def test_sums_and_maxima(values):
    assert loops.total(values) == pytest.approx(values.sum(), abs=1e-13)
    assert loops.largest(values) == values.max()
    assert loops.largest(-values[:1]) == -values[0]
    assert loops.where_largest(values) == values.argmax()


def test_the_first_of_several_largest():
    assert loops.where_largest(np.array([1.0, 3.0, 2.0, 3.0])) == 1
    assert loops.where_largest(np.full(4, -np.inf)) == 0
