"""Draws of a bootstrap: in parallel threads, with progress, stopped by Ctrl-C."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from exchangeable.arrays import check_count
from exchangeable.fitting.progress import DrawProgress
from exchangeable.runtime.blas import blas_threads
from exchangeable.runtime.interrupts import interrupts
from exchangeable.runtime.threads import run

Result = TypeVar("Result")


def run_draws(
    one: Callable[[np.random.Generator], Result],
    rng: np.random.Generator,
    n_draws: Any,
    n_jobs: int | None,
    text: str,
) -> list[Result]:
    """Return the results of a function for several random number generators.

    An interrupt from the keyboard stops after the draws made so far, with a warning. The results do
    not depend on the number of threads.

    Parameters
    ----------
    one : callable
        Makes one draw.
    rng : Generator
        The source of each draw's generator.
    n_draws : int
        Number of draws.
    n_jobs : int or None
        Number of threads.
    text : str
        The text of the progress bar.
    """
    n_draws = check_count(n_draws, "n_draws")
    with (
        interrupts() as interrupt,
        blas_threads(1),
        DrawProgress(text, n_draws) as progress,
    ):

        def guarded(source: np.random.Generator) -> Result | None:
            if interrupt.stop.is_set():
                return None
            try:
                result = one(source)
            except KeyboardInterrupt:
                interrupt.stop.set()
                return None
            progress.advance()
            return result

        made = run(guarded, rng.spawn(n_draws), n_jobs)
        done = [result for result in made if result is not None]
        if interrupt.stop.is_set():
            if not done:
                raise KeyboardInterrupt
            interrupt.warn("the bootstrap", stacklevel=3)
    return done
