"""Covariates of class membership: against the likelihood written out, the truth, and nonsense."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from exchangeable import ExchangeableMixture, ModelFileError, load, save
from exchangeable.classes import covariate_effects, standard_errors
from exchangeable.classes.regression.design import Design
from exchangeable.classes.regression.logit import _Problem, fit_logit, log_priors
from exchangeable.classes.regression.three_step import bch_weights, error_table
from made_classes import PRECISE, RATES, hessian, log_likelihood, softmax

TRUTH = np.array([[0.0, 0.0, 0.0], [0.5, 1.0, -0.8]])


def survey(n_rows=1500, seed=0, truth=TRUTH):
    """Return answers, covariates and classes."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, 2)) * [1.0, 2.0] + [0.0, 3.0]
    chance = np.exp(softmax(np.column_stack([np.ones(n_rows), Z]) @ truth.T))
    kind = (rng.random(n_rows) > chance[:, 0]).astype(int)
    X = (rng.random((n_rows, 5)) < RATES[kind]).astype(float)
    return X, Z, kind


@pytest.fixture(scope="module")
def fitted():
    X, Z, _ = survey()
    model = ExchangeableMixture(2, n_init=5, random_state=0, **PRECISE).fit(X)
    return model, X, Z


def oriented(model, coefficients):
    """Return coefficients of the second class of the truth against the first."""
    first = int(model.profiles().values[0].argmax())
    return coefficients[1 - first] - coefficients[first]


@pytest.mark.parametrize("method", ["bch", "ml"])
@pytest.mark.parametrize("assignment", ["modal", "proportional"])
def test_three_steps_recover_the_truth(fitted, method, assignment):
    model, X, Z = fitted
    found = covariate_effects(model, X, Z, method=method, assignment=assignment)
    own = oriented(model, found.coefficients)
    errors = found.errors[1]
    assert (np.abs(own - TRUTH[1]) < 3 * errors).all()
    naive = LogisticRegression(C=np.inf).fit(Z, model.predict(X))
    assert np.abs(own[1:]).sum() > 1.1 * np.abs(naive.coef_).sum()  # errors attenuate effects
    assert found.tests["z0"][2] < 1e-6


def test_maximum_likelihood_is_the_maximum_of_the_likelihood_of_assignments(fitted):
    model, X, Z = fitted
    share = model.predict_proba(X)
    table = error_table(share, np.ones(len(X)), "modal")
    design = np.column_stack([np.ones(len(X)), Z])

    def loss(beta):
        prior = np.exp(softmax(np.column_stack([np.zeros(len(X)), design @ beta])))
        return -np.log((prior * table[:, share.argmax(axis=1)].T).sum(axis=1)).sum()

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-6}).x
    found = covariate_effects(model, X, Z, method="ml")
    np.testing.assert_allclose(found.coefficients[1], best, atol=1e-4)


def test_bch_weights_undo_the_errors(fitted):
    model, X, _ = fitted
    share, weight = model.predict_proba(X), np.random.default_rng(0).uniform(0.5, 2, len(X))
    found = bch_weights(share, weight, "modal")
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(weight @ found, weight @ share, rtol=1e-9)
    with pytest.raises(ValueError, match="nothing to correct by"):
        bch_weights(np.tile([0.6, 0.4], (20, 1)), np.ones(20), "modal")


def test_known_classes_are_plain_logistic_regression():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 2))
    y = rng.integers(0, 3, 400) * (Z[:, 0] > -0.5)
    design = np.column_stack([np.ones(400), Z])
    found = fit_logit(design, np.ones(400), shares=np.eye(3)[y])
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(Z, y)
    own = np.column_stack([peer.intercept_, peer.coef_])
    np.testing.assert_allclose(found.coefficients, own - own[0], atol=1e-4)
    np.testing.assert_allclose(np.exp(log_priors(design, own)), peer.predict_proba(Z), atol=1e-8)


def test_the_reference_class_changes_signs_and_nothing_else(fitted):
    model, X, Z = fitted
    first, second = (covariate_effects(model, X, Z, reference=y) for y in (0, 1))
    np.testing.assert_allclose(first.coefficients[1], -second.coefficients[0])
    np.testing.assert_allclose(first.errors[1], second.errors[0])
    assert first.tests["z1"] == pytest.approx(second.tests["z1"])
    odds = first.as_table().columns["odds ratio"]
    assert np.isnan(odds[0])  # of the intercept, which is no ratio that anybody reads
    assert odds[1] == pytest.approx(np.exp(first.coefficients[1, 1]))
    with pytest.raises(ValueError, match="reference=2 is not a class"):
        covariate_effects(model, X, Z, reference=2)


