"""Penalised conditional likelihood: a convex fit by SciPy's L-BFGS-B, along a path of penalties."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event

import numpy as np
from scipy.optimize import minimize

from exchangeable.arrays import FloatArray
from exchangeable.fitting.hybrid.design import Design

MEMORY = 10
"""Steps that L-BFGS remembers."""


@dataclass(frozen=True)
class Fit:
    """Slopes that maximise a penalised conditional likelihood.

    Attributes
    ----------
    base : array of shape (width,)
        What each class scores for the empty row.
    slope : array of shape (n_variables, width)
        What a one adds.
    n_iter : int
        Iterations of the solver.
    converged : bool
        Whether it ended because the gradient vanished.
    """

    base: FloatArray
    slope: FloatArray
    n_iter: int = 0
    converged: bool = True


class Interrupted(Exception):
    """A fit was interrupted; what it has found so far is in `found`."""


def blank(design: Design) -> Fit:
    """Return the fit in which nothing adds to any score."""
    return Fit(np.zeros(design.width), np.zeros((design.rows.n_variables, design.width)))


def path(
    design: Design,
    penalties: Sequence[float],
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
    start: Fit | None = None,
    stop: Event | None = None,
) -> Iterator[Fit]:
    """Yield a fit for each penalty, each starting from the one before: strong penalties first."""
    fit = blank(design) if start is None else start
    for penalty in penalties:
        fit = solve(design, penalty, tol, max_iter, n_jobs, fit, stop)
        yield fit


def solve(
    design: Design,
    penalty: float,
    tol: float,
    max_iter: int,
    n_jobs: int | None,
    start: Fit,
    stop: Event | None = None,
) -> Fit:
    """Minimise Σ_i −log P(y_i | x_i) + penalty / 2 · |slope|², slopes being centred over classes.

    The solver sees each slope times the root of about how much the objective bends along it, and
    the average over rows; it stops when the largest entry of that gradient is below `tol`.
    """
    n, width, total = design.rows.n_variables, design.width, design.total
    # Of two classes the slopes are ±half the one column, whose square therefore counts half.
    ridge = penalty * (0.5 if width == 1 else 1.0)
    share = 1.0 / design.n_classes
    bend = share * (1.0 - share)
    scale = np.sqrt((bend * design.ones + ridge) / total)[:, None]
    base_scale = np.sqrt(bend)

    def unpack(z: FloatArray) -> tuple[FloatArray, FloatArray]:
        return z[:width] / base_scale, z[width:].reshape(n, width) / scale

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        if stop is not None and stop.is_set():
            raise Interrupted
        base, slope = unpack(z)
        scores = design.scores(slope, base, n_jobs)
        loss = design.settle(scores, n_jobs) + 0.5 * ridge * float(np.vdot(slope, slope))
        gradient = design.gather(scores, n_jobs)
        gradient += ridge * slope
        gradient /= total * scale
        flat = np.concatenate([scores.sum(axis=0) / (total * base_scale), gradient.ravel()])
        return loss / total, flat

    latest = [np.concatenate([start.base * base_scale, (start.slope * scale).ravel()])]
    options = {"maxiter": max_iter, "gtol": tol, "ftol": 0.0, "maxcor": MEMORY, "maxfun": 10**9}

    def keep(z: FloatArray) -> None:
        latest.append(z.copy())
        del latest[0]

    try:
        found = minimize(
            objective, latest[0], jac=True, method="L-BFGS-B", options=options, callback=keep
        )
    except Interrupted:
        return Fit(*unpack(latest[0]), n_iter=0, converged=False)
    return Fit(*unpack(found.x), n_iter=int(found.nit), converged=int(found.nit) < max_iter)
