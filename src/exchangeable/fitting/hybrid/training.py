"""Hybrid training: conditional fits beside generative scores, pooled, and made into a mixture."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families import normalised
from exchangeable.families.common.log_linear import LogLinear
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.folds import make_folds
from exchangeable.fitting.hybrid.convex import Centred, Fit, Solver, path
from exchangeable.fitting.hybrid.density import with_shared
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.own import OwnFamily
from exchangeable.fitting.hybrid.pooling import pool
from exchangeable.fitting.hybrid.scores import FoldSums, reduced, slopes, useful
from exchangeable.fitting.hybrid.settings import FAMILY, Checked
from exchangeable.fitting.hybrid.trained import Trained
from exchangeable.runtime.threads import run

Finish = Callable[[LogLinear, Design, int | None], Mixture]
LEAST_GAIN = 0.1
"""Share of the loss that the family's own score must take away, if it is not linear: look-ups and
pairs make answers about rows with holes slower."""


class Candidates:
    """Conditional fits with every penalty, without generative scores and around them.

    Parameters
    ----------
    design : Design
        The rows.
    settings : Checked
        Names of scores, penalties and folds.
    own : OwnFamily
        The classifier's family.
    solver : Solver
        How fits are made.
    start : sequence of Fit
        Fits to begin with, as `fits` returned them.
    n_jobs : int, optional
        Number of threads.
    """

    def __init__(
        self,
        design: Design,
        settings: Checked,
        own: OwnFamily,
        solver: Solver,
        start: list[Fit],
        n_jobs: int | None = None,
    ) -> None:
        self.design, self.settings, self.solver, self.n_jobs = design, settings, solver, n_jobs
        self.names = settings.names
        if settings.scales is None:
            self.names = useful(settings.names, design.n_classes)
        self.fold = make_folds(design.labels, settings.n_folds)
        self.members = [np.flatnonzero(self.fold == f) for f in range(settings.n_folds)]
        self.sums = FoldSums(design, self.fold, settings.n_folds)
        self.own_held = None
        if settings.family and not solver.stopped:
            self.own_held = own.out_of_fold(design, self.fold, settings.n_folds, n_jobs)
            if self.own_held is not None:
                self.own_held = reduced(self.own_held - self.own_held.mean(axis=1, keepdims=True))
        self.start = start if len(start) == len(self.kinds) * len(settings.penalties) else []

    @property
    def given(self) -> FloatArray | None:
        """The scales that are given."""
        scales = self.settings.scales
        if scales is None:
            return None
        n_known = len(self.names) + (self.own_held is not None)
        return np.array(scales[:n_known])

    @property
    def kinds(self) -> tuple[bool, ...]:
        """Whether fits are around generative scores: some are and some not, unless scales say."""
        if self.settings.scales is not None:
            return (True,)
        return (False, True) if self.names else (False,)

    def held_scores(self, *left_out: int) -> FloatArray:
        """Return generative scores of the rows outside some folds, by fits without their fold."""
        design, parts, rows = self.design, [], []
        for f in range(self.settings.n_folds):
            if f in left_out:
                continue
            slope = self.slopes(f, *left_out)
            parts.append(self._say(design.take(self.members[f]), slope))
            rows.append(self.members[f])
        order = np.argsort(np.concatenate(rows), kind="stable")
        held = np.concatenate(parts, axis=1)[:, order]
        return self._with_own(held, np.concatenate(rows)[order])

    def slopes(self, *left_out: int) -> list[FloatArray]:
        """Return the slopes of generative scores of the rows outside some folds.

        Variables that such scores do not look at have 0.
        """
        ones, scored = self.sums.without(*left_out), self.design.scored
        if not scored.size:
            return slopes(self.names, ones)
        found = []
        for slope in slopes(self.names, ones[scored[: len(ones)]]):
            whole = np.zeros((scored.size, slope.shape[1]))
            whole[scored] = slope
            found.append(whole)
        return found

    def _say(self, design: Design, slope: list[FloatArray]) -> FloatArray:
        """Return what linear scores say of rows, shape (n_scores, n_rows, width)."""
        nothing = np.zeros(1)
        said = [reduced(design.scores(each, nothing, 1)) for each in slope]
        return np.stack(said) if said else np.empty((0, design.rows.n_rows, design.width))

    def _with_own(self, said: FloatArray, rows: IntArray) -> FloatArray:
        """Add what the family says, where its scale is given."""
        if self.settings.scales is None or self.own_held is None:
            return said
        return np.concatenate([said, self.own_held[rows][None]])

    def without_fold(self, left_out: int, n_jobs: int | None) -> tuple[list[Fit], FloatArray]:
        """Fit with all penalties to the rows outside a fold, and score the fold's rows."""
        design = self.design.take(np.flatnonzero(self.fold != left_out))
        held = self.design.take(self.members[left_out])
        fits, answers = list[Fit](), list[FloatArray]()
        for kind in self.kinds:
            centred = self._centred(design, kind, (left_out,), n_jobs)
            found = list(path(design, centred, self.settings.penalties, self.solver, n_jobs))
            offset: FloatArray | float = 0.0
            if kind:
                said = self._say(held, self.slopes(left_out))
                said = self._with_own(said, self.members[left_out])
                offset = Centred(said, centred.scales).sum()
            answers += [held.scores(fit.slope, fit.base + offset, n_jobs) for fit in found]
            fits += found
        return fits, np.stack(answers)

    def fit_all(self) -> list[Fit]:
        """Return the fits to all rows."""
        fits, penalties = list[Fit](), self.settings.penalties
        for kind in self.kinds:
            centred = self._centred(self.design, kind, (), self.n_jobs)
            start = self.start[len(fits)] if self.start else None
            fits += path(self.design, centred, penalties, self.solver, self.n_jobs, start)
        return fits

    def cross_validate(self) -> FloatArray:
        """Return what each candidate says of rows it has not seen."""
        folds = range(self.settings.n_folds)
        answers = run(lambda fold: self.without_fold(fold, 1)[1], folds, self.n_jobs)
        held = np.empty((len(answers[0]), self.design.rows.n_rows, self.design.width))
        for members, answer in zip(self.members, answers, strict=True):
            held[:, members] = answer
        return held

    def known_elsewhere(self) -> npt.NDArray[np.bool_]:
        """Whether other folds have rows of each row's class: else nobody could predict it."""
        k, labels = self.design.n_classes, self.design.labels
        shape = (self.settings.n_folds, k)
        by_fold = np.bincount(self.fold * k + labels, minlength=shape[0] * k).reshape(shape)
        return np.asarray(by_fold.sum(axis=0)[labels] > by_fold[self.fold, labels])

    def _centred(
        self, design: Design, kind: bool, left_out: tuple[int, ...], n_jobs: int | None
    ) -> Centred:
        """Return what slopes are fitted around: nothing, or generative scores."""
        if not kind:
            return Centred(np.empty((0, design.rows.n_rows, design.width)), np.empty(0))
        said, given = self.held_scores(*left_out), self.given
        return Centred.scaled(design, said, n_jobs) if given is None else Centred(said, given)


