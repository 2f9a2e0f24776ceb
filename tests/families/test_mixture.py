"""Mixtures of mixtures: their shares, against the likelihood itself."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import as_observed
from exchangeable.families.contract import Family
from exchangeable.families.joined import JoinedModel
from exchangeable.families.mixture import Mixture
from exchangeable.families.shares import LEAST_SHARE, cross_fitted, fit_shares, mixed
from made_rows import clusters, fit_mixture

RNG = np.random.default_rng(0)
KINDS = ((1, 1), (5, 3))


def test_shares_count_rows_by_their_weights():
    log_p = RNG.normal(-3, 1, (30, 3))
    weights = RNG.integers(1, 5, 30)
    weighted = fit_shares(log_p, weights.astype(float))
    np.testing.assert_allclose(
        weighted, fit_shares(np.repeat(log_p, weights, axis=0), np.ones(weights.sum()))
    )
    assert not np.allclose(weighted, fit_shares(log_p, np.ones(30)), atol=0.01)


def test_two_shares_are_those_under_which_the_rows_are_likeliest():
    log_p, weights = RNG.normal(-3, 1, (40, 2)), RNG.random(40)

    def loss(share):
        return -weights @ logsumexp(log_p + np.log([share, 1 - share]), axis=1)

    best = minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), method="bounded").x
    np.testing.assert_allclose(fit_shares(log_p, weights), [best, 1 - best], atol=1e-3)


def test_a_model_that_counts_for_little_is_left_out():
    log_p = np.log(RNG.random((2000, 2)))
    poor = np.full((2000, 1), -20.0)
    poor[:10] = 30.0  # good for half a per cent of the rows
    shares = fit_shares(np.hstack([log_p, poor]), np.ones(2000))
    assert shares[2] == 0
    np.testing.assert_allclose(shares[:2], fit_shares(log_p, np.ones(2000)), atol=1e-6)
    poor[:100] = 30.0  # five per cent, which is more than the least
    assert fit_shares(np.hstack([log_p, poor]), np.ones(2000))[2] > LEAST_SHARE


def test_many_models_alike_are_not_all_left_out():
    log_p = RNG.normal(-3, 0.5, (300, 80))
    shares = fit_shares(log_p, np.ones(300))
    np.testing.assert_allclose(shares.sum(), 1)
    assert shares[shares > 0].min() >= LEAST_SHARE
    assert mixed(log_p, np.ones(300), shares) > log_p.mean(axis=0).max()


def test_shares_fitted_to_other_rows_do_not_grow_with_noise():
    """Models that know nothing: fitted shares pretend to gain, those of other rows do not."""
    log_p = np.hstack([np.full((60, 1), -3.0), RNG.normal(-3.5, 1.0, (60, 20))])
    weights = np.ones(60)
    fitted = mixed(log_p, weights, fit_shares(log_p, weights))
    assert fitted > -2.95
    assert cross_fitted(log_p, weights) < fitted - 0.02
    assert cross_fitted(log_p[:, :1], weights) == pytest.approx(-3.0)
    repeated = cross_fitted(np.repeat(log_p[:1], 3, axis=0), np.array([5.0, 1.0, 1.0]))
    assert repeated == pytest.approx(
        mixed(log_p[:1], np.ones(1), fit_shares(log_p[:1], np.ones(1)))
    )


def test_shares_of_classes_are_shares_of_the_weight_and_none_is_zero():
    np.testing.assert_allclose(
        np.exp(Family.log_shares_of(np.array([1.0, 2.0, 5.0]))), [0.125, 0.25, 0.625], rtol=1e-12
    )
    log_shares = Family.log_shares_of(np.array([0.0, 3.0]))
    assert np.isfinite(log_shares).all()
    np.testing.assert_allclose(np.exp(log_shares), [0, 1], atol=1e-9)


@pytest.fixture(scope="module")
def mixtures():
    """Two mixtures, each fitted to other rows."""
    return [fit_mixture(clusters(300, seed=seed), k, max_iter=5)._mixture() for seed, k in KINDS]


def test_a_join_counts_held_out_rows_by_their_weights(mixtures):
    valid = np.concatenate([clusters(40, seed=seed) for seed, _ in KINDS])
    weights = np.repeat([1, 4], 40)
    merged = merge_equal_rows(as_observed(valid, None), weights.astype(float))[0]
    log_p = [each.model.log_likelihoods(each.log_prior, merged) for each in mixtures]
    shares = fit_shares(np.stack(log_p, axis=1), merged.weights)
    joined = Mixture.join(mixtures, shares)
    repeated = as_observed(np.repeat(valid, weights, axis=0), None)
    each = np.stack([mixture.log_posterior(repeated)[1] for mixture in mixtures], axis=1)
    np.testing.assert_allclose(shares, fit_shares(each, np.ones(repeated.n_rows)), atol=1e-9)
    assert (shares > 0).all()
    expected = logsumexp(each + np.log(shares), axis=1)
    np.testing.assert_allclose(joined.log_posterior(repeated)[1], expected, rtol=1e-10)


def test_an_average_is_the_mean_of_probabilities(mixtures):
    rows = as_observed(clusters(40, seed=4), None)
    each = np.stack([mixture.log_posterior(rows)[1] for mixture in mixtures])
    average = Mixture.average(mixtures)
    np.testing.assert_allclose(
        average.log_posterior(rows)[1], logsumexp(each, axis=0) - np.log(2), rtol=1e-10
    )
    assert average.n_parameters == sum(m.model.n_parameters for m in mixtures) + 3
    some = mixtures[1].only(np.array([0, 2]))
    expected = mixtures[1].log_prior[[0, 2]]
    np.testing.assert_allclose(some.log_prior, expected - logsumexp(expected))


def test_some_classes_of_a_joined_model_are_those_of_its_parts(mixtures):
    rows = as_observed(clusters(40, seed=4), None)
    joined = JoinedModel([mixture.model for mixture in (*mixtures, mixtures[1])])
    scores = joined.score(rows)
    assert scores.shape[1] == joined.n_classes == 7
    for chosen in ([0, 2, 3], [1, 6], [4, 5, 6]):
        some = joined.only(np.array(chosen))
        np.testing.assert_allclose(some.score(rows), scores[:, chosen], rtol=1e-12)
