"""Rows made for tests, and fits that may end before they converge."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from exchangeable import ExchangeableMixture
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import as_observed


def clusters(n_rows=400, n_variables=6, n_kinds=3, seed=0):
    """Return rows of a few kinds, each with its own rates."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, n_kinds, n_rows)
    rates = rng.beta(0.6, 0.6, (n_kinds, n_variables))
    return (rng.random((n_rows, n_variables)) < rates[kind]).astype(np.uint8)


def topics(n_rows=400, n_variables=500, n_topics=5, seed=0):
    """Return sparse, wide rows: each topic has its own frequent words, most of all are rare."""
    rng = np.random.default_rng(seed)
    rates = 0.6 * rng.beta(0.2, 2.0, (n_topics, n_variables))
    kind = rng.integers(0, n_topics, n_rows)
    return (rng.random((n_rows, n_variables)) < rates[kind]).astype(np.uint8)


def bound_clusters(n_rows=400, n_variables=6, n_kinds=3, seed=0):
    """Return such rows with two variables that independent ones do not explain."""
    X = clusters(n_rows, n_variables, n_kinds, seed)
    X[:, 1] |= X[:, 0]
    return X


def with_holes(X, share=0.25, seed=0):
    """Return rows with some entries unknown."""
    holes = np.random.default_rng(seed).random(X.shape) < share
    return np.where(holes, np.nan, X)


def examples_of(X):
    """Return the distinct rows, as EM reads them."""
    return merge_equal_rows(as_observed(X, None), np.ones(len(X)))[0]


def fit_mixture(X, k=3, X_valid=None, **options):
    """Return a mixture fitted to rows, converged or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        options = dict(random_state=0) | options
        return ExchangeableMixture(k, **options).fit(X, X_valid=X_valid)
