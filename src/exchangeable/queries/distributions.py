"""Distributions of a column: probabilities of its values, or the density of a measurement."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from exchangeable.arrays import FloatArray
from exchangeable.data.columns.transforms import Transform

NODES = 96
"""Nodes of the quadrature for means, which is exact without a transform."""
HALVINGS = 80


@dataclass(frozen=True)
class Discrete(Mapping[Any, float]):
    """Probabilities of the values: a mapping from value, or tuple of values, to probability.

    Attributes
    ----------
    values_ : tuple
        The values, in order.
    probabilities : array
        Their probabilities.

    Examples
    --------
    >>> weather = Discrete(("dry", "wet"), np.array([0.75, 0.25]))
    >>> weather["wet"], weather.most_probable
    (0.25, 'dry')
    """

    values_: tuple[Any, ...]
    probabilities: FloatArray

    def __getitem__(self, value: Any) -> float:
        return float(self.probabilities[self.values_.index(value)])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)

    @property
    def most_probable(self) -> Any:
        """The value with the highest probability."""
        return self.values_[int(self.probabilities.argmax())]

    @property
    def mean(self) -> float:
        """The expected value, if values are numbers."""
        return float(self.probabilities @ np.asarray(self.values_, dtype=np.float64))

    def quantile(self, q: float) -> Any:
        """Return the smallest value, in their order, with at least this cumulative probability."""
        reached = np.cumsum(self.probabilities) >= q * self.probabilities.sum() - 1e-12
        return self.values_[int(reached.argmax())]


@dataclass(frozen=True)
class Continuous:
    """Density of a measurement: a mixture of normal distributions on a transformed scale.

    Attributes
    ----------
    weights, means, variances : array of shape (n_components,)
        The mixture.
    transform : Transform
        The transform from measurements to numbers on that scale.

    Examples
    --------
    >>> height = Continuous(np.ones(1), np.zeros(1), np.ones(1), Transform(1.0, 170.0, 10.0))
    >>> round(height.mean, 3), round(height.quantile(0.975), 1)
    (170.0, 189.6)
    >>> print(round(height.density(170), 4), round(height.cdf(180), 4))
    0.0399 0.8413
    """

    weights: FloatArray
    means: FloatArray
    variances: FloatArray
    transform: Transform

    @property
    def mean(self) -> float:
        """The expected measurement."""
        return float(self.weights @ self._expected(lambda x: x))

    @property
    def std(self) -> float:
        """The standard deviation."""
        mean = self.mean
        variance = float(self.weights @ self._expected(lambda x: (x - mean) ** 2))
        return float(np.sqrt(max(variance, 0.0)))

    def density(self, x: npt.ArrayLike) -> Any:
        """Return the density at some measurements, in their unit; a number for a number."""
        at = np.asarray(x, dtype=np.float64)
        z = self.transform.apply(at)[..., None]
        each = np.exp(-0.5 * (z - self.means) ** 2 / self.variances)
        each /= np.sqrt(2 * np.pi * self.variances)
        return np.asarray((each @ self.weights) * np.exp(self.transform.log_slope(at)))[()]

    def cdf(self, x: npt.ArrayLike) -> Any:
        """Return the probability of a measurement of at most x; a number for a number."""
        z = self.transform.apply(np.asarray(x, dtype=np.float64))[..., None]
        below = special.ndtr((z - self.means) / np.sqrt(self.variances)) @ self.weights
        return np.asarray(below)[()]

    def quantile(self, q: float) -> float:
        """Return the quantile: the measurement with this cumulative probability."""
        if not 0 < q < 1:
            raise ValueError(f"q must lie between 0 and 1, got {q}")
        spread = np.sqrt(self.variances)
        ends = self.means + spread * special.ndtri(q)
        low, high = float(np.min(ends)), float(np.max(ends))
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            share = float(special.ndtr((middle - self.means) / spread) @ self.weights)
            low, high = (middle, high) if share < q else (low, middle)
        return float(self.transform.invert(np.array(0.5 * (low + high))))

    def _expected(self, function: Any) -> FloatArray:
        """Return the expected value of a function of the measurement in each component."""
        nodes, weights = _quadrature()
        at = self.means[:, None] + np.sqrt(self.variances)[:, None] * nodes
        return np.asarray(function(self.transform.invert(at)) @ weights / weights.sum())


@lru_cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for a normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    return np.asarray(nodes), np.asarray(weights)
