"""The pass of EM that urns and trees share."""

import numpy as np
import pytest
from scipy.special import logsumexp

from enumeration import agreeing, all_states
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.families.common.em_data import InMemory
from made_rows import bound_clusters, fit_mixture, with_holes

N = 6
STATES = all_states(N)


@pytest.mark.parametrize("family", ["urns", "tree", "weighted tree"])
def test_sums_over_holes_are_sums_over_completions(family):
    """The E-step with holes is that over all completions, each by its probability."""
    model = fit_mixture(bound_clusters(), 2, family=family, max_iter=60)._mixture()
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
    assert (found.counts.size > 0) == (family != "tree")
    if found.counts.size:
        counts = rows.sum(axis=1)
        expected = np.stack([weights[counts == n].sum(axis=0) for n in range(N + 1)])
        np.testing.assert_allclose(found.counts, expected, atol=1e-10)
    assert (found.pairs.size > 0) == (family != "urns")
    for y, parent in enumerate(model.model.scores.parent.T if found.pairs.size else ()):
        for j in np.flatnonzero(parent < N):
            both = rows[:, j] * rows[:, parent[j]]
            np.testing.assert_allclose(found.pairs[j, y], both @ weights[:, y], atol=1e-10)
