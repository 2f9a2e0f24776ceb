"""The weights of Pólya's urn, by Minka's fixed point."""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.mixed.algebra import urn_kernels as kernels

LEAST_WEIGHT, MOST_WEIGHT = 1e-10, 1e8
"""Range of all weights: a column in which nothing was ever counted has the minimum."""
STEPS, FIRST_STEPS = 10, 200
"""Steps of the fixed point in one iteration of EM, and for a first fit."""
SETTLED = 1e-5
"""The fixed point is reached when a step changes no sum of weights by more than this share."""


class Urn(NamedTuple):
    """The sums from which the weights of an urn are fitted: see `urn_kernels`."""

    above: FloatArray
    fixed: FloatArray
    lengths: FloatArray
    starts: IntArray


def settled_weights(urn: Urn, weights: FloatArray, steps: int) -> FloatArray:
    """Return the weights after some steps of the fixed point, fewer if they hardly change."""
    totals = np.arange(len(urn.lengths))[:, None]
    for _ in range(steps):
        whole = weights.sum(axis=0)
        below = (urn.lengths / (whole + totals)).sum(axis=0)
        after = np.empty_like(weights)
        safe = np.where(below > 0, below, 1.0)
        kernels.urn_step(urn.above, urn.fixed, safe, urn.starts, weights, after)
        after = np.where(below > 0, np.clip(after, LEAST_WEIGHT, MOST_WEIGHT), weights)
        moved = np.abs(after.sum(axis=0) / whole - 1).max()
        weights = after
        if moved < SETTLED:
            break
    return weights
