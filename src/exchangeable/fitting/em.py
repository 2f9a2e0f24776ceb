"""The EM loop: one loop for every family, for rows in memory or not, with or without labels.

An iteration computes posteriors and sums (E-step). The family then turns sums into parameters and,
if blocks are learned, evaluates the proposed ones (M-step), and the candidate with the highest
likelihood is accepted. The objective, which must not decrease, is the penalised log-likelihood: the
log-likelihood plus the log-density of the prior (for a pooled prior, the score of its pseudo-rows).
If new blocks or trees would lower it, a step with the old ones is tried; if that also lowers it by
more than rounding, the step is rejected and the run ends without having converged.

Two estimates have no explicit prior: counts of urns, smoothed by the kernel that predicts left-out
rows best, and edges of trees, shrunk towards independence or towards urns; because of them a step
can lower the objective. Models with different blocks have different priors, whose densities cannot
be compared, so candidates with other blocks are judged by the log-likelihood alone. With held-out
rows, their log-likelihood decides instead: the run ends after three iterations without progress,
and keeps the best parameters.

The state is complete after every iteration (`EMState`), so that checkpoints and Ctrl-C work for
every family. Rows with missing entries are fitted by exact expectations, which the sweep that
proposes blocks uses too; only starts, other block learners and the choice of a tree use rows
completed by a draw, always with the same random numbers. For complete rows, posteriors are kept
down to e^−345, below which their squares are not normal numbers: Welch's test in the sweep is
scale-free, so that very small posteriors can separate variables, as in Algorithm 1 of the paper.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Family
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import EMData, Sums
from exchangeable.runtime.interrupts import GivenUp, giving_up
from exchangeable.structure.proposals import Proposer


@dataclass(frozen=True)
class StopRule:
    """When a run stops.

    Attributes
    ----------
    tol : float
        Minimum improvement in average log-likelihood that counts as progress: of held-out rows if
        there are some, otherwise penalised and of the training rows.
    max_iter : int
        Maximum number of iterations.
    patience : int
        Stop after this many iterations without progress on held-out rows.
    """

    tol: float = 1e-3
    max_iter: int = 500
    patience: int = 3


@dataclass(frozen=True)
class EMState:
    """The state of a run of EM, complete and consistent after every iteration.

    Attributes
    ----------
    mixture : Mixture
        The latest parameters.
    best : Mixture
        The best parameters so far: by held-out rows if there are some, otherwise the latest.
    totals : array of shape (n_classes,)
        Weight of each class, from which the latest parameters were computed.
    history : list of float
        Average log-likelihood of the rows after every iteration, beginning with the start.
    valid_history : list of float
        The same for held-out rows, if there are some.
    best_iter : int
        The iteration that led to `best`.
    phase : int
        Number of the learner that currently proposes blocks.
    stale : int
        Iterations since the last progress on held-out rows.
    mark : float
        The held-out log-likelihood that must be exceeded by `tol` to count as progress.
    stage : int
        Number of the current family, if one starts from another's fit.
    before : Mixture, optional
        The fit of the other family that it started from.
    converged : bool
        Whether the run converged.
    fell : float
        By how much the rejected last step would have lowered the average objective.
    each : array of shape (n_rows,), optional
        Log P of each row under `best`, if training has computed it.
    """

    mixture: Mixture
    best: Mixture
    totals: FloatArray
    history: list[float] = field(default_factory=list)
    valid_history: list[float] = field(default_factory=list)
    best_iter: int = 0
    phase: int = 0
    stale: int = 0
    mark: float = -np.inf
    stage: int = 0
    before: Mixture | None = None
    converged: bool = False
    fell: float = 0.0
    each: FloatArray | None = None

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""
        return max(len(self.history) - 1, 0)

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self.converged or self.fell > 0

    @property
    def told(self) -> str:
        """The progress, in a few words."""
        partitions = self.mixture.model.partitions
        blocks = sum(p.n_blocks for p in partitions) / len(partitions)
        worth = (self.valid_history or self.history)[-1]
        return f"iteration {self.n_iter}, log-likelihood {worth:.4f}, {blocks:.1f} blocks"

    @property
    def worth(self) -> float:
        """Log-likelihood by which runs are compared: of held-out rows if there are some."""
        return (self.valid_history or self.history)[self.best_iter]


def run_em(
    data: EMData,
    family: Family,
    state: EMState,
    rule: StopRule,
    *,
    learners: Sequence[Proposer] = (),
    valid: Examples | Streamed | None = None,
    report: Callable[[EMState], None] = lambda state: None,
    stop: Event | None = None,
) -> EMState:
    """Iterate from `state` until convergence, `max_iter`, or until `stop` is set.

    After converging with the proposals of one learner, EM continues with those of the next; without
    learners, blocks stay fixed. An iteration interrupted by Ctrl-C is abandoned.
    """
    if state.ended:
        return _whole(state)
    if state.history and stop is not None and stop.is_set():
        return _whole(state)
    with nullcontext() if state.before is None else giving_up(False):  # a fit must have its family
        sums = data.expect(state.mixture, bool(learners))
        if not state.history:
            state = judged(state, state.mixture, sums, data, valid, rule)
            report(state)
    with giving_up(), suppress(GivenUp):
        while not state.ended and state.n_iter < rule.max_iter:
            if stop is not None and stop.is_set():
                break
            after, mixture, gain = _step(data, family, state, sums, learners, valid is None)
            if valid is not None:
                state = judged(state, mixture, after, data, valid, rule, sums.totals)
                settled, fell = state.stale >= rule.patience, 0.0
            else:
                limit = data.rounding * max(1.0, abs(sums.log_likelihood) / data.total)
                settled, fell = not gain >= rule.tol, -gain if gain < -limit else 0.0
                if fell:
                    state = replace(state, history=[*state.history, state.history[-1]])
                else:
                    state = judged(state, mixture, after, data, None, rule, sums.totals)
            sums = sums if fell else after
            if settled and state.phase + 1 < len(learners):
                state = replace(state, phase=state.phase + 1, stale=0)
            elif settled:
                state = replace(state, converged=not fell, fell=fell)
            report(state)
    return _whole(state)


def _whole(state: EMState) -> EMState:
    """Return a state whose best parameters can score any row."""
    with giving_up(False):
        return replace(state, best=Mixture(state.best.model.whole(), state.best.log_prior))


def _step(
    data: EMData,
    family: Family,
    state: EMState,
    sums: Any,
    learners: Sequence[Proposer],
    steadily: bool,
) -> tuple[Sums, Mixture, float]:
    """Return the next parameters, their sums, and the improvement of the average objective.

    If `steadily`, new blocks or trees that lower it are rejected.
    """
    before, moments = state.mixture.model, bool(learners)
    log_prior = family.log_shares(sums.totals)
    proposals = learners[state.phase](before, sums) if learners else ()
    models = family.candidates(data, before, sums, state.n_iter + 1, proposals)
    candidates = [Mixture(model, log_prior) for model in models]

    def gain(after: Sums, mixture: Mixture) -> float:
        likelihood = after.log_likelihood - sums.log_likelihood
        return float((likelihood + family.prior_gain(before, mixture.model)) / data.total)

    after, mixture = data.best(candidates, moments)
    gained = gain(after, mixture)
    if steadily and gained < 0:
        # Step 0 keeps the old blocks and trees, which may be better than the new ones.
        steady = [Mixture(model, log_prior) for model in family.following(data, before, sums, 0)]
        alternative = data.best(steady[:1], moments)
        if (gain_of_steady := gain(*alternative)) > gained:
            return *alternative, gain_of_steady
    return after, mixture, gained


def judged(
    state: EMState,
    mixture: Mixture,
    sums: Sums,
    data: EMData,
    valid: Examples | Streamed | None,
    rule: StopRule,
    totals: FloatArray | None = None,
) -> EMState:
    """Return the state with new parameters, which become the best if they are."""
    history = [*state.history, sums.log_likelihood / data.total]
    n_iter = len(history) - 1
    totals = state.totals if totals is None else totals
    if valid is None:
        return replace(
            state, mixture=mixture, best=mixture, totals=totals, history=history, best_iter=n_iter
        )
    if isinstance(valid, Streamed):
        worth = valid.log_likelihood(mixture) / valid.total
    else:
        worth = data.log_likelihood_held_out(valid, mixture) / valid.total
    progress = worth >= state.mark + rule.tol
    better = not state.valid_history or worth > state.worth
    return replace(
        state,
        mixture=mixture,
        history=history,
        totals=totals,
        best=mixture if better else state.best,
        best_iter=n_iter if better else state.best_iter,
        valid_history=[*state.valid_history, worth],
        stale=0 if progress else state.stale + 1,
        mark=max(state.mark, worth) if progress else state.mark,
    )
