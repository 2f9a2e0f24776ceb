"""The pass of EM that urns and trees share."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from enumeration import agreeing, all_states
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.log_linear.scores import LogLinear, expect, score
from made_rows import bound_clusters, fit_mixture, with_holes

N = 6
STATES = all_states(N)


BLOCKS = [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize(
    ("family", "blocks"),
    [("urns", "full"), ("urns", BLOCKS), ("tree", "auto"), ("weighted tree", "auto")],
    ids=["urns", "urns in blocks", "tree", "weighted tree"],
)
def test_sums_over_holes_are_sums_over_completions(family, blocks):
    """The E-step with holes is that over all completions, each by its probability."""
    model = fit_mixture(bound_clusters(), 2, family=family, blocks=blocks, max_iter=60)._mixture()
    X = with_holes(bound_clusters(12, seed=2), 0.4)
    symbols = np.where(np.isnan(X), -1, X).astype(np.int8)
    examples, _ = merge_equal_rows(Observed.from_symbols(symbols), np.ones(len(X)))
    found = InMemory(examples).expect(model)
    log_joint = model.joint(Observed(as_rows(STATES, None)))
    rows, weights, log_likelihood = [], [], 0.0
    for row in np.where(symbols < 0, np.nan, symbols):
        able = agreeing(STATES, row)
        rows.append(STATES[able])
        weights.append(np.exp(log_joint[able] - logsumexp(log_joint[able])))
        log_likelihood += logsumexp(log_joint[able])
    rows, weights = np.concatenate(rows), np.concatenate(weights)
    np.testing.assert_allclose(found.log_likelihood, log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(found.ones, rows.T @ weights, atol=1e-10)
    np.testing.assert_allclose(found.totals, weights.sum(axis=0), atol=1e-10)
    counts = np.stack(found.blocks, axis=1) if blocks is BLOCKS else found.counts
    assert (counts.size > 0) == (family != "tree")
    if counts.size:
        expected = [
            weights[rows[:, block].sum(axis=1) == n].sum(axis=0)
            for block in (BLOCKS if blocks is BLOCKS else [range(N)])
            for n in range(len(block) + 1)
        ]
        np.testing.assert_allclose(counts, np.stack(expected), atol=1e-10)
    assert (found.pairs.size > 0) == (family != "urns")
    for y, parent in enumerate(model.model.scores.parent.T if found.pairs.size else ()):
        for j in np.flatnonzero(parent < N):
            both = rows[:, j] * rows[:, parent[j]]
            np.testing.assert_allclose(found.pairs[j, y], both @ weights[:, y], atol=1e-10)


@pytest.mark.parametrize("n_classes", [3, 8, 19])
def test_classes_score_together_as_alone(n_classes):
    """Eight classes are scored and summed at a time, the others one by one."""
    rng = np.random.default_rng(n_classes)
    slope, pair = rng.normal(size=(2, N, n_classes))
    parent = rng.integers(np.arange(N)[:, None] + 1, N + 1, (N, n_classes)).astype(np.int32)
    base, by_count = rng.normal(size=n_classes), rng.normal(size=(N + 1, n_classes))
    rows = as_rows(STATES, None)
    examples, _ = merge_equal_rows(Observed(rows), rng.random(len(STATES)))
    together = LogLinear(base, slope, parent, pair, by_count)
    found = score(examples.rows, together)
    posterior = rng.dirichlet(np.ones(n_classes), size=len(STATES))
    sums = expect(examples, together, np.zeros(n_classes), posterior=posterior)
    for y in range(n_classes):
        own = slice(y, y + 1)
        alone = LogLinear(base[own], slope[:, own], parent[:, own].copy(), pair[:, own].copy())
        alone = replace(alone, by_count=by_count[:, own].copy())
        np.testing.assert_allclose(found[:, own], score(examples.rows, alone), rtol=1e-12)
        some = expect(examples, alone, np.zeros(1), posterior=posterior[:, own].copy())
        np.testing.assert_allclose(sums.ones[:, own], some.ones, rtol=1e-12)
        np.testing.assert_allclose(sums.pairs[:, own], some.pairs, rtol=1e-12)
        np.testing.assert_allclose(sums.counts[:, own], some.counts, rtol=1e-12)