def test_one_step_is_the_maximum_of_the_whole_likelihood():
    X, Z, _ = survey(800, seed=1)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(Z, columns=["age", "years"])
    model = ExchangeableMixture(2, n_init=5, random_state=0, **PRECISE)
    model.fit(X, covariates=frame)
    assert (np.abs(oriented(model, model.coefficients_) - TRUTH[1]) < 0.5).all()
    design = np.column_stack([np.ones(len(X)), Z])

    def worth(point):
        prior = softmax(np.column_stack([np.zeros(len(X)), design @ point[:3]]))
        each = 1 / (1 + np.exp(-point[3:].reshape(2, 5)))
        known = ~np.isnan(X)
        on = np.where(known, X, 0.0)[:, None] == 1
        rows = np.where(known[:, None], np.where(on, each, 1 - each), 1.0).prod(axis=2)
        return float(np.log((rows * np.exp(prior)).sum(axis=1)).sum())

    rates = model.profiles().values
    at = np.concatenate([model.coefficients_[1], np.log(rates / (1 - rates)).T.ravel()])
    assert model.log_likelihood_ == pytest.approx(worth(at) / len(X))
    gradient = [(worth(at + s) - worth(at - s)) / 2e-5 for s in 1e-5 * np.eye(at.size)]
    assert np.abs(gradient).max() < 0.05
    found = covariate_effects(model, X, frame, method="one-step")
    covariance = np.linalg.inv(-hessian(worth, at))
    np.testing.assert_allclose(found.errors[1], np.sqrt(np.diag(covariance))[:3], rtol=1e-3)
    assert found.terms == ["(intercept)", "age", "years"]


def test_a_fit_with_covariates_predicts_with_them_and_is_saved(tmp_path):
    X, Z, kind = survey(800, seed=1)
    groups = pd.DataFrame({"old": np.where(Z[:, 0] > 0, "yes", "no"), "years": Z[:, 1]})
    model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0)
    model.fit(X, covariates=groups)
    with_them = model.predict_proba(X, covariates=groups)
    direct = model._model.score(model._observed(X)) + log_priors(
        np.column_stack([np.ones(800), groups["old"] == "yes", Z[:, 1]]), model.coefficients_
    )
    np.testing.assert_allclose(with_them, np.exp(softmax(direct)))
    right = max(np.mean(model.predict(X, covariates=groups) == k) for k in (kind, 1 - kind))
    assert right > max(np.mean(model.predict(X) == k) for k in (kind, 1 - kind))
    assert model.n_parameters_ == 2 * 5 + 3
    with pytest.raises(ValueError, match="fit without covariates for tests and errors"):
        standard_errors(model, X)
    save(model, tmp_path / "m.exch")
    again = load(tmp_path / "m.exch")
    np.testing.assert_array_equal(again.predict_proba(X, covariates=groups), with_them)
    damaged = load(tmp_path / "m.exch")
    damaged.coefficients_ = damaged.coefficients_[:, :1]
    save(damaged, tmp_path / "damaged.exch")
    with pytest.raises(ModelFileError, match="coefficients_"):
        load(tmp_path / "damaged.exch")
    damaged.covariates_ = [{"name": 3}]
    save(damaged, tmp_path / "damaged.exch")
    with pytest.raises(ModelFileError, match="not a description of covariates"):
        load(tmp_path / "damaged.exch")
    with pytest.raises(ValueError, match="expected one of"):
        model.predict(X, covariates=groups.assign(old="maybe"))
    with pytest.raises(ValueError, match="has 799 rows, but X has 800"):
        model.predict(X, covariates=groups[1:])
    model.fit(X)
    assert not hasattr(model, "coefficients_")
    with pytest.raises(ValueError, match="were not given to fit"):
        model.predict(X, covariates=groups)
    with pytest.raises(ValueError, match="needs a mixture fitted with covariates"):
        covariate_effects(model, X, groups, method="one-step")


