"""Penalised conditional likelihood: a convex fit by SciPy's L-BFGS-B, along a path of penalties."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.lbfgs import lbfgs
from exchangeable.fitting.hybrid.pooling import pool


@dataclass(frozen=True)
class Solver:
    """How conditional fits are made.

    Attributes
    ----------
    tol : float
        A fit ends when the largest entry of its scaled gradient is below this.
    max_iter : int
        Largest number of iterations.
    stop : Event, optional
        Ends a fit at once when it is set; the fit keeps what it has found.
    """

    tol: float = 1e-4
    max_iter: int = 500
    stop: Event | None = None

    @property
    def stopped(self) -> bool:
        """Whether fits are to end."""
        return self.stop is not None and self.stop.is_set()


@dataclass(frozen=True)
class Fit:
    """Slopes that maximise a penalised conditional likelihood.

    Attributes
    ----------
    base : array of shape (width,)
        What each class scores for the empty row; of two classes the second against the first.
    slope : array of shape (n_variables, width)
        What a one adds.
    scales : array of shape (n_scores,)
        How much generative scores count.
    n_iter : int
        Iterations of the solver.
    converged : bool
        Whether it ended because the gradient vanished.
    """

    base: FloatArray
    slope: FloatArray
    scales: FloatArray
    n_iter: int = 0
    converged: bool = True


class _Interrupted(Exception):
    """A fit was asked to stop."""


@dataclass(frozen=True)
class Centred:
    """Generative scores around which slopes are fitted.

    Attributes
    ----------
    scores : array of shape (n_scores, n_rows, width)
        What generative models that have not seen a row say of it.
    scales : array of shape (n_scores,)
        How much they count.
    """

    scores: FloatArray
    scales: FloatArray

    @classmethod
    def scaled(cls, design: Design, scores: FloatArray, n_jobs: int | None = None) -> "Centred":
        """Return scores with the scales that are best while no variable adds anything."""
        scales = pool(design, scores, n_jobs)[0] if len(scores) else np.empty(0)
        return cls(scores, scales)

    def sum(self) -> FloatArray | float:
        """Return what the scores add for each row."""
        return np.tensordot(self.scales, self.scores, 1) if len(self.scores) else 0.0


def path(
    design: Design,
    centred: Centred,
    penalties: Sequence[float],
    solver: Solver,
    n_jobs: int | None = None,
    start: Fit | None = None,
) -> Iterator[Fit]:
    """Yield a fit for each penalty, each starting from the one before: strong penalties first."""
    fit = start
    for penalty in penalties:
        fit = solve(design, centred, penalty, solver, n_jobs, fit)
        yield fit


class _Objective:
    """The average penalised loss, as a function of scaled parameters.

    Each parameter is multiplied by the root of about how much the objective bends along it: with
    words that are frequent or rare, that makes fits several times shorter.
    """

    def __init__(
        self, design: Design, offset: FloatArray | float, penalty: float, solver: Solver
    ) -> None:
        self.design, self.offset, self.solver = design, offset, solver
        # Of two classes the slopes are ±half the one column, whose square therefore counts half.
        self.ridge = penalty * (0.5 if design.width == 1 else 1.0)
        bend = (1.0 - 1.0 / design.n_classes) / design.n_classes
        by_variable = np.sqrt((bend * design.ones + self.ridge) / design.total)
        self.scale = np.repeat(np.append(np.sqrt(bend), by_variable), design.width)

    def unpack(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return base and slopes."""
        lines = (z / self.scale).reshape(-1, self.design.width)
        return lines[0], lines[1:]

    def pack(self, fit: Fit) -> FloatArray:
        """Return the parameters of a fit as the solver sees them."""
        return np.asarray(self.scale * np.concatenate([fit.base, fit.slope.ravel()]))

    def evaluate(self, z: FloatArray, n_jobs: int | None) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        if self.solver.stopped:
            raise _Interrupted
        design, width = self.design, self.design.width
        base, slope = self.unpack(z)
        residuals = design.scores(slope, base + self.offset, n_jobs)
        loss = design.settle(residuals, n_jobs) + 0.5 * self.ridge * float(np.vdot(slope, slope))
        gradient = np.empty_like(z)
        gradient[:width] = residuals.sum(axis=0)
        by_variable = design.gather(residuals, n_jobs)
        by_variable += self.ridge * slope
        gradient[width:] = by_variable.ravel()
        gradient /= design.total * self.scale
        return loss / design.total, gradient


def solve(
    design: Design,
    centred: Centred,
    penalty: float,
    solver: Solver,
    n_jobs: int | None = None,
    start: Fit | None = None,
) -> Fit:
    """Minimise Σ_i −log P(y_i | x_i) + penalty / 2 · |slope|², slopes being centred over classes.

    The scores of a row are base + Σ_j slope_j + Σ_m scales_m · scores_m.
    """
    objective = _Objective(design, centred.sum(), penalty, solver)
    latest = np.zeros(objective.scale.size) if start is None else objective.pack(start)

    def keep(z: FloatArray) -> None:
        latest[:] = z

    try:
        found, n_iter = lbfgs(
            lambda z: objective.evaluate(z, n_jobs),
            latest.copy(),
            solver.tol,
            solver.max_iter,
            callback=keep,
        )
    except _Interrupted:
        return Fit(*objective.unpack(latest), centred.scales, converged=False)
    return Fit(*objective.unpack(found), centred.scales, n_iter, n_iter < solver.max_iter)
