"""Matching the classes of one fit with those of another, by agreement."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from exchangeable.arrays import FloatArray, IntArray


class Matching(NamedTuple):
    """The match of the classes of a fit with those of a reference.

    Attributes
    ----------
    order : array of shape (n_classes,)
        The class of the fit that matches each class of the reference.
    agreement : float
        Share of the rows whose most probable class is then the same.
    """

    order: IntArray
    agreement: float


def match_classes(reference: FloatArray, posterior: FloatArray, weights: FloatArray) -> Matching:
    """Match classes so that posteriors of the same rows agree as well as possible.

    Parameters
    ----------
    reference, posterior : arrays of shape (n_rows, n_classes)
        Posteriors of the same rows under both fits.
    weights : array of shape (n_rows,)
        The rows' weights.

    Examples
    --------
    >>> first = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> match_classes(first, first[:, ::-1], np.ones(2)).order.tolist()
    [1, 0]
    """
    agreement = reference.T @ (weights[:, None] * posterior)
    rows, order = linear_sum_assignment(-agreement)
    order = order[np.argsort(rows)].astype(np.int64)
    same = reference.argmax(axis=1) == posterior[:, order].argmax(axis=1)
    return Matching(order, float(weights @ same / weights.sum()))
