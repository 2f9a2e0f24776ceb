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

import numpy as np

from exchangeable.data.examples import Examples
from exchangeable.fitting.density_em import Run, StopRule
from exchangeable.fitting.density_fit import HIDDEN_POOLING, SHRINKAGE, DensityOptions, DensityRuns
from exchangeable.structure.learner import BlockLearner, BlockSettings

FAMILIES = {
    "independent": ("uniform", "independent"),
    "urns": ("weighted", "independent"),
    "tree": ("uniform", "tree"),
    "weighted tree": ("weighted", "tree"),
    "hidden tree": ("uniform", "hidden"),
}
"""What each family is called in the options: (urn, dependence)."""
FIRST_COMPONENTS = 30
FIRST_POOLING = (8.0, 32.0)
FIRST_STATES, MOST_STATES = 16, 128
"""States of each variable of a hidden tree, whose cost grows with their square."""
MANY_VARIABLES = 400
"""With so many variables the search starts from the second, stronger pooling."""
STEPS = (
    {"n_components": 2.5, "pooling": 4.0, "shrinkage": 4.0},
    {"n_components": 1.5, "pooling": 2.0, "shrinkage": 2.0},
)
"""Factors of the climb, coarse and fine."""
WHOLE = BlockLearner("full", BlockSettings(0.1, 0.1, 0.1, (1,)))
SINGLE = BlockLearner("independent", WHOLE.settings)


@dataclass(frozen=True)
class Settings:
    """What a trial fits."""

    family: str
    n_components: int
    pooling: float
    shrinkage: float = 0.0

    def options(self, alpha: float, rule: StopRule, varied: bool = False) -> DensityOptions:
        """Return the settings as the fit takes them."""
        return DensityOptions(
            self.family,
            self.n_components,
            SINGLE if self.family == "hidden tree" else WHOLE,
            True,
            self.pooling,
            alpha,
            self.shrinkage,
            rule,
            varied=varied,
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
        urn, dependence = FAMILIES[self.settings.family]
        return {
            "urn": urn,
            "dependence": dependence,
            "n_components": self.settings.n_components,
            "pooling": self.settings.pooling,
            "shrinkage": self.settings.shrinkage,
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
    trials: dict[Settings, Trial] = field(default_factory=dict)
    _urns: dict[tuple[Settings, int, StopRule], Run] = field(default_factory=dict)

    @property
    def best(self) -> Trial:
        """The best trial so far."""
        return max(self.trials.values(), key=lambda trial: trial.valid)

    def best_of(self, family: str) -> Trial | None:
        """Return the best trial of a family."""
        tried = [trial for trial in self.trials.values() if trial.settings.family == family]
        return max(tried, key=lambda trial: trial.valid) if tried else None

    def try_one(self, settings: Settings) -> float:
        """Return the held-out likelihood of some settings, fitting them unless that was done."""
        if settings not in self.trials:
            if self.trials and time.monotonic() >= self.deadline:
                return -np.inf
            began = time.monotonic()
            run = self.fit(settings, self.seed, self.rule, deadline=self.deadline)
            self.trials[settings] = Trial(
                settings,
                run.worth,
                run.history[run.best_iter],
                run.best_iter,
                run.model.n_parameters + settings.n_components - 1,
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
    ) -> Run:
        """Fit some settings from one start; fits to be averaged should be `varied`.

        EM ends with the iteration in which the deadline passes.
        """
        fitted, stop = None, threading.Event()

        def watch(run: Run) -> None:
            if time.monotonic() >= deadline:
                stop.set()

        if settings.family == "weighted tree":  # trials that differ in shrinkage share their urns
            urns = replace(settings, family="urns", shrinkage=0.0)
            key = (urns, seed, rule)
            if key not in self._urns:
                self._urns[key] = self.fit(urns, seed, rule, deadline=deadline)
            fitted = self._urns[key]
        generator = np.random.default_rng([seed, settings.n_components])
        options = settings.options(self.alpha, rule, varied)
        runs = DensityRuns.of(self.examples, self.valid, options, [generator])
        return runs.run(0, watch, stop, self.n_jobs, fitted)

    def starts_of(self, family: str, near: Sequence[Settings] = ()) -> list[Settings]:
        """Return where to begin with a family: as usual, near given settings and earlier trials.

        What was better comes first, lest there be no time for it.
        """
        shrinkage = SHRINKAGE.get(family, 0.0)
        if family == "hidden tree":  # components of other families are no states of hidden trees
            usual = Settings(family, min(FIRST_STATES, self._largest), HIDDEN_POOLING, shrinkage)
            return [start for start in near if start.family == family] or [usual]
        wide = self.examples.rows.n_variables >= MANY_VARIABLES
        first = min(FIRST_COMPONENTS, self._largest)
        usual = Settings(family, first, FIRST_POOLING[int(wide)], shrinkage)
        tried = list(filter(None, (self.best_of(other) for other in FAMILIES)))
        tried.sort(key=lambda trial: -trial.valid)
        before = [*near, *(trial.settings for trial in tried)]
        uses = family_uses_shrinkage(family)
        return [usual] + [
            replace(start, family=family, shrinkage=(start.shrinkage or shrinkage) if uses else 0.0)
            for start in before
            if start.family != "hidden tree"
        ]

    def climb(
        self,
        family: str,
        steps: Sequence[Mapping[str, float]] = STEPS,
        near: Sequence[Settings] = (),
    ) -> Trial | None:
        """Climb a family's settings one at a time, and return its best trial."""
        for start in self.starts_of(family, near):
            self.try_one(start)
        for factors in steps:
            moved = True
            while moved and self.best_of(family) is not None:
                moved = False
                for name, factor in factors.items():
                    if name == "shrinkage" and not family_uses_shrinkage(family):
                        continue
                    moved |= self._climb_one(family, name, factor)
        return self.best_of(family)

    @property
    def _largest(self) -> int:
        """The largest number of components that makes sense."""
        rows = min(int(self.examples.total) // 2, self.examples.rows.n_rows)
        return max(1, min(self.max_components, rows))

    def _climb_one(self, family: str, name: str, factor: float) -> bool:
        """Move one setting up or down as long as that helps; say whether it has moved."""
        moved = False
        for sign in (1, -1):
            while True:
                best = self.best_of(family)
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
        if settings.family == "hidden tree" and k > MOST_STATES:
            return None
        if not 1 <= k <= self._largest or not 0.05 <= values["pooling"] <= 1e4:
            return None
        if k == settings.n_components and name == "n_components":
            return None
        if family_uses_shrinkage(settings.family) and not 0.1 <= values["shrinkage"] <= 1e5:
            return None
        return Settings(
            settings.family,
            k,
            float(f"{values['pooling']:.3g}"),
            float(f"{values['shrinkage']:.3g}"),
        )


def family_uses_shrinkage(family: str) -> bool:
    """Whether a family has edges."""
    return family in SHRINKAGE
