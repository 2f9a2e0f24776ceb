"""EM: equal to the plain algorithm, never downhill, and ended by held-out rows of every family."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from em_families import BY_EM
from exchangeable import Blocks, ExchangeableMixture
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families import REGISTRY
from exchangeable.families.blocks.family import BlockFamily
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import StopRule, run_em
from exchangeable.fitting.runs import Runs, begin, families_of
from exchangeable.fitting.tasks import held_out, problem_of
from exchangeable.structure.learner import BlockLearner, BlockSettings
from exchangeable.structure.proposals import proposers
from made_rows import bound_clusters, clusters, examples_of, fit_mixture, topics, with_holes
from reference_em import structural_em

BLOCKS = ("evidence", "welch", "independent", "full", [[0, 3], [1, 2, 4], [5]])
ROUNDING = 1e-10


def both_algorithms(X, n_components, n_iterations, seed):
    """Return histories and blocks of the plain algorithm and of ours, from the same start."""
    posterior = np.random.default_rng(seed).dirichlet(np.ones(n_components), size=len(X))
    examples, member = merge_equal_rows(as_observed(X, None), np.ones(len(X)))
    first = np.array([np.flatnonzero(member == i)[0] for i in range(examples.rows.n_rows)])
    # Equal rows must have started with equal posteriors for the comparison to make sense.
    posterior = posterior[first][member]
    expected, labels = structural_em(X.astype(int), posterior, n_iterations)
    learner = BlockLearner("welch", BlockSettings(0.1, 0.1, 0.1, (1,)))
    family = BlockFamily(
        Problem(n_components, learner, examples=examples, alpha=0.1, relearns=True)
    )
    data, found = InMemory(examples), []
    state = begin(data, family, family.held(data, posterior[first]))
    learners = proposers(data, learner, labelled=False)
    rule = StopRule(-np.inf, n_iterations)
    state = run_em(data, family, state, rule, learners=learners, report=found.append)
    falling = np.flatnonzero(np.diff(expected) < 0)
    until = falling[0] + 1 if falling.size else len(expected)  # ours does not take a step down
    ours = [[each.labels for each in state.mixture.model.partitions] for state in found]
    return (expected[:until], labels[:until]), (state.history[:until], ours[:until])


@pytest.mark.parametrize("seed", range(3))
def test_em_equals_the_plain_algorithm(seed):
    """From the same start, through changes of blocks, to ten digits."""
    X = clusters(n_rows=300, n_variables=12, seed=seed)
    X = np.vstack([X, X[:80]])  # equal rows, which ours merges
    (expected, labels), (history, found) = both_algorithms(X, 4, 12, seed)
    np.testing.assert_allclose(history, expected, rtol=1e-10)
    np.testing.assert_array_equal(found, labels)
    assert len(expected) > 5


@pytest.mark.parametrize("seed", range(2))
def test_em_equals_the_plain_algorithm_on_sparse_wide_rows(seed):
    """Posteriors far below rounding still separate variables, as Welch's test has no scale."""
    X = topics(n_topics=5, seed=seed)
    (expected, labels), (history, found) = both_algorithms(X, 5, 12, seed)
    np.testing.assert_allclose(history, expected, rtol=1e-10)
    np.testing.assert_array_equal(found, labels)
    assert len(expected) > 4


def runs_of(model, X):
    """Return the runs of a mixture, through the families that come before."""
    spec, examples = REGISTRY[model.family], examples_of(X)
    problem = problem_of(model, spec, X.shape[1], range(model.n_components), labelled=False)
    problem = replace(problem, examples=examples)
    rule = StopRule(model.tol, model.max_iter)
    return Runs(spec, problem, InMemory(examples), rule, model.init, [np.random.default_rng(0)])


def followed(runs, monkeypatch):
    """Run EM, and return the families it went through, each with its states in turn."""
    families = families_of(runs.spec, runs.problem)
    monkeypatch.setattr("exchangeable.fitting.runs.families_of", lambda spec, problem: families)
    states = [[] for _ in families]
    runs.run(0, report=lambda state: states[state.stage].append(state))
    return list(zip(families, states, strict=True))


