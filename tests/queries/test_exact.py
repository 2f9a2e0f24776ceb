"""Every query against the enumeration of all states, for every model and pattern of holes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from em_families import BY_EM
from enumeration import agreeing, all_states
from exchangeable import (
    EVM,
    BlockCounts,
    Count,
    ExchangeableClassifier,
    ExchangeableMixture,
    Transitions,
)

N = 7
STATES = all_states(N).astype(float)
BLOCKS = ("evidence", "welch", "independent", "full", [[0, 3], [1, 2, 4, 6], [5]])


def data(seed, n_rows=80):
    """Rows of two kinds, with correlated variables."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n_rows)
    strength = rng.beta(0.7, 0.7, size=(n_rows, 1))
    lean = np.where(kind[:, None] == 0, np.linspace(0.1, 0.9, N), np.linspace(0.9, 0.3, N))
    return (rng.random((n_rows, N)) < 0.5 * strength + 0.5 * lean).astype(float), kind


def fitted(name, seed):
    """A fitted model by name: its kind, and its blocks, family or statistic."""
    kind, which = name
    X, y = data(seed)
    if kind == "classifier":
        return ExchangeableClassifier(blocks=which).fit(X, np.array(["a", "b"])[y])
    if kind == "mixture":
        return ExchangeableMixture(3, blocks=which, random_state=seed, tol=1e-2).fit(X)
    if kind == "family":
        return ExchangeableMixture(2, family=which, random_state=seed, tol=1e-2).fit(X)
    return EVM(which).fit(X, alpha=0.2)


MODELS = [
    *(("classifier", blocks) for blocks in BLOCKS),
    *(("mixture", blocks) for blocks in BLOCKS),
    *(("family", name) for name in BY_EM),
    *(("evm", s) for s in (Count(N), BlockCounts([[0, 1, 2], [3, 4, 5, 6]]), Transitions(N))),
]
CACHE = {}


def model_and_joint(name, seed):
    """A model and its P(x, y) for all states, the latter from complete rows alone."""
    key = (str(name), seed)
    if key not in CACHE:
        model = fitted(name, seed)
        if name[0] == "evm":
            joint = np.exp(model.log_prob(STATES))[:, None]
        elif name[0] == "classifier":
            joint = np.exp(model.predict_joint_log_proba(STATES))
        else:
            posterior = model.predict_log_proba(STATES)
            joint = np.exp(posterior + model.score_samples(STATES)[:, None])
        CACHE[key] = model, joint
    return CACHE[key]


every_model = pytest.mark.parametrize("name", MODELS, ids=str)
evidences = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, np.nan]), min_size=N, max_size=N), min_size=1, max_size=5
).map(np.array)
seeds = st.integers(0, 2)
few = settings(max_examples=12, deadline=None)


def masses(joint, evidence):
    """P(x, y) of the states that agree with each row of evidence, zero elsewhere."""
    return [joint * agreeing(STATES, row)[:, None] for row in evidence]


@every_model
def test_all_states_sum_to_one(name):
    assert model_and_joint(name, 0)[1].sum() == pytest.approx(1.0, abs=1e-12)


