"""Penalised conditional likelihood: a convex problem, solved by L-BFGS-B along a penalty path."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.fitting.hybrid import kernels
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.lbfgs import lbfgs
from exchangeable.fitting.hybrid.merged import Merged
from exchangeable.fitting.hybrid.pooling import pool


@dataclass(frozen=True)
class Solver:
    """Settings of conditional fits.

    Attributes
    ----------
    tol : float
        A fit stops when the largest entry of its scaled gradient is below this, with every variable
        considered separately.
    max_iter : int
        Maximum number of iterations.
    stop : Event, optional
        Stops a fit at once when it is set; the fit keeps its current parameters.
    """

    tol: float = 1e-4
    max_iter: int = 500
    stop: Event | None = None

    @property
    def stopped(self) -> bool:
        """Whether fits should stop."""
        return self.stop is not None and self.stop.is_set()


@dataclass(frozen=True)
class Fit:
    """Slopes that maximise a penalised conditional likelihood.

    Attributes
    ----------
    base : array of shape (width,)
        Scores of the classes for the empty row; for two classes, of the second relative to the
        first.
    slope : array of shape (n_variables, width)
        What a one adds to the scores.
    scales : array of shape (n_scores,)
        Scales of the generative scores.
    n_iter : int
        Iterations of the solver.
    converged : bool
        Whether it stopped because the gradient vanished.
    """

    base: FloatArray
    slope: FloatArray
    scales: FloatArray
    n_iter: int = 0
    converged: bool = True


class _Interrupted(Exception):
    """A fit was asked to stop."""


class _AtTheStart(Exception):
    """The starting point of a fit."""


@dataclass(frozen=True)
class Centred:
    """Generative scores that enter fits as an offset.

    Attributes
    ----------
    scores : array of shape (n_scores, n_rows, width)
        Generative scores of rows, from models that have not seen them.
    scales : array of shape (n_scores,)
        Their scales.
    """

    scores: FloatArray
    scales: FloatArray

    @classmethod
    def scaled(cls, design: Design, scores: FloatArray, n_jobs: int | None = None) -> "Centred":
        """Return scores with the scales that are best if all slopes are zero."""
        scales = pool(design, scores[None], n_jobs)[0] if len(scores) else np.empty(0)
        return cls(scores, scales)

    def sum(self) -> FloatArray | float:
        """Return the contribution of the scores for each row."""
        return np.tensordot(self.scales, self.scores, 1) if len(self.scores) else 0.0


def path(
    merged: Merged,
    centred: Centred,
    penalties: Sequence[float],
    solver: Solver,
    n_jobs: int | None = None,
    start: Fit | None = None,
) -> Iterator[Fit]:
    """Yield a fit for each penalty, from strong to weak, each starting from the one before."""
    fit = start
    for penalty in penalties:
        fit = solve(merged, centred, penalty, solver, n_jobs, fit)
        yield fit


class _Objective:
    """The average penalised loss, as a function of scaled parameters.

    Each parameter is multiplied by the root of about the curvature of the objective along it. With
    both frequent and rare words, this makes fits several times faster.
    """

    def __init__(
        self, merged: Merged, offset: FloatArray | float, penalty: float, solver: Solver
    ) -> None:
        self.merged, self.design, self.offset = merged, merged.design, offset
        self.solver, self.begun, self.steepest = solver, False, np.inf
        design = self.design
        # For two classes the slopes are ±half the single column, whose square therefore counts
        # half.
        self.ridge = penalty * (0.5 if design.width == 1 else 1.0)
        bend = (1.0 - 1.0 / design.n_classes) / design.n_classes
        by_line = np.sqrt((bend * merged.ones + self.ridge) / design.total)
        self.per_unit = 1.0 / np.append(np.sqrt(bend), by_line)
        self.per_sum = self.per_unit / design.total
        self.roots = np.append(1.0, merged.roots)

    def unpack(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return base and slopes."""
        lines = z.reshape(-1, self.design.width) * self.per_unit[:, None]
        return lines[0], self.merged.apart(lines[1:])

    def pack(self, fit: Fit) -> FloatArray:
        """Return the parameters of a fit in the solver's form."""
        lines = np.concatenate([fit.base[None], self.merged.together(fit.slope)])
        return np.asarray(lines / self.per_unit[:, None]).ravel()

    def evaluate(self, z: FloatArray, n_jobs: int | None) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        if self.solver.stopped:
            raise _Interrupted
        lines, gradient = np.empty((2, self.per_unit.size, self.design.width))
        squares = kernels.unscale(z, self.per_unit, self.ridge, lines, gradient)
        residuals = self.merged.scores(lines[1:], lines[0] + self.offset, n_jobs)
        loss = self.design.settle(residuals, n_jobs) + 0.5 * self.ridge * squares
        gradient[0] = np.ones(len(residuals)) @ residuals
        self.merged.gather(residuals, gradient[1:], n_jobs)
        self.steepest = kernels.rescale(gradient, self.per_sum, self.roots)
        if not self.begun and self.steepest <= self.solver.tol:
            raise _AtTheStart
        self.begun = True
        return loss / self.design.total, gradient.ravel()


def solve(
    merged: Merged,
    centred: Centred,
    penalty: float,
    solver: Solver,
    n_jobs: int | None = None,
    start: Fit | None = None,
) -> Fit:
    """Minimise Σ_i −log P(y_i | x_i) + penalty / 2 · |slope|², with slopes centred over classes.

    The scores of a row are base + Σ_j slope_j + Σ_m scales_m · scores_m.
    """
    objective = _Objective(merged, centred.sum(), penalty, solver)
    latest = np.zeros(objective.per_unit.size * merged.design.width)
    if start is not None:
        latest[:] = objective.pack(start)

    def keep(z: FloatArray) -> None:
        latest[:] = z
        if objective.steepest <= solver.tol:
            raise StopIteration

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
    except _AtTheStart:
        return Fit(*objective.unpack(latest), centred.scales)
    return Fit(*objective.unpack(found), centred.scales, n_iter, n_iter < solver.max_iter)
