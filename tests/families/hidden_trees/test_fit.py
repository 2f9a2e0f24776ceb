"""``family="hidden tree"``: fits, options, files."""

import numpy as np
import pytest

from exchangeable import Blocks, ExchangeableDensity, ExchangeableMixture
from exchangeable.families import REGISTRY
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.partitions import Partition
from exchangeable.persistence import load, save
from exchangeable.report import report_html
from made_rows import examples_of

N = 12
HIDDEN = {"family": "hidden tree", "random_state": 0, "max_iter": 30, "tol": 1e-3, "n_jobs": 1}


def chain_rows(n_rows, seed):
    """Rows that look at a hidden chain through noise, which no mixture of few components is."""
    rng = np.random.default_rng(seed)
    state = np.empty((n_rows, N), dtype=int)
    state[:, 0] = rng.integers(0, 2, n_rows)
    for j in range(1, N):
        state[:, j] = state[:, j - 1] ^ (rng.random(n_rows) < 0.1)
    return (state ^ (rng.random((n_rows, N)) < 0.1)).astype(np.uint8)


X, X_VALID = chain_rows(1500, 0), chain_rows(800, 1)


@pytest.fixture(scope="module")
def fitted():
    return ExchangeableMixture(4, **HIDDEN).fit(X, X_valid=X_VALID)


def test_it_finds_a_hidden_chain_better_than_a_mixture_or_a_tree(fitted):
    fresh = chain_rows(2000, 2)
    for other in ({"pooling": 1.0, "blocks": "independent"}, {"family": "tree"}):
        mixture = ExchangeableMixture(4, random_state=0, n_jobs=1, **other)
        assert fitted.score(fresh) > mixture.fit(X, X_valid=X_VALID).score(fresh) + 0.02
    above = {tuple(sorted(edge)) for edge in fitted.edges_[0].tolist()}
    assert above == {(j, j + 1) for j in range(N - 1)}


def test_rows_sum_to_one_after_a_fit():
    small = ExchangeableMixture(3, **HIDDEN).fit(X[:, :8])
    states = (np.arange(256)[:, None] >> np.arange(8)) & 1
    assert np.exp(small.score_samples(states)).sum() == pytest.approx(1, rel=1e-10)


def test_one_state_is_independent_variables():
    hidden = ExchangeableMixture(1, pooling=3.0, **HIDDEN).fit(X)
    naive = ExchangeableMixture(1, pooling=3.0, blocks="independent", random_state=0, n_jobs=1).fit(
        X
    )
    # The start, whose prior is another, is hardly less likely, and may be what is kept.
    np.testing.assert_allclose(hidden.score_samples(X), naive.score_samples(X), rtol=1e-7)


@pytest.mark.parametrize("blocks", [None, [[0, 1, 2, 3], [4, 5], [6], [7, 8, 9, 10, 11]]])
@pytest.mark.parametrize("holes", [False, True])
def test_the_likelihood_grows_without_a_prior_that_matters(blocks, holes):
    rows = X.astype(float)
    if holes:
        rows[np.random.default_rng(0).random(rows.shape) < 0.2] = np.nan
    model = ExchangeableMixture(
        5,
        pooling=1e-9,
        blocks=Blocks("auto" if blocks is None else blocks, shrinkage=1e-9),
        **{**HIDDEN, "tol": 0.0},
    )
    with pytest.warns(match="did not converge"):
        history = np.array(model.fit(rows).history_[0])
    assert history.size > 20
    assert (np.diff(history) > -1e-9).all()
    assert history[-1] > history[0] + 0.01


def test_holes_that_are_none_change_nothing(fitted):
    rows = X.astype(float)
    other = ExchangeableMixture(4, **HIDDEN).fit(rows, X_valid=X_VALID.astype(float))
    np.testing.assert_array_equal(other.score_samples(X), fitted.score_samples(X))
    rows[0, 0] = np.nan  # one hole: the other passes, nearly the same rows
    close = ExchangeableMixture(4, **HIDDEN).fit(rows, X_valid=X_VALID)
    np.testing.assert_allclose(close.score(X), fitted.score(X), atol=0.02)


