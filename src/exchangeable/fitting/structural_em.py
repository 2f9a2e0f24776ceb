"""Structural EM (Algorithm 1 of the paper), for mixtures and for classes with missing labels.

Each iteration computes posteriors, learns new blocks from them, estimates the parameters of both
the old and the new blocks, and keeps what is better. The log-likelihood never falls: a step that
would lower it (smoothing can) ends the run and is not taken.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from threading import Event
from typing import Protocol

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.families.blocks import holes, passes
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.blocks.passes import Expectation
from exchangeable.families.blocks.row_counts import RowCounts
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run


@dataclass(frozen=True)
class Proposal:
    """Blocks for all classes.

    `count` returns the histograms of some of the classes in them, where the proposer knows them.
    """

    partitions: list[Partition]
    count: Callable[[IntArray], list[FloatArray]] | None = None


Relearn = Callable[[BlockModel | None, Expectation], list[Proposal]]
"""Returns one or more proposals, given the parameters so far (if any) and the posteriors."""


@dataclass(frozen=True)
class EMSettings:
    """How EM runs.

    Attributes
    ----------
    alpha : float
        Laplace smoothing.
    tol : float
        Stop when the average log-likelihood gains less than this.
    max_iter : int
        Stop after this many iterations.
    accept : {"all", "component"}
        Whether all components change their blocks at once, by the log-likelihood, as in the paper,
        or each chooses for itself, by its share of the expected log-likelihood.
    fixed_prior : array of shape (n_classes,), optional
        Log-probabilities of the classes, if they are not to be learned.
    n_jobs : int, optional
        Number of threads.
    """

    alpha: float
    tol: float
    max_iter: int
    accept: str = "all"
    fixed_prior: FloatArray | None = None
    n_jobs: int | None = None


@dataclass
class EMState:
    """Where a run of EM stands: the parameters, and how it came there.

    `history` holds the average log-likelihood after every iteration, that of the start first;
    `phase` is the number of the learner that proposes blocks.
    """

    model: BlockModel
    log_prior: FloatArray
    history: list[float] = field(default_factory=list)
    phase: int = 0
    converged: bool = False

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""
        return max(len(self.history) - 1, 0)


class EMData(Protocol):
    """Examples wherever they are, in memory, in chunks or on a cluster, as EM sees them."""

    @property
    def total(self) -> float:
        """The weight of all rows together."""

    def expect(self, model: BlockModel, log_prior: FloatArray, moments: bool) -> Expectation:
        """Return what a pass under some parameters finds."""

    def histograms(
        self, current: Expectation, partitions: list[Partition], layout: Tables, classes: IntArray
    ) -> list[FloatArray]:
        """Return the histograms of some classes in new blocks, whose layout is given."""

    def best(
        self, candidates: list[BlockModel], log_prior: FloatArray, moments: bool
    ) -> tuple[Expectation, BlockModel]:
        """Return the model with the highest log-likelihood, and what a pass under it finds."""


@dataclass
class InMemory:
    """Examples in memory.

    The counts of the rows in the blocks of the latest models are kept, so that blocks that stay
    as they are need not be counted again.
    """

    examples: Examples
    n_jobs: int | None = None
    _counted: list[RowCounts] = field(default_factory=list, init=False, repr=False)

    @property
    def total(self) -> float:
        """The weight of all rows together."""
        return self.examples.total

    @property
    def fingerprint(self) -> int:
        """A checksum of rows and weights."""
        return self.examples.fingerprint

    def expect(self, model: BlockModel, log_prior: FloatArray, moments: bool) -> Expectation:
        """Return what a pass under some parameters finds."""
        if self.examples.holes is not None:
            return holes.expect(self.examples, model.made_tables, log_prior, self.n_jobs)
        if passes.is_linear(model.made_tables) and not moments:
            return passes.expect_linear(self.examples, model.made_tables, log_prior, self.n_jobs)
        scores, counted = self._score(model, log_prior), self._counts(model.partitions)
        return passes.complete(counted, scores, moments=moments, n_jobs=self.n_jobs)

    def histograms(
        self, current: Expectation, partitions: list[Partition], layout: Tables, classes: IntArray
    ) -> list[FloatArray]:
        """Return the histograms of some classes in new blocks, whose layout is given."""
        if passes.all_single(layout):
            found = passes.single_histograms(self.examples, current.posterior, layout, self.n_jobs)
            return [found[y] for y in classes]
        counted, left = RowCounts.begin(self.examples, partitions, layout, self._counted)
        self._counted.append(counted)
        wanted = np.zeros(len(partitions), dtype=np.bool_)
        wanted[classes] = wanted[left] = True
        every = np.flatnonzero(wanted)
        found = passes.histograms(counted, current.posterior, every, left, self.n_jobs)
        return [found[y] for y in classes]

    def best(
        self, candidates: list[BlockModel], log_prior: FloatArray, moments: bool
    ) -> tuple[Expectation, BlockModel]:
        """Return the model with the highest log-likelihood, and what a pass under it finds."""
        if len(candidates) == 1:
            found = self.expect(candidates[0], log_prior, moments)
            self._forget_all_but(candidates[0])
            return found, candidates[0]
        if self.examples.holes is not None:
            worth = [
                holes.log_likelihood(self.examples, model.made_tables, log_prior, self.n_jobs)
                for model in candidates
            ]
            best = candidates[int(np.argmax(worth))]
            return self.expect(best, log_prior, moments), best
        counted = [self._counts(model.partitions) for model in candidates]
        pairs = zip(counted, [model.made_tables for model in candidates], strict=True)
        scores = passes.score_each(list(pairs), log_prior, self.n_jobs)
        winner = len(scores) - 1
        for number in range(winner):
            if scores[number].log_likelihood >= scores[winner].log_likelihood:
                winner = number
        self._forget_all_but(candidates[winner])
        found = passes.complete(
            counted[winner], scores[winner], moments=moments, n_jobs=self.n_jobs
        )
        return found, candidates[winner]

    def _forget_all_but(self, model: BlockModel) -> None:
        """Keep the counts in one model's blocks alone."""
        self._counted = [held for held in self._counted if held.is_of(model.partitions)]

    def _score(self, model: BlockModel, log_prior: FloatArray) -> passes.Posteriors:
        return passes.score(
            self._counts(model.partitions), model.made_tables, log_prior, self.n_jobs
        )

    def _counts(self, partitions: list[Partition]) -> RowCounts:
        """Return the rows' counts in some blocks, counting those that are new."""
        for counted in self._counted:
            if counted.is_of(partitions):
                return counted
        counted = RowCounts.of(self.examples, partitions, self._counted, self.n_jobs)
        self._counted.append(counted)
        return counted


