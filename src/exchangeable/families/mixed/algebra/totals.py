"""Distributions of counts: the negative binomial, with Poisson as its limit.

It is used for single counts, and for the total of a block of counts. It gives positive probability
to counts that never occurred, and the wide spread that a column with zeros and large counts needs.
"""

import numpy as np
from scipy import special, stats

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.columns.values import MOST_COUNT
from exchangeable.families.mixed import kernels
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import numbers

SMALLEST_SIZE, LARGEST_SIZE = 1e-3, 1e5
"""Range of the size; beyond the maximum the distribution is Poisson's."""
LEAST_MEAN = 1e-9
MOST = MOST_COUNT
HALVINGS = 45
TAIL = 1e-12
"""Counts beyond this cumulative probability are left out if all counts must be listed."""


def log_counts(counts: FloatArray, means: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return log P(x), shape (n_counts, n_classes); an infinite size means Poisson."""
    x = counts[:, None]
    finite = np.isfinite(sizes)
    r = np.where(finite, sizes, 1.0)
    wide = special.gammaln(x + r) - special.gammaln(r) + r * np.log(r / (r + means))
    wide = wide + x * np.log(means / (r + means))
    poisson = x * np.log(means) - means
    return np.asarray(np.where(finite, wide, poisson) - special.gammaln(x + 1))


def log_pairs(counts: FloatArray, means: FloatArray, sizes: FloatArray | float) -> FloatArray:
    """Return log P of each count under its own mean and size; all shapes must broadcast."""
    poisson = special.xlogy(counts, means) - means
    finite = np.isfinite(sizes)
    if not np.any(finite):
        return np.asarray(poisson - special.gammaln(counts + 1))
    r = np.where(finite, sizes, 1.0)
    wide = special.gammaln(counts + r) - special.gammaln(r)
    wide += r * np.log(r / (r + means)) + special.xlogy(counts, means / (r + means))
    return np.asarray(np.where(finite, wide, poisson) - special.gammaln(counts + 1))


def fit_counts(histogram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the maximum likelihood means and sizes.

    Parameters
    ----------
    histogram : array of shape (n_counts, n_classes)
        The weight of each count 0, 1, …
    """
    means, sizes = fit_columns(np.ascontiguousarray(histogram), np.array([len(histogram)]))
    return means[0], sizes[0]


def fit_columns(histogram: FloatArray, lengths: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the same for several columns, whose histograms are concatenated.

    Parameters
    ----------
    histogram : array of shape (n_cells, n_classes)
        The weight of each count of the first column, of the second, …
    lengths : array of shape (n_columns,)
        How many counts each column has, from 0 on.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    counts = (np.arange(len(histogram)) - np.repeat(starts[:-1], lengths)).astype(np.float64)
    weight = np.add.reduceat(histogram, starts[:-1], axis=0)
    safe = np.where(weight > 0, weight, 1.0)
    once, twice = (
        np.add.reduceat(power[:, None] * histogram, starts[:-1], axis=0) / safe
        for power in (counts, counts**2)
    )
    means, sizes = np.maximum(once, LEAST_MEAN), np.ascontiguousarray(twice)
    ends = np.log(SMALLEST_SIZE), np.log(LARGEST_SIZE)
    kernels.fit_sizes(histogram, starts, means, *ends, HALVINGS, sizes)
    return means, sizes


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
    """Return a count beyond which there is negligible probability, for any class."""
    r = np.where(np.isfinite(sizes), sizes, 1.0)
    wide = stats.nbinom.isf(TAIL, r, r / (r + means))
    ends = np.where(np.isfinite(sizes), wide, stats.poisson.isf(TAIL, means))
    return int(np.max(ends)) + 1


def checked_totals(
    means: FloatArray, sizes: FloatArray, shape: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return means and sizes from a file, rejecting invalid ones."""
    means = numbers(means, "means", shape, low=LEAST_MEAN, high=MOST)
    sizes = numbers(sizes, "sizes", shape, low=0.9 * SMALLEST_SIZE, high=np.inf)
    if (np.isfinite(sizes) & (sizes > 2 * LARGEST_SIZE)).any():
        raise ModelFileError("sizes hold a number that is too large")
    return means, sizes


def checked_largest(largest: IntArray, n_columns: int, most: float = MOST) -> IntArray:
    """Return the largest counts from a file, rejecting invalid ones."""
    if largest.dtype != np.int64 or largest.shape != (n_columns,):
        raise ModelFileError(f"largest is {largest.dtype} of shape {largest.shape}")
    if largest.min(initial=0) < 0 or largest.max(initial=0) > most:
        raise ModelFileError(f"largest holds counts up to {largest.max()}, which cannot be")
    return largest
