"""Posterior distributions of factors given known measurements, and the sums for EM."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.mixed.algebra import factor_kernels
from exchangeable.families.mixed.parts.normals import LOG_TWO_PI
from exchangeable.families.mixed.rows.passes import PartPass, PartSums

LEAST_OWN = 0.1
"""Share of a column's variance that is its own when EM starts."""


class FactorPosterior(NamedTuple):
    """The distribution of the factors given the known entries, and the score of these.

    Attributes
    ----------
    mean : array of shape (n_rows, n_factors)
        The factors' means.
    covariance : array of shape (n_rows, n_factors, n_factors), or (1, …)
        Their covariances; a single one for all rows if nothing is missing.
    score : array of shape (n_rows,)
        log P of the known entries.
    """

    mean: FloatArray
    covariance: FloatArray
    score: FloatArray


def posterior(
    values: FloatArray, means: FloatArray, loadings: FloatArray, variances: FloatArray
) -> FactorPosterior:
    """Return the distribution of the factors given the known entries of rows, in one class."""
    known = (~np.isnan(values)).astype(np.float64)
    if known.all():
        known = known[:1]
    distance = np.nan_to_num(values - means)
    m, r = loadings.shape
    scaled = loadings / variances[:, None]
    squares = (loadings[:, :, None] * scaled[:, None, :]).reshape(m, r * r)
    precision = np.eye(r) + (known @ squares).reshape(-1, r, r)
    pull = distance @ scaled
    covariance, log_det = precision, np.empty(len(precision))
    factor_kernels.invert(covariance, np.empty((r, r)), log_det)
    mean = np.matmul(covariance, pull[:, :, None])[:, :, 0]
    score = known @ (LOG_TWO_PI + np.log(variances)) + log_det
    score = score + distance**2 @ (1 / variances) - (pull * mean).sum(axis=1)
    return FactorPosterior(mean, covariance, -0.5 * score)


def products_of(
    values: FloatArray, mass: FloatArray, means: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return sums of products of standardised columns for each class, and the classes' weights."""
    products = []
    for mean, variance, weight in zip(means.T, variances.T, mass.T, strict=True):
        standard = np.nan_to_num((values - mean) / np.sqrt(variance))
        products.append((standard.T * weight) @ standard)
    return np.stack(products), mass.sum(axis=0)


def principal(
    products: FloatArray, weights: FloatArray, variances: FloatArray, number: int
) -> FloatArray:
    """Return initial loadings: the first principal components of each class."""
    loadings = np.empty((len(variances), number, variances.shape[1]))
    for y, (product, weight) in enumerate(zip(products, weights, strict=True)):
        spread = np.sqrt(variances[:, y])
        scale, vectors = np.linalg.eigh(product / max(float(weight), 1e-12))
        own = vectors[:, : -number - 1 : -1] * np.sqrt(
            np.maximum(scale[: -number - 1 : -1] - 1, 0.05)
        )
        common = (own**2).sum(axis=1, keepdims=True)
        own *= np.minimum(1.0, np.sqrt((1 - LEAST_OWN) / np.maximum(common, 1e-12)))
        loadings[:, :, y] = spread[:, None] * own
    return loadings


class FactorPass(PartPass):
    """A pass that computes the distribution of the factors once, for scores and sums.

    Parameters
    ----------
    part : Factor
        The part.
    rows : sequence of array
        Its columns, for each span.
    """

    def __init__(self, part: Any, rows: Sequence[FloatArray]) -> None:
        self.part, self.rows = part, rows
        self._found: dict[int, list[FactorPosterior]] = {}

    def _posteriors(self, span: int) -> list[FactorPosterior]:
        return [self.part.posterior(self.rows[span], y) for y in range(self.part.n_classes)]

    def add_scores(self, span: int, joint: FloatArray) -> None:
        """Add log P of the known entries of a span."""
        self._found[span] = self._posteriors(span)
        for line, found in zip(joint, self._found[span], strict=True):
            line += found.score

    def sums(self, span: int, mass: FloatArray) -> PartSums:
        """Return moments of known entries and of 1 and the factors, around the current means."""
        values, (m, r, k) = self.rows[span], self.part.loadings.shape
        found = self._found.pop(span, None) or self._posteriors(span)
        known = (~np.isnan(values)).astype(np.float64)
        whole = bool(known.all())
        gram, cross = np.empty((m, r + 1, r + 1, k)), np.empty((m, r + 1, k))
        squares = np.empty((m, k))
        for y, (weight, own) in enumerate(zip(mass, found, strict=True)):
            distance = np.nan_to_num(values - self.part.means[:, y])
            ones = np.concatenate([np.ones((len(values), 1)), own.mean], axis=1)
            if whole:
                gram[..., y] = (ones.T * weight) @ ones
                gram[:, 1:, 1:, y] += weight.sum() * own.covariance[0]
            else:
                pairs = ones[:, :, None] * ones[:, None, :]
                pairs[:, 1:, 1:] += own.covariance
                gram[..., y] = ((known.T * weight) @ pairs.reshape(len(values), -1)).reshape(
                    m, r + 1, r + 1
                )
            cross[:, :, y] = (distance.T * weight) @ ones
            squares[:, y] = weight @ distance**2
        return {"gram": gram, "cross": cross, "squares": squares}