def soft_proposals(choose: Callable[[Expectation], list[list[Partition]]]) -> Relearn:
    """Return what proposes the blocks that `choose` finds, for rows without holes."""
    return lambda model, current: [Proposal(partitions) for partitions in choose(current)]


def start_from_posterior(
    examples: Examples,
    posterior: FloatArray,
    relearn: Relearn,
    settings: EMSettings,
    dealt: bool = False,
) -> EMState:
    """Return the parameters that fit given posteriors, the blocks learned from them.

    Where rows were `dealt` out, each to one component, a posterior is the share of equal rows that
    a component has got, and the squares of the single rows' posteriors are these themselves.
    """
    totals = examples.weights @ posterior
    first, moments = None, np.empty((0, 0, 0))
    if examples.holes is None:
        moments = passes.sum_moments(examples, posterior, n_jobs=settings.n_jobs)
        if dealt:
            moments[1] = moments[0]
    else:
        first = BlockModel.of_known_entries(examples, posterior, settings.alpha)
    known = Expectation(-np.inf, posterior, [], moments, totals)
    return first_state(InMemory(examples, settings.n_jobs), known, first, relearn, settings)


def first_state(
    data: EMData,
    known: Expectation,
    model: BlockModel | None,
    relearn: Relearn,
    settings: EMSettings,
) -> EMState:
    """Return the parameters of the first blocks that are proposed, given some posteriors."""
    proposal = relearn(model, known)[0]
    layout = Tables.layout(proposal.partitions)
    counted = _histograms(data, known, proposal, layout, np.arange(known.totals.size))
    first = BlockModel(proposal.partitions, counted, known.totals)
    first.set_tables(settings.alpha, settings.n_jobs, layout)
    return EMState(first, learned_prior(known.totals, settings))


