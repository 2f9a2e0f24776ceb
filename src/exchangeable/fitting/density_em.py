"""EM for mixtures of any family under a pooled prior, stopped by rows held out.

A run begins with components that lean towards chosen rows, lets naive Bayes settle for a few steps,
and goes on with the family. After every step the held-out rows are scored; the best parameters so
far are kept, and the run ends when they have not been bettered for a while. Without held-out rows
it ends when the likelihood of the training rows hardly grows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import flags
from exchangeable.data.rows import take_rows
from exchangeable.families.common import log_linear
from exchangeable.families.common.expectation import expect, log_likelihood
from exchangeable.families.common.log_linear import Sums
from exchangeable.families.urns.family import DensityModel, Family, IndependentFamily, Stepping

OWN_SHARE = 0.25
"""How far a component's first means lean towards its row."""
NAIVE_STEPS = 5
SMALLEST = 1e-12
"""A component's probability does not fall below this."""


@dataclass(frozen=True)
class StopRule:
    """When a run ends.

    Attributes
    ----------
    tol : float
        The least gain in average log-likelihood that counts as progress.
    max_iter : int
        Largest number of steps.
    patience : int
        End after so many steps without progress on held-out rows.
    """

    tol: float = 1e-3
    max_iter: int = 500
    patience: int = 3


@dataclass
class Run:
    """Where a run of EM stands.

    Attributes
    ----------
    model, log_prior
        The best parameters so far.
    history : list of float
        Average log-likelihood of the training rows before each step.
    valid_history : list of float
        Average log-likelihood of the held-out rows before each step.
    best_iter : int
        Number of steps that led to the best parameters.
    converged : bool
        Whether the run ended before `max_iter`.
    """

    model: DensityModel
    log_prior: FloatArray
    history: list[float] = field(default_factory=list)
    valid_history: list[float] = field(default_factory=list)
    best_iter: int = 0
    converged: bool = False

    @property
    def n_iter(self) -> int:
        """Number of steps taken."""
        return max(len(self.history) - 1, 0)

    @property
    def worth(self) -> float:
        """Log-likelihood by which runs are compared: of held-out rows where there are some."""
        return (self.valid_history or self.history)[self.best_iter]


def naive_start(
    examples: Examples,
    naive: IndependentFamily,
    chosen: IntArray,
    n_jobs: int | None = None,
    steps: int = NAIVE_STEPS,
) -> Sums:
    """Return the sums after a few steps of naive Bayes from components that lean towards rows."""
    own = flags(take_rows(examples.rows, chosen)).T
    means = (1 - OWN_SHARE) * naive.pool.means[:, None] + OWN_SHARE * own
    model, log_prior = naive.from_means(means), np.full(chosen.size, -np.log(chosen.size))
    for _ in range(steps):
        sums = log_linear.expect(examples, model.scores, log_prior, n_jobs)
        model, log_prior = naive.first(examples, sums), log_shares(sums.totals)
    return sums


def log_shares(totals: FloatArray) -> FloatArray:
    """Return the log-probability of each component."""
    shares = np.maximum(totals / totals.sum(), SMALLEST)
    return np.asarray(np.log(shares / shares.sum()))


def fit_run(
    examples: Examples,
    valid: Examples | None,
    family: Family,
    sums: Sums,
    rule: StopRule,
    n_jobs: int | None = None,
    report: Callable[[Run], None] = lambda run: None,
    stop: Event | None = None,
    begun: Examples | None = None,
) -> Run:
    """Run EM of a family from the posteriors in `sums`, those of `begun` where rows have holes."""
    first = family.first(begun or examples, sums, n_jobs)
    return go_on(
        examples, valid, family, first, log_shares(sums.totals), rule, n_jobs, report, stop
    )


def go_on(
    examples: Examples,
    valid: Examples | None,
    family: Stepping,
    model: DensityModel,
    log_prior: FloatArray,
    rule: StopRule,
    n_jobs: int | None = None,
    report: Callable[[Run], None] = lambda run: None,
    stop: Event | None = None,
) -> Run:
    """Run EM of a family from given parameters."""
    run = Run(model, log_prior)
    kept, since = -np.inf, 0
    while True:
        sums = expect(model, examples, log_prior, n_jobs)
        run.history.append(sums.log_likelihood / examples.total)
        if valid is not None:
            held_out = log_likelihood(model, valid, log_prior, n_jobs)
            run.valid_history.append(held_out / valid.total)
        worth = run.history[-1] if valid is None else run.valid_history[-1]
        since = 0 if worth >= kept + rule.tol else since + 1
        if worth > run.worth or run.n_iter == 0:
            run = replace(run, model=model, log_prior=log_prior, best_iter=run.n_iter)
        kept = max(kept, worth) if since == 0 else kept
        run.converged = since >= (1 if valid is None else rule.patience)
        report(run)
        if run.converged or run.n_iter >= rule.max_iter or (stop is not None and stop.is_set()):
            return replace(run, model=run.model.whole())
        model = family.following(examples, model, sums, run.n_iter + 1, n_jobs)
        log_prior = log_shares(sums.totals)
