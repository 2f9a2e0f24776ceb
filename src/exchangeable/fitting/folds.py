"""Folds of rows, for what is judged by rows that it has not seen."""

import numpy as np

from exchangeable.arrays import IntArray


def make_folds(labels: IntArray, n_folds: int) -> IntArray:
    """Return the fold of each row: in each class every fold has as many, to one, in random order.

    Classes of a single row each are in different folds, so that no fold has them all.

    >>> make_folds(np.array([0, 0, 0, 0, 1, 1]), 2).tolist()
    [1, 0, 0, 1, 0, 1]
    """
    fold = np.empty(labels.size, dtype=np.int64)
    rng = np.random.default_rng(0)
    for y in np.unique(labels):
        members = np.flatnonzero(labels == y)
        fold[rng.permutation(members)] = (np.arange(members.size) + y) % n_folds
    return fold
