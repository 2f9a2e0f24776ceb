"""Logarithms of binomial and multinomial coefficients, −inf where they are zero."""

import math
from typing import Any

import numpy as np
from scipy.special import gammaln

from exchangeable.arrays import FloatArray

MAX_VALUES = 10_000_000
"""Maximum number of values of a statistic: beyond it a table over them is impractical."""
MAX_ENTRIES = 100_000_000
"""Maximum number of entries of all values of a statistic whose values are vectors."""


def log_binomial(n: Any, k: Any) -> FloatArray:
    """Return log C(n, k), −inf if k is outside 0..n.

    >>> log_binomial(3, [-1, 0, 1, 4]).round(3).tolist()
    [-inf, 0.0, 1.099, -inf]
    """
    n, k = np.broadcast_arrays(np.asarray(n, np.float64), np.asarray(k, np.float64))
    inside = (k >= 0) & (k <= n)
    n, k = np.where(inside, n, 0.0), np.where(inside, k, 0.0)
    return np.where(inside, gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), -np.inf)


def log_multinomial(parts: Any) -> FloatArray:
    """Return the log of (Σ parts)! / Π parts!, along the last axis, −inf if a part is negative.

    >>> log_multinomial([[1, 1, 1], [2, 0, -1]]).round(3).tolist()
    [1.792, -inf]
    """
    parts = np.asarray(parts, np.float64)
    inside = (parts >= 0).all(axis=-1)
    kept = np.where(inside[..., None], parts, 0.0)
    log_ways = gammaln(kept.sum(axis=-1) + 1) - gammaln(kept + 1).sum(axis=-1)
    return np.where(inside, log_ways, -np.inf)


def log_divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return log(a / b) of two logarithms, −inf if b = 0 (and then a = 0 too).

    >>> log_divide(np.array([1.0, -np.inf]), np.array([0.5, -np.inf])).tolist()
    [0.5, -inf]
    """
    possible = denominator > -np.inf
    return np.where(possible, numerator - np.where(possible, denominator, 0.0), -np.inf)


def check_n_values(n_values: int, what: str, width: int = 1) -> int:
    """Refuse a statistic with more values, vectors of `width` numbers, than a table can hold."""
    if n_values > MAX_VALUES or n_values * width > MAX_ENTRIES:
        magnitude = f"about 10^{int(math.log10(n_values))}"
        vectors = f", vectors of {width:,} numbers" if width > 1 else ""
        raise ValueError(
            f"{what} has {magnitude} distinct values{vectors}; a table may have {MAX_VALUES:,} "
            f"values and {MAX_ENTRIES:,} numbers"
        )
    return n_values
