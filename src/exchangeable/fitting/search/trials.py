"""A single fit of a search: its settings, its rows, and its result."""

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
from exchangeable.families.contract import Family, FamilySpec, SearchSpace, Trainer
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import EMState, StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.runtime.clock import Clock, OutOfTime, Pace
from exchangeable.runtime.interrupts import GivenUp, giving_up
from exchangeable.structure.blocks import AUTO, Blocks, structure_of
from exchangeable.structure.statistic_blocks import StatisticBlock

ANYWHERE = SearchSpace()
"""The search space of a family that is only searched when requested."""
LIMITS = {"pooling": (0.05, 1e4), "shrinkage": (0.1, 1e5), "learning_rate": (1e-5, 0.1)}
"""Bounds within which a search stays."""
FINER = 5
"""Fits to be averaged use a tolerance that is smaller by this factor."""
LAST_SCORE = 0.5
"""Held-out rows are scored once more after the last iteration, which takes this part of one."""
DEVICE_WORTH = 20.0
"""EM of one family runs on a device, beside others on the CPU, if it would take at least this many
seconds there: compiling programs takes about half of that, for every number of components."""
SECOND_BEGINNING = 1.5
"""Duration of the first step of a family that starts from another's fit, relative to that fit's
step."""
MOST_BEFORE = 16
"""Fits of previous families in a chain, stored for further fits that start from them."""

STATISTICS = "statistics"
"""Placeholder for blocks with user-defined statistics."""
CONSTRUCTOR = ("family", "n_components", "pooling")
"""Settings that are parameters of a mixture's constructor."""


class NamedBlocks(NamedTuple):
    """Blocks with user-defined statistics, and the variables outside them."""

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
        How variables are grouped into blocks; `STATISTICS` for blocks with user-defined statistics.
    own : tuple of pairs
        The family's own settings that differ from their defaults, by name.
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
        """Whether it is trained, which occupies a device or all cores."""
        return issubclass(self.spec.family, Trainer)

    @property
    def converges(self) -> bool:
        """Whether its fits run until they converge, and not for a number of passes over rows."""
        family = self.spec.family
        return not issubclass(family, Trainer) and family.steps is Family.steps

    @property
    def shape(self) -> tuple[tuple[str, int], ...]:
        """The settings on which the compiled code of trained families depends: whole numbers."""
        own = [(name, value) for name, value in self.own if isinstance(value, int)]
        return ("n_components", self.n_components), *own

    @property
    def own_settings(self) -> Any:
        """The family's own settings, None if it has none."""
        settings = self.spec.settings
        return clone(settings).set_params(**dict(self.own)) if self.own else settings

    def parameters(self, named_blocks: Any = None) -> dict[str, Any]:
        """Return the settings as parameters of an `ExchangeableMixture`.

        Parameters
        ----------
        named_blocks : list, optional
            The blocks with user-defined statistics, if `blocks` is their placeholder.
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
        """Return the settings as part of a table row, one entry for each number or word."""
        row: dict[str, Any] = {"family": self.family, "n_components": self.n_components}
        if "pooling" not in self.spec.cannot:
            row["pooling"] = self.pooling
        if self.spec.shrinkage is not None:
            row["shrinkage"] = self.shrinkage
        if self.blocks != AUTO:
            row["blocks"] = self.blocks
        return row | dict(self.own)

    def scaled(self, name: str, factor: float, most: int) -> "Settings | None":
        """Return the settings with one of them scaled, None if that is out of range.

        The number of components is at most `most`.

        >>> Settings("urns", 30, 8.0).scaled("n_components", 2.5, 500)
        Settings(family='urns', n_components=75, pooling=8.0, shrinkage=0.0, blocks='auto', own=())
        """
        if name == "n_components":
            k = round(self.n_components * factor)
            k = min(k, most) if self.n_components < most else k
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
    """The result of a fit.

    Attributes
    ----------
    mixture : Mixture
        The best mixture found.
    each : array
        Log-probabilities of the distinct held-out rows.
    valid, train : float
        Average log-likelihood of the held-out rows and of the training rows.
    n_iter : int
        Number of iterations to the best mixture.
    seconds : float
        How long it took.
    whole : bool
        Whether it ended without being cut short.
    """

    mixture: Mixture
    each: FloatArray
    valid: float
    train: float
    n_iter: int
    seconds: float
    whole: bool


class FitStore(Protocol):
    """A store of fits."""

    def get(self, settings: Settings, number: int) -> Fit | None:
        """Return a fit, None if it is not stored."""

    def put(self, settings: Settings, number: int, fit: Fit) -> None:
        """Store a fit."""


@dataclass
class Fitter:
    """Makes fits with given settings to fixed rows.

    Attributes
    ----------
    examples, valid : Examples
        The training rows, and the rows by which fits are stopped and compared.
    alpha : float
        Smoothing of the training set's overall frequencies.
    rule : StopRule
        When a first fit stops; fits to be averaged run longer.
    seed : int
        Seed of every family's first start.
    device : {"auto", "cpu", "gpu"}
        Where networks are trained; with ``"gpu"`` EM runs its passes there too.
    em_device : jax device, optional
        The resolved device.
    accelerator : jax device, optional
        The device on which networks are trained, if it is not the CPU: families that opt in run EM
        there too.
    stop : threading.Event
        When it is set, a running fit is cut short.
    kept : FitStore, optional
        Stored fits, which need not be repeated.
    named : NamedBlocks
        Blocks with statistics, for families that support them.
    in_vain : dict
        Seconds that were not enough for a useful result, by family.
    begun : bool
        Whether any fit has completed an iteration.
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
        """Fit some settings from a numbered start; fits with number 1 or higher are to be averaged.

        A fit ends with the last iteration for which there is time, or in which `stop` is set. If
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
        """Return the device on which EM runs its passes, None for the CPU."""
        rows, space, k = self.examples.rows, settings.space, settings.n_components
        if self.accelerator is None or space.most_on_device is None:
            return self.em_device
        worth = space.seconds(rows.n_rows, rows.n_variables, k) >= DEVICE_WORTH
        return self.accelerator if worth else self.em_device

    def uses_accelerator(self, settings: Settings) -> bool:
        """Whether a fit occupies the accelerator and leaves the CPU free."""
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
        with self._locks[key]:  # fits that differ only in shrinkage start from the same fit
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
