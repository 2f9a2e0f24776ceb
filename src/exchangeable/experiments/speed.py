"""The paper's claim about speed: EM for blocks compared with EM for latent naive Bayes.

Times are processor time, summed over all threads, which other programs on the machine disturb less
than wall-clock time; the latter is stored as well.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from exchangeable.datasets import fetch_density
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.experiments.density import N_COMPONENTS, PAPER_SETS, PAPER_TOL
from exchangeable.experiments.scale import Scale
from exchangeable.experiments.store import Row
from exchangeable.experiments.tasks import Task

MODELS = {"MEVM": "welch", "MEVM, evidence": "evidence", "NB": "independent"}
N_ROWS, N_CAUSES, N_STARTS = 5_000, 10, 3
HUGE = 1e9
"""A tolerance with which EM stops after the first iteration."""


def speed_tasks(
    datasets: Sequence[str], scale: Scale, n_jobs: int | None = None, download: bool = False
) -> list[Task]:
    """Return the timings: drawn data sets with several numbers of variables, and the paper's."""
    drawn = [f"drawn {n}" for n in scale.speed_sizes]
    real = [name for name in PAPER_SETS if name in datasets] if scale.name == "full" else []
    tasks = []
    for position, name in enumerate([*drawn, *real]):
        for model in MODELS:
            work = _work(name, model, n_jobs, download)
            cell = {"dataset": name, "model": model}
            tasks.append(Task("speed", cell, work, 4.0, (1, False, False, position)))
    return tasks


def draw_rows(n_variables: int, n_rows: int = N_ROWS) -> Any:
    """Draw rows from a mixture of independent variables, most of which are rarely on.

    >>> draw_rows(30, 5).shape
    (5, 30)
    """
    rng = np.random.default_rng(n_variables)
    rates = rng.beta(0.5, 3.0, size=(N_CAUSES, n_variables))
    return (rng.random((n_rows, n_variables)) < rates[rng.integers(N_CAUSES, size=n_rows)]).astype(
        np.uint8
    )


def _work(name: str, model: str, n_jobs: int | None, download: bool) -> Callable[[], Row]:
    def work() -> Row:
        if name.startswith("drawn "):
            X = draw_rows(int(name.removeprefix("drawn ")))
        else:
            X = fetch_density(name, download_if_missing=download).train

        def fit(seed: int, tol: float = PAPER_TOL) -> ExchangeableMixture:
            mixture = ExchangeableMixture(
                N_COMPONENTS,
                blocks=MODELS[model],
                init="rows",
                random_state=seed,
                binarize=None,
                n_jobs=n_jobs,
                tol=tol,
            )
            return mixture.fit(X)

        fit(0, tol=HUGE)  # a single iteration, which compiles what is not compiled yet
        began, wall = time.process_time(), time.perf_counter()
        fitted = [fit(seed) for seed in range(N_STARTS)]
        seconds = (time.process_time() - began) / N_STARTS
        wall = (time.perf_counter() - wall) / N_STARTS
        n_iter = float(np.mean([mixture.n_iter_ for mixture in fitted]))
        began = time.process_time()
        fitted[0].score_samples(X)
        return {
            "n_variables": X.shape[1],
            "n_rows": X.shape[0],
            "n_iter": f"{n_iter:.1f}",
            "to_convergence": f"{seconds:.4f}",
            "per_iteration": f"{seconds / n_iter:.5f}",
            "score_seconds": f"{time.process_time() - began:.4f}",
            "wall_seconds": f"{wall:.4f}",
            "blocks_mean": f"{fitted[0].n_blocks_.mean():.1f}",
        }

    return work
