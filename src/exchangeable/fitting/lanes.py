"""Fits of a search side by side: those by EM in threads, those that are trained one by one.

A network keeps a GPU busy while the processor fits others; without a GPU it waits for them.
"""

import math
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from exchangeable.fitting.trials import Fit, Fitter, Settings
from exchangeable.runtime.threads import n_threads, run

FAILURES = (MemoryError, FloatingPointError, RuntimeError)
"""What ends one fit of a search, not the search."""


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
    """

    settings: Settings
    number: int = 0
    seconds: float = 0.0


Result = Fit | BaseException | None
"""A fit, why there is none, or None if there was no time for it."""


@dataclass
class Lanes:
    """Where fits are made.

    Attributes
    ----------
    fitter : Fitter
        What makes them.
    n_jobs : int, optional
        Number of threads.
    side_by_side : bool
        Whether networks are trained while others are fitted, since they have a device of their own.
    """

    fitter: Fitter
    n_jobs: int | None = None
    side_by_side: bool = False

    def run(self, tasks: Sequence[Task], deadline: float, fairly: bool = False) -> list[Result]:
        """Make fits in the order given, and return what came of each.

        Parameters
        ----------
        tasks : sequence of Task
            What to fit.
        deadline : float
            When all fits end; none is begun that would take longer.
        fairly : bool
            Whether each has its part of the time, so that all are begun.
        """
        results: list[Result] = [None] * len(tasks)
        trained = [number for number, task in enumerate(tasks) if task.settings.trained]
        others = [number for number, task in enumerate(tasks) if not task.settings.trained]

        def make(numbers: list[int], workers: int, end: float) -> None:
            workers = max(1, min(workers, len(numbers), self._at_once(tasks, numbers)))
            threads = max(1, n_threads(self.n_jobs) // workers)
            begun = threading.Lock()
            left = [len(numbers)]

            def one(number: int) -> None:
                with begun:
                    behind, left[0] = left[0], left[0] - 1
                now, task = time.monotonic(), tasks[number]
                until = now + (end - now) / math.ceil(behind / workers) if fairly else end
                found = any(isinstance(result, Fit) for result in results)
                least = task.settings.space.start_up if fairly else task.seconds
                late = (found or not fairly) and now + least > until
                if not (late or self.fitter.stop.is_set()):
                    results[number] = self._one(task, until, threads)

            run(one, numbers, workers)

        workers = n_threads(self.n_jobs)
        if trained and others and self.side_by_side:
            with ThreadPoolExecutor(1) as apart:
                training = apart.submit(make, trained, 1, deadline)
                make(others, workers, deadline)
                training.result()
        else:
            now, part = time.monotonic(), len(others) / max(1, len(tasks))
            make(others, workers, now + part * (deadline - now) if fairly else deadline)
            make(trained, 1, deadline)
        return results

    def _one(self, task: Task, deadline: float, threads: int) -> Result:
        try:
            return self.fitter.fit(task.settings, task.number, deadline, threads)
        except FAILURES as error:
            return error

    def _at_once(self, tasks: Sequence[Task], numbers: list[int]) -> int:
        """Return how many of the fits there is memory for at a time."""
        rows = self.fitter.examples.rows
        return min(
            (
                task.settings.spec.runs_at_once(
                    rows.n_rows, rows.n_variables, task.settings.n_components
                )
                for task in (tasks[number] for number in numbers)
            ),
            default=1,
        )
