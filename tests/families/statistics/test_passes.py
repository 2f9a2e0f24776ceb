"""A pass over cells, against the plain definition."""

import numpy as np
import pytest

from exchangeable import Runs, Transitions
from exchangeable.data.examples import Examples
from exchangeable.data.observed import as_observed
from exchangeable.families.common.log_linear.model import settle
from exchangeable.families.statistics import passes
from exchangeable.families.statistics.values import values_of

READERS = [(np.arange(6), Runs(6)), (np.array([9, 7, 8, 6]), Transitions(4))]


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("others", [False, True])
def test_a_pass_agrees_with_the_definition(holes, known, others, monkeypatch):
    monkeypatch.setattr("exchangeable.data.examples.PART_STEPS", 1000)  # rows are cut
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (700, 10)).astype(float)
    observed = as_observed(np.where(rng.random(X.shape) < holes, np.nan, X), 0.0)
    clamp = rng.integers(-1, 3, 700) if known else np.empty(0, dtype=np.int64)
    examples = Examples(observed.ones, rng.random(700), clamp, holes=observed.holes)
    rest = -rng.random((700, 3)) if others else np.empty((0, 0))
    log_prior = np.log(rng.dirichlet(np.ones(3)))
    urns = [np.log(rng.dirichlet(np.ones(s.n_values), 3)).T - 2.0 for _, s in READERS]
    urns[0][2, 1] = -np.inf
    values = values_of(examples, READERS)
    joint = log_prior + sum(each.scores(own) for each, own in zip(values, urns, strict=True))
    expected, posterior = settle(joint + rest if others else joint, examples, log_prior)
    mass = examples.weights[:, None] * posterior
    found = [passes.over_cells(examples, values, urns, rest, log_prior, n) for n in (1, 3)]
    assert found[0][0] == found[1][0] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found[0][1], posterior, atol=1e-13)
    for number, (each, own) in enumerate(zip(values, urns, strict=True)):
        np.testing.assert_array_equal(found[0][2][number], found[1][2][number])
        np.testing.assert_allclose(found[0][2][number], each.histograms(mass, own), atol=1e-11)
