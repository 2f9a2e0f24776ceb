"""Sweeps of many components at once."""

import numpy as np
import pytest

from exchangeable.partitions import Partition
from exchangeable.structure.sweep import sweep, sweep_each


@pytest.mark.parametrize("n_variables", [1, 7, 300, 5000])
@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e-200])
def test_sweeping_together_is_sweeping_one_by_one(n_variables, scale):
    rng = np.random.default_rng(1)
    n, shape = 500.0, (5, n_variables)
    values = np.round(rng.beta(0.5, 2.0, shape), 2) * scale ** rng.random((5, 1))  # many are equal
    values[1] = 0.3 + 1e-13 * rng.random(n_variables)  # told apart by their last bits
    values[2] *= rng.random(n_variables) ** 30
    values[3] = 0.0
    moments = np.stack([n * values.T, n * values.T**2 * (1 + rng.random(shape).T)])
    levels = (0.1, 0.5)
    together = sweep_each(moments, n, levels, 2)
    mean = moments[0].T / n
    variance = np.maximum(moments[1].T - n * mean**2, 0.0) / (n - 1)
    for found, level in zip(together, levels, strict=True):
        for y in range(5):
            expected = Partition.from_labels(sweep(mean[y], variance[y], n, level))
            np.testing.assert_array_equal(found[y].labels, expected.labels)
            np.testing.assert_array_equal(found[y].sizes, expected.sizes)
            np.testing.assert_array_equal(found[y].starts, expected.starts)


def test_equal_means_are_never_separated():
    """A variable whose mean is its predecessor's is not tested, however small its variance."""
    mean = np.array([0.1, 0.2, 0.2, 0.9])
    variance = np.array([1e-4, 10.0, 1e-6, 0.01])
    assert sweep(mean, variance, 100, 0.1).tolist() == [0, 0, 0, 1]
    assert sweep(mean + np.array([0, 0, 1e-9, 0]), variance, 100, 0.1).tolist() == [0, 0, 1, 2]
    moments = np.stack([100 * mean, 99 * variance + 100 * mean**2])[:, :, None]
    assert sweep_each(moments, 100.0, (0.1, 0.5), 2)[0][0].labels.tolist() == [0, 0, 0, 1]
