"""What every statistic promises (Proposition 3.1), checked against listing all states."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from enumeration import agreeing, all_states
from exchangeable import Runs, Statistic
from statistic_cases import CASES, any_case, any_evidence


@pytest.fixture(params=CASES, ids=repr)
def case(request):
    return request.param


def listed_values(case, states):
    return [case.value_of(x) for x in states]


def listed_log_sizes(case, evidence):
    """log |S_{t,e}| by listing."""
    states = all_states(case.statistic.n_variables, case.statistic.n_symbols)
    index = case.statistic.index(states[agreeing(states, evidence)])
    with np.errstate(divide="ignore"):
        return np.log(np.bincount(index, minlength=case.statistic.n_values))


def test_values_are_the_distinct_values_of_T_in_order(case):
    states = all_states(case.statistic.n_variables, case.statistic.n_symbols)
    expected = sorted(set(listed_values(case, states)))
    np.testing.assert_array_equal(case.statistic.values, expected)
    assert case.statistic.n_values == len(expected)


def test_index_is_the_position_of_T(case):
    states = all_states(case.statistic.n_variables, case.statistic.n_symbols)
    values = case.statistic.values[case.statistic.index(states)]
    np.testing.assert_array_equal(values, listed_values(case, states))


def test_position_inverts_values(case):
    positions = [case.statistic.position(t) for t in case.statistic.values]
    assert positions == list(range(case.statistic.n_values))


def test_sizes_of_many_partial_assignments_are_those_of_each(case):
    statistic, rng = case.statistic, np.random.default_rng(0)
    rows = rng.integers(-1, statistic.n_symbols, size=(7, statistic.n_variables))
    each = [statistic._log_sizes(row) for row in rows]
    np.testing.assert_allclose(statistic._log_sizes_each(rows), each, rtol=1e-10, atol=1e-10)
    assert statistic._log_sizes_each(rows[:0]).shape == (0, statistic.n_values)


def test_sizes_beyond_what_a_float_can_count():
    runs = Runs(1100)
    unknown = np.full((1, 1100), -1)
    np.testing.assert_array_equal(runs._log_sizes_each(unknown), [runs._log_sizes(unknown[0])])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_log_sizes_count_the_sets(data):
    case = data.draw(any_case())
    evidence = data.draw(any_evidence(case.statistic))
    expected = listed_log_sizes(case, evidence)
    np.testing.assert_allclose(case.statistic.log_sizes(evidence), expected, rtol=1e-10, atol=1e-10)
    as_dict = {j: int(e) for j, e in enumerate(evidence) if not np.isnan(e)}
    np.testing.assert_array_equal(
        case.statistic.log_sizes(as_dict), case.statistic.log_sizes(evidence)
    )


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_complete_and_sample_construct_members_or_refuse(data):
    case = data.draw(any_case())
    statistic = case.statistic
    evidence = data.draw(any_evidence(statistic))
    for t, log_size in zip(statistic.values, listed_log_sizes(case, evidence), strict=True):
        if log_size == -np.inf:
            with pytest.raises(ValueError, match="agrees with the evidence"):
                statistic.complete(t, evidence)
            with pytest.raises(ValueError, match="agrees with the evidence"):
                statistic.sample(t, evidence)
            continue
        found = np.vstack([statistic.complete(t, evidence), statistic.sample(t, evidence, size=3)])
        assert agreeing(found, evidence).all()
        assert (statistic.index(found) == statistic.position(t)).all()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_log_masses_equal_the_plain_version(data):
    statistic = data.draw(any_case()).statistic
    evidence = data.draw(any_evidence(statistic))
    weight = st.one_of(st.just(-np.inf), st.floats(-5, 5))
    weights = data.draw(st.lists(weight, min_size=statistic.n_values, max_size=statistic.n_values))
    assigned = np.where(np.isnan(evidence), -1, evidence).astype(int)
    plain = Statistic._log_masses(statistic, np.array(weights), assigned)
    np.testing.assert_allclose(statistic.log_masses(weights, evidence), plain, rtol=1e-9, atol=1e-9)


def test_sample_is_uniform(case):
    """Chi-square over all members of the largest set, with part of the variables assigned."""
    statistic = case.statistic
    evidence = np.full(statistic.n_variables, np.nan)
    if statistic.n_variables > 3:
        evidence[1] = 1
    states = all_states(statistic.n_variables, statistic.n_symbols)
    states = states[agreeing(states, evidence)]
    index = statistic.index(states)
    position = np.bincount(index).argmax()
    members = states[index == position]
    draws = statistic.sample(statistic.values[position], evidence, size=4000, random_state=7)
    key = statistic.n_symbols ** np.arange(statistic.n_variables)
    order = {int(member @ key): i for i, member in enumerate(members)}
    seen = np.bincount([order[int(x @ key)] for x in draws.astype(int)], minlength=len(members))
    assert seen.sum() == 4000
    if len(members) > 1:
        assert chisquare(seen).pvalue > 1e-3


def test_sample_follows_the_seed(case):
    t = case.statistic.values[-1]
    first = case.statistic.sample(t, size=5, random_state=3)
    np.testing.assert_array_equal(first, case.statistic.sample(t, size=5, random_state=3))
    assert first.shape == (5, case.statistic.n_variables)
    assert case.statistic.sample(t).shape == (case.statistic.n_variables,)
    legacy = np.random.RandomState(3)
    assert case.statistic.sample(t, size=0, random_state=legacy).shape[0] == 0


def test_statistics_can_be_pickled(case):
    copy = pickle.loads(pickle.dumps(case.statistic))
    np.testing.assert_array_equal(copy.log_sizes(), case.statistic.log_sizes())


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([[0.5] * 5], ValueError, r"X\[0, 0\] is 0.5; expected 0 or 1"),
        ([[0, 1, 2, 0, 0]], ValueError, r"X\[0, 2\] is 2; expected 0 or 1"),
        ([[0, 1, np.nan, 0, 0]], ValueError, r"X\[0, 2\] is nan"),
        ([[0, 1]], ValueError, "X has 2 columns, expected 5"),
        ([0, 1, 0, 1, 0], ValueError, r"two dimensions, got 1; for a single row"),
        ([["a"] * 5], TypeError, "X must hold numbers"),
        ([["1"] * 5], TypeError, "X must hold numbers"),
        (np.ones((1, 5), complex), TypeError, "X must hold numbers, got dtype complex128"),
        (np.zeros((1, 5), "datetime64[s]"), TypeError, "X must hold numbers, got dtype datetime"),
        (np.array([["1", 0, 0, 0, 0]], object), TypeError, "X must hold numbers, got '1'"),
        ([[10**400, 0, 0, 0, 0]], ValueError, r"X\[0, 0\] is inf"),
        ([[0, 1], [1]], ValueError, "X is not an array"),
    ],
)
def test_index_refuses_bad_rows(bad, error, message):
    with pytest.raises(error, match=message):
        CASES[1].statistic.index(bad)


@pytest.mark.parametrize(
    ("evidence", "error", "message"),
    [
        ({9: 1}, ValueError, r"variable 9; variables are numbered 0\.\.4"),
        ({-1: 1}, ValueError, "variable -1"),
        ({"rain": 1}, ValueError, "'rain'"),
        ({0: 2}, ValueError, r"evidence\[0\] is 2; expected 0 or 1"),
        ({0: np.nan}, ValueError, r"evidence\[0\] is nan"),
        ({0: "yes"}, TypeError, r"evidence\[0\] must hold numbers"),
        ({0: "1"}, TypeError, r"evidence\[0\] must hold numbers"),
        ({0: 1j}, TypeError, r"evidence\[0\] must hold numbers"),
        ({0: 10**400}, ValueError, r"evidence\[0\] is 1000"),
        ([0, 1], ValueError, r"evidence has shape \(2,\), expected \(5,\)"),
        ([0, 1, 3, 0, 0], ValueError, r"evidence\[2\] is 3"),
    ],
)
def test_bad_evidence_is_named(evidence, error, message):
    with pytest.raises(error, match=message):
        CASES[1].statistic.log_sizes(evidence)


@pytest.mark.parametrize("t", [6, -1, 1.5, "two", [1, 2], [[1], [1, 2]], None])
def test_a_value_that_T_never_takes_is_refused(t):
    with pytest.raises(ValueError, match="is not a value of Count"):
        CASES[1].statistic.complete(t)


def test_bad_log_weights_are_refused():
    with pytest.raises(ValueError, match=r"log_weights has shape \(2,\), expected \(6,\)"):
        CASES[1].statistic.log_masses([0.0, 0.0])
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=rf"log_weights\[1\] is {bad}"):
            CASES[1].statistic.log_masses([0.0, bad, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), ("a", TypeError), (1.5, TypeError)])
def test_bad_seeds_are_named(seed, error):
    with pytest.raises(error, match=f"random_state is {seed!r}; expected an integer"):
        CASES[1].statistic.sample(2, random_state=seed)