def log_prior_density(model, pseudo_counts):
    """Return Σ a·log q over the components, their blocks and counts."""
    probabilities = [np.concatenate(blocks) for blocks in model.count_probabilities()]
    return sum(a @ np.log(q) for a, q in zip(pseudo_counts, probabilities, strict=True))


def pseudo_counts_of(model, X, alpha, pooling):
    """Return what the prior adds to each histogram: α, or the training set's smoothed shares."""
    added = []
    for partition in model.partitions:
        if pooling is None:
            added.append(np.full(partition.table_size, alpha))
            continue
        counts = [X[:, block].sum(axis=1) for block in partition.blocks]
        shares = [
            (np.bincount(n, minlength=m + 1) + alpha) / (len(X) + alpha * (m + 1))
            for n, m in zip(counts, partition.sizes, strict=True)
        ]
        added.append(pooling * np.concatenate(shares))
    return added


CHANGING = tuple(Blocks(method, accept="component") for method in ("evidence", "welch"))


@pytest.mark.parametrize("blocks", BLOCKS + CHANGING, ids=str)
@pytest.mark.parametrize("init", ["rows", "random"])
@pytest.mark.parametrize("pooling", [None, 3.0])
def test_the_penalised_likelihood_of_blocks_never_falls(blocks, init, pooling, monkeypatch):
    """Log-likelihood plus log-density of the prior, which says what q the blocks should have.

    Blocks that change have another prior: then the log-likelihood alone must not fall.
    """
    X = clusters(seed=1)
    options = dict(init=init, pooling=pooling, tol=1e-6, max_iter=3000)
    model = ExchangeableMixture(3, blocks=blocks, **options)
    ((_, states),) = followed(runs_of(model, X), monkeypatch)
    assert len(states) > 3
    for before, after in pairwise(states):
        old, new = before.mixture.model, after.mixture.model
        gain = len(X) * (after.history[-1] - before.history[-1])
        pairs = zip(old.partitions, new.partitions, strict=True)
        if all(one.same_as(other) for one, other in pairs):
            added = pseudo_counts_of(new, X, 0.1, pooling)
            gain += log_prior_density(new, added) - log_prior_density(old, added)
        assert gain >= -ROUNDING * len(X)
    assert states[-1].converged


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("family", BY_EM)
def test_no_family_takes_a_step_down(family, holes, monkeypatch):
    """Log-likelihood and the prior's share in the objective together never fall."""
    X = bound_clusters(n_rows=600, seed=2)
    X = with_holes(X) if holes else X
    model = ExchangeableMixture(3, family=family, tol=0.0, max_iter=40)
    for stage, states in followed(runs_of(model, X), monkeypatch):
        assert len(states) > 3
        gains = np.array(
            [
                len(X) * (after.history[-1] - before.history[-1])
                + stage.prior_gain(before.mixture.model, after.mixture.model)
                for before, after in pairwise(states)
            ]
        )
        assert gains.min() >= -ROUNDING * len(X)
        assert gains.sum() > 0
        assert not (states[-1].converged and states[-1].fell)


