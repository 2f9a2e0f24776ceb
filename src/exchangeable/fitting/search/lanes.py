"""Running the fits of a search in parallel: those by EM in threads, those trained one by one.

A GPU has a lane of its own: while it trains a network, or runs EM for a family that uses it, the
CPU fits other families. Without a GPU, networks wait for the other fits. A fit also waits if there
is too little memory for it beside the running ones.
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
"""Errors that end a single fit, but not the search."""
MEMORY_PART = 0.8
"""Fraction of the memory that parallel fits may take."""
MORE_MEMORY = 4.0
"""Families estimate the least memory of a fit; it takes about this many times that."""
OVERRUN, LEAST_OVERRUN, MOST_OVERRUN, TRAINED_OVERRUN = 3.0, 0.1, 0.5, 0.8
"""A first fit is cut short if it takes this many times longer than estimated, unless that is less
than the second number, a fraction of the remaining time, and in any case at the third fraction (the
fourth for a network) after compilation, unless it was estimated to take longer: others are waiting.
Further fits must not be cut short, since they would be useless."""
BRIEF, TRAINED_BRIEFLY, COMPILED = 24.0, 2.0, 1.25
"""A fit has a useful result after this fraction (one over BRIEF, or over the second number for a
network) of its full duration, but at least after this multiple of its compile time: later steps
need compilation too."""


@dataclass(frozen=True)
class Task:
    """A fit to be run.

    Attributes
    ----------
    settings : Settings
        What to fit.
    number : int
        Number of the start, 0 for the first of these settings.
    seconds : float
        Estimated duration.
    start_up : float
        Estimated compile time.
    further : float
        Minimum number of seconds: more than it had when it was cut short before.
    turn : bool
        Whether it comes before all longer fits in its lane.
    """

    settings: Settings
    number: int = 0
    seconds: float = 0.0
    start_up: float = 0.0
    further: float = 0.0
    turn: bool = False

    @property
    def start(self) -> tuple[Settings, int]:
        """The settings and the number of the start."""
        return self.settings, self.number

    @property
    def least(self) -> float:
        """Approximate number of seconds until it has a useful result."""
        work = max(0.0, self.seconds - self.start_up)
        brief = TRAINED_BRIEFLY if self.settings.trained else BRIEF
        return max(self.further, COMPILED * self.start_up + work / brief)


Result = Fit | BaseException | None
"""A fit, the reason for its failure, or None if there was no time for it."""


def share(task: Task, clock: Clock, part: float) -> Clock:
    """Return a clock for a fit: its compile time, plus a part of the remaining time.

    A fit that has hardly started when its time is over tells nothing about its family.
    """
    start_up = min(task.start_up, max(0.0, clock.left))
    return clock.earlier(start_up).part(part).earlier(-start_up)


def in_turn(tasks: Sequence[Task]) -> list[Task]:
    """Return the fits of a lane in their order, except that every family gets its turn.

    A fit whose turn it is comes before all longer ones, whatever their expected gain, because its
    family has not been evaluated yet.

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
    """Return a clock for a fit that may take somewhat longer than estimated.

    >>> overrun(Task(Settings("urns", 8, 1.0), seconds=5.0), Clock(100.0, lambda: 0.0)).left
    15.0
    """
    if not clock.limited:
        return clock
    most = max(OVERRUN * task.seconds, LEAST_OVERRUN * clock.left)
    part = TRAINED_OVERRUN if task.settings.trained else MOST_OVERRUN
    start_up = min(task.start_up, max(0.0, clock.left))
    most = min(most, max(task.seconds, start_up + part * (clock.left - start_up)))
    return clock.earlier(max(0.0, clock.left - most))


@dataclass
class Lanes:
    """Runs fits.

    Attributes
    ----------
    fitter : Fitter
        Makes the fits.
    n_jobs : int, optional
        Number of threads.
    """

    fitter: Fitter
    n_jobs: int | None = None

    @property
    def side_by_side(self) -> bool:
        """Whether networks are trained on a device of their own while other families are fitted."""
        return self.fitter.accelerator is not None

    def alone(self, settings: Settings) -> bool:
        """Whether a fit has a lane to itself, because it occupies a device or all cores."""
        return settings.trained or self.fitter.uses_accelerator(settings)

    def run(
        self,
        tasks: Sequence[Task],
        clock: Clock,
        fairly: bool = False,
        patient: bool = True,
        meanwhile: Callable[[list[Result]], bool] = lambda results: False,
    ) -> list[Result]:
        """Run fits in the given order, and return their results.

        Parameters
        ----------
        tasks : sequence of Task
            The fits.
        clock : Clock
            When all fits end; none is started that would take longer.
        fairly : bool
            Whether each fit by EM gets part of the time, so that all are started.
        patient : bool
            Whether one fit must have a useful result, however late; otherwise an interrupted search
            would have nothing to return.
        meanwhile : callable
            Called when the CPU lane has finished and a device has not, with the results of the CPU
            lane; returns whether it did anything.
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
                if fairly and not task.settings.trained:  # there is rarely time for two networks
                    part = share(task, clock, 1 / math.ceil(behind / workers))
                    own = min(own, part, key=lambda each: each.deadline)
                if fairly:
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
            make(others, workers, clock)
            make(alone, 1, clock)
        return results

    def _one(self, task: Task, clock: Clock, threads: int, kept: Callable[[], bool]) -> Result:
        """Run a fit; after Ctrl-C, it is abandoned if it does not stop soon."""
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
        """Return the approximate memory of a fit in bytes."""
        rows, settings = self.fitter.examples.rows, task.settings
        least = settings.spec.memory(rows.n_rows, rows.n_variables, settings.n_components)
        return MORE_MEMORY * least
