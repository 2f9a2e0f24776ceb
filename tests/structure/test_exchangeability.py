"""`exchangeability_report`: valid where variables are exchangeable, powerful where they are not."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import kstest

from exchangeable import EVM, Count, exchangeability_report


def exchangeable_rows(rng, n, m, weights=None):
    weights = rng.dirichlet(np.ones(m + 1)) if weights is None else weights
    return EVM.from_weights(Count(m), weights).sample(n, random_state=rng)


@pytest.mark.parametrize("m", [2, 3, 4, 9])
def test_p_values_are_uniform_under_exchangeability(m):
    rng = np.random.default_rng(m)
    weights = rng.dirichlet(np.ones(m + 1))
    tests = [
        exchangeability_report(exchangeable_rows(rng, 400, m, weights)).tests[0] for _ in range(300)
    ]
    assert kstest([test.p_means for test in tests], "uniform").pvalue > 1e-3
    if m > 2:
        assert kstest([test.p_covariances for test in tests], "uniform").pvalue > 1e-3
    # The test of variances is conservative, and the overall one keeps its level.
    for level in (0.05, 0.2):
        assert np.mean([test.p_variances < level for test in tests]) < level + 0.06
        assert np.mean([test.p_value < level for test in tests]) < level + 0.06


def test_unequal_means_are_seen():
    rng = np.random.default_rng(0)
    X = rng.random((500, 5)) < [0.3, 0.3, 0.3, 0.3, 0.5]
    report = exchangeability_report(X)
    assert report.tests[0].p_means < 1e-6
    assert report.tests[0].p_variances < 1e-3
    assert report.p_value < 1e-5


def test_means_on_both_sides_of_a_half_have_equal_variances():
    rng = np.random.default_rng(1)
    X = rng.random((2000, 4)) < [0.3, 0.7, 0.3, 0.7]
    test = exchangeability_report(X).tests[0]
    assert test.p_means < 1e-6
    assert test.p_variances > 0.01


def test_unequal_covariances_are_seen_though_each_variable_has_the_same_sum_of_them():
    """Two pairs of twins: only the pairwise part of the test can tell."""
    rng = np.random.default_rng(2)
    pairs = rng.random((1000, 2)) < 0.5
    test = exchangeability_report(pairs[:, [0, 0, 1, 1]]).tests[0]
    assert test.p_covariances < 1e-6
    assert test.p_means > 1e-3


def test_one_variable_that_goes_its_own_way_is_seen():
    rng = np.random.default_rng(3)
    X = rng.random((1000, 6)) < np.where(rng.random((1000, 1)) < 0.5, 0.8, 0.2)
    X[:, 0] = rng.random(1000) < 0.5
    assert exchangeability_report(X).tests[0].p_covariances < 1e-6
    assert exchangeability_report(X, [[0], [1, 2, 3, 4, 5]]).p_value > 1e-3


def test_averages_and_the_lower_bound():
    X = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    test = exchangeability_report(X).tests[0]
    assert np.isclose(test.mean, 1 / 3)
    assert np.isclose(test.variance, 2 / 9)
    assert np.isclose(test.covariance, test.covariance_bound)
    assert np.isclose(test.covariance_bound, -1 / 9)


def test_blocks_are_corrected_for_their_number():
    rng = np.random.default_rng(4)
    X = exchangeable_rows(rng, 200, 12)
    report = exchangeability_report(X, np.arange(12).reshape(4, 3))
    assert len(report.tests) == 4
    assert np.isclose(report.p_value, min(1, 4 * min(test.p_value for test in report.tests)))
    assert "overall p-value" in str(report)


def test_sparse_input_and_large_blocks_give_the_same(monkeypatch):
    X = exchangeable_rows(np.random.default_rng(5), 300, 6)
    dense = exchangeability_report(X)
    assert exchangeability_report(sp.csr_matrix(X)).p_value == dense.p_value
    monkeypatch.setattr("exchangeable.structure.exchangeability.MAX_PAIRWISE", 3)
    assert 0 <= exchangeability_report(X).p_value <= 1


@pytest.mark.parametrize("X", [np.zeros((5, 3)), np.ones((5, 3)), np.eye(5)[:, :1]])
def test_constant_columns_reject_nothing(X):
    assert exchangeability_report(X).p_value == 1


def test_bad_input():
    with pytest.raises(ValueError, match=r"X contains 2\.0; expected 0 and 1 only"):
        exchangeability_report([[0, 2], [1, 1]])
    with pytest.raises(ValueError, match="variable 1 is in 0 blocks"):
        exchangeability_report([[0, 1], [1, 1]], [[0]])
    twice = sp.csr_matrix(([1, 1], [0, 0], [0, 2, 2]), shape=(2, 2))
    with pytest.raises(ValueError, match=r"X contains 2\.0"):
        exchangeability_report(twice)
    assert twice.nnz == 2
    with pytest.raises(TypeError, match="a partition must be a list of blocks of variables, got 5"):
        exchangeability_report([[0, 1], [1, 1]], 5)
    with pytest.raises(ValueError, match="minimum of 2"):
        exchangeability_report([[0, 1]])
