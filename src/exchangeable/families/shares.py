"""Weights of several models in a mixture of them, chosen on held-out rows."""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.runtime.clock import Clock

LEAST_SHARE = 0.02
"""Models with a smaller share are left out."""
LEAST_SLOPE = 2e-4
"""Minimum gain of an additional model per unit of share, when it is added."""
MOST_MODELS = 32
STEPS = 200
"""Maximum number of EM steps for the shares whenever a model is added."""
TOLERANCE = 1e-6
FEW_ROWS = 8
"""With fewer rows there is no cross-validation."""
ENDLESS = Clock()


def fit_shares(
    log_likelihoods: FloatArray, weights: FloatArray, clock: Clock = ENDLESS
) -> FloatArray:
    """Return the share of each model in the best mixture of them, without small shares.

    It begins with the best single model and adds the most helpful one as long as one helps.

    Parameters
    ----------
    log_likelihoods : array of shape (n_rows, n_models)
        The log-probability of each row under each model.
    weights : array of shape (n_rows,)
        The rows' weights.
    clock : Clock
        Stops the addition of models.

    Examples
    --------
    >>> log_likelihoods = np.log([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.9, 0.1]])
    >>> fit_shares(log_likelihoods, np.ones(3)).round(2).tolist()
    [0.29, 0.71, 0.0]
    """
    likelihoods, total = _relative(log_likelihoods), float(weights.sum())
    n_models = log_likelihoods.shape[1]
    shares = np.zeros(n_models)
    shares[int(np.argmax(weights @ log_likelihoods))] = 1.0
    able = shares == 0
    while able.any() and np.count_nonzero(shares) < MOST_MODELS and not clock.over:
        evidence = np.maximum(likelihoods @ shares, 1e-300)
        slopes = np.where(able, (weights / evidence) @ likelihoods / total, 0.0)
        added = int(np.argmax(slopes))
        if slopes[added] < 1 + LEAST_SLOPE:
            break
        able[added] = False
        kept = np.flatnonzero(shares)
        first = np.append(shares[kept] * kept.size, 1.0) / (kept.size + 1)
        kept = np.append(kept, added)
        fitted = _em(likelihoods[:, kept], weights, first)
        while fitted.min() < LEAST_SHARE:
            kept = np.delete(kept, fitted.argmin())
            first = np.delete(fitted, fitted.argmin())
            fitted = _em(likelihoods[:, kept], weights, first / first.sum())
        following = np.zeros(n_models)
        following[kept] = fitted
        if _worth(likelihoods, weights, following) > _worth(likelihoods, weights, shares):
            shares = following
    return shares


def cross_fitted(log_likelihoods: FloatArray, weights: FloatArray, clock: Clock = ENDLESS) -> float:
    """Return the cross-validated log-likelihood of rows: shares are fitted to other rows.

    Unlike the log-likelihood of the fitted rows, it does not automatically grow with the number of
    models. Rows that occur several times are split in half.
    """
    if len(weights) < FEW_ROWS:
        return mixed(log_likelihoods, weights, fit_shares(log_likelihoods, weights, clock))
    once = weights < 2 * np.median(weights)
    turn = np.zeros(len(weights), dtype=bool)
    turn[once] = np.arange(once.sum()) % 2 == 0
    total = 0.0
    for here in (np.where(once, turn, 0.5), np.where(once, ~turn, 0.5)):
        there = weights * (1 - here)
        shares = fit_shares(log_likelihoods[there > 0], there[there > 0], clock)
        own = weights * here
        total += mixed(log_likelihoods[own > 0], own[own > 0], shares) * float(own.sum())
    return total / float(weights.sum())


def mixed(log_likelihoods: FloatArray, weights: FloatArray, shares: FloatArray) -> float:
    """Return the average log-likelihood of rows under a mixture of models."""
    highest = log_likelihoods.max(axis=1)
    with np.errstate(divide="ignore"):
        each = np.log(_relative(log_likelihoods) @ shares) + highest
    return float(weights @ each / weights.sum())


def _relative(log_likelihoods: FloatArray) -> FloatArray:
    """Return likelihoods, relative to the best model of each row."""
    highest = log_likelihoods.max(axis=1, keepdims=True)
    return np.exp(log_likelihoods - np.where(np.isfinite(highest), highest, 0.0))


def _worth(likelihoods: FloatArray, weights: FloatArray, shares: FloatArray) -> float:
    return float(weights @ np.log(np.maximum(likelihoods @ shares, 1e-300)))


def _em(likelihoods: FloatArray, weights: FloatArray, shares: FloatArray) -> FloatArray:
    for _ in range(STEPS):
        evidence = np.maximum(likelihoods @ shares, 1e-300)
        totals = np.maximum(shares * ((weights / evidence) @ likelihoods), 1e-300)
        following = totals / totals.sum()
        moved = float(np.abs(following - shares).max())
        shares = following
        if moved < TOLERANCE:
            break
    return np.asarray(shares)
