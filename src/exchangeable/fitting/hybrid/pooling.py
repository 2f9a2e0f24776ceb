"""Pooling: a weighted sum of several predictors' scores, with weights from held-out rows."""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.lbfgs import lbfgs

TOL, MAX_ITER = 1e-5, 500
HIDDEN = 0.5
"""Weight of incomplete rows, relative to complete ones."""
RIDGE = 1e-3
"""Penalty of the square of a scale, for scores with variance 1, and of the base, for up to 1,000
rows; with more rows it is one row's share."""


def pool(
    design: Design, views: FloatArray, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray, float]:
    """Return non-negative scales and a base that maximise the likelihood of the labels.

    Parameters
    ----------
    design : Design
        Labelled rows.
    views : array of shape (n_views, n_predictors, n_rows, width)
        Each predictor's scores of rows that it was not fitted to: of complete rows first, then of
        rows with some variables hidden, which together have the weight of the complete ones. Each
        view has its own base.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    scales, base, loss
        The scales; the base, of shape (width,), and the average loss of complete rows.
    """
    (n_views, m), total = views.shape[:2], design.total
    ridge = min(RIDGE, 1.0 / total)
    spread = np.sqrt(np.maximum(((views[0] ** 2).mean(axis=2) @ design.weights) / total, 1e-12))
    unit = views / spread[:, None, None]
    shares = np.full(n_views, HIDDEN / max(n_views - 1, 1)) / total
    shares[0] = (1.0 - HIDDEN if n_views > 1 else 1.0) / total

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        bases = z[m:].reshape(n_views, -1)
        gradient, loss = ridge * z, 0.5 * ridge * float(z @ z)
        for view, base, share, by_base in zip(
            unit, bases, shares, gradient[m:].reshape(n_views, -1), strict=True
        ):
            residuals = np.tensordot(z[:m], view, 1) + base
            loss += share * design.settle(residuals, n_jobs)
            gradient[:m] += share * np.tensordot(view, residuals, 2)
            by_base += share * residuals.sum(axis=0)
        return loss, gradient

    free = n_views * design.width
    bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * m + [(None, None)] * free
    start = np.concatenate([np.full(m, 1.0 / m), np.zeros(free)])
    found, _ = lbfgs(objective, start, TOL, MAX_ITER, bounds)
    base = found[m : m + design.width]
    at_end = np.tensordot(found[:m], unit[0], 1) + base
    return found[:m] / spread, base, design.settle(at_end, n_jobs) / total