def train(
    design: Design,
    settings: Checked,
    own: OwnFamily,
    solver: Solver,
    weights: FloatArray,
    start: list[Fit],
    n_jobs: int | None = None,
    finish: Finish | None = None,
) -> Trained:
    """Train classes for their predictions, and make them a mixture whose P(x) is good.

    Parameters
    ----------
    design : Design
        The rows, weighed by the weights of their classes too.
    settings, own, solver, start, n_jobs
        As `Candidates` takes them.
    weights : array of shape (n_rows,)
        How much each row counts in P(x).
    finish : callable, optional
        Turns scores and rows into a mixture; by default one of binary variables.
    """
    finish = _binary if finish is None else finish
    plain = replace(design, weights=weights)
    if design.n_classes == 1:  # there is nothing to tell apart
        scores = LogLinear(np.zeros(1), np.zeros((design.n_variables, 1)))
        shares = np.zeros(len(settings.penalties))
        return Trained(finish(scores, plain, n_jobs), 0, True, np.nan, shares=shares)
    candidates = Candidates(design, settings, own, solver, start, n_jobs)
    fits = candidates.fit_all()
    weighed = _weigh(candidates, fits)
    scores = _combined(candidates, fits, weighed, own)
    shares = weighed.scales.reshape(len(candidates.kinds), -1).sum(axis=0)
    named = _scales(candidates, fits, weighed)
    n_iter, converged = sum(fit.n_iter for fit in fits), all(fit.converged for fit in fits)
    mixture = finish(scores, plain, n_jobs)
    return Trained(mixture, n_iter, converged, weighed.loss, named, shares, fits)


