"""The search for the best density model: families, sizes and priors, joined into one mixture.

First, every family is fitted once, the fast ones first. Then follow rounds, each with as much
effort as all before it together. Settings of families are varied around the best ones, and settings
that are part of the join are fitted again from other starts and averaged; every step of a round
runs the fits with the largest expected gain per cost. All fits are joined with shares fitted to the
held-out rows, and decisions are based on the value of the join. Only the training rows and the
held-out rows are ever used.

Without a time limit, costs are modelled, so the same seed gives the same result. With one, costs
are measured seconds, and fits for which there is no time are skipped: how far a search gets depends
on the machine. Which fits are started is decided as if time were up at the next mark: one minute,
two minutes, four, and so on, after kernels have been compiled. So a search with more time begins
exactly like one with less, and then continues from its result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from exchangeable.families import WITH_STATISTICS, family_named
from exchangeable.families.contract import Trainer
from exchangeable.fitting.search.climbs import Climb
from exchangeable.fitting.search.costs import Costs
from exchangeable.fitting.search.lanes import Lanes, Result, Task, in_turn
from exchangeable.fitting.search.portfolio import Portfolio, relative
from exchangeable.fitting.search.preparing import prepare
from exchangeable.fitting.search.promises import (
    Promise,
    last_chance,
    promises,
    unfinished,
    untried,
)
from exchangeable.fitting.search.trials import ANYWHERE, STATISTICS, Fit, Fitter, Settings
from exchangeable.runtime.clock import Clock
from exchangeable.runtime.threads import n_threads

MANY_VARIABLES = 400
"""With this many variables the search starts from the second, stronger pooling."""
LEAST_GAIN = 5e-4
"""A round that improves the log-likelihood by less than this share is the last."""
LEAST_TIMED_GAIN = 5e-5
"""The same for searches with a time limit."""
FIRST_MARK, NEXT_MARK = 60.0, 2.0
"""Time of the first mark in seconds, and the ratio of successive marks."""
POOR_ROUNDS = 2
"""A search with a time limit ends after this many consecutive rounds that improve too little."""
SURVEY_SHARE = 0.6
"""Fraction of the time that the first fits of all families may take."""
QUICK = 0.5
"""Fraction of that time which one first fit may take at a later mark."""
LEAST_FITS = 8
"""Minimum number of fits in a round."""
STEPS = 4
"""Number of steps in a round; decisions are made again after each."""
ROWS_PER_COMPONENT, MORE = 150, 4
"""A first fit has one component for this many rows, within this factor of the default."""
LESS_THAN_MOST = 4
"""A first fit by EM on a device has the maximum number of states divided by this."""


@dataclass
class Search:
    """A search over families and settings.

    Attributes
    ----------
    fitter : Fitter
        Makes fits, from given rows.
    lanes : Lanes
        Runs fits in parallel.
    families : sequence of str
        The families to try.
    max_components : int, optional
        Maximum number of components of one fit.
    n_init : int
        Maximum number of fits with the same settings.
    clock : Clock
        When to end, including the join; running fits are cut short.
    report : callable
        Called whenever there is a new result.
    notes : dict
        Why families were left out, by name.
    rounds : list of dict
        The results of each round.
    began : float
        When the search started, by the clock.
    starts : dict
        Initial settings of families, by name, if these are not the defaults.
    n_made : int
        Number of fits so far.
    portfolio : Portfolio
        All fits so far.
    costs : Costs
        Estimates of durations.
    climbs : dict
        The variations of each family's settings, by name.
    gains : dict
        What families that were first fitted after the survey gained, relative to the
        log-likelihood, by name.
    """

    fitter: Fitter
    lanes: Lanes
    families: Sequence[str]
    max_components: int | None = None
    n_init: int = 64
    clock: Clock = field(default_factory=Clock)
    report: Callable[["Search"], None] = lambda search: None
    notes: dict[str, str] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(init=False)
    starts: dict[str, Settings] = field(default_factory=dict)
    n_made: int = 0
    portfolio: Portfolio = field(init=False)
    costs: Costs = field(init=False)
    climbs: dict[str, Climb] = field(default_factory=dict)
    gains: dict[str, float] = field(default_factory=dict)
    _mark: float = FIRST_MARK
    _effort: float = 0.0
    _prepared: float = field(init=False)
    _given_up: set[tuple[Settings, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.began = self._prepared = self.clock.now()
        self.portfolio = Portfolio(self.fitter.valid)
        self.costs = Costs(self.lanes, self.portfolio, self.clock)
        for name in self.families:
            self.climbs[name] = Climb(name, self.portfolio, self._most(name))

    @property
    def timed(self) -> bool:
        """Whether there is a time limit."""
        return self.clock.limited

    @property
    def fitting(self) -> Clock:
        """When the last fit has to end, so that there is time for the join."""
        return self._with_join(self.clock)

    @property
    def deciding(self) -> Clock:
        """When time is up for the purpose of decisions: at the next mark."""
        if self._last_mark:
            return self.fitting
        return self._with_join(replace(self.clock, deadline=self._prepared + self._mark))

    def _with_join(self, clock: Clock) -> Clock:
        """Return when the last fit has to end, given when the join has to end."""
        return clock.earlier(self.portfolio.seconds_to_end) if clock.limited else clock

    @property
    def over(self) -> bool:
        """Whether time is up, or the search was interrupted."""
        return self.fitter.stop.is_set() or self.fitting.over

    def run(self) -> None:
        """Search until rounds improve too little, time is up, or `stop` is set."""
        self.survey()
        poor, least = 0, LEAST_TIMED_GAIN if self.timed else LEAST_GAIN
        while not self.over:
            before = self.portfolio.worth
            made = self.next_round()
            gained = self.portfolio.worth - before >= least * abs(before)
            if made and gained:
                poor = 0
            elif not self.deciding.over:  # otherwise the round was incomplete
                poor += made
                if poor == POOR_ROUNDS or self._last_mark:
                    break
                self._pass_mark()
            if self.deciding.over:
                self._pass_mark()

    @property
    def _last_mark(self) -> bool:
        """Whether time is up before the next mark."""
        return self.clock.deadline <= self._prepared + self._mark or not self.timed

    def _pass_mark(self) -> None:
        """Continue to the next mark, starting with fast families that were not tried yet."""
        self._mark *= NEXT_MARK
        self._given_up.clear()
        clock = self.deciding.part(SURVEY_SHARE)
        tasks = sorted((task for _, task in untried(self)), key=lambda task: task.seconds)
        some = [task for task in tasks if not self._waits(task)]
        quick = [task for task in some if task.seconds <= QUICK * clock.left]
        if quick and not self.over:
            self._make(quick, clock, fairly=True)

    def survey(self) -> None:
        """Fit every family once, the fast ones first, except those that wait."""
        tasks = self._first_tasks()
        if self.timed:
            prepare(self.fitter, [t.settings for t in tasks], self.clock, self.lanes.n_jobs)
            self._prepared = self.clock.now()
        for waiting in (False, True):
            some = [task for task in tasks if self._waits(task) == waiting]
            if not self.portfolio.groups:
                self._make(some, self.deciding.part(SURVEY_SHARE), fairly=True)
            else:
                self._note([(task, None) for task in some], fairly=True)
        if not self.portfolio.groups:
            if self.fitter.stop.is_set():
                raise KeyboardInterrupt
            reasons = "; ".join(f"{name}: {why}" for name, why in self.notes.items())
            raise RuntimeError(f"no family could be fitted: {reasons}")
        self._note_round()

    def _waits(self, task: Task) -> bool:
        """Whether a family waits for what others give: on a CPU, networks take most of the time."""
        return self.timed and task.settings.trained and not self.lanes.side_by_side

    def _first_tasks(self) -> list[Task]:
        """Return the first fit of every family, the fast ones first."""
        first = list[Settings]()
        for settings in map(self.first, self.families):
            if settings.blocks == STATISTICS:
                first.append(settings)
            else:
                first += [replace(settings, blocks=blocks) for blocks in settings.space.blocks]
        tasks = [
            self.costs.first_task(settings, self.costs.seconds_of(settings)) for settings in first
        ]
        return sorted(tasks, key=lambda task: task.seconds)

    def next_round(self) -> bool:
        """Spend as much effort as so far; return whether there was anything to do."""
        effort, n_made = self._effort, self.n_made
        while not self.over and not self.deciding.over:
            if self._effort >= 2 * effort and self.n_made >= n_made + LEAST_FITS:
                break
            tasks = self.step(effort / STEPS)
            if not tasks:
                break
            self._make(tasks, self.fitting)
        self._note_round()
        return self.n_made > n_made

    def step(self, effort: float) -> list[Task]:
        """Return the fits with the largest expected gain per cost, for a given effort.

        A long fit for which there is no more time afterwards may come before them.
        """
        chosen, seconds = list[Task](), self.deciding.left
        in_time, effort = self._in_time(seconds), min(effort, seconds)
        for apart in (True, False):  # neither lane waits long for the other
            here = self._lane(in_time, apart)
            long = last_chance(self, here, effort) if self.timed else None
            tasks = in_turn([task for _, task in here]) if long is None else [long]
            left, first = effort, True
            for task in tasks:
                cost = self.costs.cost(task)
                if cost <= left or first:
                    chosen.append(task)
                    left, first = left - cost, False
            effort = max(effort, effort - left)
        if not chosen:
            brief = self._wanted([*untried(self), *unfinished(self)])
            some = [task for _, task in brief if task.least < seconds]
            chosen += [replace(task, seconds=SURVEY_SHARE * seconds) for task in some[:1]]
        return chosen

    def _in_time(self, seconds: float) -> list[Promise]:
        """Return fits that take less than a given time, in order of expected gain."""
        return [one for one in self._wanted(promises(self)) if one[1].seconds < seconds]

    def _lane(self, promised: Sequence[Promise], apart: bool) -> list[Promise]:
        """Return the fits of a lane, that of the device or the other one."""
        uses = self.fitter.uses_accelerator
        return [one for one in promised if uses(one[1].settings) == apart]

    def _wanted(self, promised: Sequence[Promise]) -> list[Promise]:
        """Return fits that were not given up, in order of expected gain."""
        best_first = sorted(promised, key=lambda one: -one[0])
        return [one for one in best_first if one[1].start not in self._given_up]

    def first(self, family: str) -> Settings:
        """Return the initial settings of a family."""
        if family in self.starts:
            wanted = self.starts[family]
            return replace(wanted, n_components=min(wanted.n_components, self._most(family)))
        spec = family_named(family)
        space = spec.search or ANYWHERE
        wide = self.fitter.examples.rows.n_variables >= MANY_VARIABLES
        k = space.first_components
        if not space.alone:
            rows = int(self.fitter.examples.total) // ROWS_PER_COMPONENT
            k = max(k, min(rows, MORE * k))
        elif self.lanes.side_by_side and issubclass(spec.family, Trainer):
            k = space.most_components  # a device has room for all of them at once
        k = max(1, min(k, self._most(family)))
        named = self.fitter.named.blocks and family in WITH_STATISTICS
        blocks = STATISTICS if named else "auto"
        first = Settings(family, k, space.pooling[int(wide)], spec.shrinkage or 0.0, blocks)
        more = min((space.most_on_device or 0) // LESS_THAN_MOST, self._most(family))
        other = replace(first, n_components=more)
        return other if k < more and self.fitter.uses_accelerator(other) else first

    def _make(self, tasks: list[Task], clock: Clock, fairly: bool = False) -> None:
        """Run fits and join them with the others; the CPU does not wait for a device."""
        apart = [self.fitter.uses_accelerator(task.settings) for task in tasks]
        here = [task for task, elsewhere in zip(tasks, apart, strict=True) if not elsewhere]
        longest = max(map(self.costs.cost, here), default=0.0)
        waiting = set(range(len(tasks)))

        def note(numbers: set[int], results: Sequence[Result]) -> None:
            some = sorted(waiting & numbers)
            waiting.difference_update(some)
            self._note([(tasks[n], results[n]) for n in some], fairly)

        def meanwhile(results: Sequence[Result]) -> bool:
            note({n for n, elsewhere in enumerate(apart) if not elsewhere}, results)
            some = [] if fairly else self._lane(self._in_time(self.deciding.left), False)
            more = [task for _, task in some if self.costs.cost(task) <= longest]
            more = more[: n_threads(self.lanes.n_jobs)]
            self._make(more, clock)
            return bool(more)

        patient = not self.portfolio.groups
        note(set(waiting), self.lanes.run(tasks, clock, fairly, patient, meanwhile))

    def _note(self, fits: Sequence[tuple[Task, Result]], fairly: bool) -> None:
        """Process the results of fits, and join them with the others."""
        made, new, before = False, list[str](), self.portfolio.worth
        for task, result in fits:
            name = task.settings.family
            if result is None:
                if fairly and not self.climbs[name].tried:
                    self.notes[name] = (
                        f"there was no time for it: it takes about {task.seconds:,.0f} s"
                    )
                elif not fairly:
                    self._given_up.add(task.start)
                continue
            if self.timed and isinstance(result, Fit):
                task = replace(task, seconds=result.seconds)
            self._effort += self.costs.cost(task)
            first = not self.climbs[name].tried
            if first:
                self.notes.pop(name, None)
            self.climbs[name].tried.add(task.settings)
            if isinstance(result, BaseException):
                self.notes[name] = str(result)
            elif result.whole or not task.number:  # an average cannot use fits that were cut short
                self.portfolio.add(task.settings, result, len(self.rounds))
                self.n_made += 1
                made = True
                new += [name] * first
                continue
            self._given_up.add(task.start)
        if made:
            self.portfolio.weigh(self.clock)
            if self.rounds:
                gained = relative(max(0.0, self.portfolio.worth - before), before)
                self.gains |= {name: gained / len(new) for name in new}
            self.report(self)

    def _most(self, family: str) -> int:
        """Return the largest reasonable number of components."""
        spec, examples = family_named(family), self.fitter.examples
        space = spec.search or ANYWHERE
        rows = min(int(examples.total) // 2, examples.rows.n_rows)
        most = space.most_components
        if self.lanes.side_by_side:
            most = space.most_on_device or most
        if self.max_components is not None:
            most = min(most, self.max_components)
        return max(1, min(most, int(min(spec.most_per_row, 1e9) * rows)))

    def _note_round(self) -> None:
        self.rounds.append(
            {
                "round": len(self.rounds),
                "n_fits": self.n_made,
                "valid": self.portfolio.worth,
                "seconds": self.clock.now() - self.began,
            }
        )
