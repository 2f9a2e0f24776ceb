"""Fitting an `ExchangeableMixture` of weighted urns, trees, or under a pooled prior."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from exchangeable.arrays import FloatArray, as_generator, check_count
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.families.common.expectation import log_likelihood
from exchangeable.families.urns.family import DensityModel
from exchangeable.fitting.density_em import Run
from exchangeable.fitting.density_fit import DensityRuns, average, run_restarts
from exchangeable.fitting.options import density_options, held_out, refuse
from exchangeable.structure.learner import Structure

NO_MASS = 1e-10
"""A component with less than this share of the rows is dropped."""


@dataclass(frozen=True)
class FittedMixture:
    """The model that was kept, and how it was found."""

    model: DensityModel
    weights: FloatArray
    runs: list[Run]
    best: int
    log_likelihood: float
    total: float


def fit_mixture(
    estimator: Any,
    observed: Observed,
    weights: FloatArray,
    valid: Observed | None,
    structure: Structure,
) -> FittedMixture:
    """Fit what the estimator's options ask for to rows that all count."""
    refuse(
        estimator,
        {"warm_start": False, "checkpoint": None, "accept": "all"},
        "is for the paper's model; urn='weighted', dependence='tree' or 'hidden' and pooling do "
        "without it",
    )
    k = check_count(estimator.n_components, "n_components")
    options = density_options(estimator, structure, k, estimator.init)
    rng = as_generator(estimator.random_state)
    generators = rng.spawn(check_count(estimator.n_init, "n_init"))
    held: Examples | None = None
    if valid is not None:
        held = merge_equal_rows(valid, np.ones(valid.n_rows))[0]
    elif estimator.validation_fraction is not None:
        kept, out = held_out(estimator.validation_fraction, observed.n_rows, rng)
        held = merge_equal_rows(observed.take(out), weights[out])[0]
        observed, weights = observed.take(kept), weights[kept]
        if k > kept.size:
            raise ValueError(f"n_components={k} is more than the {kept.size} rows left to fit")
    examples, _ = merge_equal_rows(observed, weights)
    runs = DensityRuns.of(examples, held, options, generators)
    ended = run_restarts(runs, options.rule.max_iter, estimator.n_jobs)
    best = int(np.argmax([run.worth for run in ended]))
    for run in ended[best : best + 1]:
        if not run.converged and run.n_iter >= options.rule.max_iter:
            warnings.warn(
                f"EM did not converge in {run.n_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
    return _kept(examples, ended, best, estimator.restarts == "average", estimator.n_jobs)


def _kept(
    examples: Examples, runs: list[Run], best: int, averaged: bool, n_jobs: int | None
) -> FittedMixture:
    """Return the best run or the average of all, without components that have lost their rows."""
    model, log_prior = average(runs) if averaged else (runs[best].model, runs[best].log_prior)
    alive = np.flatnonzero(np.exp(log_prior) > NO_MASS / (len(runs) if averaged else 1))
    if alive.size < log_prior.size:
        warnings.warn(
            f"{log_prior.size - alive.size} of {log_prior.size} components lost all their rows and "
            "were dropped; fewer components would do",
            ConvergenceWarning,
            stacklevel=4,
        )
        model, log_prior = model.only(alive), log_prior[alive]
    share = np.exp(log_prior)
    share /= share.sum()
    found = log_likelihood(model, examples, np.log(share), n_jobs)
    return FittedMixture(model, share, runs, best, found / examples.total, examples.total)
