"""Several runs of EM side by side, with progress, interruption and checkpoints."""

import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

from exchangeable.fitting.checkpoint import load_states, save_states
from exchangeable.fitting.structural_em import EMState
from exchangeable.runtime.threads import n_threads

State = TypeVar("State")

PATIENCE = 2.0
"""Seconds before a progress bar appears."""


class FitProgress:
    """A bar on an interactive terminal, once a fit has taken a while; nothing elsewhere."""

    def __init__(self, n_runs: int, max_iter: int) -> None:
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._shape = (n_runs, max_iter)
        self._wanted = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def _due(self) -> bool:
        return self._wanted and time.monotonic() - self._began >= PATIENCE

    def update(self, run: int, state: EMState) -> None:
        """Show where a run of structural EM stands."""
        if not self._due:
            return
        blocks = sum(p.n_blocks for p in state.model.partitions) / len(state.model.partitions)
        told = (
            f"iteration {state.n_iter}, log-likelihood {state.history[-1]:.4f}, {blocks:.1f} blocks"
        )
        self.show(run, state.n_iter, state.converged, told)

    def show(self, run: int, n_iter: int, converged: bool, told: str) -> None:
        """Show the number of iterations of a run, and what is told about it."""
        if not self._due:
            return
        with self._lock:
            if self._bar is None:
                self._bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    TextColumn("{task.fields[told]}"),
                    TimeElapsedColumn(),
                    console=Console(stderr=True),
                    transient=True,
                )
                for number in range(self._shape[0]):
                    self._bar.add_task(f"run {number}", total=self._shape[1], told="")
                self._bar.start()
            tasks = self._bar.task_ids
            done = self._shape[1] if converged else n_iter
            self._bar.update(tasks[run], completed=done, told=told)


def side_by_side(
    run_one: Callable[[int, FitProgress, threading.Event, int], State],
    latest: Sequence[State | None],
    max_iter: int,
    n_jobs: int | None,
) -> list[State]:
    """Return ``run_one(number, progress, stop, threads)`` of every run.

    Runs go side by side on as many threads as `n_jobs` allows; what is left of those is for the
    kernels. An interrupt from the keyboard ends all runs after their iteration, with a warning,
    unless none of them has left anything in `latest`; a run that has not begun returns what is
    there of it.
    """
    available = n_threads(n_jobs)
    together = min(available, len(latest))
    stop = threading.Event()
    with (
        threadpool_limits(1, "blas"),  # idle threads of a matrix product keep ours from running
        FitProgress(len(latest), max_iter) as progress,
        ThreadPoolExecutor(together) as pool,
    ):

        def begin(number: int) -> State | None:
            if stop.is_set():
                return latest[number]
            return run_one(number, progress, stop, available // together)

        futures = [pool.submit(begin, number) for number in range(len(latest))]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stop.set()
            wait(futures)
            if all(state is None for state in latest):
                raise
            warnings.warn(
                "the fit was interrupted: the model is the best found so far",
                RuntimeWarning,
                stacklevel=4,
            )
        ended = [future.result() for future in futures]
    return [state for state in ended if state is not None]


def run_all(
    run_one: Callable[
        [int, EMState | None, Callable[[EMState], None], threading.Event, int], EMState
    ],
    n_runs: int,
    max_iter: int,
    n_jobs: int | None,
    alpha: float,
    checkpoint: Path | None,
    purpose: dict[str, Any],
) -> list[EMState]:
    """Run EM from every start and return the states they end in.

    ``run_one(number, state, report, stop, threads)`` runs one of them, from `state` if it was begun
    before.
    """
    states: list[EMState | None] = [None] * n_runs
    if checkpoint is not None and checkpoint.exists():
        states = load_states(checkpoint, n_runs, purpose, alpha)
    lock = threading.Lock()

    def one(number: int, progress: FitProgress, stop: threading.Event, threads: int) -> EMState:
        def report(state: EMState) -> None:
            with lock:
                states[number] = state
                if checkpoint is not None:
                    save_states(checkpoint, states, purpose)
            progress.update(number, state)

        return run_one(number, states[number], report, stop, threads)

    return side_by_side(one, states, max_iter, n_jobs)
