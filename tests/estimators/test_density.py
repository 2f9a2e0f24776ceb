"""ExchangeableDensity: finds what fits, keeps what it tried, and answers every query."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import exchangeable
from enumeration import agreeing, all_states
from exchangeable import ExchangeableDensity, ExchangeableMixture
from exchangeable.estimators.fits import density_search
from exchangeable.families import REGISTRY, shares
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.search.searching import Search
from exchangeable.runtime.clock import Clock

BY_EM = ["urns", "tree", "weighted tree", "hidden tree"]
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
    return ExchangeableDensity(BY_EM, n_init=3, max_components=8, random_state=0).fit(X)


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
    assert {row["family"] for row in table} == set(BY_EM)
    best = max(table, key=lambda row: row["valid"])
    assert density.best_score_ == best["valid"]
    assert all(best[name] == density.best_params_[name] for name in ("family", "n_components"))
    assert density.n_fits_ == sum(member["n_fits"] for member in density.members_)
    assert max(member["n_fits"] for member in density.members_) <= 3
    assert len({(row["n_components"], row["pooling"]) for row in table}) > 3
    rounds = density.rounds_
    assert rounds[0]["n_fits"] == len(BY_EM)
    assert rounds[-1]["n_fits"] >= sum(row["n_fits"] for row in table)
    assert rounds[-1]["valid"] > rounds[0]["valid"]
    assert density.left_out_ == {}


def test_families_are_joined_by_their_shares():
    """Half of the rows are made by counts, half by copies of variables: no family has both."""
    rng = np.random.default_rng(0)
    copied = np.repeat(rng.integers(0, 2, (300, 2)), 3, axis=1) ^ (rng.random((300, 6)) < 0.02)
    X = rng.permutation(np.concatenate([counted_rows(300, 0), copied]))
    options = dict(n_init=2, max_components=1, max_iter=5, random_state=0)
    density = ExchangeableDensity(["urns", "tree"], **options).fit(X)
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
        def run(self):
            seen.update(examples=self.fitter.examples, valid=self.fitter.valid)
            super().run()

    monkeypatch.setattr("exchangeable.estimators.fits.density_search.Search", Watched)
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


class Worked:
    """A clock in a world where nothing takes time but passes over rows, scores, and shares."""

    def __init__(self, monkeypatch, seconds):
        self.now = 0.0
        passes = [(InMemory, "expect"), (InMemory, "best"), (Mixture, "log_likelihood")]
        costs = [(*each, seconds) for each in passes]
        for owner, name, cost in [*costs, (shares, "mixed", 8 * seconds)]:
            monkeypatch.setattr(owner, name, self.taking(cost, getattr(owner, name)))
        monkeypatch.setattr(
            density_search,
            "Clock",
            partial(Clock, **dict.fromkeys(("now", "worked"), lambda: self.now)),
        )

    def taking(self, seconds, function):
        def slower(*arguments, **options):
            self.now += seconds
            return function(*arguments, **options)

        return slower


def fitted_in_time(monkeypatch, seconds, budget, **options):
    """Return a density, where a pass takes this many seconds, and how long it took."""
    with monkeypatch.context() as patched:
        clock = Worked(patched, seconds)
        density = ExchangeableDensity(
            BY_EM, time_budget=budget, random_state=0, n_jobs=1, **options
        )
        density.fit(counted_rows(300, 0))
    return density, clock.now


@pytest.mark.parametrize("seconds", [0.1, 0.5])
def test_a_time_budget_is_kept_and_more_time_is_not_worse(monkeypatch, seconds):
    scores, fits = [], []
    for budget in (60.0, 120.0, 240.0):
        density, took = fitted_in_time(monkeypatch, seconds, budget)
        assert took <= 1.1 * budget
        assert {row["family"] for row in density.table_} == set(BY_EM)
        scores.append(density.valid_score_)
        fits.append(density.rounds_[-1]["n_fits"])
    assert scores == sorted(scores)
    assert fits == sorted(fits)


@pytest.mark.parametrize("budget", [200.0, 300.0])
def test_fits_that_would_take_too_long_are_cut_short(monkeypatch, budget):
    density, took = fitted_in_time(monkeypatch, 2.0, budget, tol=0.0)
    assert 0.7 * budget <= took <= 1.1 * budget
    assert any(row["family"] == "tree" for row in density.table_)


def test_a_family_whose_extra_is_missing_is_left_out_and_noted(monkeypatch):
    monkeypatch.setattr("exchangeable.families.spec.find_spec", lambda name: None)
    density = ExchangeableDensity(max_components=2, max_iter=2, n_init=1, random_state=0)
    density.fit(counted_rows(80, 0))
    neural = {spec.name for spec in REGISTRY.values() if spec.needs}
    assert set(density.left_out_) == neural
    assert density.left_out_["neural tree"] == "jax is not installed"
    assert not {row["family"] for row in density.table_} & neural


@pytest.mark.skipif(not REGISTRY["neural tree"].installed, reason="JAX is not installed")
def test_networks_are_searched_with_the_others_and_joined():
    X = counted_rows(200, 0)
    families = ["urns", "neural independent"]
    options = dict(n_init=2, max_components=16, max_iter=4, tol=0.05, random_state=0)
    density = ExchangeableDensity(families, **options).fit(X, X_valid=counted_rows(80, 1))
    assert {row["family"] for row in density.table_} == set(families)
    np.testing.assert_allclose(np.exp(density.score_samples(STATES)).sum(), 1, rtol=1e-9)
    varied = [row for row in density.table_ if "latent" in row or "learning_rate" in row]
    assert varied
    assert ExchangeableMixture(**density.best_params_, tol=0.1).fit(X).score(X) < 0


def test_without_a_gpu_asking_for_one_is_refused():
    with pytest.raises((RuntimeError, ModuleNotFoundError), match="device='gpu'"):
        ExchangeableDensity(["urns"], device="gpu").fit(counted_rows(40, 0))


def test_components_have_posteriors_and_criteria_count_parameters(density):
    posterior = density.predict_proba(STATES)
    assert posterior.shape == (len(STATES), density.weights_.size)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)
    np.testing.assert_array_equal(density.predict(STATES), posterior.argmax(axis=1))
    deviance = -2 * density.score_samples(STATES).sum()
    expected = deviance + density.n_parameters_ * np.log(len(STATES))
    assert density.bic(STATES) == pytest.approx(expected)
    assert density.aic(STATES) == pytest.approx(deviance + 2 * density.n_parameters_)


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
    (dict(device="tpu"), "device='tpu' is unknown"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=str)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        ExchangeableDensity(**dict(max_components=2) | options).fit(counted_rows(40, 0))


def test_blocks_with_statistics_are_tried_beside_families(tmp_path: Path) -> None:
    """Chains that stay or turn: the number of ones says nothing, that of turns everything."""
    rng = np.random.default_rng(0)
    stays = np.where(rng.random(800) < 0.5, 0.95, 0.4)
    turns = np.cumsum(rng.random((8, 800)) > stays, axis=0)
    chains = (turns + rng.integers(0, 2, 800)).T % 2
    blocks = [(list(range(8)), "transitions")]
    options: dict[str, Any] = dict(n_init=2, max_components=3, random_state=0, n_jobs=1)
    urns = ExchangeableDensity(["urns"], **options).fit(chains)
    both = ExchangeableDensity(["urns", "blocks"], blocks=blocks, **options).fit(chains)
    assert both.valid_score_ > urns.valid_score_ + 0.01
    shares = {member["family"]: member for member in both.members_}
    assert shares["blocks"]["blocks"] == blocks
    assert logsumexp(both.score_samples(all_states(8))) == pytest.approx(0.0, abs=1e-9)
    exchangeable.save(both, tmp_path / "model")
    again = exchangeable.load(tmp_path / "model")
    np.testing.assert_array_equal(again.score_samples(chains), both.score_samples(chains))


def test_evidence_chooses_between_statistics_and_smaller_densities_keep_them() -> None:
    rng = np.random.default_rng(0)
    stays = np.where(rng.random((600, 1)) < 0.5, 0.95, 0.4)
    turns = np.cumsum(rng.random((600, 6)) > stays, axis=1)
    chains = (turns + rng.integers(0, 2, (600, 1))) % 2
    X = np.hstack([chains, rng.random((600, 2)) < 0.3])
    choice = [(range(6), ["first and last", "count", "runs", "transitions"])]
    options: dict[str, Any] = dict(n_init=2, max_components=3, random_state=0, n_jobs=1)
    density = ExchangeableDensity(["blocks"], blocks=choice, **options).fit(X)
    told = ExchangeableDensity(["blocks"], blocks=[(range(6), "runs")], **options).fit(X)
    np.testing.assert_array_equal(density.score_samples(X), told.score_samples(X))
    assert density.best_params_["blocks"] == choice
    smaller = density.compress(X, n_parameters=density.n_parameters_ // 2)
    assert smaller.n_parameters_ <= density.n_parameters_ // 2
    assert smaller.score(X) > density.score(X) - 0.1
    assert logsumexp(smaller.score_samples(all_states(8))) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocks": [[0, 1]]}, "expected pairs of variables and a statistic"),
        ({"blocks": [([0, 1], "runs")], "families": ["urns"]}, "blocks with statistics go with"),
        ({"blocks": [([0, 1], [])]}, "empty list of statistics"),
    ],
)
def test_blocks_that_cannot_be_searched(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ExchangeableDensity(**options).fit(np.eye(4).repeat(5, axis=0))


def test_whole_numbers_of_a_frame_are_cut_where_the_families_named_are_binary() -> None:
    """As a mixture of the same family cuts them, with the same warning."""
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 4, (60, 3)), columns=list("abc"))
    density = ExchangeableDensity(["urns"], n_init=1, max_components=2, random_state=0)
    with pytest.warns(UserWarning, match=r"numbers greater than binarize=0\.0 are on, of 4"):
        density.fit(frame)
    again = ExchangeableDensity(["urns"], n_init=1, max_components=2, random_state=0)
    again.fit((frame > 0).astype(int))
    np.testing.assert_array_equal(density.score_samples(frame), again.score_samples(frame > 0))
    with pytest.raises(ValueError, match="column 'a' is count"):
        ExchangeableDensity(["urns"], kinds={"a": "count"}).fit(frame)
    words = frame.assign(d=np.where(frame["a"] > 0, "yes", "no"))
    with pytest.raises(ValueError, match="family='urns' is for columns of 0 and 1"):
        ExchangeableDensity(["urns"]).fit(words)
