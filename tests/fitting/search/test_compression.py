"""Compressed densities: still normalised, as small as asked for, and no worse than stated."""

from dataclasses import replace
from threading import Event

import numpy as np
import pytest

import exchangeable
from enumeration import all_states
from exchangeable import ExchangeableDensity
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.families import REGISTRY
from exchangeable.families.mixture import Mixture
from exchangeable.families.trees.factored import FactoredTrees
from exchangeable.families.trees.factors import Factors
from exchangeable.families.trees.model import TreeModel
from exchangeable.fitting.search import compression
from exchangeable.fitting.search.compression import Compressor
from exchangeable.fitting.search.parts import (
    WEIGHT_STEPS,
    em_family,
    fit_shares,
    fit_weights,
    most_useful,
    thinned,
)

STATES = all_states(8)
EVERYTHING = Observed.from_symbols(STATES.astype(np.int8))


def rows(n_rows, seed):
    """Three kinds of rows, of eight variables."""
    rng = np.random.default_rng(seed)
    rates = np.random.default_rng(5).choice([0.1, 0.5, 0.9], (3, 8))
    return (rng.random((n_rows, 8)) < rates[rng.integers(0, 3, n_rows)]).astype(np.uint8)


@pytest.fixture(scope="module")
def density():
    families = ["urns", "tree", "hidden tree"]
    return ExchangeableDensity(families, n_init=3, max_iter=15, random_state=0).fit(rows(3000, 0))


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(compression, "FEWEST_ROWS", 1500)
    monkeypatch.setattr(compression, "MOST_ROWS", 1500)


