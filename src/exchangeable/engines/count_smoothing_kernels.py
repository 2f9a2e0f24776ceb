"""Smoothing of how often each count occurs, with the width that predicts left-out rows best."""

import numpy as np
from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})

NARROW = 0.3
"""A kernel narrower than this is not worth having."""
TRACE = 1e-5
"""Mass of a count below this share of the whole is not worth smoothing."""


@_compile
def _kernel(bandwidth, below, above, out):  # type: ignore[no-untyped-def]
    """Write a Gaussian kernel, so many counts to either side, with sum 1.

    The factors from e^{−d² / 2b²} to that of the next distance fall evenly.
    """
    value, total = 1.0, 1.0
    factor, change = np.exp(-0.5 / bandwidth**2), np.exp(-1.0 / bandwidth**2)
    out[below] = 1.0
    for distance in range(1, max(below, above) + 1):
        value *= factor
        factor *= change
        if distance <= below:
            out[below - distance] = value
            total += value
        if distance <= above:
            out[below + distance] = value
            total += value
    out[: below + above + 1] /= total


@_compile
def smooth_counts(histograms, width, out, own):  # type: ignore[no-untyped-def]
    """Write each histogram with each count's mass spread by a Gaussian kernel.

    The bandwidth is width·(count + 1); where it is small, or the mass is, the mass stays.
    ``own[y, count]`` gets the share of a count's mass that stays there.
    """
    n_histograms, size = histograms.shape
    own[:] = 1.0
    out[:] = 0.0
    least, kernel = TRACE * histograms.sum(axis=1), np.empty(size)
    for count in range(size):
        bandwidth = width * (count + 1)
        reach, made = int(np.ceil(3 * bandwidth)), False
        below, above = min(reach, count), min(reach, size - 1 - count)
        for y in range(n_histograms):
            mass = histograms[y, count]
            if bandwidth < NARROW or mass < least[y] or mass <= 0.0:
                out[y, count] += mass
                continue
            if not made:
                _kernel(bandwidth, below, above, kernel)
                made = True
            own[y, count] = kernel[below]
            into = out[y, count - below : count + above + 1]
            for i in range(into.size):
                into[i] += mass * kernel[i]


@_compile
def best_smoothing(histograms, priors, widths, out):  # type: ignore[no-untyped-def]
    """Write smoothed histograms plus priors, each by the width that predicts left-out rows best.

    A row is left out by taking one unit of mass, or all there is if that is less, from its count.
    """
    tried, own = np.empty(histograms.shape), np.empty(histograms.shape)
    best = np.full(histograms.shape[0], -np.inf)
    out[:] = histograms + priors
    for width in widths:
        smooth_counts(histograms, width, tried, own)
        for y in range(best.size):
            histogram, prior = histograms[y], priors[y]
            weight, known, worth = histogram.sum(), prior.sum(), 0.0
            if weight <= 0.0:
                continue
            for count in range(histogram.size):
                h = histogram[count]
                if h > 0.0:
                    unit = min(h, 1.0)
                    left = max(tried[y, count] - unit * own[y, count], 0.0) + prior[count]
                    worth += h * np.log(max(left, 1e-300) / (weight - unit + known))
            if worth > best[y]:
                best[y] = worth
                out[y] = tried[y] + prior
