"""Uniform numbers that are kept are those of the generator, and not too many are."""

import numpy as np
import pytest

from exchangeable.runtime.kernels.uniforms import Uniforms


@pytest.mark.parametrize("sizes", [(100, 90, 100), (20, 500, 30), (2000, 10, 2000)])
def test_kept_numbers_are_those_of_the_generator(sizes):
    uniforms = Uniforms(most=600)
    for size in sizes:
        for seed in (0, 1):
            expected = np.random.default_rng(seed).random(size)
            np.testing.assert_array_equal(uniforms.first(seed, size)[:size], expected)


def test_numbers_are_kept_while_there_is_room():
    uniforms = Uniforms(most=100)
    assert uniforms.first(0, 60) is uniforms.first(0, 60)
    assert uniforms.first(1, 60) is not uniforms.first(1, 60)
    uniforms.first(0, 8)  # fewer are needed now, so that others find room
    assert uniforms.first(1, 60) is uniforms.first(1, 60)
