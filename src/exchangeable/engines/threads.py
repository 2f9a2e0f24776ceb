"""Run independent kernel calls on all cores.

Kernels are compiled without the interpreter's lock, so plain Python threads are enough. Work is cut
by the shape of the data and never by the number of threads, and partial sums are added in order:
the result is the same, to the last bit, for any number of threads.
"""

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numba

from exchangeable.arrays import check_count

Task = TypeVar("Task")
Part = TypeVar("Part")
Result = TypeVar("Result")
MAX_HELPERS = 256


def _make_pool() -> None:
    """Make the pool of threads that are kept for the next call; they start when needed."""
    global _pool
    _pool = ThreadPoolExecutor(MAX_HELPERS, thread_name_prefix="exchangeable")


_pool: ThreadPoolExecutor
_make_pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_make_pool)  # a forked process has none of the threads


def n_threads(n_jobs: int | None = None) -> int:
    """Return how many threads to use: all that numba may use by default, as NUMBA_NUM_THREADS says.

    As in scikit-learn −1 means all, −2 all but one.
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
    """Return ``[function(task) for task in tasks]``, computed by several threads."""
    listed = list(tasks)
    workers = min(n_threads(n_jobs), len(listed))
    if workers <= 1:
        return [function(task) for task in listed]
    results: dict[int, Result] = {}
    numbers = itertools.count()

    def work() -> None:
        while (number := next(numbers)) < len(listed):
            results[number] = function(listed[number])

    others = [_pool.submit(work) for _ in range(workers - 1)]
    try:
        work()
    finally:
        # Those that have not begun find nothing left to do: not waiting for them lets tasks run
        # tasks of their own.
        begun = [other for other in others if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()
    return [results[number] for number in range(len(listed))]


@dataclass(frozen=True)
class Job(Generic[Task, Part, Result]):
    """Work in parts, each worth a thread's while, and what is made of their results."""

    function: Callable[[Task], Part]
    tasks: Sequence[Task]
    finish: Callable[[list[Part]], Result]

    def run(self, n_jobs: int | None = None) -> Result:
        """Do the work."""
        return self.finish(run(self.function, self.tasks, n_jobs))


def run_together(jobs: Sequence[Job[Any, Any, Any]], n_jobs: int | None = None) -> list[Any]:
    """Do several jobs at once, so that threads wait for each other only in the end."""
    tasks = [(job, task) for job in jobs for task in job.tasks]
    found = iter(run(lambda pair: pair[0].function(pair[1]), tasks, n_jobs))
    return [job.finish([next(found) for _ in job.tasks]) for job in jobs]


def row_ranges(n_rows: int, chunk: int) -> list[tuple[int, int]]:
    """Cut 0..n_rows into ranges of at most `chunk` rows."""
    return [(start, min(start + chunk, n_rows)) for start in range(0, n_rows, chunk)]
