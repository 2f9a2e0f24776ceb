"""Several predictors as one: their scores added, by how much each helps on rows it has not seen."""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.lbfgs import lbfgs

TOL, MAX_ITER = 1e-5, 500
RIDGE = 1e-3
"""Penalty of the square of a scale, when the scores have variance 1, and of what is added."""


def pool(
    design: Design, scores: FloatArray, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray, float]:
    """Return scales of at least 0 and a base under which the labels are likeliest.

    Parameters
    ----------
    design : Design
        Rows with labels.
    scores : array of shape (n_predictors, n_rows, width)
        What each predictor says of rows it was not fitted to.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    scales, base, loss
        The scales, the base of shape (width,), and the average loss.
    """
    m, total = len(scores), design.total
    spread = np.sqrt(np.maximum(((scores**2).mean(axis=2) @ design.weights) / total, 1e-12))
    unit = scores / spread[:, None, None]

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        residuals = np.tensordot(z[:m], unit, 1) + z[m:]
        loss = design.settle(residuals, n_jobs) / total
        by_scale = np.tensordot(unit, residuals, 2)
        gradient = np.concatenate([by_scale, residuals.sum(axis=0)]) / total + RIDGE * z
        return loss + 0.5 * RIDGE * float(z @ z), gradient

    bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * m
    bounds += [(None, None)] * design.width
    start = np.concatenate([np.full(m, 1.0 / m), np.zeros(design.width)])
    found, _ = lbfgs(objective, start, TOL, MAX_ITER, bounds)
    at_end = np.tensordot(found[:m], unit, 1) + found[m:]
    return found[:m] / spread, found[m:], design.settle(at_end, n_jobs) / total
