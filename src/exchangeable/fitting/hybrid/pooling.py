"""Several predictors as one: their scores added, by how much each helps on rows it has not seen."""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.lbfgs import lbfgs

TOL, MAX_ITER = 1e-5, 500
HIDDEN = 0.5
"""How much rows with holes count beside whole ones."""
RIDGE = 1e-3
"""Penalty of the square of a scale, when the scores have variance 1, and of what is added, with up
to 1,000 rows; with more it is one row's share."""


def pool(
    design: Design, views: FloatArray, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray, float]:
    """Return scales of at least 0 and a base under which the labels are likeliest.

    Parameters
    ----------
    design : Design
        Rows with labels.
    views : array of shape (n_views, n_predictors, n_rows, width)
        What each predictor says of rows it was not fitted to: of whole rows first, then of rows
        some of whose variables are hidden, which count as much as whole ones together. Each view
        has a base of its own.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    scales, base, loss
        The scales; the base, of shape (width,), and the average loss of whole rows.
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
