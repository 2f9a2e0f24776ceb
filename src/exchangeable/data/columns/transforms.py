"""Monotone transforms of measurements: Yeo-Johnson for skewed columns, then unit variance.

z = (ψ(x; λ) − shift) / scale. The Yeo-Johnson transform ψ is the identity for λ = 1, and shortens a
long tail otherwise. Densities are per unit of x: their logarithm includes log dz/dx.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize

from exchangeable.arrays import FloatArray, IntArray

SKEWED = 1.0
"""Columns whose skewness exceeds this are transformed."""
POWERS = (0.0, 2.0)
"""Range of the power: within it, ψ maps the real line onto itself."""
LEAST_SCALE = 1e-300
MOST_ROWS = 20_000
"""Maximum number of rows for choosing the power; of more rows, a random sample is used."""


class Moments:
    """Number, mean and central moments of some numbers, which can be combined over sets of them.

    Parameters
    ----------
    n : int
        How many they are.
    mean, second, third : float
        Their mean, and the sums of squares and cubes of their deviations from it.
    low, high : float
        The minimum and the maximum.

    Examples
    --------
    >>> both = Moments.of(np.array([1.0, 2.0])) + Moments.of(np.array([6.0]))
    >>> both.n, both.mean, both.variance, both.third, both.high
    (3, 3.0, 4.666666666666667, 18.0, 6.0)
    """

    def __init__(
        self, n: int, mean: float, second: float, third: float, low: float, high: float, whole: bool
    ) -> None:
        self.n, self.mean, self.second, self.third = n, mean, second, third
        self.low, self.high, self.whole = low, high, whole

    @classmethod
    def of(cls, x: FloatArray) -> "Moments":
        """Return the moments of an array."""
        if not x.size:
            return cls(0, 0.0, 0.0, 0.0, np.inf, -np.inf, True)
        mean = float(x.mean())
        centred = x - mean
        squares = centred**2
        whole = bool((x == np.floor(x)).all())
        sums = float(squares.sum()), float((squares * centred).sum())
        return cls(x.size, mean, *sums, float(x.min()), float(x.max()), whole)

    @property
    def variance(self) -> float:
        """The mean of the squares."""
        return self.second / max(self.n, 1)

    @property
    def skewed(self) -> bool:
        """Whether a transform should be considered."""
        limit = SKEWED * self.variance**1.5
        return self.variance > 0 and abs(self.third / self.n) > limit

    def __add__(self, other: "Moments") -> "Moments":
        if not self.n or not other.n:
            return self if self.n else other
        n, gap = self.n + other.n, other.mean - self.mean
        both = self.n * other.n / n
        second = self.second + other.second + gap**2 * both
        third = self.third + other.third + gap**3 * both * (self.n - other.n) / n
        third += 3 * gap * (self.n * other.second - other.n * self.second) / n
        return Moments(
            n,
            self.mean + gap * other.n / n,
            second,
            third,
            min(self.low, other.low),
            max(self.high, other.high),
            self.whole and other.whole,
        )


class Transform(NamedTuple):
    """The transform of the measurements of a column to mean 0 and variance 1.

    Attributes
    ----------
    power : float
        λ of Yeo and Johnson; 1 leaves the measurements as they are.
    shift, scale : float
        Mean and standard deviation after the power transform.
    """

    power: float = 1.0
    shift: float = 0.0
    scale: float = 1.0

    def apply(self, x: FloatArray) -> FloatArray:
        """Return z."""
        return np.asarray((yeo_johnson(x, self.power) - self.shift) / self.scale)

    def invert(self, z: FloatArray) -> FloatArray:
        """Return the measurements that become z."""
        y = np.asarray(z, dtype=np.float64) * self.scale + self.shift
        return y if self.power == 1 else _inverse(y, self.power)

    def log_slope(self, x: FloatArray) -> FloatArray:
        """Return log dz/dx."""
        bend = (self.power - 1) * np.sign(x) * np.log1p(np.abs(x))
        return np.asarray(bend - np.log(self.scale))


def yeo_johnson(x: FloatArray, power: float) -> FloatArray:
    """Return ψ(x; λ).

    >>> yeo_johnson(np.array([-2.0, 0.0, 3.0]), 0.0).round(3).tolist()
    [-4.0, 0.0, 1.386]
    """
    if power == 1:
        return x
    high, low = np.log1p(np.maximum(x, 0.0)), np.log1p(np.maximum(-x, 0.0))
    above = high if power == 0 else np.expm1(power * high) / power
    below = low if power == 2 else np.expm1((2 - power) * low) / (2 - power)
    return np.asarray(np.where(x >= 0, above, -below))


def _inverse(y: FloatArray, power: float) -> FloatArray:
    limit = np.log(np.finfo(np.float64).max) - 1
    up, down = np.maximum(y, 0.0), np.maximum(-y, 0.0)
    high = up if power == 0 else np.log1p(power * up) / power
    low = down if power == 2 else np.log1p((2 - power) * down) / (2 - power)
    grown = np.expm1(np.minimum(np.where(y >= 0, high, low), limit))
    return np.asarray(np.where(y >= 0, grown, -grown))


def fit_transform(x: FloatArray, bend: bool) -> Transform:
    """Return the transform of measurements.

    Parameters
    ----------
    x : array
        The measurements of a column, NaN if missing.
    bend : bool
        Whether a skewed column may be transformed, or only shifted and scaled.
    """
    known = x[~np.isnan(x)]
    if not known.size:
        return Transform()
    power = 1.0
    if bend and Moments.of(known).skewed:
        some = x[rows_for_power(x.size)]
        power = likeliest_power(some[~np.isnan(some)])
    return made_transform(power, Moments.of(yeo_johnson(known, power)))


def rows_for_power(n_rows: int) -> IntArray:
    """Return the numbers of the rows for choosing powers: all, or a random sample."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, MOST_ROWS, replace=False))


def made_transform(power: float, bent: Moments) -> Transform:
    """Return the transform with a given power, from the transformed measurements."""
    scale = float(np.sqrt(bent.variance))
    return Transform(power, bent.mean, scale if scale > LEAST_SCALE else 1.0)


def likeliest_power(x: FloatArray) -> float:
    """Return the power that maximises the likelihood under a normal distribution."""
    if not x.size:
        return 1.0
    logs = np.sign(x) * np.log1p(np.abs(x))

    def cost(power: float) -> float:
        variance = float(yeo_johnson(x, power).var())
        if not (np.isfinite(variance) and variance > 0):
            return float("inf")
        return float(0.5 * np.log(variance) - (power - 1) * logs.mean())

    found = optimize.minimize_scalar(cost, bounds=POWERS, method="bounded")
    better = np.isfinite(found.fun) and found.fun < cost(1.0)
    return float(found.x) if better else 1.0
