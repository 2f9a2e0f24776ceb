"""Fits to many sets of rows end where those of estimators do."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from exchangeable import ExchangeableMixture
from exchangeable.classes.uncertainty.drawing import drawn_examples
from exchangeable.data.examples import merge_equal_rows
from exchangeable.queries.answers import class_posterior
from made_classes import answers, log_likelihood
from made_rows import clusters


def refit(model, X, restarts=0, weight=None):
    observed = model._observed(X)
    weight = np.ones(observed.n_rows) if weight is None else weight
    examples = merge_equal_rows(observed, weight)[0]
    start = class_posterior(model._mixture(), examples.observed)
    return model._refits().fit(examples, np.random.default_rng(0), start, restarts)


def test_compiled_fits_reach_the_maximum_of_the_likelihood(two_classes):
    model, X = two_classes
    found = refit(model, X)
    assert found.converged
    rates = np.stack([share[1] for share in found.mixture.model.level_shares()], axis=1)
    own = log_likelihood(X, found.mixture.log_prior, rates)
    assert found.log_likelihood == pytest.approx(own, abs=1e-8)
    assert found.log_likelihood == pytest.approx(model.score_samples(X).sum(), abs=1e-4)
    np.testing.assert_allclose(np.exp(found.mixture.log_prior), model.weights_, atol=2e-3)


def test_compiled_fits_smooth_and_weigh_as_estimators_do():
    X, _ = answers(200, seed=3)
    weight = np.random.default_rng(1).uniform(0.5, 3.0, 200)
    options = {"blocks": "independent", "alpha": 2.0, "tol": 1e-11, "max_iter": 5000}
    model = ExchangeableMixture(2, random_state=0, **options).fit(X, sample_weight=weight)
    found = refit(model, X, weight=weight)
    shares = found.mixture.model.level_shares()
    values = np.stack([shares[j][1] for j in range(5)])
    np.testing.assert_allclose(values, model.profiles().values, atol=1e-3)


def test_random_starts_find_what_many_runs_find():
    X = clusters(500, 8, 3, seed=2)
    options = {"blocks": "independent", "tol": 1e-9, "max_iter": 2000}
    best = ExchangeableMixture(3, n_init=20, random_state=0, **options).fit(X)
    poor = ExchangeableMixture(3, max_iter=1, blocks="independent", random_state=0)
    with pytest.warns(match="did not converge"):
        poor.fit(X)
    poor.set_params(**options)
    found = refit(poor, X, restarts=20)
    assert found.log_likelihood == pytest.approx(best.score_samples(X).sum(), abs=0.05)


def test_levels_with_many_columns_and_holes():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    frame = pd.DataFrame(
        {f"q{j}": pd.Categorical(kind + rng.integers(0, 2, 400)) for j in range(7)}
    ).mask(rng.random((400, 7)) < 0.2)
    model = ExchangeableMixture(2, tol=1e-10, max_iter=3000, random_state=0)
    model.fit(frame)
    found = refit(model, frame)
    assert found.log_likelihood == pytest.approx(model.score_samples(frame).sum(), abs=5e-3)


def test_rows_whose_probability_is_no_number_any_more():
    """Of 1,500 answers, e^−750 or so, and complete rows beside some with few answers."""
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.3, 0.7, (2, 1500))
    X, _ = answers(60, rates, seed=1)
    X[::2, 10:] = np.nan
    options = {"blocks": "independent", "alpha": 1.0, "tol": 1e-12, "max_iter": 3000}
    model = ExchangeableMixture(2, random_state=0, **options).fit(X)
    scores = model.score_samples(X)
    assert scores.min() < np.log(np.finfo(float).tiny)
    assert refit(model, X).log_likelihood == pytest.approx(scores.sum(), abs=1e-3)


@pytest.mark.parametrize("options", [{"family": "urns"}, {"blocks": "full"}, {"blocks": "welch"}])
def test_other_families_are_fitted_by_em(options):
    X = clusters(300, 6, 2, seed=1)
    model = ExchangeableMixture(2, n_init=3, random_state=0, tol=1e-7, **options).fit(X)
    found = refit(model, X, restarts=1)
    assert found.log_likelihood >= model.score_samples(X).sum() - 0.5


def test_drawn_rows_have_the_holes_and_the_frequencies_of_the_model(two_classes):
    model, X = two_classes
    observed = model._observed(X)
    rng = np.random.default_rng(0)
    drawn = drawn_examples(model._mixture(), observed, np.full(len(X), 20.0), rng)
    assert drawn.total == 20 * len(X)
    symbols = drawn.observed.symbols()
    assert drawn.weights @ (symbols < 0).mean(axis=1) / drawn.total == pytest.approx(
        np.isnan(X).mean(), abs=0.01
    )
    known = symbols >= 0
    means = drawn.weights @ (symbols == 1) / (drawn.weights @ known)
    np.testing.assert_allclose(means, model.profiles().values @ model.weights_, atol=0.03)


def test_fits_of_measurements_begin_with_the_given_posteriors():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 200)
    X = rng.normal(4.0 * kind[:, None], 1, (200, 3))
    model = ExchangeableMixture(2, kinds="continuous", n_init=3, random_state=0).fit(X)
    again = refit(model, X).mixture
    np.testing.assert_allclose(np.exp(again.log_prior), model.weights_, atol=1e-3)
    own = class_posterior(again, model._observed(X)).argmax(axis=1)
    np.testing.assert_array_equal(own, model.predict(X))


def test_sparse_counts_are_drawn_as_counts():
    rng = np.random.default_rng(0)
    counts = sp.csr_array(rng.poisson(np.where(rng.random((300, 1)) < 0.5, 0.1, 2.0), (300, 4)))
    model = ExchangeableMixture(2, kinds="count", n_init=3, random_state=0).fit(counts)
    drawn = drawn_examples(model._mixture(), model._observed(counts), np.ones(300), rng)
    values = drawn.observed.ones.values
    assert values.max() > 1
    mean = drawn.weights @ values / drawn.total
    np.testing.assert_allclose(mean, counts.toarray().mean(axis=0), atol=0.4)
