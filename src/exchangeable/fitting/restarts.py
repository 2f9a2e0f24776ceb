"""Several runs of EM side by side, with progress, interruption and checkpoints."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from exchangeable.fitting.checkpoint import load_states, save_states
from exchangeable.fitting.em import EMState
from exchangeable.fitting.progress import FitProgress, Reported
from exchangeable.runtime.interrupts import interrupts
from exchangeable.runtime.threads import n_threads

RunOne = Callable[[int, EMState | None, Callable[[Any], None], threading.Event, int], EMState]


def run_all(
    run_one: RunOne,
    n_runs: int,
    max_iter: int,
    n_jobs: int | None,
    checkpoint: Path | None = None,
    purpose: dict[str, Any] | None = None,
) -> list[EMState]:
    """Run EM from every start and return the states they end in.

    ``run_one(number, state, report, stop, threads)`` runs one of them, from `state` if it was begun
    before. Runs go side by side on as many threads as `n_jobs` allows; what is left of those is for
    the kernels. An interrupt from the keyboard ends all runs after their iteration, with a warning,
    unless none of them has got anywhere.
    """
    states: list[EMState | None] = [None] * n_runs
    if checkpoint is not None and checkpoint.exists():
        states = load_states(checkpoint, n_runs, purpose or {})
    begun = [state is not None for state in states]
    available = n_threads(n_jobs)
    together = min(available, n_runs)
    lock = threading.Lock()
    with (
        interrupts() as interrupt,
        threadpool_limits(1, "blas"),  # idle threads of a matrix product keep ours from running
        FitProgress(n_runs, max_iter) as progress,
        ThreadPoolExecutor(together) as pool,
    ):
        stop = interrupt.stop

        def one(number: int) -> EMState | None:
            if stop.is_set():
                return states[number]

            def report(state: Reported) -> None:
                with lock:
                    begun[number] = True
                    if isinstance(state, EMState):
                        states[number] = state
                    if checkpoint is not None:
                        save_states(checkpoint, states, purpose or {})
                progress.update(number, state)

            return run_one(number, states[number], report, stop, available // together)

        futures = [pool.submit(one, number) for number in range(n_runs)]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stop.set()
            wait(futures)
        if stop.is_set():
            if not any(begun):
                raise KeyboardInterrupt
            interrupt.warn("the fit", stacklevel=4)
        ended = [future.result() for future in futures]
    return [state for state in ended if state is not None]