def test_columns_of_other_kinds_have_covariates_too():
    X, Z, kind = survey(500, seed=2)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(hours=rng.normal(2 * kind, 1))
    model = ExchangeableMixture(2, n_init=3, random_state=0).fit(frame, covariates=Z[:, 0])
    found = covariate_effects(model, frame, Z[:, 0], method="one-step")
    assert abs(found.coefficients[1, 1]) > 3 * found.errors[1, 1] > 0


def test_families_without_row_priors_refuse_covariates():
    X, Z, _ = survey(200)
    with pytest.raises(ValueError, match="give blocks='independent'"):
        ExchangeableMixture(2, family="urns", random_state=0).fit(X, covariates=Z)


def test_perfect_separation_gives_a_message_and_no_number():
    X, _, kind = survey(300, seed=0)
    X = np.column_stack([X, X, X, X])  # classes are certain
    model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0).fit(X)
    separating = np.column_stack(
        [model.predict(X) * 1.0, np.random.default_rng(0).normal(size=300)]
    )
    for method in ("ml", "bch"):
        with pytest.warns(UserWarning, match="perfect separation.*z0 for class 1"):
            found = covariate_effects(model, X, separating, method=method)
        assert np.isnan(found.coefficients[1, :2]).all()
        assert np.isnan(found.errors[1, 1])
        assert np.isnan(found.tests["z0"][0])
        assert "—" in str(found)
    one_step = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0)
    with pytest.warns(UserWarning, match="perfect separation"):
        one_step.fit(X, covariates=separating)
    assert np.isfinite(one_step.predict_proba(X, covariates=separating)).all()
    with pytest.warns(UserWarning, match="perfect separation"):
        found = covariate_effects(one_step, X, separating, method="one-step")
    assert np.isnan(found.coefficients[1, 1])
    assert len(kind) == 300


def test_covariates_that_cannot_be_estimated_are_refused(fitted):
    model, X, Z = fitted
    cases = {
        "covariate 'b' is constant": pd.DataFrame({"a": Z[:, 0], "b": 1.0}),
        "covariate 'b' is a linear combination": pd.DataFrame({"a": Z[:, 0], "b": 2 * Z[:, 0] + 1}),
        "covariate 'a' is missing in 1 rows": pd.DataFrame(
            {"a": np.where(Z[:, 0] == Z[0, 0], np.nan, 1)}
        ),
        "is constant \\('x' in all rows\\)": pd.DataFrame({"a": ["x"] * len(X)}),
        "the limit is 100": pd.DataFrame({"a": [f"n{i}" for i in range(len(X))]}),
    }
    for message, covariates in cases.items():
        with pytest.raises(ValueError, match=message):
            covariate_effects(model, X, covariates)
    with pytest.raises(ValueError, match="for 3 coefficients per class"):
        Design.of(Z[:3])
    single = ExchangeableMixture(1, blocks="independent").fit(X)
    with pytest.raises(ValueError, match="has one class"):
        covariate_effects(single, X, Z)


def test_weights_are_repeated_rows(fitted):
    model, X, Z = fitted
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    first = covariate_effects(model, X, Z, sample_weight=weight)
    second = covariate_effects(model, X[repeated], Z[repeated])
    np.testing.assert_allclose(first.coefficients, second.coefficients, atol=1e-6)
    assert log_likelihood(X[:3], np.log(model.weights_), model.profiles().values.T) < 0


def test_the_observed_information_is_the_second_derivative():
    rng = np.random.default_rng(6)
    design = np.column_stack([np.ones(50), rng.normal(size=50)])
    problem = _Problem(design, rng.random(50), None, rng.normal(size=(50, 3)))
    at = rng.normal(size=4)
    scores, _, observed = problem.derivatives(at.reshape(2, 2))
    step, unit = 1e-4, np.eye(4)

    def worth(beta):
        return problem.worth(beta.reshape(2, 2))

    slope = [(worth(at + step * e) - worth(at - step * e)) / (2 * step) for e in unit]
    np.testing.assert_allclose(problem.weight @ scores, slope, atol=1e-6)
    curve = [
        [
            (worth(at + step * (e + f)) - worth(at + step * (e - f)))
            - (worth(at - step * (e - f)) - worth(at - step * (e + f)))
            for f in unit
        ]
        for e in unit
    ]
    np.testing.assert_allclose(observed, -np.array(curve) / (4 * step**2), atol=1e-4)
