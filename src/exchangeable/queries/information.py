"""How much a column of any kind would tell about the class: I(y; x | e) in nats."""

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp, xlogy

from exchangeable.arrays import FloatArray
from exchangeable.families.contract import Normal, Normals

NODES = 64
"""Of the quadrature of entropies of mixtures of normal distributions."""


def information(posterior: FloatArray, each: Sequence[FloatArray | Normal | Normals]) -> FloatArray:
    """Return how much a column would tell about the class, for every row.

    Parameters
    ----------
    posterior : array of shape (n_rows, n_classes)
        How probable each class is.
    each : sequence of arrays, Normal or Normals
        The distribution of the column in every class.

    Examples
    --------
    >>> sure = [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])]
    >>> information(np.array([[0.5, 0.5]]), sure).round(4).tolist()
    [0.6931]
    """
    normals = [answer.mixture for answer in each if isinstance(answer, Normal | Normals)]
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


def _of_normals(posterior: FloatArray, each: Sequence[Normals]) -> FloatArray:
    """Return the same of a measurement, whose transform does not matter: it is monotone."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    gain = np.zeros(len(posterior))
    with np.errstate(divide="ignore"):
        log_posterior = np.log(posterior)
    for y, own in enumerate(each):
        for share, mean, variance in zip(own.weights.T, own.mean.T, own.variance.T, strict=True):
            at = mean[:, None] + np.sqrt(variance)[:, None] * nodes
            log_each = np.stack([_log_density(other, at) for other in each], axis=2)
            log_whole = logsumexp(log_each + log_posterior[:, None, :], axis=2)
            gain += posterior[:, y] * share * ((log_each[:, :, y] - log_whole) @ weights)
    return np.maximum(gain, 0.0)


def _log_density(normals: Normals, at: FloatArray) -> FloatArray:
    """Return the logarithm of the density of every row's mixture at some points, times √(2π)."""
    spread = np.sqrt(normals.variance)[:, None, :]
    distance = (at[:, :, None] - normals.mean[:, None, :]) / spread
    with np.errstate(divide="ignore"):
        log_shares = np.log(normals.weights)[:, None, :] - np.log(spread)
    return np.asarray(logsumexp(log_shares - 0.5 * distance**2, axis=2))
