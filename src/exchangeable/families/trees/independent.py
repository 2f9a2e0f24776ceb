"""Trees without edges and counts: independent variables, possibly in thousands of classes.

All classes are computed at once by matrix products, instead of one pass for each class.
"""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.observed import Observed, flags

WORTH_A_PRODUCT = 1 / 16
"""Share of ones from which a matrix product is faster than adding up the ones of a row."""
MANY_CLASSES = 256
LEAST_SHARE = 1e-300
"""Smaller shares are set to zero, because denormal numbers are slow."""


def dense(observed: Observed, n_classes: int) -> bool:
    """Whether rows without missing entries are scored faster by a matrix product."""
    rows = observed.ones
    if n_classes < MANY_CLASSES:
        return False
    if not rows.indptr.size:
        return True
    return bool(rows.indices.size > WORTH_A_PRODUCT * rows.n_rows * rows.n_variables)


def score(observed: Observed, base: FloatArray, slope: FloatArray, off: FloatArray) -> FloatArray:
    """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries.

    `off` is −log P(x_j = 0 | y), laid out as the slopes.
    """
    out = np.empty((observed.n_rows, base.size))
    for part, rows in observed.chunks():
        on = flags(rows.ones)
        if rows.holes is None:
            out[part] = on.astype(np.float64) @ slope + base
            continue
        known = ~rows.hole_flags()
        read = np.flatnonzero(known.any(axis=0))
        out[part] = on[:, read].astype(np.float64) @ slope[read]
        if known[:, read].all():  # the same entries of every row
            out[part] -= off[read].sum(axis=0)
        else:
            out[part] -= known[:, read].astype(np.float64) @ off[read]
    return out


def mean_marginals(observed: Observed, shares: FloatArray, chances: FloatArray) -> FloatArray:
    """Return Σ_y share_y·P(x_j = 1 | e, y), shape (n_rows, n_variables).

    `chances` are P(x_j = 1 | y), shape (n_classes, n_variables).
    """
    known = ~observed.hole_flags()
    means = np.where(shares < LEAST_SHARE, 0.0, shares) @ chances
    return np.where(known, flags(observed.ones) * shares.sum(axis=1)[:, None], means)
