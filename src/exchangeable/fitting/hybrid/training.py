"""Hybrid training: conditional fits with generative scores, pooled, and converted to a mixture."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families import normalised
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.hybrid.candidates import Candidates
from exchangeable.fitting.hybrid.convex import Fit, Solver
from exchangeable.fitting.hybrid.density import with_shared
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.own import OwnFamily
from exchangeable.fitting.hybrid.pooling import pool
from exchangeable.fitting.hybrid.settings import FAMILY, Checked
from exchangeable.fitting.hybrid.trained import Trained
from exchangeable.runtime.interrupts import GivenUp

Finish = Callable[[LogLinear, Design, int | None], Mixture]
LEAST_GAIN = 0.1
"""Share by which the family's own score must reduce the loss if it is not linear, because look-ups
and pairs make incomplete rows slower."""


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
    """Train classes on their labels, and convert them to a mixture with a good density P(x).

    Parameters
    ----------
    design : Design
        The rows, whose weights include those of their classes.
    settings, own, solver, start, n_jobs
        As `Candidates` takes them.
    weights : array of shape (n_rows,)
        Weight of each row in P(x).
    finish : callable, optional
        Converts scores and rows to a mixture; by default one of binary variables.
    """
    finish = _binary if finish is None else finish
    plain = replace(design, weights=weights)
    if design.n_classes == 1:  # there is nothing to distinguish
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
    """Return binary variables with these scores, and shared terms fitted to the rows."""
    return normalised(with_shared(scores, design, n_jobs), n_jobs)[0]


@dataclass(frozen=True)
class _Weighed:
    """The weight of each candidate and of the family's own score; the base; the loss."""

    scales: FloatArray
    own: float
    base: FloatArray
    loss: float = np.nan


def _weigh(candidates: Candidates, fits: list[Fit]) -> _Weighed:
    """Choose scales on held-out rows; a single candidate is taken as it is."""
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
    try:
        held = candidates.cross_validate()
    except GivenUp:
        return as_it_is
    n_jobs = candidates.n_jobs
    if own_held is not None and not given:
        both = np.concatenate([held[:1], own_held[None, None]], axis=1)
        scales, base, loss = pool(design, both, n_jobs)
        if loss < (1.0 - LEAST_GAIN) * pool(design, held[:1], n_jobs)[2]:
            return _Weighed(scales[:-1], float(scales[-1]), base, loss)
    scales, base, loss = pool(design, held, n_jobs)
    return _Weighed(scales, float(scales.sum() * as_it_is.own), base, loss)


def _scales(candidates: Candidates, fits: list[Fit], weighed: _Weighed) -> dict[str, float]:
    """Return the total scale of each generative score."""
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
    """Return one column per class: for two classes ±half of the single column."""
    if columns.shape[1] > 1:
        return np.asarray(columns)
    return np.concatenate([-0.5 * columns, 0.5 * columns], axis=1)
