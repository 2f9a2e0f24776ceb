"""Conditional fits with and without generative scores, and their predictions of held-out rows."""

import itertools
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.fitting.folds import make_folds
from exchangeable.fitting.hybrid.convex import Centred, Fit, Solver, path
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.merged import Merged
from exchangeable.fitting.hybrid.own import OwnFamily
from exchangeable.fitting.hybrid.scores import FoldSums, reduced, slopes, useful
from exchangeable.fitting.hybrid.settings import Checked
from exchangeable.fitting.progress import DrawProgress
from exchangeable.runtime.interrupts import GivenUp
from exchangeable.runtime.threads import run

N_HALVES = 1
"""Ways to hide one half of the variables or the other."""


class Candidates:
    """Conditional fits with every penalty, with and without generative scores as an offset.

    Parameters
    ----------
    design : Design
        The rows.
    settings : Checked
        Names of scores, penalties and folds.
    own : OwnFamily
        The classifier's family.
    solver : Solver
        Settings of the solver.
    start : sequence of Fit
        Initial fits, as returned by `fits`.
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
            asked = settings.scales is not None
            self.own_held = own.out_of_fold(design, self.fold, settings.n_folds, asked, n_jobs)
            if self.own_held is not None:
                self.own_held = reduced(self.own_held - self.own_held.mean(axis=1, keepdims=True))
        self.start = start if len(start) == len(self.kinds) * len(settings.penalties) else []

    @property
    def given(self) -> FloatArray | None:
        """The given scales."""
        scales = self.settings.scales
        if scales is None:
            return None
        n_known = len(self.names) + (self.own_held is not None)
        return np.array(scales[:n_known])

    @property
    def kinds(self) -> tuple[bool, ...]:
        """Whether each fit has generative scores as an offset: both, unless scales are given."""
        if self.settings.scales is not None:
            return (True,)
        return (False, True) if self.names else (False,)

    def held_scores(self, left_out: int | None = None) -> FloatArray:
        """Return generative scores of the rows outside a fold, by fits without their own fold."""
        folds = [f for f in range(self.settings.n_folds) if f != left_out]
        rows = np.concatenate([self.members[f] for f in folds])
        order = np.argsort(rows, kind="stable")
        held = np.concatenate([self.said[f, left_out] for f in folds], axis=1)[:, order]
        return self._with_own(held, rows[order])

    @cached_property
    def said(self) -> dict[tuple[int, int | None], FloatArray]:
        """Linear scores of the rows of each fold, fitted without it and one other fold."""
        folds = range(self.settings.n_folds)
        parts = [self.design.take(members) for members in self.members]
        pairs = [*itertools.combinations(folds, 2), *itertools.product(folds, [None])]

        def one(pair: tuple[int, int | None]) -> list[FloatArray]:
            chosen = [f for f in pair if f is not None]
            slope = self.slopes(*chosen)
            return [self._say(parts[f], slope) for f in chosen]

        found: dict[tuple[int, int | None], FloatArray] = {}
        for (f, other), answers in zip(pairs, run(one, pairs, self.n_jobs), strict=True):
            found[f, other] = answers[0]
            if other is not None:
                found[other, f] = answers[1]
        return found

    def slopes(self, *left_out: int) -> list[FloatArray]:
        """Return the slopes of generative scores of the rows outside some folds.

        Variables that such scores do not use have slope 0.
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
        """Return linear scores of rows, shape (n_scores, n_rows, width)."""
        nothing = np.zeros(1)
        said = [reduced(design.scores(each, nothing, 1)) for each in slope]
        return np.stack(said) if said else np.empty((0, design.rows.n_rows, design.width))

    def _with_own(self, said: FloatArray, rows: IntArray) -> FloatArray:
        """Add the family's score, if its scale is given."""
        if self.settings.scales is None or self.own_held is None:
            return said
        return np.concatenate([said, self.own_held[rows][None]])

    def without_fold(self, left_out: int, n_jobs: int | None, progress: DrawProgress) -> FloatArray:
        """Fit with all penalties to the rows outside a fold, and score the fold's rows.

        Returns views of the rows, shape (n_views, n_fits, n_rows, width): complete rows, and rows
        with either half of the variables hidden, once for each of `halves`.
        """
        design = self.design.take(np.flatnonzero(self.fold != left_out))
        held, merged = self.design.take(self.members[left_out]), Merged.of(design)
        nothing = np.zeros(design.width)
        views: list[list[FloatArray]] = [[] for _ in range(1 + 2 * len(self.halves))]
        for kind in self.kinds:
            self._check_stop()
            centred = self._centred(design, kind, left_out, n_jobs)
            offset: FloatArray | float = 0.0
            around: FloatArray | float = 0.0
            if kind:
                said = self._with_own(self.said[left_out, None], self.members[left_out])
                offset = Centred(said, centred.scales).sum()
                linear = zip(centred.scales, self.slopes(left_out), strict=False)
                around = sum((scale * reduced(slope) for scale, slope in linear), around)
            for fit in path(merged, centred, self.settings.penalties, self.solver, n_jobs):
                self._check_stop()
                progress.advance()
                whole = held.scores(fit.slope, fit.base + offset, n_jobs)
                views[0].append(whole)
                for i, half in enumerate(self.halves):
                    slope = np.where(half[:, None], fit.slope + around, 0.0)
                    first = held.scores(slope, nothing, n_jobs)
                    views[2 * i + 1].append(first)
                    views[2 * i + 2].append(whole - first)
        return np.array(views)

    @cached_property
    def halves(self) -> npt.NDArray[np.bool_]:
        """Random halves of the variables, or of their columns; none for columns of mixed kinds."""
        together = self.design.hidden_together
        if (self.design.scored.size and not together.size) or self.given is not None:
            return np.empty((0, 0), dtype=np.bool_)
        places = together if together.size else np.arange(self.design.n_variables)
        shape = (N_HALVES, int(places.max(initial=-1)) + 1)
        return np.asarray(np.random.default_rng(0).random(shape) < 0.5)[:, places]

    def fit_all(self) -> list[Fit]:
        """Return the fits to all rows; if they are stopped, those without scores, twice."""
        fits, penalties, merged = list[Fit](), self.settings.penalties, Merged.of(self.design)
        n_fits = len(self.kinds) * len(penalties)
        with DrawProgress("conditional fits to all rows", n_fits) as progress:
            for kind in self.kinds:
                if fits and self.solver.stopped:
                    return fits + fits
                centred = self._centred(self.design, kind, None, self.n_jobs)
                start = self.start[len(fits)] if self.start else None
                for fit in path(merged, centred, penalties, self.solver, self.n_jobs, start):
                    fits.append(fit)
                    progress.advance()
        return fits

    def cross_validate(self) -> FloatArray:
        """Return the held-out scores of each candidate, in each view of the rows.

        Raises `GivenUp` if fits are stopped, because an incomplete set of folds is useless.
        """
        self._check_stop()
        folds = range(self.settings.n_folds)
        n_fits = len(folds) * len(self.kinds) * len(self.settings.penalties)
        with DrawProgress("fits of the cross-validation", n_fits) as progress:
            answers = run(lambda fold: self.without_fold(fold, 1, progress), folds, self.n_jobs)
        shape = (*answers[0].shape[:2], self.design.rows.n_rows, self.design.width)
        held = np.empty(shape)
        for members, answer in zip(self.members, answers, strict=True):
            held[:, :, members] = answer
        return held

    def _check_stop(self) -> None:
        if self.solver.stopped:
            raise GivenUp

    def known_elsewhere(self) -> npt.NDArray[np.bool_]:
        """Whether other folds have rows of each row's class, so that it can be predicted."""
        k, labels = self.design.n_classes, self.design.labels
        shape = (self.settings.n_folds, k)
        by_fold = np.bincount(self.fold * k + labels, minlength=shape[0] * k).reshape(shape)
        return np.asarray(by_fold.sum(axis=0)[labels] > by_fold[self.fold, labels])

    def _centred(
        self, design: Design, kind: bool, left_out: int | None, n_jobs: int | None
    ) -> Centred:
        """Return the offset of a fit: nothing, or generative scores."""
        if not kind:
            return Centred(np.empty((0, design.rows.n_rows, design.width)), np.empty(0))
        said, given = self.held_scores(left_out), self.given
        return Centred.scaled(design, said, n_jobs) if given is None else Centred(said, given)
