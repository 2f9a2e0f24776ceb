"""From log P(x, y) to posteriors, for a tile of rows at a time.

A tile has one line per class and one column per row, so that every loop runs over rows without a
branch and is compiled to vector instructions.
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernels.loops import fill, helper, inlined, largest
from exchangeable.runtime.kernels.vectors import logarithm, scaled_power, vectorise

LOG_LEAST = -345.0
"""For complete rows, posteriors are kept as long as their square is a normal number. The sweep
needs them: Welch's test is scale-free, so means of 1e-100 are distinguished as well as means of 0.1
(Algorithm 1)."""
LOG_NOTHING, NOTHING = -40.0, 1e-14
"""For incomplete rows, and families without a sweep, posteriors below these, relative to the
highest and to 1, are set to zero: their contribution to sums is lost in rounding."""


class RowPriors(NamedTuple):
    """Prior information about rows.

    Attributes
    ----------
    weights : array of shape (n_rows,)
        The weight of each row: equal rows are merged.
    clamp : array of shape (n_rows,) or (0,)
        The known class of each row, −1 if unknown; empty if no class is known.
    log_prior : array of shape (n_classes,)
        The log-probability of each class.
    """

    weights: FloatArray
    clamp: IntArray
    log_prior: FloatArray


@inlined
def _exponentiate(joint, first, last, highest, total):  # type: ignore[no-untyped-def]
    """Replace the joint by its exponential, each column relative to its highest; sum columns."""
    for r in range(highest.size):
        highest[r] = -np.inf
        total[r] = 0.0
    for y in range(joint.shape[0]):
        line = joint[y, first:last]
        for r in range(line.size):
            highest[r] = max(highest[r], line[r])
    for r in range(highest.size):
        highest[r] = highest[r] if highest[r] > -np.inf else 0.0
    for y in range(joint.shape[0]):
        line = joint[y, first:last]
        for r in range(line.size):
            difference = line[r] - highest[r]
            value = scaled_power(max(difference, LOG_LEAST))
            line[r] = value if difference > LOG_LEAST else 0.0
            total[r] += line[r]


@vectorise
def settle(joint, column, begin, end, priors, posterior):  # type: ignore[no-untyped-def]
    """Write the posteriors of a tile of log P(x, y) and return its weighted log-likelihood.

    The tile holds the rows begin..end, from a column of the joint on; the `priors` (`RowPriors`)
    and ``posterior[class, row]`` are those of all rows. The joint is overwritten.
    """
    n_classes, size = joint.shape[0], end - begin
    weights, clamp = priors.weights[begin:end], priors.clamp[begin:end]
    highest = np.empty(size)
    total = np.empty(size)
    log_likelihood = 0.0
    for r in range(clamp.size):
        if clamp[r] >= 0:
            log_likelihood += weights[r] * joint[clamp[r], column + r]
    _exponentiate(joint, column, column + size, highest, total)
    least = 1.0  # the highest of a column is 1, unless all are impossible
    for r in range(size):
        least = min(least, total[r])
    if clamp.size or least < 1.0:
        for r in range(size):
            if clamp.size and clamp[r] >= 0:
                for y in range(n_classes):
                    joint[y, column + r] = 0.0
                joint[clamp[r], column + r] = 1.0
            elif total[r] == 0.0:
                # An impossible row carries no information about its component.
                log_likelihood = -np.inf
                for y in range(n_classes):
                    joint[y, column + r] = np.exp(priors.log_prior[y])
            else:
                continue
            highest[r], total[r] = 0.0, 1.0
    for r in range(size):
        highest[r] = weights[r] * (highest[r] + logarithm(total[r]))
        total[r] = 1.0 / total[r]
    for r in range(size):
        log_likelihood += highest[r]
    for y in range(n_classes):
        line, out = joint[y, column : column + size], posterior[y, begin:end]
        for r in range(line.size):
            out[r] = line[r] * total[r]
    return log_likelihood


@helper
def settle_row(joint, log_prior, clamped):  # type: ignore[no-untyped-def]
    """Turn a row's log P(x, y) into posteriors in place and return its log-likelihood."""
    if clamped >= 0:
        known = joint[clamped]
        fill(joint, 0.0)
        joint[clamped] = 1.0
        return known
    highest = largest(joint)
    if highest == -np.inf:
        # An impossible row carries no information about its component.
        for y in range(joint.size):
            joint[y] = np.exp(log_prior[y])
        return highest
    for y in range(joint.size):
        difference = joint[y] - highest
        power = scaled_power(max(difference, LOG_NOTHING))
        joint[y] = power if difference > LOG_NOTHING else 0.0
    total = 0.0
    for y in range(joint.size):
        total += joint[y]
    for y in range(joint.size):
        joint[y] = joint[y] / total if joint[y] >= NOTHING * total else 0.0
    return highest + np.log(total)