def test_a_size_is_kept_and_the_mixture_is_still_a_distribution(density):
    held = rows(500, 1)
    for share in (2, 10):
        small = density.compress(held, n_parameters=density.n_parameters_ // share)
        assert small.n_parameters_ <= density.n_parameters_ // share
        assert small.n_parameters_ == small._mixture().n_parameters
        np.testing.assert_allclose(np.exp(small.score_samples(STATES)).sum(), 1, rtol=1e-9)
        np.testing.assert_allclose(small.weights_.sum(), 1, rtol=1e-9)
        said = small.compression_
        assert said["n_parameters"] == (density.n_parameters_, small.n_parameters_)
        np.testing.assert_allclose(said["score"], (density.score(held), small.score(held)))
        assert small.score(held) > density.score(held) - 0.1
    shares = [member["share"] for member in small.members_]
    np.testing.assert_allclose(sum(shares), 1)


@pytest.mark.parametrize("loss", [0.0005, 0.01])
def test_a_loss_is_not_exceeded(density, loss):
    held = rows(500, 1)
    small = density.compress(held, loss=loss)
    lost = (density.score(held) - small.score(held)) / abs(density.score(held))
    assert lost == pytest.approx(small.compression_["loss"])
    assert lost <= loss
    if loss == 0.01:
        assert small.n_parameters_ < density.n_parameters_ / 4


def test_a_density_that_cannot_be_made_smaller_stays_as_it_is(density, monkeypatch):
    monkeypatch.setattr(compression, "RATIOS", (10_000_000,))
    same = density.compress(rows(100, 1), loss=0.0)
    assert same.n_parameters_ == density.n_parameters_
    np.testing.assert_array_equal(same.score_samples(STATES), density.score_samples(STATES))
    assert [row["family"] for row in same.members_] == [row["family"] for row in density.members_]


def test_the_density_itself_is_not_changed_and_the_smaller_one_can_be_saved(density, tmp_path):
    before = density.score_samples(STATES)
    small = density.compress(rows(200, 1), n_parameters=300)
    np.testing.assert_array_equal(density.score_samples(STATES), before)
    assert not hasattr(density, "compression_")
    exchangeable.save(small, tmp_path / "small.exch")
    again = exchangeable.load(tmp_path / "small.exch")
    np.testing.assert_array_equal(again.score_samples(STATES), small.score_samples(STATES))
    assert again.compression_ == small.compression_
    smaller = small.compress(rows(200, 1), n_parameters=100)
    assert smaller.n_parameters_ <= 100
    np.testing.assert_array_equal(
        small.compress(rows(200, 1), n_parameters=100).score_samples(STATES),
        smaller.score_samples(STATES),
    )


def test_weights_are_those_under_which_rows_are_likeliest(density):
    """Weights fitted to rows of one component alone give it almost everything."""
    mixture = density._mixture()
    part = Mixture(mixture.model.only(np.arange(3)), np.log([0.2, 0.3, 0.5]))
    observed = density._observed(rows(400, 3))
    weights = fit_weights(part, observed)
    np.testing.assert_allclose(weights.sum(), 1)
    scores = part.model.score(observed)

    likeliest = np.array([0.2, 0.3, 0.5])
    for _ in range(WEIGHT_STEPS):
        joint = np.exp(scores) * likeliest
        likeliest = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(weights, likeliest, atol=1e-5)

    def worth(shares):
        return np.log(np.exp(scores) @ shares).mean()

    assert worth(weights) > worth([0.2, 0.3, 0.5])
    for other in np.random.default_rng(0).dirichlet(np.ones(3), 20):
        assert worth(weights) > worth(other) - 0.01


def test_what_weighs_most_for_its_parameters_is_kept_whole(density):
    mixture = density._mixture()
    units = mixture.model.units()
    assert units.size == mixture.log_prior.size
    assert (np.diff(units) >= 0).all()
    weights = np.exp(mixture.log_prior)
    for size in (1, 200, mixture.n_parameters):
        kept = most_useful(mixture, weights, size)
        only = mixture.only(kept)
        assert only.n_parameters <= size or np.unique(units[kept]).size == 1
        whole = np.isin(units, units[kept]) & (weights > 0)
        np.testing.assert_array_equal(np.flatnonzero(whole), kept)
    assert thinned(weights, 5, np.random.default_rng(0)).size <= 5


def test_of_components_of_one_size_those_that_weigh_most_are_kept():
    rng = np.random.default_rng(0)
    slope, weights = rng.normal(0, 1, (8, 20)), rng.dirichlet(np.ones(20))
    trees = TreeModel.make(-np.logaddexp(0, slope).sum(axis=0), slope)
    kept = most_useful(Mixture(trees, np.log(weights)), weights, 5 * 9)
    assert kept.tolist() == np.sort(np.argsort(-weights)[:5]).tolist()


def test_shares_are_those_under_which_rows_are_likeliest():
    slope = np.array([[2.0] * 8, [-2.0] * 8]).T
    trees = TreeModel.make(-np.logaddexp(0, slope).sum(axis=0), slope)
    mixtures = [Mixture(trees.only(np.array([y])), np.zeros(1)) for y in (0, 1)]
    drawn = np.random.default_rng(0).random((400, 8)) < 1 / (1 + np.exp(-2.0))
    observed = Observed.from_symbols(drawn.astype(np.int8))
    assert fit_shares(mixtures, np.array([0.1, 0.9]), observed)[0] > 0.99


def test_networks_are_refitted_by_a_family_with_the_same_parameters():
    for name, spec in REGISTRY.items():
        refit = em_family(name)
        assert refit is not None
        assert refit.model is spec.model


@pytest.fixture(scope="module")
def compressor():
    """Of components as networks make them, beside trees."""
    trees = ExchangeableDensity(["tree"], max_iter=5, random_state=0).fit(rows(500, 0))._mixture()
    rng = np.random.default_rng(0)
    factors = Factors(
        rng.normal(0, 0.6, (1, 8, 3)).astype(np.float32),
        rng.normal(0, 1, (2, 400)).astype(np.float32),
        np.zeros(400, dtype=np.int32),
        np.empty((0, 0), dtype=np.int32),
    )
    made = FactoredTrees(factors)
    plain = Mixture(TreeModel.make(made.base, made.slope), np.full(400, -np.log(400)))
    joined = Mixture.join([plain, trees], np.array([0.5, 0.5]))
    chances = np.exp(joined.log_evidence(EVERYTHING))
    judges = merge_equal_rows(EVERYTHING, chances)[0]
    return Compressor(joined, ["neural independent", "tree"], judges, n_jobs=1)


def test_components_of_networks_become_factors(compressor):
    size = compressor.mixture.n_parameters
    found = compressor.to_size(size // 3)
    assert found.mixture.n_parameters <= size // 3
    assert found.loss < 0.005
    candidate = compressor._candidate(size // 3, 3, 1.0)
    assert type(candidate[0].model.parts[0]) is FactoredTrees
    assert candidate[0].n_parameters <= size // 3
    assert candidate[1] == [0, 1]
    assert compressor._worth(candidate[0]) <= found.after
    np.testing.assert_allclose(np.exp(found.mixture.log_evidence(EVERYTHING)).sum(), 1)
    again = replace(compressor).to_size(size // 3)
    np.testing.assert_array_equal(again.mixture.log_prior, found.mixture.log_prior)
    lossless = compressor.to_loss(0.001)
    assert lossless.loss <= 0.001
    assert lossless.mixture.n_parameters < size / 3


def test_what_loses_more_than_was_asked_for_is_not_taken(compressor, monkeypatch):
    before = compressor._before
    smaller = compressor.to_size(compressor.mixture.n_parameters // 3)
    tried = replace(smaller, before=before, after=before * 1.01)
    monkeypatch.setattr(Compressor, "_ways", lambda self, n_parameters: iter([tried]))
    assert compressor.to_loss(0.0101) is tried
    assert compressor.to_loss(0.0099).mixture is compressor.mixture


def test_weights_add_up_where_some_components_have_none(compressor, monkeypatch):
    monkeypatch.setattr(compression, "NO_WEIGHT", 0.03)
    rng = np.random.default_rng(0)
    few = compressor.mixture.only(np.arange(30))
    left, _ = compressor._weighed(few, [0], compressor._drawn(few, 500, rng))
    assert 1 < left.log_prior.size < 30
    np.testing.assert_allclose(np.exp(left.log_prior).sum(), 1)


def test_components_fitted_again_are_left_out_where_they_are_too_large(compressor, monkeypatch):
    monkeypatch.setattr(Compressor, "_refitted", lambda self, *arguments: self.mixture)
    size = compressor.mixture.n_parameters // 3
    candidates = list(compressor._pruned(size, np.random.default_rng(0)))
    assert [mixture.n_parameters <= size for mixture, _ in candidates] == [True]


def test_what_was_found_is_returned_when_it_is_stopped(compressor):
    stop, lines = Event(), []

    def report(text):
        lines.append(text)
        stop.set()

    stopped = replace(compressor, report=report, stop=stop)
    found = stopped.to_loss(0.01)
    assert found.loss <= 0.01
    assert len(lines) == 2
    stop.set()
    assert stopped.to_loss(0.01).mixture is compressor.mixture


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either n_parameters or loss"),
        ({"n_parameters": 5, "loss": 0.1}, "either n_parameters or loss"),
        ({"loss": 1.5}, r"loss must lie in \[0, 1\)"),
        ({"n_parameters": 0}, "n_parameters must be at least 1"),
    ],
    ids=str,
)
def test_bad_options_are_named(density, options, message):
    with pytest.raises(ValueError, match=message):
        density.compress(rows(20, 1), **options)
