"""Fits of a search side by side: those by EM in threads, those that are trained one by one.

A network keeps a GPU busy while the processor fits others, and so does EM that makes its passes
there; without a GPU networks wait for the others. So does a fit for which there is no memory beside
those at work.
"""

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from exchangeable.fitting.search.trials import Fit, Fitter, Settings
from exchangeable.runtime import apart
from exchangeable.runtime.clock import Clock, OutOfTime
from exchangeable.runtime.memory import Room, available
from exchangeable.runtime.threads import n_threads, run

FAILURES = (MemoryError, FloatingPointError, RuntimeError)
"""What ends one fit of a search, not the search."""
MEMORY_PART = 0.8
"""Part of the memory that fits side by side may take."""
MORE_MEMORY = 4.0
"""Families say what a fit needs at least; it takes about this many times that."""
OVERRUN, LEAST_OVERRUN, MOST_OVERRUN = 3.0, 0.1, 0.5
"""A first fit that takes this many times longer than it was thought to is cut short, unless that is
less than the first part of the time that is left, and at the second part, unless it was thought to
take that long: others in its lane wait for it. Further fits count for nothing if they are."""
BRIEF, COMPILED = 24.0, 1.25
"""A fit leads to something after such a part of the time that it takes to end by itself, and this
many times that which it takes to compile it: what follows the first steps is compiled, too."""


@dataclass(frozen=True)
class Task:
    """A fit to be made.

    Attributes
    ----------
    settings : Settings
        What is to be fitted.
    number : int
        Number of the start, 0 for the first of these settings.
    seconds : float
        How long it will take, about.
    start_up : float
        How long it takes to compile it, about.
    further : float
        Seconds that it must have at least: more than when it was cut short before.
    turn : bool
        Whether it comes before all in its lane that take longer.
    """

    settings: Settings
    number: int = 0
    seconds: float = 0.0
    start_up: float = 0.0
    further: float = 0.0
    turn: bool = False

    @property
    def start(self) -> tuple[Settings, int]:
        """What is fitted, from which start."""
        return self.settings, self.number

    @property
    def least(self) -> float:
        """Seconds after which it has led to something, about."""
        work = max(0.0, self.seconds - self.start_up)
        return max(self.further, COMPILED * self.start_up + work / BRIEF)


Result = Fit | BaseException | None
"""A fit, why there is none, or None if there was no time for it."""


def share(task: Task, clock: Clock, part: float) -> Clock:
    """Return a clock for a fit: what it takes to compile it, and a part of the time beside that.

    A fit that has hardly begun when its time is over tells nothing about its family.
    """
    start_up = min(task.start_up, max(0.0, clock.left))
    return clock.earlier(start_up).part(part).earlier(-start_up)


def in_turn(tasks: Sequence[Task]) -> list[Task]:
    """Return the fits of a lane in their order, except that every family has its turn.

    A fit whose turn it is comes before all that take longer, whatever these promise: nobody knows
    yet what its family is worth.

    >>> some = [("tree", 60.0, True), ("urns", 5.0, False), ("blocks", 20.0, True)]
    >>> tasks = [Task(Settings(n, 8, 1.0), seconds=s, turn=turn) for n, s, turn in some]
    >>> [task.settings.family for task in in_turn(tasks)]
    ['blocks', 'tree', 'urns']
    """
    waiting = sorted((task for task in tasks if task.turn), key=lambda task: task.seconds)
    ordered = list[Task]()
    for task in tasks:
        while waiting and waiting[0].seconds <= task.seconds:
            ordered.append(waiting.pop(0))
        if not task.turn:
            ordered.append(task)
    return ordered


def overrun(task: Task, clock: Clock) -> Clock:
    """Return a clock for a fit that may take somewhat longer than it was thought to.

    >>> overrun(Task(Settings("urns", 8, 1.0), seconds=5.0), Clock(100.0, lambda: 0.0)).left
    15.0
    """
    if not clock.limited:
        return clock
    most = max(OVERRUN * task.seconds, LEAST_OVERRUN * clock.left)
    most = min(most, max(task.seconds, MOST_OVERRUN * clock.left))
    return clock.earlier(max(0.0, clock.left - most))


