"""Standard errors of items by the bootstrap and by replicate weights."""

import numpy as np
import pytest

from exchangeable import ExchangeableMixture, RaschModel
from exchangeable.classes import item_errors

rng = np.random.default_rng(0)
DIFFICULTY = np.linspace(-1.5, 1.5, 5)
CLASSES = np.stack([np.linspace(-2, 2, 6), np.linspace(2, -2, 6)])


def solved(difficulty, n_persons=400):
    ability = rng.normal(size=(n_persons, 1))
    chance = 1 / (1 + np.exp(difficulty - ability))
    return (rng.random(chance.shape) < chance).astype(float)


@pytest.fixture(scope="module")
def rasch():
    X = solved(DIFFICULTY)
    X[rng.random(X.shape) < 0.1] = np.nan
    return RaschModel(n_jobs=1).fit(X), X


def ratio(found, known):
    return found.standard_errors / known.standard_errors


def test_one_class(rasch):
    model, X = rasch
    found = item_errors(model, X, n_draws=150, random_state=0)
    assert (ratio(found.parameters, model.item_parameters_) > 0.8).all()
    assert (ratio(found.parameters, model.item_parameters_) < 1.25).all()
    np.testing.assert_array_equal(found.parameters.thresholds, model.item_parameters_.thresholds)
    np.testing.assert_allclose(found.parameters.covariance, np.cov(found.draws[:, :, 0].T))
    np.testing.assert_allclose(found.draws.sum(axis=1), 0.0, atol=1e-8)
    again = item_errors(model, X, n_draws=150, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(again.draws, found.draws)


def test_persons_who_are_there_twice_tell_nothing_new(rasch):
    model, X = rasch
    people = np.repeat(np.arange(len(X)), 2)
    options = {"n_draws": 150, "random_state": 0}
    apart = item_errors(model, X[people], **options).parameters
    together = item_errors(model, X[people], clusters=people, **options).parameters
    assert (ratio(together, model.item_parameters_) > 0.75).all()
    assert (ratio(apart, together) < 0.85).all()


def test_replicate_weights(rasch):
    model, X = rasch
    drop = 1.0 - (np.arange(len(X))[:, None] % 20 == np.arange(20))  # the jackknife, by groups
    options = {"replicate_weights": drop, "replicate_scale": 19 / 20}
    found = item_errors(model, X, **options)
    fits = [
        RaschModel(n_jobs=1).fit(X, sample_weight=w).item_parameters_.thresholds[:, 0]
        for w in drop.T
    ]
    off = np.array(fits) - model.item_parameters_.thresholds[:, 0]
    np.testing.assert_allclose(found.parameters.covariance, 0.95 * off.T @ off, atol=1e-10)
    with pytest.raises(ValueError, match="replicate weights know"):
        item_errors(model, X, strata=np.arange(len(X)) % 2, **options)


def test_classes_are_matched():
    X = np.concatenate([solved(own, 300) for own in CLASSES])
    model = RaschModel(2, n_init=3, random_state=0, n_jobs=1).fit(X)
    found = item_errors(model, X, n_draws=40, random_state=0)
    known = model.item_parameters_
    assert found.agreement > 0.9
    assert np.abs(found.draws.mean(axis=0) - known.thresholds).max() < 0.25
    between = ratio(found.parameters, known)
    assert ((between > 0.6) & (between < 1.5)).all()
    urns = ExchangeableMixture(2, family="urns", random_state=0, n_init=2, n_jobs=1).fit(X)
    drawn = item_errors(urns, X, n_draws=10, random_state=0)
    np.testing.assert_array_equal(drawn.parameters.thresholds, urns.item_parameters_.thresholds)
    assert np.isfinite(drawn.parameters.standard_errors).all()


def test_items_without_estimates_have_no_errors(rasch):
    _, X = rasch
    wider = np.column_stack([X, np.ones(len(X))])
    with pytest.warns(match="x5"):
        model = RaschModel(n_jobs=1).fit(wider)
    found = item_errors(model, wider, n_draws=20, random_state=0).parameters
    assert np.isnan(found.standard_errors[5, 0])
    assert np.isfinite(found.standard_errors[:5]).all()
