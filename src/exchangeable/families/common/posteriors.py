"""From log P(x, y) to posteriors, for a tile of rows at a time.

A tile holds one class a line and one row a column, so that every loop runs over rows without a
branch and the compiler turns it into vector instructions.
"""

import numpy as np
from numba import njit

from exchangeable.runtime.vectors import _vectorise, exponential, logarithm

NOTHING = 1e-14
"""A posterior below this is set to zero: what it would add is lost in rounding."""
LOG_NOTHING = -40.0
"""Joint probabilities that are smaller than the highest by this factor are not even computed."""


@_vectorise
def _exponentiate(joint, size, highest, total):  # type: ignore[no-untyped-def]
    """Replace the joint by its exponential, each column relative to its highest; add up columns."""
    for r in range(size):
        highest[r] = -np.inf
        total[r] = 0.0
    for y in range(joint.shape[0]):
        line = joint[y]
        for r in range(size):
            highest[r] = max(highest[r], line[r])
    for r in range(size):
        highest[r] = highest[r] if highest[r] > -np.inf else 0.0
    for y in range(joint.shape[0]):
        line = joint[y]
        for r in range(size):
            difference = line[r] - highest[r]
            value = exponential(max(difference, LOG_NOTHING))
            line[r] = value if difference > LOG_NOTHING else 0.0
            total[r] += line[r]


@_vectorise
def settle(joint, size, weights, clamp, log_prior, posterior):  # type: ignore[no-untyped-def]
    """Write the posteriors of a tile of log P(x, y) and return its weighted log-likelihood.

    `clamp` holds the class of rows whose class is known and −1 for the others; it is empty if none
    is known. The joint is overwritten.
    """
    n_classes = joint.shape[0]
    highest = np.empty(size)
    total = np.empty(size)
    log_likelihood = 0.0
    for r in range(clamp.size):
        if clamp[r] >= 0:
            log_likelihood += weights[r] * joint[clamp[r], r]
    _exponentiate(joint, size, highest, total)
    least = 1.0  # the highest of a column is 1, unless all are impossible
    for r in range(size):
        least = min(least, total[r])
    if clamp.size or least < 1.0:
        for r in range(size):
            if clamp.size and clamp[r] >= 0:
                joint[:, r] = 0.0
                joint[clamp[r], r] = 1.0
            elif total[r] == 0.0:
                # An impossible row tells nothing about its component.
                log_likelihood = -np.inf
                joint[:, r] = np.exp(log_prior)
            else:
                continue
            highest[r], total[r] = 0.0, 1.0
    for r in range(size):
        highest[r] = weights[r] * (highest[r] + logarithm(total[r]))
        total[r] = 1.0 / total[r]
    for r in range(size):
        log_likelihood += highest[r]
    for y in range(n_classes):
        line, out = joint[y], posterior[y]
        for r in range(size):
            share = line[r] * total[r]
            out[r] = share if share >= NOTHING else 0.0
    return log_likelihood


@njit(cache=True, nogil=True, error_model="numpy")
def settle_row(joint, log_prior, clamped):  # type: ignore[no-untyped-def]
    """Turn a row's log P(x, y) into posteriors in place and return its log-likelihood."""
    if clamped >= 0:
        known = joint[clamped]
        joint[:] = 0.0
        joint[clamped] = 1.0
        return known
    highest = joint.max()
    if highest == -np.inf:
        # An impossible row tells nothing about its component.
        joint[:] = np.exp(log_prior)
        return highest
    total = 0.0
    for y in range(joint.size):
        difference = joint[y] - highest
        joint[y] = np.exp(difference) if difference > LOG_NOTHING else 0.0
        total += joint[y]
    for y in range(joint.size):
        joint[y] = joint[y] / total if joint[y] >= NOTHING * total else 0.0
    return highest + np.log(total)
