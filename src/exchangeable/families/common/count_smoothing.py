"""Kernel smoothing of count histograms, with the width that predicts left-out rows best."""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import copy, divide, fill, inlined, largest, total

_compile = compiled(fastmath={"reassoc", "contract"})

NARROW = 0.3
"""Narrower kernels are not worthwhile."""
TRACE = 1e-5
"""Counts with less than this share of the mass are not smoothed."""


@inlined
def _kernel(bandwidth, below, above, out):  # type: ignore[no-untyped-def]
    """Write a Gaussian kernel with sum 1 that extends this many counts below and above.

    The factors from e^{−d² / 2b²} to that of the next distance decrease evenly.
    """
    value, mass = 1.0, 1.0
    factor, change = np.exp(-0.5 / bandwidth**2), np.exp(-1.0 / bandwidth**2)
    out[below] = 1.0
    for distance in range(1, max(below, above) + 1):
        value *= factor
        factor *= change
        if distance <= below:
            out[below - distance] = value
            mass += value
        if distance <= above:
            out[below + distance] = value
            mass += value
    divide(out[: below + above + 1], mass)


@inlined
def smooth_counts(histograms, width, out, stays):  # type: ignore[no-untyped-def]
    """Write each histogram with the mass of each count spread by a Gaussian kernel.

    The bandwidth is width·(count + 1); if it or the mass is small, the mass stays. ``stays[y,
    count]`` is set to the share of a count's mass that stays there.
    """
    n_histograms, size = histograms.shape
    first = min(int(np.ceil(NARROW / width)) - 1, size) if width > 0.0 else size
    spread = np.empty((size, n_histograms))
    for y in range(n_histograms):
        fill(stays[y], 1.0)
        copy(histograms[y], out[y])
        least = TRACE * total(histograms[y])
        for count in range(size):
            spread[count, y] = 0.0
            if count >= first and histograms[y, count] >= least:
                spread[count, y] = histograms[y, count]
                out[y, count] = 0.0
    kernel = np.empty(size)
    for count in range(first, size):
        if largest(spread[count]) <= 0.0:
            continue
        reach = int(np.ceil(3 * width * (count + 1)))
        below, above = min(reach, count), min(reach, size - 1 - count)
        _kernel(width * (count + 1), below, above, kernel)
        for y in range(n_histograms):
            mass = spread[count, y]
            if mass > 0.0:
                stays[y, count] = kernel[below]
                into = out[y, count - below : count + above + 1]
                for i in range(into.size):
                    into[i] += mass * kernel[i]


@_compile
def best_smoothing(histograms, priors, widths, out):  # type: ignore[no-untyped-def]
    """Write smoothed histograms plus priors, each by the width that predicts left-out rows best.

    A row is left out by subtracting one unit of mass, or all there is if that is less, from its
    count. The rest is divided by a mass that is the same for all widths, and so does not matter.
    """
    tried, stays = np.empty(histograms.shape), np.empty(histograms.shape)
    n_histograms, size = histograms.shape
    best = np.empty(n_histograms)
    fill(best, -np.inf)
    for i in range(widths.size):
        smooth_counts(histograms, widths[i], tried, stays)
        for y in range(n_histograms):
            worth = 0.0
            for count in range(size):
                mass = histograms[y, count]
                if mass != 0.0:
                    rest = max(tried[y, count] - min(mass, 1.0) * stays[y, count], 0.0)
                    worth += mass * np.log(max(rest + priors[y, count], 1e-300))
            if worth > best[y]:
                best[y] = worth
                for count in range(size):
                    out[y, count] = tried[y, count] + priors[y, count]


def smoothed(histograms: FloatArray, priors: FloatArray, widths: FloatArray) -> FloatArray:
    """Return histograms of counts plus priors, each smoothed by the best of some widths.

    Kernels have bandwidth width·(count + 1), so that widths are on a logarithmic scale, on which
    the counts of texts, baskets and ratings are all spread evenly. The best width is the one that
    predicts left-out rows best. All arrays have one line per histogram.
    """
    out = np.empty(histograms.shape)
    best_smoothing(np.ascontiguousarray(histograms), priors, widths, out)
    return out
