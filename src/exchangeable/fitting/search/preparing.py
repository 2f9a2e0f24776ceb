"""Compiling the kernels of families before a search with a time limit.

If kernels are not cached, compiling them takes longer than many fits. The duration of a fit would
then tell nothing about its family, and its time would be over before it has started.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.search.lanes import FAILURES
from exchangeable.fitting.search.trials import Fitter, Settings
from exchangeable.runtime import apart
from exchangeable.runtime.clock import Clock, Pace

N_ROWS = 600
"""Enough rows to trigger the kernels for many rows at a time."""
N_COMPONENTS, STEPS = 4, 2
MOST_TIME = 0.4
"""Fraction of the remaining time after which families that are not compiled yet have to wait."""


def prepare(fitter: Fitter, first: Sequence[Settings], clock: Clock, n_jobs: int | None) -> None:
    """Fit families to a few rows, in order; families that are trained have no kernels."""
    until = clock.part(MOST_TIME)
    few = Fitter(
        some(fitter.examples),
        some(fitter.valid),
        fitter.alpha,
        StopRule(0.0, STEPS),
        device=fitter.device,
        em_device=fitter.em_device,
        stop=fitter.stop,
        named=fitter.named,
    )
    for settings in first:
        if until.over or fitter.stop.is_set():
            return
        if settings.trained:
            continue
        small = replace(settings, n_components=min(N_COMPONENTS, settings.n_components))
        try:
            apart.do(partial(_fit, few, small, until, n_jobs), fitter.stop)
        except FAILURES:  # the fit itself will report it, and OutOfTime is one of them
            continue
        except apart.LeftBehind:
            return


def _fit(fitter: Fitter, settings: Settings, clock: Clock, n_jobs: int | None) -> None:
    best = fitter.run(settings, 0, fitter.rule, pace=Pace(clock), n_jobs=n_jobs).best
    best.model.log_likelihoods(best.log_prior, fitter.valid, n_jobs)


def some(examples: Examples) -> Examples:
    """Return a few of the rows, spread evenly."""
    n = examples.rows.n_rows
    numbers = np.unique(np.linspace(0, n - 1, min(n, N_ROWS)).astype(np.int64))
    return merge_equal_rows(examples.observed.take(numbers), examples.weights[numbers])[0]
