"""Standard errors: against numerical derivatives, other weights, and each other."""

import warnings

import numpy as np
import pandas as pd
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.classes import standard_errors
from exchangeable.classes.uncertainty import information
from exchangeable.classes.uncertainty.matching import match_classes
from made_classes import PRECISE, answers, hessian, log_likelihood, softmax


def test_the_information_is_the_second_derivative_of_the_likelihood(two_classes):
    model, X = two_classes
    rates = model.profiles().values

    def worth(point):
        prior = softmax(np.array([0.0, point[0]]))
        return log_likelihood(X, prior, 1 / (1 + np.exp(-point[1:].reshape(2, 5))))

    logits = np.log(rates / (1 - rates)).T.ravel()
    at = np.concatenate([[np.log(model.weights_[1] / model.weights_[0])], logits])
    shares = [np.stack([1 - p, p]) for p in rates]
    prior = np.tile(np.log(model.weights_), (len(X), 1))
    ones = np.ones(len(X))
    found = information.observed_information(shares, X, prior, ones[:, None], ones, robust=False)
    np.testing.assert_allclose(
        found.covariance, np.linalg.inv(-hessian(worth, at)), rtol=1e-4, atol=1e-6
    )
    errors = standard_errors(model, X, method="information", weighting="frequency")
    own = np.sqrt(np.diag(found.covariance))[1:].reshape(2, 5).T * rates * (1 - rates)
    np.testing.assert_allclose(errors.profiles.errors, own, rtol=1e-3)


