"""Measurements that go together: a Gaussian with one shared factor, diagonal plus rank one.

x_j = mean_j + loading_j·z + noise_j with z ~ N(0, 1). Given z the columns are independent, so that
a hole costs nothing; what is known tells about z by Sherman and Morrison's formula.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.normals import FARTHEST, LEAST_VARIANCE, LOG_TWO_PI, Normals
from exchangeable.families.mixed.part import Ask, Normal, Part, PartSums, Prior
from exchangeable.storage.checks import needed, numbers

NAMES = ("weight", "z", "zz", "d", "dz", "dd")
LEAST_OWN = 0.1
"""Share of a column's variance that is its own where EM starts."""


class FactorPosterior(NamedTuple):
    """What the known entries tell about the factor: its mean and variance, and their own score."""

    mean: FloatArray
    variance: FloatArray
    score: FloatArray


@dataclass(frozen=True)
class Factor(Part):
    """Gaussians with one factor, one for each class.

    Attributes
    ----------
    means, loadings, variances : array of shape (n_columns, n_classes)
        The parameters; the variances are those of the noise.
    """

    name: ClassVar[str] = "factor"
    kinds: ClassVar[tuple[str, ...]] = ("continuous",)
    parameters: ClassVar[tuple[str, ...]] = ("means", "loadings", "variances")
    latent: ClassVar[bool] = True
    means: FloatArray
    loadings: FloatArray
    variances: FloatArray

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return int(3 * self.means.size)

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return independent columns whose factor is the first principal component."""
        alone = yield from Normals.beginning(columns, types, n_classes, prior)
        loadings = np.empty_like(alone.means)
        products, weights = yield partial(_products, alone=alone)
        for y in range(alone.n_classes):
            spread = np.sqrt(alone.variances[:, y])
            scale, vectors = np.linalg.eigh(products[y] / max(float(weights[y]), 1e-12))
            own = vectors[:, -1] * np.sqrt(max(scale[-1] - 1, 0.05))
            loadings[:, y] = spread * np.clip(own, -np.sqrt(1 - LEAST_OWN), np.sqrt(1 - LEAST_OWN))
        variances = np.maximum(alone.variances - loadings**2, LEAST_VARIANCE)
        return cls(columns, types, alone.means, loadings, variances)

    def posterior(self, values: FloatArray, y: int) -> FactorPosterior:
        """Return what the known entries of each row tell about the factor of class y."""
        known = (~np.isnan(values)).astype(np.float64)
        distance = np.nan_to_num(values - self.means[:, y])
        loading, variance = self.loadings[:, y], self.variances[:, y]
        precision = 1 + known @ (loading**2 / variance)
        pull = distance @ (loading / variance)
        score = known @ (LOG_TWO_PI + np.log(variance)) + np.log(precision)
        score += distance**2 @ (1 / variance) - pull**2 / precision
        return FactorPosterior(pull / precision, 1 / precision, -0.5 * score)

    def score(self, values: FloatArray) -> FloatArray:
        """Return log P of the known entries."""
        scores = [self.posterior(values, y).score for y in range(self.n_classes)]
        return np.stack(scores, axis=1)

    def sums(self, values: FloatArray, mass: FloatArray) -> PartSums:
        """Return moments of known entries and of the factor, around the means so far."""
        known = (~np.isnan(values)).astype(np.float64)
        total = {name: np.empty(self.means.shape) for name in NAMES}
        for y in range(self.n_classes):
            found, weight = self.posterior(values, y), mass[:, y]
            distance = np.nan_to_num(values - self.means[:, y])
            total["weight"][:, y] = weight @ known
            total["z"][:, y] = (weight * found.mean) @ known
            total["zz"][:, y] = (weight * (found.mean**2 + found.variance)) @ known
            total["d"][:, y] = weight @ distance
            total["dz"][:, y] = (weight * found.mean) @ distance
            total["dd"][:, y] = weight @ distance**2
        return total

    def carried(self, sums: PartSums, after: Self) -> PartSums:
        """Return the moments around other means; what was expected of the factor stays."""
        weight, z, zz, d, dz, dd = (sums[name] for name in NAMES)
        gap = self.means - after.means
        moved = d + weight * gap, dz + z * gap, dd + 2 * gap * d + weight * gap**2
        return dict(zip(NAMES, (weight, z, zz, *moved), strict=True))

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the regression of every column on the factor, the pseudo-rows included."""
        weight, z, zz, d, dz, dd = (sums[name] for name in NAMES)
        rows, mean, variance = _pseudo_rows(prior)
        offset = mean - self.means
        weight, zz = weight + rows, zz + rows
        d, dd = d + rows * offset, dd + rows * (variance + offset**2)
        seen = (weight > 0) & (weight * zz - z**2 > 0)
        area = np.where(seen, weight * zz - z**2, 1.0)
        loadings = np.where(seen, (weight * dz - z * d) / area, 0.0)
        shift = np.where(seen, (zz * d - z * dz) / area, 0.0)
        spread = (dd - shift * d - loadings * dz) / np.where(seen, weight, 1.0)
        return replace(
            self,
            means=self.means + shift,
            loadings=loadings,
            variances=np.maximum(np.where(seen, spread, 1.0), LEAST_VARIANCE),
        )

    def log_prior(self, prior: Prior) -> float:
        """Return what the pseudo-rows, whose factors are drawn apart, are expected to score."""
        rows, mean, variance = _pseudo_rows(prior)
        square = variance + (self.means - mean) ** 2 + self.loadings**2
        return float(-0.5 * rows * (np.log(self.variances) + square / self.variances).sum())

    def distance(self, after: "Factor") -> float:
        """Return how far a step has moved the parameters."""
        moved = (after.means - self.means) ** 2 + (after.loadings - self.loadings) ** 2
        return float(np.sqrt(np.mean(moved + (after.variances - self.variances) ** 2)))

    def predictive(self, values: FloatArray, column: int, y: int) -> Normal:
        """Return the column's normal distribution, given the other known entries."""
        found, loading = self.posterior(values, y), self.loadings[column, y]
        return Normal(
            self.means[column, y] + loading * found.mean,
            self.variances[column, y] + loading**2 * found.variance,
        )

    def complete(self, values: FloatArray, y: int) -> FloatArray:
        """Return the rows with conditional means, which are the mode, in their holes."""
        expected = self.means[:, y] + self.posterior(values, y).mean[:, None] * self.loadings[:, y]
        return np.where(np.isnan(values), expected, values)

    def draw(self, values: FloatArray, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with their holes drawn, given a factor that is drawn first."""
        found = self.posterior(values, y)
        z = rng.normal(found.mean, np.sqrt(found.variance))[:, None]
        centre = self.means[:, y] + z * self.loadings[:, y]
        drawn = rng.normal(centre, np.sqrt(self.variances[:, y]))
        return np.where(np.isnan(values), drawn, values)

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part of arrays that were read, refusing what cannot be."""
        means, loadings, variances = needed(arrays, ("means", "loadings", "variances"))
        shape = (columns.size, means.shape[1] if means.ndim == 2 else 0)
        return cls(
            columns,
            types,
            numbers(means, "means", shape, low=-FARTHEST, high=FARTHEST),
            numbers(loadings, "loadings", shape, low=-FARTHEST, high=FARTHEST),
            numbers(variances, "variances", shape, low=LEAST_VARIANCE, high=FARTHEST),
        )


def _products(
    values: FloatArray, mass: FloatArray, alone: Normals
) -> tuple[FloatArray, FloatArray]:
    """Return sums of products of standardised columns for each class, and the classes' weights."""
    products = []
    for y in range(alone.n_classes):
        spread = np.sqrt(alone.variances[:, y])
        standard = np.nan_to_num((values - alone.means[:, y]) / spread)
        products.append((standard.T * mass[:, y]) @ standard)
    return np.stack(products), mass.sum(axis=0)


def _pseudo_rows(prior: Prior) -> tuple[float, FloatArray, FloatArray]:
    """Return how many pseudo-rows there are, and their means and variances."""
    if prior.pooled is None:
        return 0.0, np.zeros((1, 1)), np.ones((1, 1))
    pooled = prior.pooled
    return prior.strength, pooled.means, pooled.variances + pooled.loadings**2
