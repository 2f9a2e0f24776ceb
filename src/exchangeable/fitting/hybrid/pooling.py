"""Several predictors as one: their scores added, by how much each helps on rows it has not seen."""

import numpy as np
from scipy.optimize import minimize

from exchangeable.arrays import FloatArray
from exchangeable.fitting.hybrid.design import Design

RIDGE = 1e-3
"""Penalty of the square of a scale, when the scores have variance 1."""


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
        by_scale = np.tensordot(unit, residuals, 2) / total + RIDGE * z[:m]
        penalised = loss + 0.5 * RIDGE * float(z[:m] @ z[:m])
        return penalised, np.concatenate([by_scale, residuals.sum(axis=0) / total])

    bounds = [(0.0, None)] * m + [(None, None)] * design.width
    start = np.concatenate([np.full(m, 1.0 / m), np.zeros(design.width)])
    options = {"maxiter": 500, "gtol": 1e-6, "ftol": 1e-12}
    found = minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    at_end = np.tensordot(found.x[:m], unit, 1) + found.x[m:]
    return found.x[:m] / spread, found.x[m:], design.settle(at_end, n_jobs) / total
