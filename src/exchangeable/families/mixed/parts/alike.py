"""Exchangeable measurements: the exchangeable normal distribution.

All columns of a block have the same mean, the same variance, and the same covariance with each
other: the Gaussian with one factor and equal means, loadings and variances. Σx and Σx² are
sufficient statistics of a row.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.parts.base import Ask, PartSums, Prior
from exchangeable.families.mixed.parts.factor import Factor


@dataclass(frozen=True)
class Alike(Factor):
    """Exchangeable normal distributions, one for each class; all columns have equal parameters."""

    name: ClassVar[str] = "alike"

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return 3 * self.n_classes

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return columns whose factor has half of their variance."""
        found = yield from cls._principal(columns, types, n_classes, prior, 1)
        means = _equal(found.means)
        spread = _equal(found.variances + found.loadings[:, 0] ** 2 + (found.means - means) ** 2)
        loadings = np.sqrt(0.5 * spread)[:, None]
        return replace(found, means=means, loadings=loadings, variances=0.5 * spread)

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the regression of all columns together on the factor."""
        together = {name: _equal(own) for name, own in sums.items()}
        return super().following(together, _equal_prior(prior), careful)

    def log_prior(self, prior: Prior) -> float:
        """Return the expected score of the pseudo-rows, whose factors are drawn independently."""
        return super().log_prior(_equal_prior(prior))


def _equal(values: FloatArray) -> FloatArray:
    """Return the mean over columns, for all of them."""
    return np.asarray(np.broadcast_to(values.mean(axis=0), values.shape).copy())


def _equal_prior(prior: Prior) -> Prior:
    """Return a prior under which all columns have the pooled distribution of all."""
    if prior.pooled is None:
        return prior
    pooled: Any = prior.pooled
    means = _equal(pooled.means)
    spread = _equal(pooled.variances + pooled.loadings[:, 0] ** 2 + (pooled.means - means) ** 2)
    idle = np.zeros_like(pooled.loadings)
    equal = replace(pooled, means=means, loadings=idle, variances=spread)
    return replace(prior, pooled=equal)
