"""Folds of rows for cross-validation."""

import numpy as np

from exchangeable.arrays import IntArray


def make_folds(labels: IntArray, n_folds: int) -> IntArray:
    """Return the fold of each row, at random, with equal numbers (±1) per class in every fold.

    Classes with a single row are spread over different folds.

    >>> make_folds(np.array([0, 0, 0, 0, 1, 1]), 2).tolist()
    [1, 0, 0, 1, 0, 1]
    """
    fold = np.empty(labels.size, dtype=np.int64)
    rng = np.random.default_rng(0)
    for y in np.unique(labels):
        members = np.flatnonzero(labels == y)
        fold[rng.permutation(members)] = (np.arange(members.size) + y) % n_folds
    return fold
