"""Runs of EM from different starts, through the families that a family starts from."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import numpy as np

from exchangeable.devices.choice import usable_on
from exchangeable.devices.passes.together import Together
from exchangeable.families import family_named
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Family, FamilySpec, Trainer
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import EMState, StopRule, run_em
from exchangeable.fitting.going_on import Stage, check_state, refusal
from exchangeable.fitting.steps import take_steps
from exchangeable.fitting.training import TrainingState, run_training
from exchangeable.runtime.interrupts import giving_up
from exchangeable.structure.proposals import first_blocks, learners_of

Data = InMemory | Streamed
MOST_TOGETHER = 16
"""Maximum number of runs that make their passes on a device together."""
BYTES_TOGETHER = 32.0
"""Bytes for each row and component of a run, approximately."""


def families_of(spec: FamilySpec, problem: Problem) -> list[Family]:
    """Return the chain of families to be fitted, each starting from the one before.

    If there is too little memory for the last one, whose parameters are the largest, an error is
    raised.
    """
    _check_memory(spec, problem)
    return [_em_family(*stage) for stage in stages_of(spec, problem)]


def stages_of(spec: FamilySpec, problem: Problem) -> list[Stage]:
    """Return the chain of families to be fitted, with the problem of each."""
    stages = [(spec, problem)]
    while (earlier := spec.earlier(problem)) is not None:
        name, problem = earlier
        spec = family_named(name)
        stages.insert(0, (spec, problem))
    return stages


def _em_family(spec: FamilySpec, problem: Problem) -> Family:
    """Return a family that EM fits."""
    family = spec.family(problem)
    if not isinstance(family, Family):
        raise TypeError(f"family={spec.name!r} is trained, not fitted by EM")
    return family


def _check_memory(spec: FamilySpec, problem: Problem) -> None:
    if problem.examples is not None:
        rows = problem.examples.rows
        spec.check_memory(rows.n_rows, rows.n_variables, problem.n_components)
    elif problem.chunks is not None:
        spec.check_memory(0, problem.chunks.n_variables, problem.n_components)


@dataclass(frozen=True)
class Runs:
    """The common settings of the runs of a fit.

    Attributes
    ----------
    spec : FamilySpec
        The family.
    problem : Problem
        The problem.
    data : InMemory or Streamed
        The rows.
    rule : StopRule
        When a run stops.
    init : {"rows", "random", "both"}
        How runs start.
    generators : sequence of Generator
        The source of each run's draws.
    warm : Mixture, optional
        Parameters to start from instead of a start.
    scored : bool
        Whether to score the rows under the result of training.
    """

    spec: FamilySpec
    problem: Problem
    data: Data
    rule: StopRule
    init: str
    generators: Sequence[np.random.Generator]
    warm: Mixture | None = None
    scored: bool = True

    @property
    def at_once(self) -> int:
        """Number of runs at a time for which there is memory."""
        if self.problem.examples is None:
            return 1
        rows = self.problem.examples.rows
        return self.spec.runs_at_once(rows.n_rows, rows.n_variables, self.problem.n_components)

    @property
    def together(self) -> Together | None:
        """Where runs meet that make their passes on a device together."""
        return self.data.together if isinstance(self.data, InMemory) else None

    def meeting(self, threads: int) -> "Runs":
        """Return the final states of the runs, with passes on a device made together."""
        data = self.data
        if (
            isinstance(data, Streamed)
            or data.device is None
            or issubclass(self.spec.family, Trainer)
        ):
            return self
        cells = float(data.examples.rows.n_rows) * self.problem.n_components
        room = usable_on(data.device) / (BYTES_TOGETHER * cells)
        most = int(min(len(self.generators), self.at_once, MOST_TOGETHER, room))
        if most < 2:
            return self
        return replace(self, data=replace(data, together=Together(most, threads)))

    def run(
        self,
        number: int,
        state: EMState | TrainingState | None = None,
        report: Callable[[Any], None] = lambda state: None,
        stop: Event | None = None,
        threads: int | None = None,
        before: Mixture | None = None,
    ) -> EMState:
        """Run EM from one start, or continue from `state`, or train the family.

        `before` is the fit of the previous family in the chain, if known.
        """
        with self.together or nullcontext():
            return self._run(number, state, report, stop, threads, before)

    def _run(
        self,
        number: int,
        state: EMState | TrainingState | None,
        report: Callable[[Any], None],
        stop: Event | None,
        threads: int | None,
        before: Mixture | None,
    ) -> EMState:
        data = self.data.for_run(threads)
        if issubclass(self.spec.family, Trainer):
            if self.warm is not None and not isinstance(state, TrainingState):
                return self.by_em()._run(number, state, report, stop, threads, before)
            with giving_up(False):  # the result of training must become a mixture
                return self._train(self.spec.family, number, data, state, report, stop)
        families = families_of(self.spec, self.problem)
        if state is not None:
            state = check_state(state, stages_of(self.spec, self.problem), data.n_variables)
        last = len(families) - 1
        warm = self.warm if state is None or state.stage == last else None
        if warm is not None:
            warm = families[-1].resume(data, warm)
            totals = np.exp(warm.log_prior) * data.total
            state = state or EMState(warm, warm, totals, stage=last)
        first = 0 if before is None else len(families) - 1
        for stage in range(first if state is None else state.stage, len(families)):
            begun = state is not None and state.stage == stage
            if state is not None:
                before = state.before if begun else state.best
            if warm is None and (not begun or families[stage].remembers):
                if state is None:
                    self.problem.clock.check()
                with nullcontext() if before is None and not begun else giving_up(False):
                    fresh = self._begin(number, data, families, stage, before)
                state = state if begun else fresh
            assert state is not None
            family = families[stage]
            if isinstance(data, InMemory) and warm is None and not state.history:
                state = take_steps(
                    data, family, state, self.rule, self.generators[number], report, stop
                )
            if not begun and stage > first and stop is not None and stop.is_set():
                report = _untold  # a fit that continues does so in the family that was stopped
            state = run_em(
                data,
                family,
                state,
                self.rule,
                learners=learners_of(family, data),
                valid=family.problem.valid,
                report=report,
                stop=stop,
            )
        assert state is not None
        return state

    def _train(
        self,
        family: type[Trainer],
        number: int,
        data: Data,
        state: EMState | TrainingState | None,
        report: Callable[[Any], None],
        stop: Event | None,
    ) -> EMState:
        """Train a family, continuing from `state` if it was started already."""
        if isinstance(state, EMState):
            raise refusal(f"by EM, but family={self.spec.name!r} is trained")
        _check_memory(self.spec, self.problem)
        trainer = family(replace(self.problem, varied=self.problem.varied or number > 0))
        rng = self.generators[number]
        return run_training(trainer, data, rng, self.rule, report, stop, self.scored, state)

    def by_em(self) -> "Runs":
        """Return the runs of EM that continue from the result of training.

        Components with a negligible share are dropped.
        """
        assert self.warm is not None
        problem = replace(self.problem, n_components=self.warm.log_prior.size)
        return replace(self, spec=self.spec.by_em, problem=problem)

    def _begin(
        self,
        number: int,
        data: Data,
        families: Sequence[Family],
        stage: int,
        before: Mixture | None,
    ) -> EMState:
        """Return the initial parameters of a family."""
        family, rng = families[stage], self.generators[number]
        if before is None:
            init = families[-1].start_of(self.init, number)
            sums: Any = families[-1].start(data, init, rng)
        else:
            sums = data.expect(before)
        varied = rng if self.problem.varied or number > 0 else None
        return begin(data, family, sums, stage, before, varied)


def _untold(state: EMState) -> None:
    """Ignore the state of a run."""


def begin(
    data: Data,
    family: Family,
    sums: Any,
    stage: int = 0,
    before: Mixture | None = None,
    rng: np.random.Generator | None = None,
) -> EMState:
    """Return the parameters of a family for given posteriors."""
    problem = family.problem
    blocks = family.own_blocks(data, sums) or first_blocks(
        family.block_data(data),
        problem.structure,
        problem.labelled and family.learns_by_class,
        problem.relearns,
        family.prepared(data, sums),
        sums,
    )
    mixture = family.first(data, sums, blocks, before, rng)
    totals = sums.totals
    if totals.size != mixture.log_prior.size:  # posteriors of components other than the family's
        totals = np.exp(mixture.log_prior) * data.total
    return EMState(mixture, mixture, totals, stage=stage, before=before)
