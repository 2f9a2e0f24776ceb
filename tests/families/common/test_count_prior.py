"""The pooled prior of counts: smoothed shares of the training set, added to smoothed counts."""

import numpy as np
import pytest

from exchangeable.families.common.count_prior import CountPrior
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.pool import Pool
from exchangeable.partitions import Partition
from made_rows import examples_of
from plain_smoothing import best_smoothing

RNG = np.random.default_rng(0)
RATES = np.where(RNG.random((120, 1)) < 0.5, 0.25, 0.7)
X = (RNG.random((120, 50)) < RATES * RNG.random((120, 1))).astype(np.uint8)
ALPHA, STRENGTH = 0.1, 3.0
LABELS = [np.zeros(50, dtype=int), np.where(np.arange(50) < 30, 0, np.arange(50) % 2 + 1)]


def counts_of(rows, partition):
    """Return how many rows have each count in each block."""
    return [
        np.bincount(rows[:, block].sum(axis=1), minlength=block.size + 1).astype(float)
        for block in partition.blocks
    ]


@pytest.mark.parametrize("labels", LABELS, ids=["one block", "blocks"])
def test_log_q_is_the_best_smoothing_of_counts_and_prior(labels):
    partition = Partition.from_labels(labels)
    prior = CountPrior.of(Pool.of(InMemory(examples_of(X)), STRENGTH, ALPHA), [partition] * 2)
    parts = [X[RATES[:, 0] < 0.5], X[RATES[:, 0] > 0.5][:9]]
    histograms = [np.concatenate(counts_of(rows, partition)) for rows in parts]
    found = prior.log_q(histograms)
    for rows, log_q in zip(parts, found, strict=True):
        expected = []
        for seen, everyone in zip(counts_of(rows, partition), counts_of(X, partition), strict=True):
            usual = best_smoothing(everyone, np.full(everyone.size, ALPHA / everyone.size))
            q = best_smoothing(seen, STRENGTH * usual / usual.sum())
            expected.append(np.log(q / q.sum()))
        np.testing.assert_allclose(log_q, np.concatenate(expected), rtol=1e-9)


def test_masses_are_the_shares_of_the_training_set_times_the_strength():
    partition = Partition.from_labels(LABELS[1])
    prior = CountPrior.of(Pool.of(InMemory(examples_of(X)), STRENGTH, ALPHA), [partition])
    shares = np.concatenate(counts_of(X, partition)) / len(X)
    np.testing.assert_allclose(prior.masses[0], STRENGTH * shares, rtol=1e-12)
    starts = partition.starts
    np.testing.assert_allclose(np.add.reduceat(prior.smooth_masses[0], starts), STRENGTH)
    assert (prior.smooth_masses[0] > 0).all()


def test_blocks_of_up_to_two_variables_are_not_smoothed():
    partition = Partition.from_labels(np.repeat(np.arange(25), 2))
    prior = CountPrior.of(Pool.of(InMemory(examples_of(X)), STRENGTH, ALPHA), [partition])
    seen = np.concatenate(counts_of(X[:40], partition))
    mass = seen + prior.smooth_masses[0]
    totals = np.repeat(np.add.reduceat(mass, partition.starts), 3)
    np.testing.assert_allclose(prior.log_q([seen])[0], np.log(mass / totals), rtol=1e-12)
