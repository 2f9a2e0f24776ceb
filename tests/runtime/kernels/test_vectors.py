"""Logarithm and exponential that vectorise, against NumPy's."""

import numpy as np

from exchangeable.runtime.kernels.vectors import exponential, logarithm, single_power


def test_logarithm_is_exact_to_the_last_bits():
    halves = [1.0, 2.0, 20.0, 0.5, np.sqrt(0.5), np.sqrt(2.0)]
    x = np.append(np.exp(np.linspace(-690, 690, 20_001)), halves)
    np.testing.assert_allclose([logarithm(v) for v in x], np.log(x), rtol=1e-15, atol=1e-16)


def test_exponential_is_exact_to_the_last_bits():
    x = np.linspace(-40.0, 0.0, 2001)
    assert max(abs(exponential(v) / np.exp(v) - 1) for v in x) < 1e-15


def test_single_power_is_as_wrong_as_is_said():
    x = np.append(np.linspace(-100.0, 0.0, 20_001), [-np.inf, -3e38]).astype(np.float32)
    found = np.array([single_power(v) for v in x])
    assert np.abs(found - np.exp(x.astype(np.float64))).max() < 1e-6
