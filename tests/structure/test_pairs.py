"""Condition (3) on all pairs of a block, and the bound on negative covariances."""

import numpy as np
import pytest

from exchangeable import exchangeability_report
from exchangeable.data.groups import Group
from exchangeable.data.rows import as_rows
from exchangeable.partitions import Partition
from exchangeable.structure.conditions import split_by_covariance
from exchangeable.structure.pairs import below_bound, pair_covariances, split_by_pairs


def split(X, significance=0.1, weights=None):
    one_block = Partition.from_labels(np.zeros(X.shape[1], dtype=int))
    group = Group(np.arange(len(X)), np.empty(0) if weights is None else weights)
    return split_by_pairs(one_block, as_rows(X, None), group, significance)


def couples(n, seed=0):
    """Return three pairs of variables, each pair nearly equal, all means and sums alike."""
    rng = np.random.default_rng(seed)
    leader = rng.random((n, 3)) < 0.4
    other = np.where(rng.random((n, 3)) < 0.7, leader, rng.random((n, 3)) < 0.4)
    return np.stack([leader, other], axis=2).reshape(n, 6).astype(np.uint8)


def test_covariances_are_those_of_numpy():
    X = couples(400).astype(float)
    found = pair_covariances(X.T @ X, 400)
    np.testing.assert_allclose(found.covariance, np.cov(X.T, bias=True), atol=1e-12)
    products = (X - X.mean(axis=0))[:, :, None] * (X - X.mean(axis=0))[:, None, :]
    np.testing.assert_allclose(found.spread, products.var(axis=0) / 399, atol=1e-12)


def test_pairs_that_covary_more_are_told_apart():
    """The covariance of a variable with the rest of its block is the same for all six."""
    X = couples(3000)
    one_block = Partition.from_labels(np.zeros(6, dtype=int))
    rows, group = as_rows(X, None), Group(np.arange(len(X)))
    ones = X.sum(axis=0).astype(float)
    assert split_by_covariance(one_block, rows, group, ones, 0.01).n_blocks == 1
    assert sorted(map(tuple, split(X, 0.01).blocks)) == [(0, 1), (2, 3), (4, 5)]


def test_weights_are_repeated_rows():
    X = couples(300)
    weights = np.random.default_rng(1).integers(1, 4, size=300)
    repeated = split(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(split(X, weights=weights.astype(float)).labels, repeated.labels)


def test_exchangeable_blocks_are_rarely_split():
    n_split = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = (rng.random((400, 8)) < rng.beta(2, 3, (400, 1))).astype(np.uint8)
        n_split += split(X, 0.1).n_blocks > 1
    assert n_split <= 12  # P = 0.01 at a rate of 0.1


def one_of(n, m, seed=0):
    """Return rows with exactly one variable on: covariances are at the bound."""
    return np.eye(m, dtype=np.uint8)[np.random.default_rng(seed).integers(0, m, n)]


def test_the_bound_itself_is_exchangeable():
    X = one_of(500, 5)
    assert split(X, 0.1).n_blocks == 1
    assert exchangeability_report(X).tests[0].p_bound > 0.1


def test_pairs_below_the_bound_are_not():
    """Two variables that exclude each other, among others that do not."""
    rng = np.random.default_rng(3)
    X = (rng.random((2000, 5)) < 0.5).astype(np.uint8)
    X[:, 1] = 1 - X[:, 0]
    score = below_bound(pair_covariances((X.T.astype(float) @ X), len(X)))
    assert score[0, 1] > 10 > score[2, 3]
    report = exchangeability_report(X)
    assert report.tests[0].p_bound < 1e-6
    assert report.p_value < 1e-6
    found = split(X, 0.01)
    assert found.labels[0] != found.labels[1]


@pytest.mark.parametrize("m", [1, 2])
def test_one_or_two_variables_have_nothing_to_compare(m):
    X = couples(100)[:, :m]
    assert split(X, 0.5).n_blocks == 1
    assert exchangeability_report(X).tests[0].p_bound == 1.0