def _histograms(
    data: EMData, current: Expectation, proposal: Proposal, layout: Tables, classes: IntArray
) -> list[FloatArray]:
    """Return the histograms of some classes in the blocks proposed."""
    if proposal.count is not None:
        return proposal.count(classes)
    return data.histograms(current, proposal.partitions, layout, classes)


def run_em(
    examples: Examples | EMData,
    state: EMState,
    learners: Sequence[Relearn],
    settings: EMSettings,
    report: Callable[[EMState], None] = lambda state: None,
    stop: Event | None = None,
) -> EMState:
    """Iterate from `state` until converged, `max_iter`, or `stop` is set.

    When EM has converged with the proposals of one learner it goes on with those of the next;
    without learners the blocks stay. `report` is called after every iteration with a state that is
    complete and consistent.
    """
    data = InMemory(examples, settings.n_jobs) if isinstance(examples, Examples) else examples
    total, moments = data.total, bool(learners)
    current = data.expect(state.model, state.log_prior, moments)
    if not state.history:
        state.history.append(current.log_likelihood / total)
        report(state)
    while state.n_iter < settings.max_iter and not state.converged:
        if stop is not None and stop.is_set():
            break
        log_prior = learned_prior(current.totals, settings)
        relearn = learners[state.phase] if learners else None
        candidates = _maximise(data, state.model, current, relearn, settings)
        found, model = data.best(candidates, log_prior, moments)
        gain = (found.log_likelihood - current.log_likelihood) / total
        better = found.log_likelihood > current.log_likelihood
        settled = not gain >= settings.tol
        last = state.phase + 1 >= len(learners)
        state = EMState(
            model if better else state.model,
            log_prior if better else state.log_prior,
            [*state.history, max(found.log_likelihood, current.log_likelihood) / total],
            phase=state.phase + (settled and not last),
            converged=settled and last,
        )
        current = found if better else current
        report(state)
    return state


def _maximise(
    data: EMData,
    model: BlockModel,
    current: Expectation,
    relearn: Relearn | None,
    settings: EMSettings,
) -> list[BlockModel]:
    """Return the models to choose from: the old blocks with new parameters, and the new blocks."""
    candidates = [BlockModel(model.partitions, current.histograms, current.totals)]
    layouts = [model.tables]
    for proposal in relearn(model, current) if relearn else ():
        pairs = zip(model.partitions, proposal.partitions, strict=True)
        partitions = [old if old.same_as(new) else new for old, new in pairs]
        changed = [y for y, old in enumerate(model.partitions) if partitions[y] is not old]
        if not changed:
            continue
        histograms = list(current.histograms)
        proposal, layout = replace(proposal, partitions=partitions), Tables.layout(partitions)
        counted = _histograms(data, current, proposal, layout, np.array(changed))
        for y, histogram in zip(changed, counted, strict=True):
            histograms[y] = histogram
        candidates.append(BlockModel(partitions, histograms, current.totals))
        layouts.append(layout)
    run(
        lambda number: candidates[number].set_tables(
            settings.alpha, settings.n_jobs, layouts[number]
        ),
        range(len(candidates)),
        settings.n_jobs,
    )
    if settings.accept == "all":
        return candidates
    return [reduce(lambda best, new: _best_of_each(best, new, settings), candidates)]


def _best_of_each(old: BlockModel, new: BlockModel, settings: EMSettings) -> BlockModel:
    """Return the model in which every class has those blocks that explain its share better.

    Given the posteriors the expected log-likelihood is a sum over classes, so each may choose.
    """
    better = new.expected_log_likelihood() > old.expected_log_likelihood()
    if better.all():
        return new
    if not better.any():
        return old
    choose = [new if take else old for take in better]
    mixed = BlockModel(
        [source.partitions[y] for y, source in enumerate(choose)],
        [source.histograms[y] for y, source in enumerate(choose)],
        old.totals,
    )
    mixed.set_tables(settings.alpha, settings.n_jobs)
    return mixed


def learned_prior(totals: FloatArray, settings: EMSettings) -> FloatArray:
    """Return the log-probabilities of the classes: their share of the rows, unless given."""
    if settings.fixed_prior is not None:
        return settings.fixed_prior
    with np.errstate(divide="ignore"):
        log_prior: FloatArray = np.log(totals / totals.sum())
    return log_prior
