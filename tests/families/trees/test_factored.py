"""Trees made of factors: near to what they are made from, counted honestly, and safe to read."""

import numpy as np
import pytest

from enumeration import all_states
from exchangeable.data.observed import Observed
from exchangeable.families import model_kinds
from exchangeable.families.mixture import Mixture
from exchangeable.families.trees import factored as factored_module
from exchangeable.families.trees import factoring, merging
from exchangeable.families.trees import factors as factors_module
from exchangeable.families.trees.compact import compact
from exchangeable.families.trees.factored import FactoredTrees
from exchangeable.families.trees.factoring import factored
from exchangeable.families.trees.factors import Factors
from exchangeable.families.trees.merging import merged
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.trees.moments import tree_moments
from exchangeable.storage.archive import ModelFileError

N, K, RANK = 7, 60, 2
STATES = Observed.from_symbols(all_states(N).astype(np.int8))


def factors(edges, seed=0):
    """Random factors, of two kinds of edges if there are any."""
    rng = np.random.default_rng(seed)
    kinds = 2 if edges else 1
    parent = np.empty((0, 0), dtype=np.int32)
    if edges:
        parent = np.array([[N, 0, 0, 1, 1, 2, N], [1, N, 1, 2, 3, 4, 5]], dtype=np.int32).T.copy()
    loadings = rng.normal(0, 0.7, (kinds, N * (2 if edges else 1), RANK + 1))
    if edges:
        for group in range(kinds):
            loadings[group, N:][parent[:, group] == N] = 0
    return Factors(
        loadings.astype(np.float32),
        rng.normal(0, 1, (RANK, K)).astype(np.float32),
        (np.arange(K) % kinds).astype(np.int32),
        parent,
    )


def mixture(edges):
    return Mixture(FactoredTrees(factors(edges)), np.full(K, -np.log(K)))


def divergence(of, to):
    """How far a mixture is from another, exactly."""
    here, there = of.log_evidence(STATES), to.log_evidence(STATES)
    return float(np.exp(here) @ (here - there))


@pytest.mark.parametrize("edges", [False, True])
def test_factors_make_distributions_and_keep_their_size(edges):
    model = mixture(edges).model
    np.testing.assert_allclose(np.exp(model.score(STATES)).sum(axis=0), 1)
    lines = 2 * N + 5 + 6 if edges else N
    assert model.n_parameters == lines * (RANK + 1) + RANK * K
    some = np.array([3, 8, 9])
    np.testing.assert_allclose(model.only(some).score(STATES), model.score(STATES)[:, some])
    other = FactoredTrees(factors(edges, 1)).only(some)
    both = FactoredTrees.stack([model, other])
    scores = np.concatenate([model.score(STATES), other.score(STATES)], axis=1)
    np.testing.assert_allclose(both.score(STATES), scores)
    again = model_kinds()[model.kind].read(model.encode())
    np.testing.assert_array_equal(again.score(STATES), model.score(STATES))