def test_levels_and_covariates_are_in_the_information_too():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, (200, 3)).astype(float)
    values[rng.random(values.shape) < 0.1] = np.nan
    design = np.column_stack([np.ones(200), rng.normal(size=200)])
    weight = rng.uniform(0.5, 2, 200)
    at = rng.normal(size=2 + 2 * 6)

    def parts(point):
        prior = softmax(np.column_stack([np.zeros(200), design @ point[:2]]))
        items = point[2:].reshape(2, 3, 2)
        zeros = np.zeros((2, 3, 1))
        return prior, np.exp(softmax(np.concatenate([zeros, items], axis=2)))

    def worth(point):
        prior, shares = parts(point)
        joint = prior.copy()
        for j in range(3):
            known = ~np.isnan(values[:, j])
            joint[known] += np.log(shares[:, j, values[known, j].astype(int)]).T
        return float(weight @ np.log(np.exp(joint).sum(axis=1)))

    prior, shares = parts(at)
    tables = [shares[:, j].T for j in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no maximum: the information may have any sign
        found = information.observed_information(
            tables, values, prior, design, weight, robust=False
        )
    expected = -hessian(worth, at)
    if np.linalg.eigvalsh(expected)[0] > 0:
        np.testing.assert_allclose(found.covariance, np.linalg.inv(expected), rtol=1e-3, atol=1e-5)
    total = information._sums(tables, values, prior, design, weight)[0]
    np.testing.assert_allclose(total, expected, rtol=1e-4, atol=1e-3)


def test_bootstrap_and_information_agree(two_classes):
    model, X = two_classes
    drawn = standard_errors(model, X, n_draws=200, random_state=0)
    known = standard_errors(model, X, method="information")
    ratio = drawn.profiles.errors / known.profiles.errors
    assert ((ratio > 0.75) & (ratio < 1.35)).all()
    assert drawn.agreement > 0.9
    assert drawn.empty == 0
    low, high = drawn.profiles.interval
    assert ((low < drawn.profiles.values) & (drawn.profiles.values < high)).all()
    assert drawn.draws.shape == (200, 5, 2)


def test_frequencies_are_repeated_rows():
    X, _ = answers(60, seed=5)
    repeated = np.repeat(X, 4, axis=0)
    model = ExchangeableMixture(2, n_init=5, random_state=0, **PRECISE).fit(repeated)
    by_rows = standard_errors(model, repeated, method="information", weighting="frequency")
    weight = np.full(60, 4.0)
    options = {"method": "information", "weighting": "frequency", "sample_weight": weight}
    by_weight = standard_errors(model, X, **options)
    np.testing.assert_allclose(by_rows.profiles.errors, by_weight.profiles.errors, rtol=1e-6)
    drawn = standard_errors(
        model, X, sample_weight=weight, weighting="frequency", n_draws=100, random_state=0
    )
    clustered = standard_errors(model, X, sample_weight=weight, n_draws=100, random_state=0)
    assert (drawn.profiles.size_errors < 0.8 * clustered.profiles.size_errors).all()


def test_scaling_sampling_weights_changes_nothing(two_classes):
    X = two_classes[1]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    fitted = ExchangeableMixture(2, n_init=3, random_state=0, **PRECISE)
    fitted.fit(X, sample_weight=weight)
    first = standard_errors(fitted, X, method="information", sample_weight=weight)
    second = standard_errors(fitted, X, method="information", sample_weight=10 * weight)
    np.testing.assert_allclose(first.profiles.errors, second.profiles.errors, rtol=1e-6)


def test_replicate_weights_give_the_errors_of_their_design(two_classes):
    model, X = two_classes
    rng = np.random.default_rng(0)
    replicates = rng.multinomial(len(X), np.full(len(X), 1 / len(X)), size=120).T.astype(float)
    options = {"method": "replicates", "replicate_weights": replicates, "restarts": 0}
    found = standard_errors(model, X, random_state=0, **options)
    squares = ((found.draws - found.profiles.values) ** 2).mean(axis=0)
    np.testing.assert_allclose(found.profiles.errors, np.sqrt(squares))
    drawn = standard_errors(model, X, n_draws=120, restarts=0, random_state=0)
    ratio = found.profiles.errors / drawn.profiles.errors
    assert ((ratio > 0.6) & (ratio < 1.6)).all()
    doubled = standard_errors(model, X, random_state=0, replicate_scale=4 / 120, **options)
    np.testing.assert_allclose(doubled.profiles.errors, 2 * found.profiles.errors)
    with pytest.raises(ValueError, match="needs replicate_weights"):
        standard_errors(model, X, method="replicates")
    with pytest.raises(ValueError, match="at least two replicates"):
        standard_errors(model, X, method="replicates", replicate_weights=np.ones((len(X), 1)))
    with pytest.raises(ValueError, match="not negative"):
        standard_errors(model, X, method="replicates", replicate_weights=-replicates)


def test_switched_labels_are_matched():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet([0.3] * 4, size=100)
    order = np.array([2, 0, 3, 1])
    found = match_classes(posterior[:, order], posterior, np.ones(100))
    np.testing.assert_array_equal(found.order, order)
    assert found.agreement == 1.0


def test_estimates_on_the_boundary_have_no_standard_error():
    X, _ = answers(300, seed=1)
    X[:, 0] = 1.0
    options = PRECISE | {"alpha": 0.0}
    model = ExchangeableMixture(2, n_init=3, random_state=0, **options).fit(X)
    found = standard_errors(model, X, method="information")
    assert np.isnan(found.profiles.errors[0]).all()
    assert np.isnan(found.profiles.interval[:, 0]).all()
    assert np.isfinite(found.profiles.errors[1:]).all()
    assert "boundary" in found.profiles.note
    assert "1.000 (—)" in str(found.profiles)


def test_a_model_that_is_not_identified_has_no_standard_errors():
    X, _ = answers(300, rates=np.array([[0.8, 0.2], [0.2, 0.7]]), seed=0)
    model = ExchangeableMixture(2, blocks="independent", random_state=0).fit(X)
    with pytest.warns(UserWarning, match="2 more parameters than .* not identified"):
        found = standard_errors(model, X, method="information")
    assert np.isnan(found.profiles.errors).all()
    shares = [np.array([[0.4, 0.4], [0.6, 0.6]])] * 3
    prior, ones = np.full((len(X), 2), -np.log(2)), np.ones((len(X), 1))
    values = np.column_stack([X, X[:, 0]])
    with pytest.warns(UserWarning, match="singular: the model is not identified"):
        alike = information.observed_information(shares, values, prior, ones, ones[:, 0], False)
    assert np.isnan(alike.covariance).all()


def test_a_class_that_loses_its_rows_is_told():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.random((200, 12)) < 0.02, np.ones((2, 12))]).astype(float)
    model = ExchangeableMixture(2, blocks="independent", n_init=5, random_state=0).fit(X)
    assert model.weights_.min() == pytest.approx(2 / 202, abs=1e-3)
    with pytest.warns(UserWarning, match="lost its rows in .* of 60 draws: it may not exist"):
        found = standard_errors(model, X, n_draws=60, restarts=0, random_state=0)
    assert 1 <= found.empty <= 20  # neither of two rows is drawn in one of seven draws
    assert np.isfinite(found.profiles.errors).all()


def test_columns_without_levels_need_the_bootstrap():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 200)
    frame = pd.DataFrame({"a": rng.normal(3 * kind), "b": rng.poisson(1 + 3 * kind)})
    kinds = {"a": "continuous", "b": "count"}
    model = ExchangeableMixture(2, kinds=kinds, n_init=3, random_state=0).fit(frame)
    with pytest.raises(ValueError, match="use method='bootstrap'"):
        standard_errors(model, frame, method="information")
    found = standard_errors(model, frame, n_draws=20, random_state=0)
    assert [entry.answer for entry in found.profiles.entries] == ["mean", "SD", "mean"]
    assert (found.profiles.errors[0] < 0.4).all()
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        standard_errors(model, frame, level=95)


@pytest.mark.parametrize("method", ["information", "bootstrap"])
def test_fewer_rows_than_parameters(method):
    X, _ = answers(8, seed=0)
    model = ExchangeableMixture(2, blocks="independent", random_state=0).fit(X)
    with pytest.warns(match="8 rows are too few for standard errors of 11 parameters"):
        found = standard_errors(model, X, method=method, n_draws=5, random_state=0).profiles
    assert np.isnan(found.errors).all() == (method == "information")
    weight = np.full(8, 10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = {"method": "information", "weighting": "frequency", "sample_weight": weight}
        standard_errors(model, X, **options)
