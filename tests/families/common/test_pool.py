"""Pseudo-rows distributed as the training set, against counting."""

from types import SimpleNamespace

import numpy as np

from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.pool import Pool
from exchangeable.families.common.pooled import with_pool
from made_rows import bound_clusters, examples_of

X = bound_clusters(90, seed=3)
ALPHA, STRENGTH = 0.5, 7.0


def test_pairs_and_means_are_smoothed_alike():
    pool = Pool.of(InMemory(examples_of(X)), STRENGTH, ALPHA)
    means = (X.sum(axis=0) + ALPHA) / (len(X) + 2 * ALPHA)
    pairs = (X.T.astype(float) @ X + ALPHA / 2) / (len(X) + 2 * ALPHA)
    np.fill_diagonal(pairs, means)
    np.testing.assert_allclose(pool.means, means, rtol=1e-12)
    np.testing.assert_allclose(pool.pairs(), pairs, rtol=1e-12)


def test_every_class_is_given_so_many_rows():
    pool = Pool.of(InMemory(examples_of(X)), STRENGTH, ALPHA)
    sums = SimpleNamespace(ones=np.arange(12.0).reshape(6, 2), totals=np.array([20.0, 30.0]))
    ones, totals = with_pool(pool, sums)
    np.testing.assert_allclose(ones, sums.ones + STRENGTH * pool.means[:, None], rtol=1e-12)
    np.testing.assert_allclose(totals, [27.0, 37.0])
