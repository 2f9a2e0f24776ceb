"""Sums over rows against NumPy, for numbers of rows around what a byte can count."""

import numpy as np
import pytest
import scipy.sparse as sp

from exchangeable.data import packed_kernels, row_kernels
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.rows import as_rows


@pytest.mark.parametrize("n_rows", [0, 1, 254, 255, 256, 300, 513])
def test_bytes_and_bits_are_summed_however_many_rows_there_are(n_rows):
    X = np.ones((n_rows + 5, 3), dtype=np.uint8)  # every counter is as full as can be
    X[::7, 1] = X[::2, 2] = 0
    members = np.arange(5, n_rows + 5)[::-1].copy()
    total = np.full(3, 10.0)
    row_kernels.sum_bytes(X, members, total)
    np.testing.assert_array_equal(total, 10 + X[5:].sum(axis=0))
    total[:] = 10.0
    bits = as_rows(X, None).bits
    packed_kernels.sum_bits(bits, members, packed_kernels.room_for_sums(bits), total)
    np.testing.assert_array_equal(total, 10 + X[5:].sum(axis=0))


@pytest.mark.parametrize("weighted", [False, True])
def test_ones_of_a_group_are_the_same_in_every_form(weighted):
    rng = np.random.default_rng(0)
    X = (rng.random((600, 70)) < 0.9).astype(np.uint8)
    members = rng.permutation(600)[:520]
    weights = rng.random(520) if weighted else np.empty(0)
    expected = (weights if weighted else np.ones(520)) @ X[members]
    for form in (X, X.astype(bool), sp.csr_matrix(X)):
        (ones,) = group_ones(as_rows(form, None), [Group(members, weights)], 1)
        np.testing.assert_allclose(ones, expected, rtol=1e-12)
