"""Structural EM over rows in chunks or on a cluster.

An iteration makes one pass that scores every candidate and sums what the next step needs of each,
and, where new blocks are proposed, one that counts the rows in those. Posteriors are not kept: a
pass computes those it needs from the parameters (`chunk_sums.Scored`).
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.stream.passes import Passes
from exchangeable.families.blocks import chunk_sums
from exchangeable.families.blocks.chunk_sums import Dealt, Scored
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.blocks.passes import Expectation
from exchangeable.families.common.tables import Tables
from exchangeable.fitting.starts import SINGLE_STEPS, leaning_singles
from exchangeable.fitting.structural_em import (
    EMSettings,
    EMState,
    Proposal,
    Relearn,
    first_state,
    run_em,
)
from exchangeable.partitions import Partition
from exchangeable.structure.intervals import Intervals
from exchangeable.structure.learner import Structure
from exchangeable.structure.rounds import propose_from_sums

NO_POSTERIOR = np.empty((0, 0))


@dataclass(frozen=True)
class ChunkedExpectation(Expectation):
    """What a pass finds; in place of the posteriors stands how to compute them again."""

    recipe: Scored | Dealt


@dataclass(frozen=True)
class ChunkedData:
    """Rows in chunks as EM sees them.

    Attributes
    ----------
    passes : Passes
        The rows.
    n_rows : int
        Number of rows that count.
    total : float
        The weight of all rows together.
    average : array of shape (n_variables,)
        Share of the weight that has each variable on.
    """

    passes: Passes
    n_rows: int
    total: float
    average: FloatArray

    @classmethod
    def of(cls, passes: Passes) -> "ChunkedData":
        """Make the first pass."""
        n_rows, total, ones = passes.total(partial(chunk_sums.first_look, n_jobs=passes.n_jobs))
        return cls(passes, int(n_rows), float(total), ones / total if total > 0 else ones)

    @property
    def fingerprint(self) -> int:
        """A checksum of the rows."""
        return self.passes.fingerprint

    def expect(self, model: BlockModel, log_prior: FloatArray, moments: bool) -> Expectation:
        """Return what a pass under some parameters finds."""
        return self._expect([model], log_prior, moments)[0]

    def best(
        self, candidates: list[BlockModel], log_prior: FloatArray, moments: bool
    ) -> tuple[Expectation, BlockModel]:
        """Return the model with the highest log-likelihood, and what the pass finds under it."""
        found = self._expect(candidates, log_prior, moments)
        best = len(candidates) - 1
        for number in range(best):
            if found[number].log_likelihood >= found[best].log_likelihood:
                best = number
        return found[best], candidates[best]

    def _expect(
        self, candidates: Sequence[BlockModel], log_prior: FloatArray, moments: bool
    ) -> list[ChunkedExpectation]:
        sums = self.passes.total(
            partial(
                chunk_sums.expectations,
                candidates=[(model.partitions, model.made_tables) for model in candidates],
                log_prior=log_prior,
                moments=moments,
                n_jobs=self.passes.n_jobs,
            )
        )
        return [
            ChunkedExpectation(
                log_likelihood,
                NO_POSTERIOR,
                histograms,
                found,
                totals,
                Scored(model.made_tables, log_prior),
            )
            for model, (log_likelihood, histograms, found, totals) in zip(
                candidates, sums, strict=True
            )
        ]

    def histograms(
        self, current: Expectation, partitions: list[Partition], layout: Tables, classes: IntArray
    ) -> list[FloatArray]:
        """Return the histograms of some components in new blocks; chunks lay them out anew."""
        assert isinstance(current, ChunkedExpectation)
        found: list[FloatArray] = self.passes.total(
            partial(
                chunk_sums.posterior_histograms,
                recipe=current.recipe,
                classes=classes,
                partitions=[partitions[y] for y in classes],
                n_jobs=self.passes.n_jobs,
            )
        )
        return found

    def count_runs(self, recipe: Scored | Dealt, wanted: list[Intervals]) -> list[FloatArray]:
        """Return the histograms of runs of blocks."""
        found: list[FloatArray] = self.passes.total(
            partial(
                chunk_sums.interval_histograms,
                recipe=recipe,
                wanted=wanted,
                n_jobs=self.passes.n_jobs,
            )
        )
        return found

    def proposals(self, structure: Structure) -> Relearn:
        """Return what proposes blocks, learned or given."""

        def relearn(model: BlockModel | None, current: Expectation) -> list[Proposal]:
            assert isinstance(current, ChunkedExpectation)
            if isinstance(structure, list):
                found = [structure]
            else:
                found = propose_from_sums(
                    structure,
                    current.moments,
                    current.totals,
                    self.total,
                    partial(self.count_runs, current.recipe),
                )
            return [Proposal(each) for each in found]

        return relearn


@dataclass(frozen=True)
class ChunkedRuns:
    """What the runs have in common, and how the numbered one begins; see `MixtureRuns`."""

    data: ChunkedData
    n_components: int
    structure: Structure
    settings: EMSettings
    init: str
    generators: Sequence[np.random.Generator]
    warm: EMState | None = None

    def run(
        self,
        number: int,
        state: EMState | None,
        report: Callable[[EMState], None],
        stop: threading.Event,
        threads: int,
    ) -> EMState:
        """Run EM, from `state` if this run was begun before."""
        structure = self.structure
        phases = [] if isinstance(structure, list) else structure.phases()
        learners = [self.data.proposals(learner) for learner in phases]
        if state is None:
            first = learners[0] if learners else self.data.proposals(structure)
            state = self.warm or self._begin(number, first)
        return run_em(self.data, state, learners, self.settings, report, stop)

    def _begin(self, number: int, first: Relearn) -> EMState:
        kind = ("rows", "random")[number % 2] if self.init == "both" else self.init
        recipe = self._dealt(number) if kind == "random" else self._settled(number)
        moments, totals = self.data.passes.total(
            partial(chunk_sums.posterior_sums, recipe=recipe, n_jobs=self.data.passes.n_jobs)
        )
        known = ChunkedExpectation(-np.inf, NO_POSTERIOR, [], moments, totals, recipe)
        return first_state(self.data, known, None, first, self.settings)

    def _dealt(self, number: int) -> Dealt:
        """Deal the rows out at random, as `starts.first_posterior` does."""
        kind = np.uint8 if self.n_components <= 256 else np.uint32
        order = self.generators[number].permutation(self.data.n_rows)
        order %= self.n_components
        return Dealt(order.astype(kind), self.n_components)

    def _settled(self, number: int) -> Scored:
        """Let naive Bayes settle from components that lean towards chosen rows."""
        data = self.data
        chosen = self.generators[number].choice(data.n_rows, size=self.n_components, replace=False)
        own = data.passes.total(partial(chunk_sums.rows_at, chosen=chosen))
        model = leaning_singles(data.average, own.astype(np.float64), data.total)
        for _ in range(SINGLE_STEPS):
            model.set_tables(0.1, 1)
            log_prior = np.log(np.maximum(model.totals, 1e-300) / model.totals.sum())
            found = data.expect(model, log_prior, moments=False)
            settled = Scored(model.made_tables, log_prior)
            model = BlockModel(model.partitions, found.histograms, found.totals)
        return settled
