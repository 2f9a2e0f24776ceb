"""Information gain: how much a column of any kind tells about the class or another column."""

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp, xlogy

from exchangeable.arrays import FloatArray
from exchangeable.data.columns.schema import typed, typed_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType
from exchangeable.families.contract import Normal, Normals, averaged
from exchangeable.families.mixture import Mixture
from exchangeable.queries.answers import class_posterior

NODES = 64
"""Nodes of the quadrature for entropies of mixtures of normal distributions."""
TARGET_NODES = 32
"""Nodes of the quadrature over a measurement that is the target, per normal distribution."""
NEGLIGIBLE = 1e-9
"""Values of the target with less than this share of the probability are left out."""


def information(posterior: FloatArray, each: Sequence[FloatArray | Normal | Normals]) -> FloatArray:
    """Return the information gain of a column about the class, for every row.

    Parameters
    ----------
    posterior : array of shape (n_rows, n_classes)
        The probability of each class.
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


def target_information(
    mixture: Mixture, observed: Observed, target: int, types: tuple[ColumnType, ...]
) -> FloatArray:
    """Return the information gain of each column about another one: I(x_target; x_j | e).

    It is zero for known columns, for the target, and wherever the target is known. The values of a
    measurement are the nodes of a quadrature.
    """
    gain, open_columns = np.zeros((observed.n_rows, observed.n_variables)), observed.hole_flags()
    for i in np.flatnonzero(open_columns[:, target]):
        row = observed.take(np.array([i]))
        values, shares = _points(predictive(mixture, row, target))
        copies = np.tile(typed_rows(row).values, (len(values), 1))
        copies[:, target] = values
        known = typed(copies, types)
        for j in map(int, np.flatnonzero(open_columns[i])):
            if j != target:
                before, after = (_entropy(predictive(mixture, rows, j)) for rows in (row, known))
                gain[i, j] = before[0] - shares @ after
    return np.maximum(gain, 0.0)


def predictive(mixture: Mixture, observed: Observed, j: int) -> FloatArray | Normals:
    """Return the distribution of a column given the evidence of every row."""
    each = [mixture.model.predictive(observed, j, y) for y in range(mixture.model.n_classes)]
    return averaged(each, class_posterior(mixture, observed))


def _points(distribution: FloatArray | Normals) -> tuple[FloatArray, FloatArray]:
    """Return the possible values of a column in a row, with their probabilities."""
    if isinstance(distribution, Normals):
        nodes, weights = np.polynomial.hermite_e.hermegauss(TARGET_NODES)
        spread = np.sqrt(distribution.variance[0])[:, None]
        values = (distribution.mean[0][:, None] + spread * nodes).ravel()
        shares = (distribution.weights[0][:, None] * weights).ravel()
    else:
        values, shares = np.arange(distribution.shape[1], dtype=np.float64), distribution[0]
    kept = shares > NEGLIGIBLE * shares.sum()
    return values[kept], shares[kept] / shares[kept].sum()


def _entropy(distribution: FloatArray | Normals) -> FloatArray:
    """Return the entropy of every row's distribution, up to a constant for measurements."""
    if not isinstance(distribution, Normals):
        return np.asarray(-xlogy(distribution, distribution).sum(axis=1))
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    total = np.zeros(len(distribution.mean))
    for share, mean, variance in zip(*(each.T for each in distribution), strict=True):
        at = mean[:, None] + np.sqrt(variance)[:, None] * nodes
        total -= share * (_log_density(distribution, at) @ weights) / weights.sum()
    return total


def _of_normals(posterior: FloatArray, each: Sequence[Normals]) -> FloatArray:
    """Return the same for a measurement; its transform is monotone and does not matter."""
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
    """Return the log-density of every row's mixture at some points, times √(2π)."""
    spread = np.sqrt(normals.variance)[:, None, :]
    distance = (at[:, :, None] - normals.mean[:, None, :]) / spread
    with np.errstate(divide="ignore"):
        log_shares = np.log(normals.weights)[:, None, :] - np.log(spread)
    return np.asarray(logsumexp(log_shares - 0.5 * distance**2, axis=2))
