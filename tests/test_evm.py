"""EVM against listing all states, and the paper's own statements about it."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from enumeration import agreeing, all_states
from exchangeable import EVM, CategoricalCounts, Count, Transitions
from statistic_cases import CASES, any_case, any_evidence


@st.composite
def components(draw):
    """A component with random weights, some of them zero."""
    statistic = draw(any_case()).statistic
    size = statistic.n_values
    raw = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any))
    return EVM.from_weights(statistic, np.array(raw) / sum(raw))


def listed(evm):
    """All states and their probabilities, by Theorem 2.3 and counting."""
    states = all_states(evm.statistic.n_variables, evm.statistic.n_symbols)
    index = evm.statistic.index(states)
    return states, evm.weights_[index] / np.bincount(index)[index]


@settings(max_examples=100, deadline=None)
@given(components())
def test_theorem_2_3_probabilities_sum_to_one(evm):
    states, expected = listed(evm)
    probabilities = np.exp(evm.log_prob(states))
    np.testing.assert_allclose(probabilities, expected, rtol=1e-9)
    np.testing.assert_allclose(probabilities.sum(), 1, rtol=1e-9)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_proposition_3_1_marginals_conditionals_and_maxima(data):
    evm = data.draw(components())
    evidence = data.draw(any_evidence(evm.statistic))
    states, p = listed(evm)
    agree = agreeing(states, evidence)
    total = p[agree].sum()
    np.testing.assert_allclose(np.exp(evm.log_marginal(evidence)), total, rtol=1e-9)
    np.testing.assert_allclose(np.exp(evm.log_prob([evidence])), [total], rtol=1e-9)
    if total == 0:
        for query in (evm.marginals, evm.map, lambda e: evm.sample(1, e)):
            with pytest.raises(ValueError, match="probability zero"):
                query(evidence)
        return
    symbols = np.arange(evm.statistic.n_symbols)
    expected = (p[agree][:, None, None] * (states[agree][:, :, None] == symbols)).sum(axis=0)
    expected /= total
    marginals = evm.marginals(evidence)
    if evm.statistic.n_symbols == 2:
        expected = expected[:, 1]
    np.testing.assert_allclose(marginals, expected, rtol=1e-8, atol=1e-12)
    x, log_probability = evm.map(evidence)
    assert agreeing(x[None], evidence).all()
    np.testing.assert_allclose(np.exp(log_probability), p[agree].max(), rtol=1e-9)
    np.testing.assert_allclose(evm.log_prob([x]), log_probability, rtol=1e-9)
    assert agreeing(evm.sample(4, evidence, random_state=0), evidence).all()


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_sample_follows_the_distribution(case):
    size = case.statistic.n_values
    weights = np.arange(1, size + 1) / np.arange(1, size + 1).sum()
    evm = EVM.from_weights(case.statistic, weights)
    evidence = np.full(case.statistic.n_variables, np.nan)
    if case.statistic.n_variables > 2:
        evidence[0] = 0
    states, p = listed(evm)
    agree = agreeing(states, evidence)
    states, p = states[agree], p[agree] / p[agree].sum()
    key = evm.statistic.n_symbols ** np.arange(case.statistic.n_variables)
    order = {int(state @ key): i for i, state in enumerate(states)}
    n = min(200 * len(states), 20_000)
    draws = evm.sample(n, evidence, random_state=11).astype(int)
    seen = np.bincount([order[int(x @ key)] for x in draws], minlength=len(states))
    common = p * n >= 5
    if common.sum() > 1:
        expected = p[common] * seen[common].sum() / p[common].sum()
        assert chisquare(seen[common], expected).pvalue > 1e-3


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_theorem_3_2_weights_are_relative_frequencies(data):
    case = data.draw(any_case())
    rows = data.draw(st.integers(1, 20))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    X = rng.integers(0, case.statistic.n_symbols, size=(rows, case.statistic.n_variables))
    evm = EVM(case.statistic).fit(X)
    counts = np.bincount(case.statistic.index(X), minlength=case.statistic.n_values)
    np.testing.assert_allclose(evm.weights_, counts / rows, rtol=1e-12)
    # No other weights give these rows a higher likelihood.
    other = EVM(case.statistic).fit(X, alpha=0.3)
    assert evm.log_prob(X).sum() >= other.log_prob(X).sum() - 1e-9


def test_example_2_4_three_coins():
    """Four urns with 0 to 3 black balls: P(x) = w_t / C(3, t)."""
    w = [0.1, 0.2, 0.3, 0.4]
    coins = EVM.from_weights(Count(3), w)
    for x in all_states(3):
        t = int(x.sum())
        assert math.isclose(math.exp(coins.log_prob([x])[0]), w[t] / math.comb(3, t))
    # The first ball is black with probability Σ_t w_t · t / 3, and draws are without replacement.
    np.testing.assert_allclose(coins.marginals(), [2 / 3] * 3)
    np.testing.assert_allclose(
        coins.marginals({0: 1})[1], (0.3 * 1 / 3 + 0.4) / (0.2 / 3 + 0.3 * 2 / 3 + 0.4)
    )


@pytest.mark.parametrize("n", [2, 3, 10, 100])
def test_proposition_3_3_negative_correlation_reaches_its_lower_bound(n):
    """With the count fixed the covariance is exactly −Var / (n − 1), the least there is."""
    weights = np.zeros(n + 1)
    weights[n // 2] = 1
    evm = EVM.from_weights(Count(n), weights)
    mean = evm.marginals()[0]
    covariance = mean * evm.marginals({0: 1})[1] - mean**2
    np.testing.assert_allclose(covariance, -mean * (1 - mean) / (n - 1), rtol=1e-9)


@pytest.mark.parametrize("n", [2, 5, 50])
def test_positive_correlation_up_to_one(n):
    evm = EVM.from_weights(Count(n), np.r_[0.5, np.zeros(n - 1), 0.5])
    np.testing.assert_allclose(evm.marginals({0: 1}), 1)
    np.testing.assert_allclose(evm.marginals({0: 0}), 0, atol=1e-15)


def test_fifty_thousand_variables():
    rng = np.random.default_rng(0)
    X = rng.random((20, 50_000)) < 0.1
    assert np.isfinite(EVM(Count(50_000)).fit(X, alpha=0.1).log_prob(X)).all()
    evm = EVM(Count(50_000)).fit(X)
    counts = X.sum(axis=1)
    expected = (counts * (counts - 1)).sum() / counts.sum() / 49_999
    np.testing.assert_allclose(evm.marginals({0: 1})[1], expected, rtol=1e-8)
    assert evm.sample(3, random_state=0).shape == (3, 50_000)


def test_sample_weight_and_alpha():
    X = [[1, 1], [0, 0], [0, 1]]
    doubled = EVM(Count(2)).fit([*X, X[0]])
    weighted = EVM(Count(2)).fit(X, sample_weight=[2, 1, 1])
    np.testing.assert_allclose(weighted.weights_, doubled.weights_)
    np.testing.assert_allclose(EVM(Count(2)).fit([[1, 1]], alpha=0.5).weights_, [0.2, 0.2, 0.6])


def test_missing_entries_are_summed_out_row_by_row():
    evm = EVM(Transitions(4)).fit(np.random.default_rng(0).integers(0, 2, (50, 4)), alpha=1)
    X = np.array([[0, 1, np.nan, 1], [np.nan] * 4, [0, 1, 0, 1], [0, 1, np.nan, 1]])
    both = np.exp(evm.log_prob([[0, 1, 0, 1], [0, 1, 1, 1]])).sum()
    np.testing.assert_allclose(
        np.exp(evm.log_prob(X)), [both, 1, np.exp(evm.log_prob(X[2:3]))[0], both]
    )


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame([[1, 0], [pd.NA, 1]], dtype="Int64"),
        np.array([[1, 0], [None, 1]], dtype=object),
        np.ma.masked_array([[1, 0], [0, 1]], mask=[[False, False], [True, False]]),
    ],
    ids=["pandas.NA", "None", "masked"],
)
def test_every_way_to_write_a_missing_entry_is_summed_out(rows):
    evm = EVM(Count(2)).fit([[0, 1], [1, 1], [0, 0]])
    np.testing.assert_array_equal(evm.log_prob(rows), evm.log_prob([[1, 0], [np.nan, 1]]))
    with pytest.raises(ValueError, match=r"X\[1, 0\] is nan; expected 0 or 1"):
        evm.fit(rows)


def test_frames_must_keep_their_columns():
    X = pd.DataFrame({"first": [0, 1], "second": [1, 1], "third": [0, 0]})
    evm = EVM(Transitions(3)).fit(X)
    with pytest.raises(ValueError, match="feature names should match"):
        evm.log_prob(X[["third", "second", "first"]])


def test_frames_give_names_to_the_evidence():
    X = pd.DataFrame({"rain": [1, 1, 0], "wind": [1, 0, 0]})
    evm = EVM(Count(2)).fit(X)
    assert list(evm.feature_names_in_) == ["rain", "wind"]
    np.testing.assert_allclose(evm.marginals({"rain": 1}), evm.marginals({0: 1}))
    with pytest.raises(ValueError, match=r"unknown variables \['snow'\]; known are rain, wind"):
        evm.marginals({"snow": 1})
    with pytest.raises(ValueError, match="by its name and by its number"):
        evm.marginals({"rain": 1, 0: 0})


def test_it_is_a_scikit_learn_estimator():
    evm = EVM(Count(2)).fit([[0, 1]])
    assert not hasattr(clone(evm), "weights_")
    assert evm.get_params()["statistic"] is evm.statistic


def test_variables_with_more_values():
    evm = EVM.from_weights(CategoricalCounts(2, n_symbols=3), np.full(6, 1 / 6))
    np.testing.assert_allclose(evm.marginals().sum(axis=1), 1)
    np.testing.assert_allclose(evm.marginals({0: 2})[0], [0, 0, 1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(X=[]), ValueError, "two dimensions"),
        (dict(X=np.empty((0, 2))), ValueError, "X has no rows"),
        (dict(X=[[0, 2]]), ValueError, r"X\[0, 1\] is 2"),
        (dict(X=[[0, np.nan]]), ValueError, r"X\[0, 1\] is nan"),
        (dict(X=[[0, 1, 1]]), ValueError, "X has 3 columns, expected 2"),
        (dict(X=[[0, 1]], sample_weight=[-1]), ValueError, r"sample_weight\[0\] is -1"),
        (dict(X=[[0, 1]], sample_weight=[np.nan]), ValueError, r"sample_weight\[0\] is nan"),
        (dict(X=[[0, 1]], sample_weight=[1, 1]), ValueError, "sample_weight has shape"),
        (dict(X=[[0, 1]], sample_weight=[0]), ValueError, "sample_weight is zero for every row"),
        (dict(X=[[0, 1]], alpha=-1), ValueError, "alpha must be finite and at least 0, got -1"),
        (dict(X=[[0, 1]], alpha=np.inf), ValueError, "alpha must be finite"),
        (dict(X=[[0, 1]], alpha="much"), TypeError, "alpha must be a number, got 'much'"),
        (dict(X=[[0, 1]], alpha=1e300), ValueError, "alpha must be at most"),
        (dict(X=[[0, 1]], alpha=10**400), ValueError, "alpha is too large"),
        (dict(X=[[0, 1], [1, 1]], sample_weight=[1e308] * 2), ValueError, "sample_weight goes up"),
    ],
)
def test_fit_refuses_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        EVM(Count(2)).fit(**arguments)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.5], r"weights has shape \(2,\), expected \(3,\)"),
        ([0.5, 0.6, -0.1], r"weights\[2\] is -0.1"),
        ([0.5, 0.6, 0.1], "weights add up to 1.2"),
    ],
)
def test_known_weights_are_checked(weights, message):
    with pytest.raises(ValueError, match=message):
        EVM.from_weights(Count(2), weights)


def test_not_fitted_and_not_a_statistic():
    with pytest.raises(NotFittedError):
        EVM(Count(2)).log_prob([[0, 1]])
    with pytest.raises(TypeError, match="statistic must be a Statistic, got 3"):
        EVM(3).fit([[0, 1]])
    with pytest.raises(TypeError, match="statistic must be a Statistic, got 3"):
        EVM.from_weights(3, [1])
    with pytest.raises(TypeError, match="weights must hold numbers"):
        EVM.from_weights(Count(1), ["a", "b"])
    with pytest.raises(ValueError, match="n must be at least 0, got -1"):
        EVM.from_weights(Count(1), [0.5, 0.5]).sample(-1)