@pytest.mark.parametrize(
    ("family", "blocks"),
    [
        ("urns", "full"),
        ("urns", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("tree", None),
        ("weighted tree", None),
        ("count tree", None),
    ],
)
def test_the_pooled_prior_is_what_its_rows_would_score(family, blocks, monkeypatch):
    X, strength = bound_clusters(n_rows=200, n_variables=8, seed=4), 7.0
    options = {} if blocks is None else {"blocks": blocks}
    model = ExchangeableMixture(
        3, family=family, alpha=1e-9, pooling=strength, tol=0.0, max_iter=8, **options
    )
    stage, states = followed(runs_of(model, X), monkeypatch)[-1]
    rows = Observed.from_symbols(X)
    gained = 0.0
    for before, after in pairwise(states):
        old, new = before.mixture.model, after.mixture.model
        if family == "count tree" and not all(
            one is other for one, other in zip(old.forests, new.forests, strict=True)
        ):
            continue
        difference = float((new.score(rows) - old.score(rows)).sum(axis=1).mean())
        gained += abs(difference)
        assert stage.prior_gain(old, new) == pytest.approx(strength * difference, abs=1e-6)
    assert gained > 1e-3


class Falling(BlockFamily):
    """A family whose steps lead downhill: to parameters smoothed far too much."""

    def candidates(self, data, model, sums, step, proposals):
        (worse,) = super().candidates(data, model, sums, step, proposals)
        worse.set_tables(1e6)
        return [worse]


def test_a_step_down_is_not_taken_and_is_not_convergence():
    X = clusters(seed=1)
    runs = runs_of(ExchangeableMixture(3, blocks="independent", tol=1e-7), X)
    state = runs.run(0)
    family = Falling(runs.problem)
    again = run_em(runs.data, family, replace(state, converged=False), StopRule(1e-7, 500))
    assert not again.converged
    assert again.fell > 0.1
    assert again.ended
    assert again.mixture is state.mixture
    assert again.history == [*state.history, state.history[-1]]


def test_a_step_that_the_prior_pays_for_is_taken():
    """From parameters without a prior to those under a strong one the log-likelihood falls."""
    X = clusters(seed=1)
    free = runs_of(ExchangeableMixture(3, blocks="independent", alpha=1e-6, tol=1e-6), X)
    strong = runs_of(ExchangeableMixture(3, blocks="independent", alpha=20.0, tol=1e-6), X)
    start = replace(free.run(0), converged=False)
    end = run_em(strong.data, BlockFamily(strong.problem), start, StopRule(1e-6, 500))
    assert end.converged
    assert end.history[-1] < start.history[-1] - 0.05


class Stumbling(BlockFamily):
    """A family whose second step leads downhill, unless it is asked to be steady."""

    def candidates(self, data, model, sums, step, proposals):
        (found,) = super().candidates(data, model, sums, step, proposals)
        if step == 2:
            found.set_tables(1e6)
        return [found]


def test_a_steady_step_is_taken_in_place_of_one_that_leads_down():
    X = clusters(seed=1)
    runs = runs_of(ExchangeableMixture(3, blocks="independent", tol=1e-7), X)
    family = Stumbling(runs.problem)
    sums = family.start(runs.data, "rows", np.random.default_rng(0))
    state = run_em(runs.data, family, begin(runs.data, family, sums), StopRule(1e-7, 500))
    assert state.converged
    assert state.n_iter > 3
    assert np.diff(state.history).min() > -1e-9


def test_merging_begins_where_the_sweep_has_ended(monkeypatch):
    X = clusters(seed=1)
    model = ExchangeableMixture(3, blocks="evidence", tol=1e-4, max_iter=300)
    ((_, states),) = followed(runs_of(model, X), monkeypatch)
    phases = [state.phase for state in states]
    assert phases == sorted(phases)
    assert states[-1].converged
    assert states[-1].phase == 1


def last_progress(history):
    """Return the last iteration that was at least as good as all before it."""
    return max(i for i, worth in enumerate(history) if worth >= max(history[: i + 1]))


class TestHeldOutRows:
    """Rows held out end a run and choose its parameters, and are never fitted."""

    @pytest.mark.parametrize("family", BY_EM)
    def test_they_end_the_run_and_the_best_parameters_are_kept(self, family):
        X, valid = bound_clusters(60, seed=1), bound_clusters(300, seed=2)
        options = dict(family=family, alpha=0.01, pooling=0.2, tol=0, max_iter=200)
        model = fit_mixture(X, 10, valid, **options)
        history = model.valid_history_[0]
        assert model.converged_
        assert len(history) < 200
        assert len(history) == len(model.history_[0])
        np.testing.assert_allclose(model.score(valid), max(history), atol=1e-9)
        assert max(history[-3:]) <= max(history)
        # Three iterations without progress end a run, for each of the learners of blocks.
        n_learners = 2 if family == "blocks" else 1
        assert len(history) - 1 - last_progress(history) == 3 * n_learners
        best = int(np.argmax(history))
        np.testing.assert_allclose(model.log_likelihood_, model.history_[0][best], atol=1e-9)
        np.testing.assert_allclose(model.score(X), model.log_likelihood_, atol=1e-9)

    @pytest.mark.parametrize("family", BY_EM)
    def test_they_are_not_fitted(self, family):
        """A variable that is on in all of them and in no other row stays improbable."""
        X, valid = bound_clusters(300, seed=1), bound_clusters(200, seed=2)
        X[:, 5], valid[:, 5] = 0, 1
        model = fit_mixture(X, 3, valid, family=family)
        assert model.marginals()[5] < 0.01
        assert model.n_samples_weight_ == 300

    @pytest.mark.parametrize("family", ["blocks", "urns", "tree", "count tree", "hidden tree"])
    def test_steps_are_those_of_a_fit_without_them(self, family):
        X, valid = bound_clusters(300, seed=1), 1 - bound_clusters(200, seed=2)
        options = dict(family=family, tol=0.0, max_iter=4)
        held, alone = fit_mixture(X, 3, valid, **options), fit_mixture(X, 3, **options)
        until = min(len(held.history_[0]), len(alone.history_[0]))
        falling = np.flatnonzero(np.diff(held.history_[0]) < 0)  # which the other does not take
        until = min(until, falling[0] + 1) if falling.size and family == "tree" else until
        assert until > 2
        np.testing.assert_allclose(held.history_[0][:until], alone.history_[0][:until], atol=1e-9)

    @pytest.mark.parametrize("family", ["blocks", "urns", "hidden tree"])
    def test_a_share_of_the_rows_is_held_out_and_the_others_are_fitted(self, family):
        X = bound_clusters(60, seed=1)
        weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
        options = dict(family=family, random_state=0, tol=1e-3)
        shared = ExchangeableMixture(4, validation_fraction=0.2, **options)
        shared.fit(X, sample_weight=weight)
        rng = np.random.default_rng(0)
        kept, out = held_out(0.2, len(X), rng)
        assert (kept.size, out.size) == (48, 12)
        assert np.intersect1d(kept, out).size == 0
        assert shared.n_samples_weight_ == weight[kept].sum()
        rows = np.repeat(X[out], weight[out].astype(int), axis=0)
        told = ExchangeableMixture(4, **options)
        told.fit(X[kept], sample_weight=weight[kept], X_valid=rows)
        np.testing.assert_allclose(shared.history_[0], told.history_[0], atol=1e-9)
        np.testing.assert_allclose(shared.valid_history_[0], told.valid_history_[0], atol=1e-9)
        np.testing.assert_allclose(shared.score_samples(X), told.score_samples(X), atol=1e-9)

    def test_they_choose_the_run(self):
        X, held = np.split(clusters(400, 12, 4), 2)
        gains = []
        for seed in range(6):
            mixture = ExchangeableMixture(4, n_init=5, random_state=seed)
            by_training = mixture.fit(X)
            trained, worth = by_training.log_likelihood_, by_training.score(held)
            by_others = mixture.fit(X, X_valid=held)
            histories = by_others.valid_history_
            assert by_others.best_init_ == np.argmax([max(history) for history in histories])
            np.testing.assert_allclose(by_others.score(held), max(map(max, histories)), atol=1e-9)
            assert by_others.log_likelihood_ <= trained
            gains.append(by_others.score(held) - worth)
        assert np.mean(gains) > 0.05
        with pytest.raises(ValueError, match="features"):
            ExchangeableMixture(2).fit(X, X_valid=held[:, :3])
