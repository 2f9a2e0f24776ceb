"""Matrices as packed rows, and what is seen of their numbers on the way."""

from typing import Any

import numpy as np
import pytest

from exchangeable.data import rows as packing
from exchangeable.data.observed import as_observed, flags, observe_numbers
from exchangeable.data.rows import pack_matrix

KINDS = [np.float64, np.float32, np.int64, np.int8, np.uint16, np.uint8, np.bool_]


@pytest.mark.parametrize("dtype", KINDS, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("threshold", [-0.5, 0.0, 0.5, 1.0])
def test_bits_say_what_exceeds_the_threshold(dtype: Any, looks: bool, threshold: float) -> None:
    X = (np.random.default_rng(0).random((2100, 70)) < 0.3).astype(dtype)
    packed = pack_matrix(X, threshold, looks=looks)
    np.testing.assert_array_equal(flags(packed.rows), threshold < X)
    assert not packed.has_nan


ODD = (2.0, -1.0, 0.5, -0.5, 1e-300, 1.0 + 1e-15, np.inf)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("holes", [True, False])
@pytest.mark.parametrize("row", [0, 1500])
def test_one_number_other_than_0_and_1_is_seen(odd: float, holes: bool, row: int) -> None:
    X = np.random.default_rng(0).integers(0, 2, (2 * packing.CHUNK, 5)).astype(np.float64)
    if holes:
        X[3::7, 2] = np.nan
    observed, zero_one = observe_numbers(X, 0.0)
    assert zero_one
    assert (observed.holes is not None) == holes
    np.testing.assert_array_equal(observed.hole_flags(), np.isnan(X))
    X[row, 4] = odd
    observed, zero_one = observe_numbers(X, 0.0)
    assert not zero_one
    np.testing.assert_array_equal(flags(observed.ones), X > 0)
    np.testing.assert_array_equal(flags(as_observed(X, 0.0).ones), X > 0)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16, np.uint8])
def test_whole_numbers_are_looked_at_as_well(dtype: Any) -> None:
    X = np.eye(4, dtype=dtype)
    assert observe_numbers(X, 0.0)[1]
    X[2, 3] = 3
    assert not observe_numbers(X, 0.0)[1]
    assert not observe_numbers(X, 0.5)[1]
