"""One fit of a search: what is fitted, to which rows, and what came of it."""

import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.families import family_named, with_statistics
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import FamilySpec, SearchSpace, Trainer
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import EMState, StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.runtime.clock import Clock, OutOfTime, Pace
from exchangeable.runtime.interrupts import GivenUp, giving_up
from exchangeable.structure.blocks import AUTO, Blocks, structure_of
from exchangeable.structure.statistic_blocks import StatisticBlock

ANYWHERE = SearchSpace()
"""Where a search of a family begins that is not searched unless it is asked for."""
LIMITS = {"pooling": (0.05, 1e4), "shrinkage": (0.1, 1e5), "learning_rate": (1e-5, 0.1)}
"""What a search does not leave."""
FINER = 5
"""A fit to be averaged is taken this many times nearer to its end than a first one."""
LAST_SCORE = 0.5
"""Held-out rows are scored once more after the last iteration; that takes this part of one."""
SECOND_BEGINNING = 1.5
"""The first step of a family that starts from another takes this many times as long as that's."""
MOST_BEFORE = 16
"""Fits of families that come before others, kept for further ones that start from them."""

STATISTICS = "statistics"
"""What stands for blocks whose statistics users name."""
CONSTRUCTOR = ("family", "n_components", "pooling")
"""Settings that a mixture's constructor takes as they are."""


class NamedBlocks(NamedTuple):
    """Blocks whose statistics users name, and the variables that are in none of them."""

    blocks: Sequence[StatisticBlock]
    others: IntArray


NO_BLOCKS = NamedBlocks((), np.empty(0, dtype=np.int64))
ENDLESS = Clock()


@dataclass(frozen=True)
class Settings:
    """What is fitted: parameters of an `ExchangeableMixture`.

    Attributes
    ----------
    family : str
        Name of the family.
    n_components : int
        Number of components.
    pooling, shrinkage : float
        Strengths of its priors.
    blocks : str
        How variables are put into blocks; `STATISTICS` for those whose statistics users name.
    own : tuple of pairs
        Settings of the family's own that differ from their defaults, by name.
    """

    family: str
    n_components: int
    pooling: float
    shrinkage: float = 0.0
    blocks: str = AUTO
    own: tuple[tuple[str, Any], ...] = ()

    @property
    def spec(self) -> FamilySpec:
        """The family."""
        spec = family_named(self.family)
        return with_statistics(spec) if self.blocks == STATISTICS else spec

    @property
    def space(self) -> SearchSpace:
        """Where a search of the family begins and ends."""
        return self.spec.search or ANYWHERE

    @property
    def trained(self) -> bool:
        """Whether it is trained, which keeps a device or all cores busy by itself."""
        return issubclass(self.spec.family, Trainer)

    @property
    def shape(self) -> tuple[tuple[str, int], ...]:
        """The settings on which the compiled code of trained families depends: whole numbers."""
        own = [(name, value) for name, value in self.own if isinstance(value, int)]
        return ("n_components", self.n_components), *own

    @property
    def own_settings(self) -> Any:
        """The family's own settings, None where it has none."""
        settings = self.spec.settings
        return clone(settings).set_params(**dict(self.own)) if self.own else settings

    def parameters(self, named_blocks: Any = None) -> dict[str, Any]:
        """Return the settings as an `ExchangeableMixture` takes them.

        Parameters
        ----------
        named_blocks : list, optional
            The blocks whose statistics users name, where `blocks` stands for those.
        """
        parameters = {name: value for name, value in self.row().items() if name in CONSTRUCTOR}
        if self.own:
            parameters["family"] = self.own_settings
        blocks = named_blocks if self.blocks == STATISTICS else self.blocks
        if self.spec.shrinkage is not None:
            blocks = Blocks(blocks, shrinkage=self.shrinkage)
        if blocks != AUTO:
            parameters["blocks"] = blocks
        return parameters

    def row(self) -> dict[str, Any]:
        """Return the settings as part of a row of a table, one entry for each number or word."""
        row: dict[str, Any] = {"family": self.family, "n_components": self.n_components}
        if "pooling" not in self.spec.cannot:
            row["pooling"] = self.pooling
        if self.spec.shrinkage is not None:
            row["shrinkage"] = self.shrinkage
        if self.blocks != AUTO:
            row["blocks"] = self.blocks
        return row | dict(self.own)

    def scaled(self, name: str, factor: float, most: int) -> "Settings | None":
        """Return the settings with one of them scaled, None where that is out of range.

        >>> Settings("urns", 30, 8.0).scaled("n_components", 2.5, 500)
        Settings(family='urns', n_components=75, pooling=8.0, shrinkage=0.0, blocks='auto', own=())
        """
        if name == "n_components":
            k = round(self.n_components * factor)
            same = k == self.n_components or not 1 <= k <= most
            return None if same else replace(self, n_components=k)
        if name in ("pooling", "shrinkage"):
            without = name in self.spec.cannot or (name == "shrinkage" and not self.shrinkage)
            value = float(f"{getattr(self, name) * factor:.3g}")
            low, high = LIMITS[name]
            changed: Any = {name: value}
            return None if without or not low <= value <= high else replace(self, **changed)
        usual = getattr(self.own_settings, name)
        number = usual * factor
        scaled = max(1, round(number)) if isinstance(usual, int) else float(f"{number:.3g}")
        low, high = LIMITS.get(name, (1, 1000))
        if scaled == usual or not low <= scaled <= high:
            return None
        own = tuple(sorted((dict(self.own) | {name: scaled}).items()))
        return replace(self, own=own)

    def problem(
        self,
        examples: Examples,
        valid: Examples,
        alpha: float,
        varied: bool = False,
        device: str = "auto",
        named: NamedBlocks = NO_BLOCKS,
        clock: Clock = ENDLESS,
    ) -> Problem:
        """Return the settings as a problem; `named` are the blocks with statistics, if any."""
        method: Any = self.spec.blocks[0] if self.blocks in (AUTO, STATISTICS) else self.blocks
        n, k = examples.rows.n_variables, self.n_components
        if self.blocks != STATISTICS:
            named = NO_BLOCKS
        elif named.others.size:
            n = named.others.size
        else:
            method = [np.arange(n)]
        return Problem(
            k,
            structure_of(Blocks(), method, False, n, range(k)),
            statistic_blocks=tuple(named.blocks),
            others=named.others,
            examples=examples,
            valid=valid,
            alpha=alpha,
            pooling=None if "pooling" in self.spec.cannot else self.pooling,
            shrinkage=self.shrinkage,
            relearns=self.spec.relearns,
            varied=varied,
            settings=self.own_settings,
            device=device,
            clock=clock,
        )


