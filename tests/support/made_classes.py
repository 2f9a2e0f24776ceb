"""Answers of known latent classes, and the likelihood of their parameters written out."""

import numpy as np

PRECISE = {"blocks": "independent", "alpha": 1e-9, "tol": 1e-12, "max_iter": 5000}
"""Options of fits that end at the maximum of the likelihood."""
RATES = np.array([[0.85, 0.8, 0.2, 0.15, 0.75], [0.2, 0.25, 0.8, 0.85, 0.3]])
"""How often items are answered with yes in two classes."""


def answers(n_rows=600, rates=RATES, shares=(0.4, 0.6), holes=0.0, seed=0):
    """Return answers of latent classes, with holes, and the classes."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(shares), size=n_rows, p=shares)
    X = (rng.random((n_rows, rates.shape[1])) < rates[kind]).astype(np.float64)
    X[rng.random(X.shape) < holes] = np.nan
    return X, kind


def log_likelihood(X, log_prior, rates, weight=None):
    """Return the log-likelihood of binary answers, holes left out."""
    known = ~np.isnan(X)
    on = np.where(known, X, 0.0)[:, None, :] == 1
    each = np.where(known[:, None, :], np.where(on, rates, 1 - rates), 1.0).prod(axis=2)
    rows = np.log((each * np.exp(log_prior)).sum(axis=1))
    return float(rows.sum() if weight is None else weight @ rows)


def softmax(scores):
    """Return log-probabilities."""
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))


def hessian(function, at, step=1e-4):
    """Return second derivatives by central differences."""
    n = at.size
    result = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            total = 0.0
            for a in (1, -1):
                for b in (1, -1):
                    point = at.copy()
                    point[i] += a * step
                    point[j] += b * step
                    total += a * b * function(point)
            result[i, j] = total / (4 * step * step)
    return result
