"""Compressed densities: still normalised, as small as asked for, and no worse than stated."""

from dataclasses import replace
from threading import Event

import numpy as np
import pandas as pd
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
from exchangeable.fitting.search.options import Option, _cheapest, _until
from exchangeable.fitting.search.parts import SHARE_STEPS, em_family, fit_shares, most_useful
from exchangeable.fitting.search.refitting import can_refit, refitted

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
    for name in ("CHOOSING_ROWS", "DRAWN_ROWS", "MOST_DRAWN"):
        monkeypatch.setattr(compression, name, 1500)


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
    monkeypatch.setattr(Compressor, "_path", [])
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


def test_of_components_of_one_size_those_that_weigh_most_are_kept():
    rng = np.random.default_rng(0)
    slope, weights = rng.normal(0, 1, (8, 20)), rng.dirichlet(np.ones(20))
    trees = TreeModel.make(-np.logaddexp(0, slope).sum(axis=0), slope)
    kept = most_useful(Mixture(trees, np.log(weights)), weights, 5 * 9)
    assert kept.tolist() == np.sort(np.argsort(-weights)[:5]).tolist()


def test_shares_are_those_under_which_rows_are_likeliest():
    """Shares fitted to rows of one part alone give it almost everything."""
    slope = np.array([[2.0] * 8, [-2.0] * 8]).T
    trees = TreeModel.make(-np.logaddexp(0, slope).sum(axis=0), slope)
    drawn = np.random.default_rng(0).random((400, 8)) < 1 / (1 + np.exp(-2.0))
    scores = trees.score(Observed.from_symbols(drawn.astype(np.int8)))
    likeliest = np.array([0.1, 0.9])
    shares = fit_shares(np.exp(scores), likeliest)
    assert shares[0] > 0.99
    for _ in range(SHARE_STEPS):
        joint = np.exp(scores) * likeliest
        likeliest = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(shares, likeliest, atol=1e-9)


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
    dense = compressor._parts[0]
    few = dense.compacted(size // 3, 3, np.random.default_rng(0))
    assert type(few.mixture.model) is FactoredTrees
    assert few.size <= size // 3 + 1
    np.testing.assert_allclose(np.exp(found.mixture.log_evidence(EVERYTHING)).sum(), 1)
    again = replace(compressor).to_size(size // 3)
    np.testing.assert_array_equal(again.mixture.log_prior, found.mixture.log_prior)
    lossless = compressor.to_loss(0.001)
    assert lossless.loss <= 0.001
    assert lossless.mixture.n_parameters < size / 3


def test_combinations_become_smaller_and_are_what_they_say(compressor):
    path = compressor._path
    sizes = [each.size for each in path]
    assert sizes[0] == compressor.mixture.n_parameters
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] < sizes[0] / 20
    for each in path[1:]:
        joined = compressor._joined(each.made()).mixture
        assert joined.n_parameters == each.size
        likelihoods = np.stack([option.likelihoods for option in each.options], axis=1)
        rows = compressor._drawn(
            compressor.mixture, compression.CHOOSING_ROWS, np.random.default_rng([0, 1])
        )
        lost = joined.log_evidence(rows) - compressor.mixture.log_evidence(rows)
        np.testing.assert_allclose(np.log(likelihoods @ each.shares), lost, atol=1e-4)


def test_versions_are_compared_by_what_the_whole_mixture_loses():
    """Of two equal parts one is left out, and nothing is lost."""
    rng = np.random.default_rng(0)
    slope, roots = rng.normal(0, 1, (8, 6)), np.full((8, 6), 8, dtype=np.int32)
    trees = TreeModel.make(-np.logaddexp(0, slope).sum(axis=0), slope, roots, np.zeros((8, 6)))
    same = Mixture(trees, np.full(6, -np.log(6)))
    joined = Mixture.join([same, same], np.array([0.5, 0.5]))
    judges = merge_equal_rows(EVERYTHING, np.exp(joined.log_evidence(EVERYTHING)))[0]
    found = Compressor(joined, ["tree", "tree"], judges, n_jobs=1).to_loss(1e-9)
    assert found.mixture.log_prior.size == 6
    assert abs(found.loss) < 1e-9
    assert len(found.parts) == 1


def test_the_best_way_is_taken(compressor, monkeypatch):
    found = compressor.to_size(200)
    ways = [replace(found, after=after) for after in (-5.0, -3.0, -4.0)]
    monkeypatch.setattr(Compressor, "_ways", lambda self, combination: iter(ways))
    assert compressor.to_size(200) is ways[1]


def test_what_loses_more_than_was_asked_for_is_not_taken(compressor, monkeypatch):
    before = compressor._before
    smaller = compressor.to_size(compressor.mixture.n_parameters // 3)
    tried = replace(smaller, before=before, after=before * 1.01)
    monkeypatch.setattr(Compressor, "_ways", lambda self, combination: iter([tried]))
    assert compressor.to_loss(0.0101) is tried
    assert compressor.to_loss(0.0099).mixture is compressor.mixture


def test_the_version_that_loses_least_per_parameter_comes_next():
    likelihoods = [[(1.9, 0.1), (0.9, 0.1), (0, 0)], [(0.1, 1.9), (0.2, 1.7), (0, 0)]]
    options = [
        [Option(None, size, np.array(each)) for size, each in zip((10, 5, 0), some, strict=True)]
        for some in likelihoods
    ]
    number, versions = _cheapest(options, [some[0] for some in options], np.full(2, 0.5))
    assert (number, versions) == (1, [options[1][1]])


def test_larger_versions_that_lose_less_come_before_a_smaller_one():
    options = [Option(None, size, np.ones(1)) for size in (90, 70, 50, 30, 0)]
    until = _until(options, [0.1, 0.5, 0.2, 0.3, 0.4], 4)
    assert [option.size for option in until] == [90, 50, 30, 0]
    assert _until(options, [0.1, 0.5, 0.2, 0.3, 0.4], 1) == options[:2]


@pytest.fixture(params=["listed", "drawn"])
def to_fit(request, monkeypatch, density):
    if request.param == "drawn":
        monkeypatch.setattr(compression, "MOST_LISTED", 4)
        monkeypatch.setattr(compression, "DRAWN_ROWS", 20_000)
        monkeypatch.setattr(compression, "MOST_DRAWN", 40_000)
    families = [member["family"] for member in density.members_]
    judges = merge_equal_rows(EVERYTHING, np.ones(256))[0]
    return Compressor(density._mixture(), families, judges, n_jobs=1)


def test_components_learn_from_the_whole_mixture(to_fit):
    """Those of all families together: divergence falls, and parts without EM keep theirs."""
    examples, held = to_fit._to_fit
    likelihoods = np.exp(to_fit.mixture.log_evidence(EVERYTHING))
    order = np.argsort((examples.observed.symbols() @ (1 << np.arange(8))).astype(int))
    if held is examples:
        by_state = likelihoods[np.argsort(STATES @ (1 << np.arange(8)))]
        np.testing.assert_allclose(examples.weights[order] / examples.total, by_state)
    else:
        assert examples.total == 40_000
        assert held.total == compression.CHOOSING_ROWS
    parts = [
        part if not can_refit(part) else part.pruned(60, np.exp(part.mixture.log_prior))
        for part in to_fit._parts
    ]
    assert {can_refit(part) for part in parts} == {True, False}
    after = refitted(parts, examples, held, to_fit.named, 1, Event())
    total = sum(part.share for part in after)
    assert total == pytest.approx(1)
    for old, new in zip(parts, after, strict=True):
        assert new.mixture.n_parameters == old.mixture.n_parameters
        np.testing.assert_allclose(np.exp(new.mixture.log_evidence(EVERYTHING)).sum(), 1)
        scores = [each.mixture.log_evidence(EVERYTHING) for each in (old, new)]
        assert np.array_equal(*scores) != can_refit(old)
    worth = [
        likelihoods @ to_fit._joined(some).mixture.log_evidence(EVERYTHING)
        for some in (parts, after)
    ]
    assert worth[1] > worth[0] + 1e-3
    assert worth[1] < likelihoods @ np.log(likelihoods)


@pytest.mark.parametrize("limit", ["SCORES", "WORK"])
def test_components_that_are_too_many_are_not_refitted(to_fit, monkeypatch, limit):
    assert len(list(to_fit._ways(to_fit._path[1]))) == 2
    monkeypatch.setattr(compression, limit, 1500)
    assert len(list(to_fit._ways(to_fit._path[1]))) == 1


def test_of_wide_rows_fewer_are_drawn(to_fit, monkeypatch):
    monkeypatch.setattr(compression, "MOST_LISTED", 4)
    monkeypatch.setattr(compression, "ENTRIES", 8 * 99)
    examples, _ = to_fit._to_fit
    assert examples.weights.size >= 100
    assert examples.total % 100 == 0


def test_what_was_found_is_returned_when_it_is_stopped(compressor):
    stop, lines = Event(), []

    def report(text):
        lines.append(text)
        stop.set()

    stopped = replace(compressor, report=report, stop=stop)
    found = stopped.to_loss(0.01)
    assert found.loss <= 0.01
    assert len(lines) < 5
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


def test_tables_with_columns_of_several_kinds_are_compressed(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 500)
    table = pd.DataFrame(
        {
            "length": rng.normal(3 * kind, 1),
            "eggs": rng.poisson(2 + 3 * kind),
            "colour": pd.Categorical(rng.choice(list("xyz"), 500)),
        }
    )
    families = ["mixed"]
    density = ExchangeableDensity(families, n_init=2, max_iter=10, random_state=0)
    density.fit(table[:300], X_valid=table[300:400])
    small = density.compress(table[400:], loss=0.01)
    assert small.n_parameters_ < density.n_parameters_
    assert small.score(table[400:]) >= density.score(table[400:]) * 1.01
    exchangeable.save(small, tmp_path / "small")
    np.testing.assert_allclose(
        exchangeable.load(tmp_path / "small").score_samples(table), small.score_samples(table)
    )
