"""Looking for the best density model: number of components, prior strengths and family.

Every trial is one run of EM, compared by the likelihood of held-out rows. A family's settings are
climbed one at a time by factors, coarse steps first; each step starts where the best trial so far
is. A family begins at the best of a usual start and of what was best for each family before it.
No rows but those to fit and those held out are ever looked at.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from exchangeable.data.examples import Examples
from exchangeable.families import REGISTRY, family_named
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import EMState, StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.structure.blocks import Blocks, structure_of

MANY_VARIABLES = 400
"""With this many variables the search starts from the second, stronger pooling."""
STEPS = (
    {"n_components": 2.5, "pooling": 4.0, "shrinkage": 4.0},
    {"n_components": 1.5, "pooling": 2.0, "shrinkage": 2.0},
)
"""Factors of the climb, coarse and fine."""
ANYWHERE = SearchSpace()
"""Where a search of a family begins that is not searched unless it is asked for."""


@dataclass(frozen=True)
class Settings:
    """What a trial fits: parameters of an `ExchangeableMixture`."""

    family: str
    n_components: int
    pooling: float
    shrinkage: float = 0.0
    blocks: str = "auto"

    @property
    def spec(self) -> FamilySpec:
        """The family."""
        return family_named(self.family)

    @property
    def space(self) -> SearchSpace:
        """Where a search of the family begins and ends."""
        return self.spec.search or ANYWHERE

    def parameters(self) -> dict[str, Any]:
        """Return the settings as an `ExchangeableMixture` takes them."""
        named: dict[str, Any] = {
            "family": self.family,
            "n_components": self.n_components,
            "pooling": self.pooling,
        }
        if "pooling" in self.spec.cannot:
            del named["pooling"]
        if self.spec.shrinkage is not None:
            named["shrinkage"] = self.shrinkage
        if self.blocks != "auto":
            named["blocks"] = self.blocks
        return named

    def problem(
        self, examples: Examples, valid: Examples, alpha: float, varied: bool = False
    ) -> Problem:
        """Return the settings as a problem."""
        method = self.spec.blocks[0] if self.blocks == "auto" else self.blocks
        n, k = examples.rows.n_variables, self.n_components
        return Problem(
            k,
            structure_of(Blocks(), method, False, n, range(k)),
            examples=examples,
            valid=valid,
            alpha=alpha,
            pooling=self.pooling,
            shrinkage=self.shrinkage,
            relearns=self.spec.relearns,
            varied=varied,
            settings=self.spec.settings,
        )


@dataclass(frozen=True)
class Trial:
    """One fit that was tried.

    Attributes
    ----------
    settings : Settings
        What was fitted.
    valid, train : float
        Average log-likelihood of the held-out rows and of the rows fitted.
    n_iter : int
        Steps of EM that led to the best parameters.
    n_parameters : int
        Number of free parameters.
    seconds : float
        How long it took.
    """

    settings: Settings
    valid: float
    train: float
    n_iter: int
    n_parameters: int
    seconds: float

    def row(self) -> dict[str, object]:
        """Return the trial as one row of a table."""
        return {
            **self.settings.parameters(),
            "valid": self.valid,
            "train": self.train,
            "n_iter": self.n_iter,
            "n_parameters": self.n_parameters,
            "seconds": self.seconds,
        }


@dataclass
class Search:
    """A search over settings on given rows.

    Attributes
    ----------
    examples, valid : Examples
        Rows to fit, rows to compare by.
    alpha : float
        Smoothing of the training set's own frequencies.
    rule : StopRule
        When a trial ends.
    seed : int
        Seed of every trial's start.
    max_components : int
        Largest number of components to try.
    deadline : float
        When to stop trying, by `time.monotonic`; a trial that goes on is cut short.
    n_jobs : int, optional
        Number of threads.
    report : callable
        Called after each trial.
    stop : threading.Event
        Once it is set no more is tried, and a trial that goes on is cut short.
    best_state : EMState, optional
        What the best trial was fitted to be.
    """

    examples: Examples
    valid: Examples
    alpha: float = 0.1
    rule: StopRule = field(default_factory=StopRule)
    seed: int = 0
    max_components: int = 500
    deadline: float = np.inf
    n_jobs: int | None = None
    report: Callable[["Search"], None] = lambda search: None
    stop: threading.Event = field(default_factory=threading.Event)
    trials: dict[Settings, Trial] = field(default_factory=dict)
    best_state: EMState | None = None
    _before: dict[tuple[Any, ...], Mixture] = field(default_factory=dict)

    @property
    def best(self) -> Trial:
        """The best trial so far."""
        return max(self.trials.values(), key=lambda trial: trial.valid)

    def best_of(self, family: str, blocks: str | None = None) -> Trial | None:
        """Return the best trial of a family, with certain blocks if they are named."""
        tried = [
            trial
            for trial in self.trials.values()
            if trial.settings.family == family and blocks in (None, trial.settings.blocks)
        ]
        return max(tried, key=lambda trial: trial.valid) if tried else None

    def try_one(self, settings: Settings) -> float:
        """Return the held-out likelihood of some settings, fitting them unless that was done."""
        if settings not in self.trials:
            over = time.monotonic() >= self.deadline or self.stop.is_set()
            if self.trials and over:
                return -np.inf
            if self.stop.is_set():
                raise KeyboardInterrupt
            began = time.monotonic()
            run = self.fit(settings, self.seed, self.rule, deadline=self.deadline)
            if not self.trials or run.worth > self.best.valid:
                self.best_state = run
            self.trials[settings] = Trial(
                settings,
                run.worth,
                run.history[run.best_iter],
                run.best_iter,
                run.best.n_parameters,
                time.monotonic() - began,
            )
            self.report(self)
        return self.trials[settings].valid

    def fit(
        self,
        settings: Settings,
        seed: int,
        rule: StopRule,
        varied: bool = False,
        deadline: float = np.inf,
    ) -> EMState:
        """Fit some settings from one start; fits to be averaged should be `varied`.

        EM ends with the iteration in which the deadline passes, or `stop` is set.
        """
        stop = threading.Event()

        def watch(state: EMState) -> None:
            if time.monotonic() >= deadline or self.stop.is_set():
                stop.set()

        def run(settings: Settings, problem: Problem, before: Mixture | None) -> EMState:
            generator = np.random.default_rng([seed, settings.n_components])
            data = InMemory(self.examples)
            runs = Runs(settings.spec, problem, data, rule, "rows", [generator])
            return runs.run(0, None, watch, stop, self.n_jobs, before)

        problem = settings.problem(self.examples, self.valid, self.alpha, varied)
        first_of_all = settings.spec.earlier(problem)
        if first_of_all is None:
            return run(settings, problem, None)
        name, earlier = first_of_all
        key = (name, settings.blocks, earlier.n_components, earlier.pooling, seed, rule)
        if key not in self._before:  # trials that differ in shrinkage alone share what comes before
            first = Settings(name, settings.n_components, settings.pooling, blocks=settings.blocks)
            self._before[key] = run(first, earlier, None).best
        return run(settings, problem, self._before[key])

    def starts_of(
        self, family: str, near: Sequence[Settings] = (), blocks: str = "auto"
    ) -> list[Settings]:
        """Return where to begin with a family: as usual, near given settings and earlier trials.

        What was better comes first, in case there is no time for the rest.
        """
        spec = family_named(family)
        shrinkage, space = spec.shrinkage or 0.0, spec.search or ANYWHERE
        wide = self.examples.rows.n_variables >= MANY_VARIABLES
        first = min(space.first_components, self._largest) if space.climbs else spec.components
        usual = Settings(family, first, space.pooling[int(wide)], shrinkage, blocks)
        if space.alone:
            return [start for start in near if start.family == family] or [usual]
        tried = list(filter(None, (self.best_of(other) for other in REGISTRY)))
        tried.sort(key=lambda trial: -trial.valid)
        before = [*near, *(trial.settings for trial in tried)]
        uses = spec.shrinkage is not None
        return [usual] + [
            replace(
                start,
                family=family,
                shrinkage=(start.shrinkage or shrinkage) if uses else 0.0,
                blocks=blocks,
            )
            for start in before
            if not start.space.alone
        ]

    def climb(
        self,
        family: str,
        steps: Sequence[Mapping[str, float]] = STEPS,
        near: Sequence[Settings] = (),
        blocks: str = "auto",
    ) -> Trial | None:
        """Climb a family's settings one at a time, and return its best trial."""
        for start in self.starts_of(family, near, blocks):
            self.try_one(start)
        if not (family_named(family).search or ANYWHERE).climbs:
            return self.best_of(family, blocks)
        for factors in steps:
            moved = True
            while moved and self.best_of(family, blocks) is not None:
                moved = False
                for name, factor in factors.items():
                    if name == "shrinkage" and family_named(family).shrinkage is None:
                        continue
                    moved |= self._climb_one(family, blocks, name, factor)
        return self.best_of(family, blocks)

    @property
    def _largest(self) -> int:
        """The largest number of components that makes sense."""
        rows = min(int(self.examples.total) // 2, self.examples.rows.n_rows)
        return max(1, min(self.max_components, rows))

    def _climb_one(self, family: str, blocks: str, name: str, factor: float) -> bool:
        """Move one setting up or down as long as that helps; say whether it has moved."""
        moved = False
        for sign in (1, -1):
            while True:
                best = self.best_of(family, blocks)
                if best is None:
                    return moved
                following = self._scaled(best.settings, name, factor**sign)
                if following is None or self.try_one(following) <= best.valid:
                    break
                moved = True
            if moved:
                break
        return moved

    def _scaled(self, settings: Settings, name: str, factor: float) -> Settings | None:
        """Return the settings with one of them scaled, None where that is out of range."""
        values = {
            "n_components": settings.n_components,
            "pooling": settings.pooling,
            "shrinkage": settings.shrinkage,
        }
        values[name] = values[name] * factor
        k = round(values["n_components"])
        if (
            not 1 <= k <= min(self._largest, settings.space.most_components)
            or not 0.05 <= values["pooling"] <= 1e4
        ):
            return None
        if k == settings.n_components and name == "n_components":
            return None
        if settings.spec.shrinkage is not None and not 0.1 <= values["shrinkage"] <= 1e5:
            return None
        return replace(
            settings,
            n_components=k,
            pooling=float(f"{values['pooling']:.3g}"),
            shrinkage=float(f"{values['shrinkage']:.3g}"),
        )