def test_rows_with_many_holes_are_fitted():
    rows = X.astype(float)
    rows[np.random.default_rng(0).random(rows.shape) < 0.3] = np.nan
    model = ExchangeableMixture(4, **{**HIDDEN, "max_iter": 200}).fit(rows, X_valid=X_VALID)
    naive = ExchangeableMixture(4, pooling=1.0, blocks="independent", random_state=0, n_jobs=1)
    assert model.score(X_VALID) > naive.fit(rows, X_valid=X_VALID).score(X_VALID) + 0.02


def test_the_number_of_threads_does_not_matter():
    examples, k = examples_of(X), 24  # enough work for several parts
    single = [Partition.from_labels(np.arange(N))] * k
    problem = Problem(k, single, examples=examples, pooling=0.5, shrinkage=1.0)
    found = []
    for threads in (1, 2, 3):
        generators, rule = [np.random.default_rng(0)], StopRule(max_iter=3)
        data = InMemory(examples)
        runs = Runs(REGISTRY["hidden tree"], problem, data, rule, "rows", generators)
        found.append(runs.run(0, threads=threads))
    assert len(examples.parts(6 * N * k * k)) > 1
    for run in found[1:]:
        assert run.history == found[0].history
        first, other = (entry.best.model.trees[0].messages for entry in (found[0], run))
        np.testing.assert_array_equal(first.edges, other.edges)
        np.testing.assert_array_equal(first.log_q, other.log_q)


def test_restarts_average_into_one_mixture():
    runs = ExchangeableMixture(3, n_init=3, combine="average", **HIDDEN)
    runs.fit(X, X_valid=X_VALID)
    best = ExchangeableMixture(3, n_init=3, **HIDDEN).fit(X, X_valid=X_VALID)
    assert runs.weights_.size == 9
    assert best.weights_.size == 3
    assert runs.weights_.sum() == pytest.approx(1)
    # An average of probabilities has a logarithm above the average of logarithms.
    assert runs.score(X_VALID) > np.mean([max(history) for history in runs.valid_history_])
    assert runs.n_parameters_ == 3 * (3 * N + (N - 1) * 3 * 2) + 8


def test_a_saved_model_answers_the_same(fitted, tmp_path):
    average = ExchangeableMixture(3, n_init=2, combine="average", **HIDDEN)
    for number, model in enumerate((fitted, average.fit(X, X_valid=X_VALID))):
        save(model, tmp_path / f"{number}.exch")
        again = load(tmp_path / f"{number}.exch")
        np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
        rows = X[:5].astype(float)
        rows[:, ::2] = np.nan
        np.testing.assert_array_equal(again.marginals(rows), model.marginals(rows))
        np.testing.assert_array_equal(
            again.sample(20, random_state=0)[0], model.sample(20, random_state=0)[0]
        )


def test_what_a_fitted_model_tells(fitted):
    assert fitted.weights_.size == 4
    assert len(fitted.partitions_[0]) == N
    assert fitted.n_parameters_ == 4 * N + (N - 1) * 4 * 3 + 3
    means = fitted.weights_ @ np.array(
        [[q[1] for q in blocks] for blocks in fitted.count_probabilities_]
    )
    np.testing.assert_allclose(means, X.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(means, fitted.marginals({}), atol=1e-10)
    assert REGISTRY["hidden tree"].summary in report_html(fitted)
    assert "4 components" in fitted._repr_html_()


def test_density_tries_hidden_trees():
    density = ExchangeableDensity(
        ["hidden tree"], n_init=2, max_components=6, max_iter=20, random_state=0, n_jobs=1
    ).fit(X, X_valid=X_VALID)
    assert density.best_params_["family"] == "hidden tree"
    assert all(row["family"] == "hidden tree" for row in density.table_)
    tree = ExchangeableMixture(4, family="tree", random_state=0, n_jobs=1)
    assert density.score(X_VALID) > tree.fit(X, X_valid=X_VALID).score(X_VALID)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocks": "evidence"}, "blocks='evidence' does not go with family='hidden tree'"),
        ({"blocks": "welch"}, "all states share one set of blocks, which are not learned"),
        ({"alpha": 0.0}, "alpha must be > 0 with family='hidden tree'"),
        ({"blocks": {0: [range(N)], 1: [[j] for j in range(N)]}}, "one set of blocks for all"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        ExchangeableMixture(2, **{**HIDDEN, **options}).fit(X)
