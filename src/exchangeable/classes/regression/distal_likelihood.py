"""Distal outcomes by maximum likelihood: normal numbers or categories within classes."""

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from exchangeable.arrays import FloatArray

Variance = Callable[[FloatArray], FloatArray]
TOL, MAX_ITER = 1e-10, 5000
LEAST_VARIANCE = 1e-10
"""Relative to the variance of all rows."""
LEAST_SHARE = 1e-12


def fit_outcome(
    log_emission: FloatArray,
    weight: FloatArray,
    values: FloatArray,
    sizes: FloatArray,
    categories: bool,
    variance: Variance,
) -> tuple[FloatArray, FloatArray]:
    """Return means or shares in every class, shape (n_values, n_classes), and their covariance.

    Parameters
    ----------
    log_emission : array of shape (n_rows, n_classes)
        Log-probability of each row's assignment given each class.
    weight : array of shape (n_rows,)
        Weights.
    values : array of shape (n_rows, n_values)
        One column of numbers, or one for each category.
    sizes : array of shape (n_classes,)
        Class sizes, which are fixed.
    categories : bool
        Whether values are categories.
    variance : callable
        Returns the variance of the sum of the rows' contributions.
    """
    base = log_emission + np.log(sizes)
    posterior = np.exp(base - logsumexp(base, axis=1, keepdims=True))
    before = -np.inf
    for _ in range(MAX_ITER):
        estimates, spread = _maximised(values, weight, posterior, categories)
        log_outcome = _log_outcome(values, estimates, spread, categories)
        joint = base + log_outcome
        each = logsumexp(joint, axis=1)
        posterior = np.exp(joint - each[:, None])
        worth = float(weight @ each)
        if worth - before < TOL * max(1.0, abs(worth)):
            break
        before = worth
    scores, slopes = _scores(values, posterior, estimates, spread, categories)
    weighted = weight[:, None] * scores
    # The sandwich, so that weights need not be frequencies.
    bread = np.linalg.pinv(weighted.T @ scores, hermitian=True)
    return estimates, slopes @ bread @ variance(weighted) @ bread @ slopes.T


def _maximised(
    values: FloatArray, weight: FloatArray, posterior: FloatArray, categories: bool
) -> tuple[FloatArray, FloatArray]:
    mass = weight[:, None] * posterior
    totals = np.maximum(mass.sum(axis=0), LEAST_SHARE)
    estimates = values.T @ mass / totals
    if categories:
        return np.maximum(estimates, LEAST_SHARE), np.empty(0)
    squares = (values - estimates[0]) ** 2
    least = LEAST_VARIANCE * float(values.var()) + np.finfo(np.float64).tiny
    return estimates, np.maximum((mass * squares).sum(axis=0) / totals, least)


def _log_outcome(
    values: FloatArray, estimates: FloatArray, spread: FloatArray, categories: bool
) -> FloatArray:
    if categories:
        return np.asarray(values @ np.log(estimates))
    return np.asarray(-0.5 * (np.log(2 * np.pi * spread) + (values - estimates[0]) ** 2 / spread))


def _scores(
    values: FloatArray,
    posterior: FloatArray,
    estimates: FloatArray,
    spread: FloatArray,
    categories: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return derivatives of rows' log-likelihoods by parameters, and of estimates by parameters."""
    n_values, k = estimates.shape
    if categories:
        off = values[:, 1:, None] - estimates[None, 1:]
        # From logits against the first category, value-major, to shares.
        slopes = np.zeros((n_values, k, n_values - 1, k))
        for y in range(k):
            own = estimates[:, y]
            slopes[:, y, :, y] = (np.diag(own) - np.outer(own, own))[:, 1:]
        flat = slopes.reshape(n_values * k, (n_values - 1) * k)
        return (posterior[:, None, :] * off).reshape(len(values), -1), flat
    distance = values - estimates[0]
    means = posterior * distance / spread
    spreads = 0.5 * posterior * (distance**2 / spread - 1)
    return np.concatenate([means, spreads], axis=1), np.eye(k, 2 * k)
