"""The runs of EM that fit a mixture, each from a start of its own."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.families.blocks.passes import Expectation
from exchangeable.fitting.completion import CompletedRows, completed_proposals
from exchangeable.fitting.starts import first_posterior
from exchangeable.fitting.structural_em import (
    EMSettings,
    EMState,
    Relearn,
    run_em,
    soft_proposals,
    start_from_posterior,
)
from exchangeable.partitions import Partition
from exchangeable.structure.learner import BlockLearner, Structure


@dataclass(frozen=True)
class MixtureRuns:
    """What the runs have in common, and how the numbered one begins.

    Attributes
    ----------
    examples, member, row_weight
        The distinct rows; which of them each row of the data is; and how much that row counts.
    n_components : int
        Number of components.
    structure : Structure
        Where blocks come from.
    settings : EMSettings
        How EM runs.
    init : {"rows", "random", "both"}
        How a run starts.
    generators : sequence of Generator
        The source of each run's draws.
    warm : EMState, optional
        Parameters to start from instead.
    """

    examples: Examples
    member: IntArray
    row_weight: FloatArray
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
        settings = replace(self.settings, n_jobs=threads)
        learners = [self._proposals(learner, threads) for learner in self._phases()]
        if state is None:
            first = learners[0] if learners else self._proposals(self.structure, threads)
            state = self.warm or self._begin(number, settings, first)
        return run_em(self.examples, state, learners, settings, report, stop)

    def run_from(
        self, posterior: FloatArray, stop: threading.Event | None, threads: int | None
    ) -> EMState:
        """Run EM from given posteriors."""
        settings = replace(self.settings, n_jobs=threads)
        learners = [self._proposals(learner, threads) for learner in self._phases()]
        first = learners[0] if learners else self._proposals(self.structure, threads)
        state = start_from_posterior(self.examples, posterior, first, settings)
        return run_em(self.examples, state, learners, settings, stop=stop)

    def _begin(self, number: int, settings: EMSettings, first: Relearn) -> EMState:
        kind = ("rows", "random")[number % 2] if self.init == "both" else self.init
        posterior = first_posterior(
            kind,
            self.examples,
            self.member,
            self.row_weight,
            self.n_components,
            self.generators[number],
        )
        return start_from_posterior(self.examples, posterior, first, settings, kind == "random")

    def _phases(self) -> list[BlockLearner]:
        return [] if isinstance(self.structure, list) else self.structure.phases()

    def _proposals(self, structure: Structure, threads: int | None) -> Relearn:
        """Return what proposes blocks, learned or given."""
        if self.examples.holes is None:

            def choose(expectation: Expectation) -> list[list[Partition]]:
                if isinstance(structure, list):
                    return [structure]
                return structure.propose(self.examples, expectation, threads)

            return soft_proposals(choose)
        total = self.examples.total

        def choose_one(completed: CompletedRows, y: int) -> list[Partition]:
            if isinstance(structure, list):
                return [structure[y]]
            if not structure.needs_moments:
                return [structure.learn(completed.rows, completed.group, np.empty(0))]
            return structure.propose_one(
                completed.rows, completed.weights, completed.moments, total
            )

        return completed_proposals(self.examples, choose_one, threads)
