"""Several runs in parallel, of EM or training, with progress, interruption and checkpoints."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exchangeable.fitting.checkpoint import Checkpoint, RunState
from exchangeable.fitting.em import EMState
from exchangeable.fitting.progress import FitProgress, OnTheWay
from exchangeable.runtime import apart
from exchangeable.runtime.blas import blas_threads
from exchangeable.runtime.clock import OutOfTime
from exchangeable.runtime.interrupts import GivenUp, giving_up, interrupts
from exchangeable.runtime.threads import n_threads

RunOne = Callable[[int, RunState | None, Callable[[Any], None], threading.Event, int], EMState]


def run_all(
    run_one: RunOne,
    n_runs: int,
    max_iter: int,
    n_jobs: int | None,
    checkpoint: Path | None = None,
    purpose: dict[str, Any] | None = None,
    at_once: int = 1 << 30,
) -> list[EMState]:
    """Run EM from every start and return the final states.

    ``run_one(number, state, report, stop, threads)`` runs one of them, from `state` if it was
    started before. Runs are executed in parallel on as many threads as `n_jobs` allows, at most
    `at_once`; the remaining threads are used by the kernels. An interrupt from the keyboard ends
    all runs with a warning and abandons their current iteration; it is raised if no run has a
    result yet. Runs that do not stop soon are abandoned, unless no other run has a result.
    """
    available = n_threads(n_jobs)
    together = min(available, n_runs, at_once)
    with (
        interrupts() as interrupt,
        Checkpoint(checkpoint, n_runs, purpose or {}) as kept,
        blas_threads(1),
        FitProgress(n_runs, max_iter) as progress,
    ):
        stop, begun = interrupt.stop, [state is not None for state in kept.states]
        ended: list[EMState | None] = [None] * n_runs
        numbers = iter(range(n_runs))

        def one(number: int) -> EMState | None:
            state = kept.states[number]
            if stop.is_set() and state is None:
                return None

            def report(state: RunState | OnTheWay) -> None:
                begun[number] = True
                if not isinstance(state, OnTheWay):
                    kept.update(number, state)
                progress.update(number, state)

            try:
                with giving_up():
                    return run_one(number, state, report, stop, available // together)
            except (GivenUp, OutOfTime):  # before there is anything new
                if not stop.is_set():
                    raise
                return state if isinstance(state, EMState) else None

        def work() -> None:
            for number in numbers:
                ended[number] = one(number)

        def enough() -> bool:
            return stop.kept or not any(begun) or any(state is not None for state in ended)

        workers = [apart.begin(work) for _ in range(together)]
        try:
            apart.wait_for(workers, stop, enough)
        except KeyboardInterrupt:
            if stop.is_set():  # Ctrl-C was pressed again
                raise
            stop.set()
            apart.wait_for(workers, stop, enough)
        for worker in workers:
            if worker.done():
                worker.result()
        states = [state for state in ended if state is not None]
        if stop.is_set():
            if not states or not any(begun):
                raise KeyboardInterrupt
            interrupt.warn("the fit", stacklevel=4)
    return states
