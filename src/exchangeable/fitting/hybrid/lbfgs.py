"""SciPy's L-BFGS-B, stopped by the gradient."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from exchangeable.arrays import FloatArray

MEMORY = 6
"""Number of steps that the solver stores."""


def lbfgs(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    tol: float,
    max_iter: int,
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
    callback: Callable[[FloatArray], None] | None = None,
) -> tuple[FloatArray, int]:
    """Return a point at which the largest entry of the gradient is below `tol`, and the iterations.

    >>> x, _ = lbfgs(lambda x: (float(x @ x), 2 * x), np.ones(3), 1e-9, 100)
    >>> bool(np.abs(x).max() < 1e-8)
    True
    """
    options = {"maxiter": max_iter, "gtol": tol, "ftol": 0.0, "maxcor": MEMORY, "maxfun": 10**9}
    solver: Any = minimize
    gradients: list[FloatArray] = []

    def value(x: FloatArray) -> float:
        height, gradient = objective(x)
        gradients[:] = [gradient]
        return height

    # The solver asks for the value first, then for the gradient at the same point.
    found = solver(
        value,
        start,
        jac=lambda x: gradients[0],
        method="L-BFGS-B",
        bounds=bounds,
        callback=callback,
        options=options,
    )
    return np.asarray(found.x), int(found.nit)