def _binary(scores: LogLinear, design: Design, n_jobs: int | None) -> Mixture:
    """Return binary variables with these scores, and shared terms that suit the rows."""
    return normalised(with_shared(scores, design, n_jobs), n_jobs)[0]


@dataclass(frozen=True)
class _Weighed:
    """How much each candidate counts, and the family's own score; what is added; the loss."""

    scales: FloatArray
    own: float
    base: FloatArray
    loss: float = np.nan


def _weigh(candidates: Candidates, fits: list[Fit]) -> _Weighed:
    """Choose scales by rows held out; one candidate alone is taken as it is."""
    design, own_held = candidates.design, candidates.own_held
    alone = np.zeros(len(fits))
    alone[len(fits) - 1 - len(candidates.settings.penalties) // 2] = 1.0
    given = candidates.settings.scales is not None
    as_it_is = _Weighed(alone, 0.0, np.zeros(design.width))
    if given and own_held is not None:
        as_it_is = _Weighed(alone, float(candidates.given[-1]), as_it_is.base)  # type: ignore[index]
    if len(fits) == 1 and (given or own_held is None):
        return as_it_is
    design = replace(design, weights=np.where(candidates.known_elsewhere(), design.weights, 0.0))
    if not design.total > 0:
        return as_it_is
    held = candidates.cross_validate()
    if candidates.solver.stopped:
        return as_it_is
    scales, base, loss = pool(design, held, candidates.n_jobs)
    if given:
        return _Weighed(scales, float(scales.sum() * as_it_is.own), base, loss)
    if own_held is not None:
        both, own_base, own_loss = pool(
            design, np.concatenate([held, own_held[None]]), candidates.n_jobs
        )
        if own_loss < (1.0 - LEAST_GAIN) * loss:
            return _Weighed(both[:-1], float(both[-1]), own_base, own_loss)
    return _Weighed(scales, 0.0, base, loss)


def _scales(candidates: Candidates, fits: list[Fit], weighed: _Weighed) -> dict[str, float]:
    """Return how much each generative score counts in the end."""
    names = list(candidates.names)
    totals = np.zeros(len(names))
    for scale, fit in zip(weighed.scales, fits, strict=True):
        if fit.scales.size:
            totals += scale * fit.scales[: len(names)]
    named: dict[str, float] = dict(zip(names, totals.tolist(), strict=True))
    return named | ({FAMILY: weighed.own} if candidates.settings.family else {})


def _combined(
    candidates: Candidates, fits: list[Fit], weighed: _Weighed, own: OwnFamily
) -> LogLinear:
    """Return the pooled scores of all classes: slopes, generative scores of all rows, family."""
    design = candidates.design
    base = _widened(weighed.base[None])[0]
    slope = np.zeros((design.n_variables, design.n_classes))
    for scale, fit in zip(weighed.scales, fits, strict=True):
        if scale:
            base = base + scale * _widened(fit.base[None])[0]
            slope += scale * _widened(fit.slope)
    named = _scales(candidates, fits, weighed)
    if candidates.names:
        parts = candidates.slopes()
        for name, part in zip(candidates.names, parts, strict=True):
            slope += named[name] * part
    if not weighed.own:
        return LogLinear(base, slope)
    return own.scores(design, candidates.n_jobs).scaled(weighed.own).plus(base, slope)


def _widened(columns: Any) -> FloatArray:
    """Return one column per class: of two classes ±half the one there is."""
    if columns.shape[1] > 1:
        return np.asarray(columns)
    return np.concatenate([-0.5 * columns, 0.5 * columns], axis=1)
