"""Run independent kernel calls on all cores.

Kernels are compiled without the interpreter's lock, so plain Python threads are sufficient. Work is
divided by the shape of the data and never by the number of threads, and partial sums are added in
order: the result is the same, to the last bit, for any number of threads.
"""

import itertools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numba

from exchangeable.arrays import check_count
from exchangeable.runtime.interrupts import GivenUp, flag_to_give_up
from exchangeable.runtime.pool import ask

Task = TypeVar("Task")
Part = TypeVar("Part")
Result = TypeVar("Result")


def n_threads(n_jobs: int | None = None) -> int:
    """Return the number of threads to use: by default all that numba may use (NUMBA_NUM_THREADS).

    As in scikit-learn −1 means all, −2 all except one.
    """
    available = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if n_jobs is None:
        return available
    if check_count(n_jobs, "n_jobs", minimum=-sys.maxsize) == 0:
        raise ValueError("n_jobs must not be 0: give a number of threads, or -1 for all of them")
    return max(1, available + 1 + n_jobs) if n_jobs < 0 else n_jobs


def run(
    function: Callable[[Task], Result], tasks: Iterable[Task], n_jobs: int | None = None
) -> list[Result]:
    """Return ``[function(task) for task in tasks]``, computed by several threads.

    If Ctrl-C may end it (`giving_up`), no task is started after Ctrl-C.
    """
    listed, stop = list(tasks), flag_to_give_up()
    workers = min(n_threads(n_jobs), len(listed))
    if workers <= 1 and stop is None:
        return [function(task) for task in listed]

    def one(task: Task) -> Result:
        if stop is not None and stop.is_set():
            raise GivenUp
        return function(task)

    if workers <= 1:
        return [one(task) for task in listed]
    results: dict[int, Result] = {}
    numbers = itertools.count()

    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not errors and (number := next(numbers)) < len(listed):
                results[number] = one(listed[number])
        except BaseException as error:  # raised again below
            errors.append(error)

    errands = [ask(work, workers - 1) for _ in range(workers - 1)]
    work()
    for errand in errands:
        errand.end()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(listed))]


@dataclass(frozen=True)
class Job(Generic[Task, Part, Result]):
    """Work in parts, each large enough for a thread, and how to combine their results."""

    function: Callable[[Task], Part]
    tasks: Sequence[Task]
    finish: Callable[[list[Part]], Result]

    def run(self, n_jobs: int | None = None) -> Result:
        """Do the work."""
        return self.finish(run(self.function, self.tasks, n_jobs))


def run_together(jobs: Sequence[Job[Any, Any, Any]], n_jobs: int | None = None) -> list[Any]:
    """Run several jobs at once, so that threads wait for each other only at the end."""
    tasks = [(job, task) for job in jobs for task in job.tasks]
    results = iter(run(lambda pair: pair[0].function(pair[1]), tasks, n_jobs))
    return [job.finish([next(results) for _ in job.tasks]) for job in jobs]


def row_ranges(n_rows: int, chunk: int) -> list[tuple[int, int]]:
    """Divide 0..n_rows into ranges of at most `chunk` rows."""
    return [(start, min(start + chunk, n_rows)) for start in range(0, n_rows, chunk)]
