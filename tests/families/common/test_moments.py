"""Moments summed in lanes."""

import numpy as np
import pytest
import scipy.sparse as sp

from exchangeable.data.examples import prepared
from exchangeable.data.rows import as_rows
from exchangeable.families.common import moments
from exchangeable.families.common.moments import moments_job, sum_moments

SHAPE = 2300, 32
NO_CLAMP = np.empty(0, dtype=np.int64)


def examples_of(density, weights):
    rng = np.random.default_rng(3)
    rate = density * rng.uniform(0.2, 1.2, SHAPE[1])
    X = (rng.random(SHAPE) < rate).astype(np.uint8)
    return X, prepared(as_rows(sp.csr_matrix(X), None), weights, NO_CLAMP, None)


def weights_of(kind):
    weights = np.ones(SHAPE[0])
    if kind == "some":
        weights[1500:1510] = 2.5
    return weights


@pytest.mark.parametrize("n_classes", [1, 8, 20, 27])
@pytest.mark.parametrize("kind", ["ones", "some"])
@pytest.mark.parametrize("density", [0.7, 0.1])
def test_moments_are_sums_over_the_rows_with_a_variable_on(n_classes, kind, density):
    weights = weights_of(kind)
    X, examples = examples_of(density, weights)
    assert (examples.codes is None) == (density < 0.5)
    assert (examples.columns is None) == (density > 0.5)
    posterior = np.random.default_rng(4).dirichlet(np.full(n_classes, 0.1), SHAPE[0])
    found = sum_moments(examples, posterior, n_jobs=1)
    mass = weights[:, None] * posterior
    np.testing.assert_allclose(found, [X.T @ mass, X.T @ (mass * posterior)], rtol=1e-12)
    np.testing.assert_array_equal(sum_moments(examples, posterior, n_jobs=3), found)


@pytest.mark.parametrize("density", [0.7, 0.1])
def test_rows_may_be_cut_as_well_as_classes(monkeypatch, density):
    _, examples = examples_of(density, weights_of("some"))
    posterior = np.random.default_rng(4).dirichlet(np.full(20, 0.1), SHAPE[0])
    whole = sum_moments(examples, posterior)
    monkeypatch.setattr("exchangeable.data.examples.PART_STEPS", 1)
    monkeypatch.setattr("exchangeable.data.examples.WORTH_SUMMING", 1)
    assert len(moments_job(examples, posterior, 2).tasks) > 3
    np.testing.assert_allclose(sum_moments(examples, posterior), whole, rtol=1e-13)


def test_many_rows_are_not_listed(monkeypatch):
    _, examples = examples_of(0.7, weights_of("ones"))
    posterior = np.random.default_rng(4).dirichlet(np.full(20, 0.1), SHAPE[0])
    monkeypatch.setattr(moments, "MOST_LISTED", 1)
    unlisted = sum_moments(examples, posterior)
    assert not examples.derived
    monkeypatch.undo()
    np.testing.assert_allclose(sum_moments(examples, posterior), unlisted, rtol=1e-13)
    assert len(examples.derived) == 1


def test_no_rows_have_moments_of_zero():
    rows = as_rows(sp.csr_matrix((0, SHAPE[1]), dtype=np.uint8), None)
    examples = prepared(rows, np.empty(0), NO_CLAMP, None)
    assert not sum_moments(examples, np.empty((0, 20))).any()
