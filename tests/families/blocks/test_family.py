"""Blocks under a pooled prior: what q is, and that blocks are still learned."""

import numpy as np
import pytest

from exchangeable import Blocks, ExchangeableClassifier
from made_rows import clusters, fit_mixture

BLOCKS = [[0, 3], [1, 2, 4], [5]]


def smoothed_shares(X, block, alpha=0.1):
    counts = np.bincount(X[:, block].sum(axis=1), minlength=len(block) + 1)
    return (counts + alpha) / (len(X) + alpha * (len(block) + 1))


@pytest.mark.parametrize("blocks", ["evidence", "welch", "independent", "full", BLOCKS], ids=str)
def test_q_is_that_of_the_rows_and_of_pseudo_rows_like_the_training_set(blocks):
    """q = (h + c·q0) / (N + c), q0 being the smoothed share of the training set."""
    X, y = clusters(), np.arange(400) % 4 // 3
    model = ExchangeableClassifier(blocks=blocks, pooling=5.0).fit(X, y)
    for label in (0, 1):
        rows = X[y == label]
        for block, q in zip(
            model.partitions_[label], model.count_probabilities_[label], strict=True
        ):
            h = np.bincount(rows[:, block].sum(axis=1), minlength=block.size + 1)
            expected = (h + 5.0 * smoothed_shares(X, block)) / (len(rows) + 5.0)
            np.testing.assert_allclose(q, expected, rtol=1e-10)


def test_a_strong_prior_makes_all_components_the_training_set():
    X = clusters()
    model = fit_mixture(X, 2, blocks=BLOCKS, pooling=1e9, max_iter=3)
    for blocks in model.count_probabilities_:
        for block, q in zip(BLOCKS, blocks, strict=True):
            np.testing.assert_allclose(q, smoothed_shares(X, block), rtol=1e-5)


def test_structural_em_goes_on_under_a_pooled_prior():
    X = clusters(800, 12)
    kept = fit_mixture(X, blocks=Blocks("welch", relearn=False), pooling=2.0)
    learned = fit_mixture(X, blocks="welch", pooling=2.0)
    assert learned.log_likelihood_ > kept.log_likelihood_
    labels = [[p.labels.tolist() for p in model._model.partitions] for model in (kept, learned)]
    assert labels[0] != labels[1]
