"""Looking for the best density model: families, sizes and priors, and how they are joined.

First every family is fitted once, the quick ones first. Then come rounds, each with as much effort
as all before it. Settings of families are varied around the best ones, and what counts in the join
is fitted again from other starts and averaged: in every step of a round what promises the largest
gain for its cost. All that was fitted is joined by shares that suit the held-out rows, and
decisions are made by what the join is worth. No rows but those to fit and those held out are ever
looked at.

Without a time limit costs are those of a model, so that the same seed gives the same result. With
one, costs are seconds as measured, and fits for which there is no time are left out: how far a
search gets depends on the machine. What is begun is decided as if time were up at the next mark:
after a minute, two, four, and so on, from when kernels have been compiled. So a search
with more time begins as one with less does, and goes on from what that would have found.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from exchangeable.families import WITH_STATISTICS, family_named
from exchangeable.families.contract import Trainer
from exchangeable.fitting.search.climbs import Climb
from exchangeable.fitting.search.costs import Costs
from exchangeable.fitting.search.lanes import Lanes, Result, Task, in_turn
from exchangeable.fitting.search.portfolio import Portfolio
from exchangeable.fitting.search.preparing import prepare
from exchangeable.fitting.search.promises import Promise, promises, unfinished, untried
from exchangeable.fitting.search.trials import ANYWHERE, STATISTICS, Fit, Fitter, Settings
from exchangeable.runtime.clock import Clock
from exchangeable.runtime.threads import n_threads

MANY_VARIABLES = 400
"""With this many variables the search starts from the second, stronger pooling."""
LEAST_GAIN = 5e-4
"""A round that gains less than this part of the log-likelihood is the last."""
LEAST_TIMED_GAIN = 5e-5
"""The same where users have said how much time there is."""
FIRST_MARK, NEXT_MARK = 60.0, 2.0
"""Seconds of the first mark, and how many times later the next one is."""
POOR_ROUNDS = 2
"""A search with a time limit ends after this many rounds in a row that gain too little."""
SURVEY_SHARE = 0.6
"""Part of the time that the first fits of all families may take."""
QUICK = 0.5
"""Part of that time which one fit may take at a later mark, in whatever order families come."""
LEAST_FITS = 8
"""Of a round."""
STEPS = 4
"""Of a round: decisions are made anew after each."""
ROWS_PER_COMPONENT, MORE = 150, 4
"""A first fit has a component for this many rows, within a factor of what is usual."""
LESS_THAN_MOST = 4
"""A first fit by EM on a device has so many times fewer states than the most there."""


@dataclass
class Search:
    """A search over families and settings.

    Attributes
    ----------
    fitter : Fitter
        What makes fits, and from which rows.
    lanes : Lanes
        Where they are made.
    families : sequence of str
        What to try.
    max_components : int, optional
        Largest number of components of one fit.
    n_init : int
        Largest number of fits of the same settings.
    clock : Clock
        When to end, with the join; fits that go on are cut short.
    report : callable
        Called when something was found.
    notes : dict
        Why a family was left out, by its name.
    rounds : list of dict
        What each round has led to.
    began : float
        When it began, by the clock.
    starts : dict
        The settings with which families begin, by name, where others than the usual are wanted.
    n_made : int
        Number of fits so far.
    portfolio : Portfolio
        What was fitted.
    costs : Costs
        How long fits take.
    climbs : dict
        How the settings of each family are varied, by its name.
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
        """When time is up, as far as decisions are concerned: at the next mark."""
        if self._last_mark:
            return self.fitting
        return self._with_join(replace(self.clock, deadline=self._prepared + self._mark))

    def _with_join(self, clock: Clock) -> Clock:
        """Return when the last fit has to end, given when the join has to."""
        return clock.earlier(self.portfolio.seconds_to_end) if clock.limited else clock

    @property
    def over(self) -> bool:
        """Whether time is up, or somebody has interrupted the search."""
        return self.fitter.stop.is_set() or self.fitting.over

    def run(self) -> None:
        """Search until rounds gain too little, time is up, or `stop` is set."""
        self.survey()
        poor, least = 0, LEAST_TIMED_GAIN if self.timed else LEAST_GAIN
        while not self.over:
            before = self.portfolio.worth
            made = self.next_round()
            gained = self.portfolio.worth - before >= least * abs(before)
            if made and gained:
                poor = 0
            elif not self.deciding.over:  # otherwise the round was not a whole one
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
        """Go on to the next mark: first with families that were not tried, if they are quick."""
        self._mark *= NEXT_MARK
        self._given_up.clear()
        clock = self.deciding.part(SURVEY_SHARE)
        tasks = sorted((task for _, task in untried(self)), key=lambda task: task.seconds)
        quick = [task for task in tasks if task.seconds <= QUICK * clock.left]
        if quick and not self.over:
            self._make(quick, clock, fairly=True)

    def survey(self) -> None:
        """Fit every family once, the quick ones first."""
        tasks = self._first_tasks()
        if self.timed:
            prepare(self.fitter, [t.settings for t in tasks], self.clock, self.lanes.n_jobs)
            self._prepared = self.clock.now()
        self._make(tasks, self.deciding.part(SURVEY_SHARE), fairly=True)
        if not self.portfolio.groups:
            if self.fitter.stop.is_set():
                raise KeyboardInterrupt
            reasons = "; ".join(f"{name}: {why}" for name, why in self.notes.items())
            raise RuntimeError(f"no family could be fitted: {reasons}")
        self._note_round()

    def _first_tasks(self) -> list[Task]:
        """Return the first fit of every family, the quick ones first."""
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
        """Take as much effort as so far; say whether there was anything to do."""
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
        """Return the fits that promise the largest gain for their cost, for so much effort."""
        chosen, seconds = list[Task](), self.deciding.left
        in_time, effort = self._in_time(seconds), min(effort, seconds)
        for apart in (True, False):  # neither lane waits long for the other
            left, first = effort, True
            for task in self._lane(in_time, apart):
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

    def _in_time(self, seconds: float) -> list[Task]:
        """Return fits that take less than some time, those first that promise most."""
        wanted = self._wanted(promises(self))
        return [task for _, task in wanted if task.seconds < seconds]

    def _lane(self, tasks: Sequence[Task], apart: bool) -> list[Task]:
        """Return the fits of a lane, that of the device or the other, in their order."""
        return in_turn([t for t in tasks if self.fitter.uses_accelerator(t.settings) == apart])

    def _wanted(self, promised: Sequence[Promise]) -> list[Promise]:
        """Return fits that were not given up, those first that promise most."""
        best_first = sorted(promised, key=lambda one: -one[0])
        return [one for one in best_first if one[1].start not in self._given_up]

    def first(self, family: str) -> Settings:
        """Return the settings with which a family begins."""
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
        elif self.lanes.side_by_side and space.most_on_device is not None:
            k = max(k, space.most_on_device // LESS_THAN_MOST)
        k = max(1, min(k, self._most(family)))
        named = self.fitter.named.blocks and family in WITH_STATISTICS
        blocks = STATISTICS if named else "auto"
        return Settings(family, k, space.pooling[int(wide)], spec.shrinkage or 0.0, blocks)

    def _make(self, tasks: list[Task], clock: Clock, fairly: bool = False) -> None:
        """Make fits and join them to the others; the processor does not wait for a device."""
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
            more = [task for task in some if self.costs.cost(task) <= longest]
            more = more[: n_threads(self.lanes.n_jobs)]
            self._make(more, clock)
            return bool(more)

        patient = not self.portfolio.groups
        note(set(waiting), self.lanes.run(tasks, clock, fairly, patient, meanwhile))

    def _note(self, fits: Sequence[tuple[Task, Result]], fairly: bool) -> None:
        """Take what came of fits into account, and join them to the others."""
        made = False
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
            if not self.climbs[name].tried:
                self.notes.pop(name, None)
            self.climbs[name].tried.add(task.settings)
            if isinstance(result, BaseException):
                self.notes[name] = str(result)
            elif result.whole or not task.number:  # an average has no room for fits cut short
                self.portfolio.add(task.settings, result, len(self.rounds))
                self.n_made += 1
                made = True
                continue
            self._given_up.add(task.start)
        if made:
            self.portfolio.weigh(self.clock)
            self.report(self)

    def _most(self, family: str) -> int:
        """Return the largest number of components that makes sense."""
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
