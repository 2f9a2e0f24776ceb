"""Dependent measurements: a Gaussian with a few shared factors, diagonal plus low rank.

x_j = mean_j + Σ_f loading_jf·z_f + noise_j with z ~ N(0, I). Given z the columns are independent,
so missing entries cost nothing; the distribution of z given the known ones follows from Woodbury's
formula, which for one factor is Sherman and Morrison's. The number of factors is chosen by
evidence, with all rows as one class.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.algebra.factors import (
    FactorPass,
    FactorPosterior,
    posterior,
    principal,
    products_of,
)
from exchangeable.families.mixed.parts.base import Ask, Normal, Part, PartSums, Prior, answered
from exchangeable.families.mixed.parts.normals import FARTHEST, LEAST_VARIANCE, Normals
from exchangeable.families.mixed.rows.sample import RowSample
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import needed, numbers

MOST_FACTORS = 32
"""Maximum number of factors; they are also at most half as many as columns."""
STEPS = 15
"""Steps with which each number of factors is tried."""
MOST_ROWS = 3000
"""Maximum number of rows for choosing the number of factors; of more rows, a random sample is
used."""


@dataclass(frozen=True)
class Factor(Part):
    """Gaussians with shared factors, one for each class.

    Attributes
    ----------
    means, variances : array of shape (n_columns, n_classes)
        The means, and the variances of the noise.
    loadings : array of shape (n_columns, n_factors, n_classes)
        The loadings of each factor.
    """

    name: ClassVar[str] = "factor"
    kinds: ClassVar[tuple[str, ...]] = ("continuous",)
    parameters: ClassVar[tuple[str, ...]] = ("means", "loadings", "variances")
    latent: ClassVar[bool] = True
    means: FloatArray
    loadings: FloatArray
    variances: FloatArray

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return int(self.loadings.shape[1])

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: rotations of the factors change nothing."""
        m, r, k = self.loadings.shape
        return int(k * (m * (2 + r) - r * (r - 1) // 2))

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return independent columns whose factors are the first principal components.

        Their number is the one chosen for all rows, if known, and otherwise chosen for the given
        rows.
        """
        most, number = min(MOST_FACTORS, max(1, columns.size // 2)), 1
        if prior.pooled is not None:
            number = prior.pooled.n_factors
        elif prior.n_factors is not None:
            number = prior.n_factors
        elif most > 1:
            some = yield partial(RowSample.of, most=MOST_ROWS)
            number = cls._likeliest(columns, types, some, prior, most)
        return (yield from cls._principal(columns, types, n_classes, prior, number))

    @classmethod
    def _principal(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        n_classes: int,
        prior: Prior,
        number: int,
    ) -> Generator[Ask, Any, Self]:
        alone = yield from Normals.beginning(columns, types, n_classes, prior)
        products, weights = yield partial(products_of, means=alone.means, variances=alone.variances)
        loadings = principal(products, weights, alone.variances, number)
        variances = np.maximum(alone.variances - (loadings**2).sum(axis=1), LEAST_VARIANCE)
        return cls(columns, types, alone.means, loadings, variances)

    @classmethod
    def _likeliest(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        some: RowSample,
        prior: Prior,
        most: int,
    ) -> int:
        """Return the number of factors with the highest evidence.

        That is the log-likelihood of the rows, minus half the log of their number for each
        parameter.
        """
        own, weight = some.values, some.mass
        best, found, stale = -np.inf, 1, 0
        for number in (n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if n <= most):
            steps = cls._principal(columns, types, weight.shape[1], prior, number)
            part: Self = answered(steps, own, weight)
            for _ in range(STEPS):
                part = part.following(part.sums(own, weight), prior)
            scores = np.where(weight > 0, part.score(own), 0.0)
            cost = 0.5 * part.n_parameters * np.log(weight.sum() + 1)
            worth = float((weight * scores).sum()) - cost
            stale = 0 if worth > best else stale + 1
            if worth > best:
                best, found = worth, number
            if stale == 2:
                break
        return found

    def posterior(self, values: FloatArray, y: int) -> FactorPosterior:
        """Return the factors' distribution given the known entries of each row, in class y."""
        return posterior(values, self.means[:, y], self.loadings[:, :, y], self.variances[:, y])

    def score(self, values: FloatArray) -> FloatArray:
        """Return log P of the known entries."""
        scores = [self.posterior(values, y).score for y in range(self.n_classes)]
        return np.stack(scores, axis=1)

    def sums(self, values: FloatArray, mass: FloatArray) -> PartSums:
        """Return moments of known entries and of the factors, around the current means."""
        return self.reading([values]).sums(0, mass.T)

    def reading(self, prepared: Sequence[FloatArray]) -> FactorPass:
        """Return a pass that computes the distribution of the factors once."""
        return FactorPass(self, prepared)

    def carried(self, sums: PartSums, after: Self) -> PartSums:
        """Return the moments around other means; expectations of the factors stay."""
        gram, cross, squares = sums["gram"], sums["cross"], sums["squares"]
        gap = self.means - after.means
        return {
            "gram": gram,
            "cross": cross + gap[:, None] * gram[:, 0],
            "squares": squares + 2 * gap * cross[:, 0] + gap**2 * gram[:, 0, 0],
        }

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the regression of every column on the factors, including the pseudo-rows."""
        rows, mean, variance = _pseudo_rows(prior)
        r = self.n_factors
        offset = mean - self.means
        gram = np.moveaxis(sums["gram"], -1, 1) + rows * np.eye(r + 1)
        cross = np.moveaxis(sums["cross"], -1, 1).copy()
        cross[:, :, 0] += rows * offset
        squares = sums["squares"] + rows * (variance + offset**2)
        weight = gram[:, :, 0, 0]
        seen = np.linalg.eigvalsh(gram)[:, :, 0] > 0 if rows == 0 else weight > 0
        safe = np.where(seen[:, :, None, None], gram, np.eye(r + 1))
        change = np.where(seen[:, :, None], np.linalg.solve(safe, cross[..., None])[..., 0], 0.0)
        spread = (squares - (change * cross).sum(axis=2)) / np.where(seen, weight, 1.0)
        return replace(
            self,
            means=self.means + change[:, :, 0],
            loadings=np.ascontiguousarray(np.moveaxis(change[:, :, 1:], 1, 2)),
            variances=np.maximum(np.where(seen, spread, 1.0), LEAST_VARIANCE),
        )

    def log_prior(self, prior: Prior) -> float:
        """Return the expected score of the pseudo-rows, whose factors are drawn independently."""
        rows, mean, variance = _pseudo_rows(prior)
        square = variance + (self.means - mean) ** 2 + (self.loadings**2).sum(axis=1)
        return float(-0.5 * rows * (np.log(self.variances) + square / self.variances).sum())

    def distance(self, after: "Factor") -> float:
        """Return how much a step has changed the parameters."""
        moved = (after.means - self.means) ** 2
        moved += ((after.loadings - self.loadings) ** 2).sum(axis=1)
        return float(np.sqrt(np.mean(moved + (after.variances - self.variances) ** 2)))

    def predictive(self, values: FloatArray, column: int, y: int) -> Normal:
        """Return the column's normal distribution, given the other known entries."""
        found, loading = self.posterior(values, y), self.loadings[column, :, y]
        spread = np.einsum("f,nfg,g->n", loading, found.covariance, loading)
        return Normal(
            self.means[column, y] + found.mean @ loading,
            np.broadcast_to(self.variances[column, y] + spread, len(values)).copy(),
        )

    def complete(self, values: FloatArray, y: int) -> FloatArray:
        """Return the rows with missing entries replaced by conditional means (the mode)."""
        expected = self.means[:, y] + self.posterior(values, y).mean @ self.loadings[:, :, y].T
        return np.where(np.isnan(values), expected, values)

    def draw(self, values: FloatArray, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with missing entries drawn, given factors that are drawn first."""
        found = self.posterior(values, y)
        noise = rng.normal(size=found.mean.shape)[:, :, None]
        z = found.mean + (np.linalg.cholesky(found.covariance) @ noise)[:, :, 0]
        centre = self.means[:, y] + z @ self.loadings[:, :, y].T
        drawn = rng.normal(centre, np.sqrt(self.variances[:, y]))
        return np.where(np.isnan(values), drawn, values)

    @classmethod
    def stack(cls, parts: Sequence[Self]) -> Self:
        """Return the part of all classes of several; those with fewer factors are padded."""
        most = max(part.n_factors for part in parts)
        gaps = [((0, 0), (0, most - part.n_factors), (0, 0)) for part in parts]
        padded = [
            replace(part, loadings=np.pad(part.loadings, gap))
            for part, gap in zip(parts, gaps, strict=True)
        ]
        return super().stack(padded)

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""
        means, loadings, variances = needed(arrays, ("means", "loadings", "variances"))
        k = means.shape[1] if means.ndim == 2 else 0
        r = loadings.shape[1] if loadings.ndim == 3 else 0
        if not 1 <= r <= MOST_FACTORS:
            raise ModelFileError(f"loadings are of {r} factors, expected 1 to {MOST_FACTORS}")
        shape = (columns.size, k)
        return cls(
            columns,
            types,
            numbers(means, "means", shape, low=-FARTHEST, high=FARTHEST),
            numbers(loadings, "loadings", (columns.size, r, k), low=-FARTHEST, high=FARTHEST),
            numbers(variances, "variances", shape, low=LEAST_VARIANCE, high=FARTHEST),
        )


def _pseudo_rows(prior: Prior) -> tuple[float, FloatArray, FloatArray]:
    """Return the number of pseudo-rows, and their means and variances."""
    if prior.pooled is None:
        return 0.0, np.zeros((1, 1)), np.ones((1, 1))
    pooled = prior.pooled
    return prior.strength, pooled.means, pooled.variances + (pooled.loadings**2).sum(axis=1)