@dataclass(frozen=True)
class Fit:
    """What a fit has led to.

    Attributes
    ----------
    mixture : Mixture
        The best that was found.
    each : array
        Log-probabilities of the distinct held-out rows.
    valid, train : float
        Average log-likelihood of the held-out rows and of the rows fitted.
    n_iter : int
        Iterations that led to it.
    seconds : float
        How long it took.
    whole : bool
        Whether it ended by itself.
    """

    mixture: Mixture
    each: FloatArray
    valid: float
    train: float
    n_iter: int
    seconds: float
    whole: bool


class FitStore(Protocol):
    """Where fits are kept."""

    def get(self, settings: Settings, number: int) -> Fit | None:
        """Return a fit, None if it is not known."""

    def put(self, settings: Settings, number: int, fit: Fit) -> None:
        """Keep a fit."""


@dataclass
class Fitter:
    """Fits settings to given rows.

    Attributes
    ----------
    examples, valid : Examples
        Rows to fit, rows to stop and compare by.
    alpha : float
        Smoothing of the training set's own frequencies.
    rule : StopRule
        When a first fit ends; those to be averaged go on for longer.
    seed : int
        Seed of every family's first start.
    device : {"auto", "cpu", "gpu"}
        Where networks are trained, and with ``"gpu"`` EM makes its passes.
    em_device : jax device, optional
        The latter.
    accelerator : jax device, optional
        What networks are trained on, where it is not the processor: EM of families that say so
        makes its passes there.
    stop : threading.Event
        Once it is set, a fit that goes on is cut short.
    kept : FitStore, optional
        Where fits are found that need not be made again.
    named : NamedBlocks
        Blocks with statistics, for the families that take them.
    in_vain : dict
        Seconds that were too few for a fit of a family to lead to anything, by its name.
    begun : bool
        Whether any fit has come to its first iteration.
    """

    examples: Examples
    valid: Examples
    alpha: float = 0.1
    rule: StopRule = field(default_factory=StopRule)
    seed: int = 0
    device: str = "auto"
    em_device: Any = None
    accelerator: Any = None
    stop: threading.Event = field(default_factory=threading.Event)
    kept: "FitStore | None" = None
    named: NamedBlocks = NO_BLOCKS
    in_vain: dict[str, float] = field(default_factory=dict)
    begun: bool = False
    _before: dict[tuple[Any, ...], Mixture] = field(default_factory=dict)
    _locks: Any = field(default_factory=lambda: defaultdict(threading.Lock))
    _endings: dict[str, float] = field(default_factory=dict)

    def fit(
        self,
        settings: Settings,
        number: int = 0,
        clock: Clock = ENDLESS,
        n_jobs: int | None = None,
    ) -> Fit:
        """Fit some settings from the numbered start; those from 1 on are to be averaged.

        A fit ends with the last iteration that there is time for, or in which `stop` is set. If
        there is no time for any, it raises `OutOfTime`.
        """
        known = None if self.kept is None else self.kept.get(settings, number)
        if known is not None:
            return known
        began = clock.now()
        rule = self.rule
        if number > 0:
            rule = StopRule(rule.tol / FINER, rule.max_iter, patience=rule.patience + 2)
        ending = self._endings.get(settings.family, 0.0) * settings.n_components
        pace = Pace(clock.earlier(ending))
        try:
            state = self.run(settings, self.seed + number, rule, number > 0, pace, n_jobs)
        except OutOfTime:
            self.in_vain[settings.family] = clock.now() - began
            raise
        best = state.best
        each = best.model.log_likelihoods(best.log_prior, self.valid, n_jobs)
        ended = clock.now()
        self._endings[settings.family] = (ended - pace.ended) / settings.n_components
        fit = Fit(
            best,
            each,
            float(self.valid.weights @ each) / self.valid.total,
            state.history[state.best_iter],
            state.best_iter,
            ended - began,
            state.ended or state.n_iter >= rule.max_iter,
        )
        if self.kept is not None and fit.whole:
            self.kept.put(settings, number, fit)
        return fit

    def passes_device(self, settings: Settings) -> Any:
        """Return the device on which EM makes its passes, None for the processor."""
        spared = self.accelerator is not None and settings.space.most_on_device is not None
        return self.accelerator if spared else self.em_device

    def uses_accelerator(self, settings: Settings) -> bool:
        """Whether a fit keeps the accelerator busy, and the processor free for others."""
        passes = self.em_device is None and self.passes_device(settings) is not None
        return self.accelerator is not None and (settings.trained or passes)

    def run(
        self,
        settings: Settings,
        seed: int,
        rule: StopRule,
        varied: bool = False,
        pace: Pace | None = None,
        n_jobs: int | None = None,
    ) -> EMState:
        """Fit some settings from one start; fits to be averaged should be `varied`."""
        stop, pace = threading.Event(), pace or Pace(ENDLESS)
        clock = pace.clock

        def one(
            settings: Settings, problem: Problem, before: Mixture | None, to_come: float = 0.0
        ) -> EMState:
            def watch(state: Any) -> None:
                pace.step()
                self.begun = True
                reserve = LAST_SCORE * pace.latest + to_come * pace.first
                in_time = settings.trained or pace.goes_on(reserve)  # training has its own pace
                if self.stop.is_set() or not in_time:
                    stop.set()

            generator = np.random.default_rng([seed, settings.n_components])
            data = InMemory(self.examples, device=self.passes_device(settings))
            runs = Runs(settings.spec, problem, data, rule, "rows", [generator], scored=False)
            try:
                with giving_up():
                    return runs.run(0, None, watch, stop, n_jobs, before)
            except GivenUp:
                raise OutOfTime("the search was interrupted") from None

        rows = self.examples, self.valid, self.alpha
        problem = settings.problem(*rows, varied, self.device, self.named, clock)
        found = settings.spec.earlier(problem)
        clock.check()
        if found is None:
            return one(settings, problem, None)
        name, earlier = found
        key = (name, settings.blocks, earlier.n_components, earlier.pooling, seed, rule)
        with self._locks[key]:  # fits that differ in shrinkage alone share what comes before
            clock.check()
            before = self._before.get(key)
            if before is None:
                first = Settings(
                    name, settings.n_components, settings.pooling, blocks=settings.blocks
                )
                before = one(first, earlier, None, SECOND_BEGINNING).best
                if not stop.is_set():
                    self._keep(key, before)
        return one(settings, problem, before)

    def _keep(self, key: tuple[Any, ...], before: Mixture) -> None:
        self._before[key] = before
        while len(self._before) > MOST_BEFORE:
            self._before.pop(next(iter(self._before)), None)
