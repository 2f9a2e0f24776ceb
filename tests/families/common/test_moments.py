"""Moments summed in lanes: equal to the last bit to sums taken one number at a time."""

import numpy as np
import pytest
import scipy.sparse as sp

from exchangeable.data.examples import prepared
from exchangeable.data.rows import as_rows
from exchangeable.families.common import moments
from exchangeable.families.common.log_linear import linear_kernels
from exchangeable.families.common.moments import add_parts, moments_job, sum_moments

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
def test_lanes_add_as_single_numbers_do(n_classes, kind, density):
    weights = weights_of(kind)
    X, examples = examples_of(density, weights)
    assert (examples.codes is None) == (density < 0.5)
    assert (examples.columns is None) == (density > 0.5)
    posterior = np.random.default_rng(4).dirichlet(np.full(n_classes, 0.1), SHAPE[0])
    sum_moments(examples, posterior)  # rows are listed when they are asked for again
    found = sum_moments(examples, posterior, n_jobs=1)
    mass = weights[:, None] * posterior
    np.testing.assert_allclose(found, [X.T @ mass, X.T @ (mass * posterior)], rtol=1e-12)
    parts = []
    for span in moments_job(examples, posterior, 2).tasks:
        if examples.codes is not None:
            sums = np.zeros(examples.codes.sums_shape(2 * n_classes))
            rest = (*span, weights, np.ascontiguousarray(posterior.T), sums)
            linear_kernels.add_moments_coded(examples.codes.codes, *rest)
            sums = examples.codes.fold(sums)
        else:
            sums = np.zeros((SHAPE[1], 2 * n_classes))
            rest = (*span, weights, np.ascontiguousarray(posterior.T), sums)
            columns = examples.columns
            linear_kernels.add_moments_by_column(columns.first_one, columns.row, *rest)
        parts.append(sums)
    whole = add_parts(parts).reshape(-1, 2, n_classes)
    np.testing.assert_array_equal(found, np.moveaxis(whole, 1, 0))


def test_rows_read_once_or_too_many_are_not_listed(monkeypatch):
    _, examples = examples_of(0.7, weights_of("ones"))
    posterior = np.full((SHAPE[0], 2), 0.5)
    once = sum_moments(examples, posterior)
    assert list(examples.derived.values()) == [{}]
    monkeypatch.setattr(moments, "MOST_LISTED", 1)
    np.testing.assert_array_equal(sum_moments(examples, posterior), once)
    assert list(examples.derived.values()) == [{}]
    monkeypatch.undo()
    np.testing.assert_array_equal(sum_moments(examples, posterior), once)
    assert [len(lists) > 0 for lists in examples.derived.values()] == [True]
