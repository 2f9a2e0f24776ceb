"""Distributions of counts: negative binomial, of which Poisson is the limit.

It is what a count has by itself, and what the total of a block of counts has. It gives counts that
never occurred a probability, and what a column of zeros and large counts needs, a wide spread.
"""

import numpy as np
from scipy import special, stats

from exchangeable.arrays import FloatArray

SMALLEST_SIZE, LARGEST_SIZE = 1e-3, 1e5
"""Between these the size is looked for; beyond the second the distribution is Poisson's."""
LEAST_MEAN = 1e-9
HALVINGS = 45
TAIL = 1e-12
"""Counts beyond what has this probability are left out where all counts must be listed."""


def log_counts(counts: FloatArray, means: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return log P(x), shape (n_counts, n_classes); an infinite size stands for Poisson."""
    x = counts[:, None]
    finite = np.isfinite(sizes)
    r = np.where(finite, sizes, 1.0)
    wide = special.gammaln(x + r) - special.gammaln(r) + r * np.log(r / (r + means))
    wide = wide + x * np.log(means / (r + means))
    poisson = x * np.log(means) - means
    return np.asarray(np.where(finite, wide, poisson) - special.gammaln(x + 1))


def fit_counts(histogram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means and sizes under which counts are likeliest.

    Parameters
    ----------
    histogram : array of shape (n_counts, n_classes)
        The weight of each count 0, 1, …
    """
    counts = np.arange(len(histogram))[:, None]
    weight = histogram.sum(axis=0)
    safe = np.where(weight > 0, weight, 1.0)
    means = np.maximum((counts * histogram).sum(axis=0) / safe, LEAST_MEAN)
    above = histogram[::-1].cumsum(axis=0)[::-1][1:]  # the weight of counts beyond 0, 1, …
    steps = np.arange(len(above))[:, None]

    def slope(sizes: FloatArray) -> FloatArray:
        gain = (above / (sizes + steps)).sum(axis=0)
        return np.asarray(gain + weight * np.log(sizes / (sizes + means)))

    low = np.full(weight.size, np.log(SMALLEST_SIZE))
    high = np.full(weight.size, np.log(LARGEST_SIZE))
    variance = ((counts - means) ** 2 * histogram).sum(axis=0) / safe
    poisson = (variance <= means) | (slope(np.exp(high)) > 0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        rising = slope(np.exp(middle)) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return means, np.where(poisson, np.inf, np.exp(0.5 * (low + high)))


def draw_counts(mean: float, size: float, n: int, rng: np.random.Generator) -> FloatArray:
    """Return n counts drawn at random."""
    if np.isinf(size):
        return rng.poisson(mean, n).astype(np.float64)
    return rng.negative_binomial(size, size / (size + mean), n).astype(np.float64)


def likeliest_count(mean: float, size: float) -> float:
    """Return the mode."""
    if np.isinf(size):
        return float(np.floor(mean))
    return float(np.floor(max(size - 1, 0.0) * mean / size))


def highest_count(means: FloatArray, sizes: FloatArray) -> int:
    """Return a count beyond which next to nothing lies, for any class."""
    r = np.where(np.isfinite(sizes), sizes, 1.0)
    wide = stats.nbinom.isf(TAIL, r, r / (r + means))
    ends = np.where(np.isfinite(sizes), wide, stats.poisson.isf(TAIL, means))
    return int(np.max(ends)) + 1
