"""What all classes share: P(y | x) does not depend on it, and it makes P(x) a good density.

Adding v·x and u(n), n being the number of ones, to the scores of all classes leaves P(y | x) alone.
The likelihood of the rows is concave in v: its gradient is how often each variable is on in the
rows, minus how often in the model.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from exchangeable.arrays import UNASSIGNED, FloatArray
from exchangeable.data.observed import Observed
from exchangeable.families import normalised
from exchangeable.families.common.log_linear import LogLinear

SMOOTHING = 0.5
"""Rows with a variable on, and off, that are added to those seen."""
COUNT_ROWS = 8.0
"""Rows distributed as the model's own numbers of ones that are added to those seen."""
TOL, MAX_ITER = 1e-3, 100


def with_shared(
    scores: LogLinear,
    ones: FloatArray,
    total: float,
    counts: FloatArray,
    n_jobs: int | None = None,
) -> LogLinear:
    """Return the scores with the shared terms under which the rows are likeliest.

    Parameters
    ----------
    scores : LogLinear
        Scores of the classes.
    ones : array of shape (n_variables,)
        Weight of the rows with each variable on.
    total : float
        Weight of all rows.
    counts : array of shape (n_variables + 1,)
        Weight of the rows by their number of ones.
    n_jobs : int, optional
        Number of threads.
    """
    target = (ones + SMOOTHING) / (total + 2 * SMOOTHING)
    scores = _with_slopes(scores, target, n_jobs)
    if not scores.by_count.size:
        return scores
    scores = _with_counts(scores, counts, n_jobs)
    return _with_counts(_with_slopes(scores, target, n_jobs), counts, n_jobs)


def _with_slopes(scores: LogLinear, target: FloatArray, n_jobs: int | None) -> LogLinear:
    """Add v under which each variable is on as often as in the rows."""
    nothing = np.zeros(1)
    scale = np.sqrt(target * (1 - target))
    start = np.zeros_like(target)
    if scores.is_linear:
        start = np.log(target) - np.log1p(-target) - scores.slope.mean(axis=1)

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        v = z / scale
        log_total, means = _moments(scores.plus(nothing, v[:, None]), n_jobs)
        return log_total - float(v @ target), (means - target) / scale

    options = {"maxiter": MAX_ITER, "gtol": TOL}
    found = minimize(objective, start * scale, jac=True, method="L-BFGS-B", options=options)
    return scores.plus(nothing, (found.x / scale)[:, None])


def _moments(scores: LogLinear, n_jobs: int | None) -> tuple[float, FloatArray]:
    """Return log Z, and how probable each variable is to be on."""
    if scores.is_linear:
        log_totals = scores.base + np.logaddexp(0.0, scores.slope).sum(axis=0)
        log_total = float(np.logaddexp.reduce(log_totals))
        return log_total, expit(scores.slope) @ np.exp(log_totals - log_total)
    mixture, log_total = normalised(scores, n_jobs)
    n, k = scores.slope.shape
    nothing = Observed.from_symbols(np.full((1, n), UNASSIGNED, dtype=np.int8))
    means = np.stack([mixture.model.marginals(nothing, y)[0] for y in range(k)], axis=1)
    return log_total, means @ np.exp(mixture.log_prior)


def _with_counts(scores: LogLinear, counts: FloatArray, n_jobs: int | None) -> LogLinear:
    """Add u under which the numbers of ones are distributed as in the rows, nearly."""
    mixture, _ = normalised(scores, n_jobs)
    by_class = [blocks[0] for blocks in mixture.model.count_probabilities()]
    share = np.maximum(np.exp(mixture.log_prior) @ np.stack(by_class), 1e-300)
    u = np.log((counts + COUNT_ROWS * share) / (counts.sum() + COUNT_ROWS)) - np.log(share)
    return replace(scores, by_count=scores.by_count + u[:, None])
