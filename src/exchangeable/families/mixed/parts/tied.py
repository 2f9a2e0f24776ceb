"""Measurements with the same covariance around the class means in all classes.

A factor analyser with one set of loadings and variances, and a mean for each class. Its scores are
linear in the measurements up to terms shared by all classes, as in linear discriminant analysis, so
discriminatively trained weights can be converted to it, and missing values are summed out given the
known ones.
"""

from dataclasses import dataclass, replace

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.parts.base import PartSums, Prior
from exchangeable.families.mixed.parts.factor import Factor
from exchangeable.families.mixed.parts.normals import LEAST_VARIANCE

STEPS = 30
PSEUDO_ROWS = 5.0
"""Pseudo-rows of independent columns."""


@dataclass(frozen=True)
class Tied:
    """Dependent measurements of rows from several classes.

    Attributes
    ----------
    part : Factor
        One class: the covariance around the class means, and the overall mean.
    filled : array of shape (n_rows, n_columns)
        The rows, with expectations for missing entries that do not depend on the class.
    shares : array of shape (n_classes,)
        The shares of the classes.
    """

    part: Factor
    filled: FloatArray
    shares: FloatArray

    @classmethod
    def of(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        values: FloatArray,
        weights: FloatArray,
        labels: IntArray,
    ) -> "Tied":
        """Return the sums of rows with weights and classes."""
        prior, whole = Prior(0.0), weights[:, None]
        pooled = Factor.first(columns, types, values, whole, prior)
        for _ in range(STEPS):
            pooled = one_spread(pooled, pooled.sums(values, whole))
        mass = whole * (labels[:, None] == np.arange(labels.max() + 1))
        known = mass.T @ ~np.isnan(values)
        means = (mass.T @ np.nan_to_num(values) + pooled.means.T) / (known + 1.0)
        k = mass.shape[1]
        part = replace(
            pooled,
            means=np.ascontiguousarray(means.T),
            loadings=np.repeat(pooled.loadings, k, axis=2),
            variances=np.repeat(pooled.variances, k, axis=1),
        )
        for _ in range(STEPS):
            part = one_spread(part, part.sums(values, mass))
        shares = mass.sum(axis=0) / mass.sum()
        filled = pooled.complete(values, 0)
        middle = (weights @ filled / weights.sum())[:, None]
        return cls(replace(part.only(np.zeros(1, dtype=np.int64)), means=middle), filled, shares)

    def moved(self, slope: FloatArray) -> FloatArray:
        """Return the covariance times the weights of all classes: the shifts of their means."""
        loadings, variances = self.part.loadings[:, :, 0], self.part.variances
        return np.asarray(loadings @ (loadings.T @ slope) + variances * slope)

    def origin(self, slope: FloatArray) -> FloatArray:
        """Return the mean of a class without weights that preserves the overall mean."""
        return np.asarray(self.part.means - (self.moved(slope) @ self.shares)[:, None])

    def log_totals(self, slope: FloatArray) -> FloatArray:
        """Return log E exp(slope · x) of each class, for x distributed as without weights."""
        return np.asarray((slope * (self.origin(slope) + 0.5 * self.moved(slope))).sum(axis=0))

    def weighed(self, slope: FloatArray) -> Factor:
        """Return the part of classes with weights."""
        k = slope.shape[1]
        return replace(
            self.part,
            means=self.origin(slope) + self.moved(slope),
            loadings=np.repeat(self.part.loadings, k, axis=2),
            variances=np.repeat(self.part.variances, k, axis=1),
        )


def one_spread(part: Factor, sums: PartSums) -> Factor:
    """Return the parameters after one step, with the same loadings and variances in all classes.

    Means are updated first, and shared parameters around them next: neither step lowers the
    likelihood.
    """
    gram, cross, squares = sums["gram"], sums["cross"], sums["squares"]
    loadings, weight = part.loadings[:, :, 0], gram[:, 0, 0]
    spare = np.where(weight > 0, weight, 1.0)
    gap = (cross[:, 0] - np.einsum("jfy,jf->jy", gram[:, 0, 1:], loadings)) / spare
    beyond = (cross[:, 1:] - gram[:, 1:, 0] * gap[:, None]).sum(axis=2)
    inner = gram[:, 1:, 1:].sum(axis=3) + PSEUDO_ROWS * np.eye(part.n_factors)
    square = (squares - 2 * gap * cross[:, 0] + gap**2 * weight).sum(axis=1)
    usual = part.variances[:, 0] + (loadings**2).sum(axis=1)
    loadings = np.linalg.solve(inner, beyond[..., None])[..., 0]
    rows = weight.sum(axis=1) + PSEUDO_ROWS
    left = square + PSEUDO_ROWS * usual - (loadings * beyond).sum(axis=1)
    k = part.n_classes
    return replace(
        part,
        means=part.means + gap,
        loadings=np.repeat(loadings[:, :, None], k, axis=2),
        variances=np.repeat(np.maximum(left / rows, LEAST_VARIANCE)[:, None], k, axis=1),
    )
