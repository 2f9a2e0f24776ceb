"""ExchangeableDensity: finds what fits, keeps what it tried, and answers every query."""

import time

import numpy as np
import pytest
from exchangeable.fitting.density_em import StopRule
from exchangeable.fitting.density_fit import SHRINKAGE

from enumeration import agreeing, all_states
from exchangeable import ExchangeableDensity, ExchangeableMixture
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.fitting.search import Search, Settings

STATES = all_states(6)


def counted_rows(n_rows, seed):
    """Rows whose number of ones is 1 or 5, the first variables on most often."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n_rows, 6), dtype=np.uint8)
    weight = np.array([8.0, 4.0, 2.0, 1.0, 1.0, 1.0])
    for row in X:
        n_on = rng.choice([1, 5])
        row[rng.choice(6, n_on, replace=False, p=weight / weight.sum())] = 1
    return X


@pytest.fixture(scope="module")
def density():
    X = counted_rows(600, 0)
    return ExchangeableDensity(n_init=3, max_components=8, random_state=0).fit(X)


def test_it_sums_to_one_and_is_better_than_naive_bayes(density):
    log_p = density.score_samples(STATES)
    np.testing.assert_allclose(np.exp(log_p).sum(), 1, rtol=1e-10)
    test = counted_rows(500, 1)
    naive = ExchangeableMixture(4, structure="independent", random_state=0)
    assert density.score(test) > naive.fit(counted_rows(600, 0)).score(test) + 0.05
    assert density.best_params_["urn"] == "weighted"


def test_queries_go_through(density):
    log_p = density.score_samples(STATES)
    evidence = np.array([1, np.nan, np.nan, 0, np.nan, np.nan])
    able = agreeing(STATES, evidence)
    share = np.exp(log_p[able]) / np.exp(log_p[able]).sum()
    np.testing.assert_allclose(density.marginals(evidence), share @ STATES[able], atol=1e-10)
    drawn, component = density.sample(20, evidence=evidence, random_state=0)
    assert agreeing(drawn, evidence).all()
    assert component.max() < density.weights_.size
    filled = density.impute(evidence[None])
    assert agreeing(filled, evidence).all()


def test_what_was_tried_is_kept(density):
    table = density.table_
    assert {(row["urn"], row["dependence"]) for row in table} == {
        ("weighted", "independent"),
        ("weighted", "tree"),
        ("uniform", "tree"),
        ("uniform", "hidden"),
    }
    best = max(table, key=lambda row: row["valid"])
    assert density.best_score_ == best["valid"]
    assert all(best[name] == value for name, value in density.best_params_.items())
    assert density.n_fits_ == 3 * len(density.members_)
    assert len({(row["n_components"], row["pooling"]) for row in table}) > 3


def test_families_are_joined_by_their_shares(density):
    shares = np.array([member["share"] for member in density.members_])
    assert shares.size > 1
    np.testing.assert_allclose(shares.sum(), 1)
    assert shares.min() >= 0.02
    assert len(density.edges_) == len(density.partitions_) == density.weights_.size
    assert density.urn_weights_.shape == (density.weights_.size, 6)


def test_a_later_family_begins_where_earlier_ones_were_best():
    X = counted_rows(200, 0)
    examples = merge_equal_rows(Observed(as_rows(X, None)), np.ones(len(X)))[0]
    search = Search(examples, examples, max_components=4)
    tree = search.climb("tree").settings
    starts = search.starts_of("weighted tree", near=[Settings("urns", 3, 5.0)])
    assert Settings("weighted tree", tree.n_components, tree.pooling, tree.shrinkage) in starts
    assert Settings("weighted tree", 3, 5.0, SHRINKAGE["weighted tree"]) in starts


def test_validation_rows_decide_and_are_not_fitted():
    """Rows of another kind held out: what is best for them is chosen, nothing else."""
    X, valid = counted_rows(300, 0), np.random.default_rng(0).integers(0, 2, (200, 6))
    density = ExchangeableDensity(["urns"], n_init=1, max_components=4, random_state=0)
    density.fit(X, X_valid=valid)
    np.testing.assert_allclose(density.score(valid), density.valid_score_, atol=1e-9)
    assert density.best_score_ == max(row["valid"] for row in density.table_)


def test_the_same_seed_gives_the_same_density():
    X = counted_rows(200, 0)
    scores = [
        ExchangeableDensity(["urns"], n_init=2, max_components=4, random_state=1, n_jobs=jobs)
        .fit(X)
        .score_samples(STATES)
        for jobs in (1, 2)
    ]
    np.testing.assert_allclose(*scores, atol=1e-9)


def test_a_time_budget_is_kept():
    X = np.random.default_rng(0).integers(0, 2, (4000, 40))
    began = time.monotonic()
    density = ExchangeableDensity(n_init=1000, time_budget=2.0, random_state=0).fit(X)
    assert time.monotonic() - began < 30
    assert 1 <= density.n_fits_ < 1000


@pytest.mark.parametrize("family", ["urns", "tree", "weighted tree", "hidden tree"])
def test_a_trial_is_cut_short_at_the_deadline(family):
    X = counted_rows(300, 0)
    examples = merge_equal_rows(Observed(as_rows(X, None)), np.ones(len(X)))[0]
    settings = Settings(family, 3, 1.0, SHRINKAGE.get(family, 0.0))
    rule = StopRule(tol=0.0, max_iter=30, patience=30)
    whole = Search(examples, examples).fit(settings, 0, rule)
    cut = Search(examples, examples).fit(settings, 0, rule, deadline=time.monotonic())
    assert cut.n_iter < whole.n_iter
    assert np.isfinite(cut.worth)


def test_rows_with_holes_can_be_fitted():
    X = counted_rows(300, 0).astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    density = ExchangeableDensity(["urns"], n_init=1, max_components=3, random_state=0).fit(X)
    np.testing.assert_allclose(np.exp(density.score_samples(STATES)).sum(), 1, rtol=1e-10)


def test_a_search_finds_the_number_of_components():
    """Four well separated kinds of rows: neither one component nor dozens."""
    rng = np.random.default_rng(0)
    rates = np.where(rng.random((4, 30)) < 0.5, 0.05, 0.95)
    X = (rng.random((1200, 30)) < rates[rng.integers(0, 4, 1200)]).astype(np.uint8)
    parts = [
        merge_equal_rows(Observed(as_rows(rows, None)), np.ones(len(rows)))[0]
        for rows in (X[:900], X[900:])
    ]
    search = Search(*parts)
    best = search.climb("independent", near=[Settings("independent", 1, 2.0)])
    assert 3 <= best.settings.n_components <= 8
    assert search.try_one(best.settings) == best.valid


BAD = [
    (dict(families=["magic"]), "families=.*expected one or more of"),
    (dict(time_budget=0), "time_budget must be positive"),
    (dict(alpha=0), "alpha must be positive"),
    (dict(validation_fraction=2), "between 0 and 1"),
    (dict(n_init=0), "n_init must be at least 1"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        ExchangeableDensity(**dict(max_components=2) | options).fit(counted_rows(40, 0))
