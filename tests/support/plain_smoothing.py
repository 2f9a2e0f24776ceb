"""Smoothing of counts, written out plainly: every width, every count, every row left out."""

import numpy as np

WIDTHS = (0.0, 0.06, 0.13, 0.3)
"""What kernels are tried: bandwidth over count + 1."""


def best_smoothing(histogram, prior):
    """Return the smoothing under which each row, left out, is most probable."""
    size, best = histogram.size, (-np.inf, None)
    counts = np.arange(size)
    for width in WIDTHS:
        kernels = np.eye(size)
        for count in counts[histogram >= 1e-5 * histogram.sum()]:
            bandwidth = width * (count + 1)
            if bandwidth >= 0.3:
                kernel = np.exp(-0.5 * ((counts - count) / bandwidth) ** 2)
                kernel[np.abs(counts - count) > np.ceil(3 * bandwidth)] = 0.0
                kernels[count] = kernel / kernel.sum()
        smooth = histogram @ kernels
        unit = np.minimum(histogram, 1.0)
        left = np.maximum(smooth - unit * np.diag(kernels), 0.0) + prior
        chance = np.maximum(left, 1e-300) / (histogram.sum() - unit + prior.sum())
        worth = histogram @ np.log(chance)
        if worth > best[0]:
            best = worth, smooth + prior
    return best[1]
