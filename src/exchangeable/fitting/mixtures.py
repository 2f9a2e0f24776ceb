"""Fitting a mixture: runs from several starts, of which the best or the average is kept."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from exchangeable.arrays import FloatArray, log_totals
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Model, Trainer
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.em import EMState, StopRule
from exchangeable.fitting.restarts import run_all
from exchangeable.fitting.runs import Runs
from exchangeable.runtime.threads import n_threads

NO_MASS = 1e-10
"""A component with less than this share of the rows is dropped."""


@dataclass(frozen=True)
class FittedMixture:
    """The fitted mixture, and how it was found.

    Attributes
    ----------
    model : Model
        The components.
    weights : array of shape (n_components,)
        Their probabilities.
    states : list of EMState
        The final states of the runs.
    best : int
        Number of the best run.
    log_likelihood : float
        Average log-likelihood of the rows.
    """

    model: Model
    weights: FloatArray
    states: list[EMState]
    best: int
    log_likelihood: float


def fit_mixture(
    runs: Runs,
    combine: str,
    n_jobs: int | None = None,
    checkpoint: Path | None = None,
    purpose: dict[str, Any] | None = None,
) -> FittedMixture:
    """Run EM from every start, and keep the best run or the average of all."""
    side_by_side = 1 if isinstance(runs.data, Streamed) else n_jobs
    n_runs, max_iter, at_once = len(runs.generators), runs.rule.max_iter, runs.at_once
    runs = runs.meeting(n_threads(n_jobs))
    if runs.together is not None:
        side_by_side = at_once = runs.together.most
    states = run_all(runs.run, n_runs, max_iter, side_by_side, checkpoint, purpose, at_once)
    best = int(np.argmax([state.worth for state in states]))
    kept = states[best]
    trained = issubclass(runs.spec.family, Trainer) and runs.warm is None
    _warn_unless_converged(kept, runs.rule, "training" if trained else "EM")
    mixture = kept.best
    if combine == "average":
        mixture = Mixture.average([state.best for state in states])
    model, weights = _alive(mixture, len(states) if combine == "average" else 1)
    log_likelihood = kept.history[kept.best_iter]
    if combine == "average":
        log_likelihood = _average_log_likelihood(
            runs, states, Mixture(model, np.log(weights)), n_jobs
        )
    return FittedMixture(model, weights, states, best, log_likelihood)


def _average_log_likelihood(
    runs: Runs, states: list[EMState], mixture: Mixture, n_jobs: int | None
) -> float:
    data = runs.data
    if isinstance(data, Streamed):
        return data.expect(mixture).log_likelihood / data.total
    known = [state.each for state in states if state.each is not None]
    if len(known) == len(states):
        each = log_totals(np.stack(known, axis=1)) - np.log(len(known))
        return float(data.examples.weights @ each) / data.total
    return mixture.log_likelihood(data.examples, n_jobs) / data.total


def _alive(mixture: Mixture, n_runs: int) -> tuple[Model, FloatArray]:
    """Return the components that have not lost their rows, and their probabilities."""
    shares = np.exp(mixture.log_prior)
    alive = np.flatnonzero(shares > NO_MASS / n_runs)
    if not alive.size:  # shares that are not numbers
        raise ValueError(
            "the fit cannot be computed: probabilities are no numbers; priors and weights may be "
            "too small or too large"
        )
    if alive.size < shares.size:
        warnings.warn(
            f"{shares.size - alive.size} of {shares.size} components lost all their rows and "
            "were dropped; fewer components would do",
            ConvergenceWarning,
            stacklevel=4,
        )
    model = mixture.model if alive.size == shares.size else mixture.model.only(alive)
    return model, shares[alive] / shares[alive].sum()


def _warn_unless_converged(state: EMState, rule: StopRule, method: str) -> None:
    if state.fell > rule.tol:
        warnings.warn(
            f"EM ended after {state.n_iter} iterations without converging: the next step would "
            f"have lowered the objective by {state.fell:.2g} per row",
            ConvergenceWarning,
            stacklevel=4,
        )
    elif not state.ended and state.n_iter >= rule.max_iter:
        warnings.warn(
            f"{method} did not converge in {rule.max_iter} iterations; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=4,
        )
