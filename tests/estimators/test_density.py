"""ExchangeableDensity: finds what fits, keeps what it tried, and answers every query."""

import numpy as np
import pytest

from enumeration import agreeing, all_states
from exchangeable import ExchangeableDensity, ExchangeableMixture
from exchangeable.fitting.search import Search

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
    naive = ExchangeableMixture(4, blocks="independent", random_state=0)
    assert density.score(test) > naive.fit(counted_rows(600, 0)).score(test) + 0.05
    assert density.best_params_["family"] in ("urns", "weighted tree")
    again = ExchangeableMixture(**density.best_params_, random_state=0)
    assert again.fit(counted_rows(600, 0)).score(test) > density.score(test) - 0.1


def test_queries_go_through(density):
    log_p = density.score_samples(STATES)
    evidence = np.array([1, np.nan, np.nan, 0, np.nan, np.nan])
    able = agreeing(STATES, evidence)
    share = np.exp(log_p[able]) / np.exp(log_p[able]).sum()
    np.testing.assert_allclose(density.marginals(evidence), share @ STATES[able], atol=1e-10)
    drawn, component = density.sample(20, evidence, random_state=0)
    assert agreeing(drawn, evidence).all()
    assert component.max() < density.weights_.size
    filled = density.impute(evidence[None])
    assert agreeing(filled, evidence).all()


def test_weights_stand_for_rows_that_repeat():
    X, valid = counted_rows(80, 0), counted_rows(60, 1)
    weight = np.arange(len(X)) % 3
    options = dict(families=["urns", "tree"], n_init=1, max_components=3, max_iter=5)
    weighted, repeated = (ExchangeableDensity(**options, random_state=0) for _ in range(2))
    weighted.fit(X, sample_weight=weight, X_valid=valid)
    repeated.fit(np.repeat(X, weight, axis=0), X_valid=valid)
    assert weighted.best_params_ == repeated.best_params_
    np.testing.assert_allclose(
        weighted.score_samples(STATES), repeated.score_samples(STATES), rtol=1e-10
    )


def test_rows_held_out_count_by_their_weights():
    X = counted_rows(80, 0)
    weight = np.where(np.arange(len(X)) % 4 == 0, 0.0, 2.0)
    options = dict(families=["urns"], n_init=1, max_components=3, max_iter=5, random_state=0)
    weighted = ExchangeableDensity(**options).fit(X, sample_weight=weight)
    without = ExchangeableDensity(**options).fit(X[weight > 0], sample_weight=2.0)
    np.testing.assert_array_equal(weighted.score_samples(STATES), without.score_samples(STATES))
    assert weighted.valid_score_ == without.valid_score_


def test_what_was_tried_is_kept(density):
    table = density.table_
    assert {row["family"] for row in table} == {"urns", "tree", "weighted tree", "hidden tree"}
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


def test_validation_rows_decide_and_are_not_fitted():
    """Rows of another kind held out: what is best for them is chosen, nothing else.

    Rows have one or five ones, those held out are uniform: a model fitted to the latter would give
    a single or five ones hardly a fifth of its mass.
    """
    X, valid = counted_rows(300, 0), np.random.default_rng(0).integers(0, 2, (200, 6))
    density = ExchangeableDensity(["urns"], n_init=1, max_components=4, random_state=0)
    density.fit(X, X_valid=valid)
    np.testing.assert_allclose(density.score(valid), density.valid_score_, atol=1e-9)
    assert density.best_score_ == max(row["valid"] for row in density.table_)
    fitted = np.isin(STATES.sum(axis=1), (1, 5))
    probability = np.exp(density.score_samples(STATES))
    assert probability[fitted].sum() > 0.6
    best = ExchangeableMixture(**density.best_params_, random_state=0).fit(X, X_valid=valid)
    assert abs(best.score(valid) - density.best_score_) < 0.05


def test_a_share_of_the_rows_is_held_out_and_the_others_are_fitted(monkeypatch):
    seen = {}

    class Watched(Search):
        def climb(self, *arguments, **options):
            seen.update(examples=self.examples, valid=self.valid)
            return super().climb(*arguments, **options)

    monkeypatch.setattr("exchangeable.estimators.density.Search", Watched)
    X = np.arange(60)[:, None] >> np.arange(6) & 1  # 60 different rows
    options = dict(n_init=1, max_components=2, max_iter=5, random_state=0)
    density = ExchangeableDensity(["urns"], validation_fraction=0.2, **options).fit(X)
    assert (seen["examples"].total, seen["valid"].total) == (48, 12)
    rows = [{*map(tuple, seen[key].observed.symbols().tolist())} for key in ("examples", "valid")]
    assert not rows[0] & rows[1]
    assert rows[0] | rows[1] == {*map(tuple, X.tolist())}
    held = np.array(sorted(rows[1]))
    np.testing.assert_allclose(density.score(held), density.valid_score_, atol=1e-9)


def test_the_same_seed_gives_the_same_density():
    X = counted_rows(200, 0)
    scores = [
        ExchangeableDensity(["urns"], n_init=2, max_components=4, random_state=1, n_jobs=jobs)
        .fit(X)
        .score_samples(STATES)
        for jobs in (1, 2)
    ]
    np.testing.assert_allclose(*scores, atol=1e-9)


class Clock:
    """Stands for the module `time`: every look at it is some seconds later."""

    def __init__(self, step):
        self.now, self.step = 0.0, step

    def monotonic(self):
        self.now += self.step
        return self.now


@pytest.mark.parametrize("budget", [40.0, 400.0])
def test_a_time_budget_is_kept(monkeypatch, budget):
    """After it no trial and no fit is begun; what was begun ends with its iteration."""
    clock = Clock(1.0)
    monkeypatch.setattr("exchangeable.fitting.search.time", clock)
    monkeypatch.setattr("exchangeable.estimators.density.time", clock)
    X = counted_rows(300, 0)
    density = ExchangeableDensity(n_init=1000, time_budget=budget, random_state=0, n_jobs=1).fit(X)
    assert 1 <= density.n_fits_ < 1000
    assert clock.now < 1.5 * budget + 60
    assert sum(row["seconds"] for row in density.table_) <= 0.7 * budget + 20
    unhurried = ExchangeableDensity(n_init=1, max_components=4, random_state=0)
    if budget == 40.0:
        assert len(density.table_) < len(unhurried.fit(X).table_)


def test_rows_with_holes_can_be_fitted():
    X = counted_rows(300, 0).astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    density = ExchangeableDensity(["urns"], n_init=1, max_components=3, random_state=0).fit(X)
    np.testing.assert_allclose(np.exp(density.score_samples(STATES)).sum(), 1, rtol=1e-10)


BAD = [
    (dict(families=["magic"]), "families=.*expected one or more of"),
    (dict(time_budget=0), "time_budget must be positive"),
    (dict(alpha=0), "alpha must be > 0"),
    (dict(validation_fraction=2), "between 0 and 1"),
    (dict(n_init=0), "n_init must be at least 1"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        ExchangeableDensity(**dict(max_components=2) | options).fit(counted_rows(40, 0))