@pytest.mark.parametrize("edges", [False, True])
def test_what_is_not_kept_answers_as_what_is(edges, monkeypatch):
    """Models with too many log-odds make those of some classes at a time, for every question."""
    whole, lean = mixture(edges), mixture(edges)
    rng = np.random.default_rng(1)
    holes = Observed.from_symbols(rng.choice([-1, 0, 1], (40, N)).astype(np.int8))
    shares = rng.dirichlet(np.ones(K), 40)
    assert whole.model.score(holes).shape == (40, K)  # makes all natural parameters, and keeps them
    monkeypatch.setattr(factored_module, "MOST_KEPT", 100)
    monkeypatch.setattr(factors_module, "MADE_AT_ONCE", 40)
    kept = vars(whole.model)["_natural"]
    made = factors_module.Natural.of(factors(edges))
    for one, other in zip(kept, made, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    with monkeypatch.context() as all_kept:
        all_kept.setattr(factored_module, "MOST_KEPT", 1 << 20)
        expected = _answers(whole, holes, shares)
    for right, found in zip(expected, _answers(lean, holes, shares), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)
    assert "_natural" not in vars(lean.model)


def _answers(mixture, holes, shares):
    model = mixture.model
    return [
        model.score(STATES),
        model.score(holes),
        model.log_totals(),
        model.mean_marginals(holes, shares),
        model.marginals(holes, 7),
        *model.complete(holes, 7),
        model.draw(holes, 7, np.random.default_rng(2)),
    ]


@pytest.mark.parametrize("edges", [False, True])
def test_reading_makes_no_log_odds(edges):
    """A small file may stand for many of them: they would take far more memory than it does."""
    model = FactoredTrees.read(mixture(edges).model.encode())
    assert (model.n_classes, model.n_variables, len(model.partitions)) == (K, N, K)
    assert "_natural" not in vars(model)


@pytest.mark.parametrize("edges", [False, True])
def test_factors_of_the_right_rank_lose_nothing_and_of_a_smaller_one_little(edges):
    whole = mixture(edges)
    assert divergence(whole, factored(whole, RANK)) < 1e-4
    less = divergence(whole, factored(whole, 1))
    assert 1e-4 < less < 0.1


@pytest.mark.parametrize("edges", [False, True])
def test_steps_bring_factors_nearer_than_principal_components(edges, monkeypatch):
    whole = mixture(edges)
    nearer = divergence(whole, factored(whole, 1))
    monkeypatch.setattr(factoring, "STEPS", 0)
    assert nearer < 0.95 * divergence(whole, factored(whole, 1))


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("rank", [None, 1, 2])
def test_no_more_parameters_than_asked_for(edges, rank):
    whole, rng = mixture(edges), np.random.default_rng(0)
    for size in (150, 300):
        few = compact(whole, size, rank, rng)
        assert few.n_parameters <= size
        np.testing.assert_allclose(np.exp(few.log_evidence(STATES)).sum(), 1)
        assert divergence(whole, few) < 0.2
    assert compact(whole, 5, rank, rng) is None


def test_merging_keeps_the_chances_of_variables():
    whole = mixture(False)
    few = merged(whole, 10, np.random.default_rng(0))
    assert few.log_prior.size <= 10
    means = [np.exp(m.log_prior) @ m.model.own_marginals for m in (whole, few)]
    np.testing.assert_allclose(*means, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("loadings", lambda array: array.astype(np.float64)),
        ("loadings", lambda array: array * np.nan),
        ("points", lambda array: array[:1]),
        ("points", lambda array: array * np.float32(1e30)),
        ("group", lambda array: array + 1),
        ("group", lambda array: array - 1),
        ("group", lambda array: array[1:]),
        ("parent", lambda array: array[1:]),
        ("parent", lambda array: np.roll(np.arange(2 * N, dtype=np.int32) % N, 1).reshape(N, 2)),
    ],
)
def test_damaged_factors_are_refused(name, change):
    arrays = mixture(True).model.encode()
    with pytest.raises(ModelFileError):
        FactoredTrees.read({**arrays, name: change(arrays[name])})


def test_factors_that_would_grow_too_large_are_refused():
    many = 1 << 20
    arrays = Factors(
        np.zeros((1, 1 << 12, 1), dtype=np.float32),
        np.zeros((0, many), dtype=np.float32),
        np.zeros(many, dtype=np.int32),
        np.empty((0, 0), dtype=np.int32),
    )._asdict()
    with pytest.raises(ModelFileError, match="steps"):
        FactoredTrees.read(arrays)


def test_a_large_class_is_asked_alone(monkeypatch):
    monkeypatch.setattr(factored_module, "MOST_KEPT", 1)
    model = mixture(True).model
    assert [part.n_classes for _, part in model._parts()] == [1] * K
    alone = model.only(np.array([3]))
    np.testing.assert_allclose(alone.score(STATES), model.score(STATES)[:, 3:4])


def test_moments_are_those_of_all_rows():
    model = mixture(True).model
    chances, rows = np.exp(model.score(STATES)), all_states(N)
    means, pairs = tree_moments(model)
    np.testing.assert_allclose(means, rows.T @ chances)
    for y in (0, 1):
        child, parent = model.edges()[y].T
        both = (rows[:, child] * rows[:, parent]).T @ chances[:, y]
        np.testing.assert_allclose(pairs[child, y], both)


def test_trees_to_begin_with_are_far_apart():
    """Of five heaps of trees that are almost the same each is begun with one."""
    rng = np.random.default_rng(0)
    heaps = np.array([[0.1, 0.9][heap >> bit & 1] for heap in range(5) for bit in range(3)])
    chances = np.repeat(heaps.reshape(5, 3).T, 30, axis=1) + rng.normal(0, 1e-3, (3, 150))
    shares = np.full(150, 1 / 150)
    chosen = merging._far_apart(merging._Trees(chances, merging.NONE), shares, 5, rng)
    assert (chosen // 30).tolist() == [0, 1, 2, 3, 4]


def test_factors_are_near_to_trees_that_weigh_much():
    """One rank is enough for two trees; what many that weigh nothing are like does not matter."""
    rng = np.random.default_rng(0)
    slope = rng.normal(0, 1.5, (N, 40))
    model = TreeModel.make(-np.logaddexp(0, slope).sum(axis=0), slope)
    shares = np.full(40, 1e-6)
    shares[:2] = 0.5 - 19e-6
    whole = Mixture(model, np.log(shares))
    assert divergence(whole, factored(whole, 1)) < 1e-6