@dataclass
class Lanes:
    """Where fits are made.

    Attributes
    ----------
    fitter : Fitter
        What makes them.
    n_jobs : int, optional
        Number of threads.
    """

    fitter: Fitter
    n_jobs: int | None = None

    @property
    def side_by_side(self) -> bool:
        """Whether networks are trained while others are fitted, on a device of their own."""
        return self.fitter.accelerator is not None

    def alone(self, settings: Settings) -> bool:
        """Whether a fit has a lane for itself, since it keeps a device or all cores busy."""
        return settings.trained or self.fitter.uses_accelerator(settings)

    def run(
        self,
        tasks: Sequence[Task],
        clock: Clock,
        fairly: bool = False,
        patient: bool = True,
        meanwhile: Callable[[list[Result]], bool] = lambda results: False,
    ) -> list[Result]:
        """Make fits in the order given, and return what came of each.

        Parameters
        ----------
        tasks : sequence of Task
            What to fit.
        clock : Clock
            When all fits end; none is begun that would take longer.
        fairly : bool
            Whether each has its part of the time, so that all are begun.
        patient : bool
            Whether there must be one that leads to something, however late it is; there is nothing
            that an interrupted search could keep.
        meanwhile : callable
            What the processor does when it has made its fits and a device has not: it is handed
            what came of them, and says whether it did anything.
        """
        results: list[Result] = [None] * len(tasks)
        alone = [number for number, task in enumerate(tasks) if self.alone(task.settings)]
        others = [number for number, task in enumerate(tasks) if not self.alone(task.settings)]

        room = Room(MEMORY_PART * available())

        def kept() -> bool:
            return not patient or any(isinstance(result, Fit) for result in results)

        def make(numbers: list[int], workers: int, clock: Clock) -> None:
            workers = max(1, min(workers, len(numbers)))
            threads = max(1, n_threads(self.n_jobs) // workers)
            begun = threading.Lock()
            left = [len(numbers)]

            def one(number: int) -> None:
                with begun:
                    behind, left[0] = left[0], left[0] - 1
                task = tasks[number]
                own = clock if task.number else overrun(task, clock)
                if fairly:
                    own = share(task, clock, 1 / math.ceil(behind / workers))
                    own = replace(own, patient=not kept())
                with room.taking(self._needs(task)):
                    in_time = own.left > task.least if fairly else clock.left > task.seconds
                    if (own.patient or in_time) and not self.fitter.stop.is_set():
                        results[number] = self._one(task, own, threads, kept)

            run(one, numbers, workers)

        workers = n_threads(self.n_jobs)
        if alone and others and self.side_by_side:
            with ThreadPoolExecutor(1) as device:
                training = device.submit(make, alone, 1, clock)
                make(others, workers, clock)
                while not training.done() and meanwhile(results):
                    pass
                training.result()
        else:
            part = len(others) / max(1, len(tasks))
            least = min((tasks[number].least for number in alone), default=0.0)
            shared = fairly and least < (1.0 - part) * clock.left  # else there is none for `alone`
            make(others, workers, clock.part(part) if shared else clock)
            make(alone, 1, clock)
        return results

    def _one(self, task: Task, clock: Clock, threads: int, kept: Callable[[], bool]) -> Result:
        """Make a fit; when Ctrl-C is pressed, it is left behind if it does not end soon."""
        fitter = self.fitter
        try:
            return apart.do(
                lambda: fitter.fit(task.settings, task.number, clock, threads),
                fitter.stop,
                lambda: kept() or not fitter.begun,
            )
        except (OutOfTime, apart.LeftBehind):
            return None
        except FAILURES as error:
            return error

    def _needs(self, task: Task) -> float:
        """Return about how many bytes a fit takes."""
        rows, settings = self.fitter.examples.rows, task.settings
        least = settings.spec.memory(rows.n_rows, rows.n_variables, settings.n_components)
        return MORE_MEMORY * least
