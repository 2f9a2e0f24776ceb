"""Monotone transforms of measurements: Yeo-Johnson for skewed columns, then unit variance.

z = (ψ(x; λ) − shift) / scale. Yeo and Johnson's ψ is the identity for λ = 1, and pulls a long tail
in otherwise. Densities are per unit of x: their logarithm gains log dz/dx.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize

from exchangeable.arrays import FloatArray

SKEWED = 1.0
"""Columns whose skewness exceeds this are transformed."""
POWERS = (0.0, 2.0)
"""Where the power is looked for: between these ψ maps all numbers onto all numbers."""
LEAST_SCALE = 1e-300


class Transform(NamedTuple):
    """How the measurements of a column become numbers of mean 0 and variance 1.

    Attributes
    ----------
    power : float
        λ of Yeo and Johnson; 1 leaves the measurements as they are.
    shift, scale : float
        Mean and standard deviation of what they become.
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
    """Return the transform of known measurements.

    Parameters
    ----------
    x : array
        The measurements of a column.
    bend : bool
        Whether a skewed column may be bent, or only shifted and scaled.
    """
    power = 1.0
    centred = x - x.mean()
    variance = float(np.mean(centred**2))
    if bend and variance > 0 and abs(np.mean(centred**3)) > SKEWED * variance**1.5:
        power = _likeliest_power(x)
    y = yeo_johnson(x, power)
    shift, scale = float(y.mean()), float(y.std())
    return Transform(power, shift, scale if scale > LEAST_SCALE else 1.0)


def _likeliest_power(x: FloatArray) -> float:
    """Return the power after which a normal distribution makes the measurements likeliest."""
    logs = np.sign(x) * np.log1p(np.abs(x))

    def cost(power: float) -> float:
        variance = float(yeo_johnson(x, power).var())
        if not (np.isfinite(variance) and variance > 0):
            return float("inf")
        return float(0.5 * np.log(variance) - (power - 1) * logs.mean())

    found = optimize.minimize_scalar(cost, bounds=POWERS, method="bounded")
    better = np.isfinite(found.fun) and found.fun < cost(1.0)
    return float(found.x) if better else 1.0