@every_model
@given(evidence=evidences, seed=seeds)
@few
def test_probability_of_what_is_known(name, evidence, seed):
    model, joint = model_and_joint(name, seed)
    expected = [np.log(mass.sum()) for mass in masses(joint, evidence)]
    np.testing.assert_allclose(model.score_samples(evidence), expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(model.anomaly_score(evidence), -model.score_samples(evidence))
    if name[0] != "evm":
        posterior = [mass.sum(axis=0) / mass.sum() for mass in masses(joint, evidence)]
        np.testing.assert_allclose(model.predict_proba(evidence), posterior, atol=1e-10)


@every_model
@given(evidence=evidences, seed=seeds)
@few
def test_marginals(name, evidence, seed):
    model, joint = model_and_joint(name, seed)
    expected = [mass.sum(axis=1) @ STATES / mass.sum() for mass in masses(joint, evidence)]
    found = model.marginals(evidence)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    known = ~np.isnan(evidence)
    np.testing.assert_array_equal(found[known], evidence[known])
    np.testing.assert_allclose(model.impute(evidence, "marginal"), expected, atol=1e-10)


@every_model
@given(evidence=evidences, seed=seeds, data=st.data())
@few
def test_joint_distribution_of_a_few_variables(name, evidence, seed, data):
    query = data.draw(st.lists(st.integers(0, N - 1), min_size=1, max_size=3, unique=True))
    evidence[:, query] = np.nan
    model, joint = model_and_joint(name, seed)
    found = model.conditional(query, evidence)
    for row, mass in zip(found, masses(joint, evidence), strict=True):
        expected = np.zeros((2,) * len(query))
        np.add.at(expected, tuple(STATES[:, query].astype(int).T), mass.sum(axis=1) / mass.sum())
        np.testing.assert_allclose(row, expected, atol=1e-10)


@every_model
@given(evidence=evidences, seed=seeds)
@few
def test_most_probable_completion(name, evidence, seed):
    model, joint = model_and_joint(name, seed)
    found = model.most_probable(evidence)
    labels = model.classes_ if name[0] == "classifier" else np.arange(joint.shape[1])
    for at, mass in enumerate(masses(joint, evidence)):
        assert found.log_prob[at] == pytest.approx(np.log(mass.max()), abs=1e-9)
        state = np.flatnonzero((found.X[at] == STATES).all(axis=1))[0]
        y = np.flatnonzero(labels == found.y[at])[0]
        assert mass[state, y] == pytest.approx(mass.max(), rel=1e-9)
        for y, label in enumerate(labels):
            given_class = model.most_probable(evidence[at], label=label)
            assert given_class.log_prob == pytest.approx(np.log(mass[:, y].max()), abs=1e-9)
            assert given_class.y == label
    np.testing.assert_array_equal(model.impute(evidence), found.X)


@every_model
@given(evidence=evidences, seed=seeds)
@few
def test_information_about_the_class(name, evidence, seed):
    model, joint = model_and_joint(name, seed)

    def entropy(p):
        p = p[p > 0] / p.sum()
        return -(p * np.log(p)).sum()

    found = model.information_gain(evidence)
    for row, mass in zip(found, masses(joint, evidence), strict=True):
        for j in range(N):
            after = 0.0
            for value in (0, 1):
                part = mass[STATES[:, j] == value].sum(axis=0)
                after += part.sum() / mass.sum() * entropy(part) if part.sum() > 0 else 0.0
            assert row[j] == pytest.approx(entropy(mass.sum(axis=0)) - after, abs=1e-9)


@every_model
@given(evidence=evidences, seed=seeds, target=st.integers(0, N - 1))
@few
def test_information_about_a_variable(name, evidence, seed, target):
    model, joint = model_and_joint(name, seed)
    found = model.information_gain(evidence, target=target)
    for row, mass in zip(found, masses(joint, evidence), strict=True):
        p = mass.sum(axis=1) / mass.sum()
        for j in range(N):
            pair = np.zeros((2, 2))
            np.add.at(pair, (STATES[:, target].astype(int), STATES[:, j].astype(int)), p)
            independent = pair.sum(axis=1, keepdims=True) * pair.sum(axis=0)
            seen = pair > 0
            information = (pair[seen] * np.log(pair[seen] / independent[seen])).sum()
            expected = 0.0 if j == target else information
            assert row[j] == pytest.approx(expected, abs=1e-9)


@every_model
@pytest.mark.parametrize("evidence", [None, {1: 1, 4: 0}])
def test_samples_have_the_right_frequencies(name, evidence):
    model, joint = model_and_joint(name, 0)
    row = np.full(N, np.nan)
    for variable, value in (evidence or {}).items():
        row[variable] = value
    drawn = model.sample(20_000, evidence, random_state=0)
    X = drawn if name[0] == "evm" else drawn[0]
    mass = masses(joint, [row])[0].sum(axis=1)
    seen = np.bincount((X @ (1 << np.arange(N)[::-1])).astype(int), minlength=2**N)
    assert seen[mass == 0].sum() == 0
    expected = 20_000 * mass[mass > 0] / mass.sum()
    large = expected >= 5
    observed = np.append(seen[mass > 0][large], seen[mass > 0][~large].sum())
    wanted = np.append(expected[large], expected[~large].sum())
    keep = wanted > 0
    assert chisquare(observed[keep], wanted[keep]).pvalue > 1e-3


@every_model
def test_imputed_draws_have_the_right_frequencies(name):
    model, joint = model_and_joint(name, 0)
    row = np.array([1.0, np.nan, 0.0, np.nan, np.nan, 1.0, 0.0])
    draws = model.impute(np.repeat(row[None], 4000, axis=0), "draw", random_state=0)
    mass = masses(joint, [row])[0].sum(axis=1)
    states = STATES[mass > 0]
    seen = np.array([(draws == state).all(axis=1).sum() for state in states])
    assert seen.sum() == 4000
    assert chisquare(seen, 4000 * mass[mass > 0] / mass.sum()).pvalue > 1e-3


def test_classes_of_samples_follow_the_posterior():
    model, joint = model_and_joint(("classifier", "evidence"), 0)
    _, labels = model.sample(20_000, {0: 1, 6: 0}, random_state=0)
    row = np.full(N, np.nan)
    row[[0, 6]] = 1, 0
    posterior = masses(joint, [row])[0].sum(axis=0)
    seen = [(labels == label).sum() for label in model.classes_]
    assert chisquare(seen, 20_000 * posterior / posterior.sum()).pvalue > 1e-3


def test_large_blocks_do_not_overflow():
    """A block of 20,000 variables, half of them not known."""
    n = 20_000
    rng = np.random.default_rng(0)
    X = (rng.random((30, n)) < rng.random((30, 1))).astype(float)
    model = ExchangeableMixture(1, blocks="full", random_state=0).fit(X)
    X[rng.random(X.shape) < 0.5] = np.nan
    assert np.isfinite(model.score_samples(X)).all()
    marginals = model.marginals(X)
    assert ((marginals >= 0) & (marginals <= 1)).all()
    # Summing a block out entirely leaves nothing to know.
    assert model.score_samples(np.full((1, n), np.nan)) == pytest.approx(0.0, abs=1e-9)
