"""How much a column of any kind would tell about the class: I(y; x | e) in nats."""

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp, xlogy

from exchangeable.arrays import FloatArray
from exchangeable.families.contract import Normal

NODES = 64
"""Of the quadrature of entropies of mixtures of normal distributions."""


def information(posterior: FloatArray, each: Sequence[FloatArray | Normal]) -> FloatArray:
    """Return how much a column would tell about the class, for every row.

    Parameters
    ----------
    posterior : array of shape (n_rows, n_classes)
        How probable each class is.
    each : sequence of arrays or Normal
        The distribution of the column in every class.

    Examples
    --------
    >>> sure = [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])]
    >>> information(np.array([[0.5, 0.5]]), sure).round(4).tolist()
    [0.6931]
    """
    normals = [answer for answer in each if isinstance(answer, Normal)]
    if normals:
        return _of_normals(posterior, normals)
    tables = [np.asarray(answer) for answer in each]
    width = max(table.shape[1] for table in tables)
    whole, within = np.zeros((len(posterior), width)), np.zeros(len(posterior))
    for y, table in enumerate(tables):
        whole[:, : table.shape[1]] += posterior[:, y, None] * table
        within -= posterior[:, y] * xlogy(table, table).sum(axis=1)
    entropy = -np.asarray(xlogy(whole, whole)).sum(axis=1)
    return np.asarray(np.maximum(entropy - within, 0.0))


def _of_normals(posterior: FloatArray, each: Sequence[Normal]) -> FloatArray:
    """Return the same of a measurement, whose transform does not matter: it is monotone."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    means = np.stack([answer.mean for answer in each], axis=1)
    spreads = np.sqrt(np.stack([answer.variance for answer in each], axis=1))
    gain = np.zeros(len(posterior))
    with np.errstate(divide="ignore"):
        log_posterior = np.log(posterior)
    for y in range(len(each)):
        at = means[:, y, None] + spreads[:, y, None] * nodes
        distance = (at[:, :, None] - means[:, None, :]) / spreads[:, None, :]
        log_each = -0.5 * distance**2 - np.log(spreads)[:, None, :]
        log_whole = logsumexp(log_each + log_posterior[:, None, :], axis=2)
        gain += posterior[:, y] * ((log_each[:, :, y] - log_whole) @ weights)
    return np.maximum(gain, 0.0)
