"""The cells of Tables 4 and 5: density estimation with all models of the paper."""

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from exchangeable.baselines import ChowLiuTree, LatentTree
from exchangeable.datasets import fetch_density
from exchangeable.datasets._density import DENSITY_SETS
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.experiments.peers import learn_spn
from exchangeable.experiments.scale import Scale
from exchangeable.experiments.store import Row
from exchangeable.experiments.tasks import Task

PAPER_SETS = (
    "nltcs",
    "msnbc",
    "kdd",
    "plants",
    "baudio",
    "jester",
    "bnetflix",
    "msweb",
    "book",
    "cwebkb",
    "cr52",
    "c20ng",
)
OTHER_SETS = tuple(name for name in DENSITY_SETS if name not in PAPER_SETS)
N_COMPONENTS, PAPER_TOL = 20, 1e-3
"""As in the paper, whose EM stops earlier than ours by default."""
MIXTURES = {
    "MEVM": ("welch", "random"),
    "MEVM, evidence": ("evidence", "random"),
    "NB": ("independent", "random"),
    "NB, from rows": ("independent", "rows"),
}
"""Blocks and start of each mixture; those of the paper start at random."""
COLUMNS = {"MEVM": "mevm", "MEVM, evidence": "mevm", "NB": "nb", "NB, from rows": "nb"}
COLUMNS |= {"LTM": "ltm", "CL": "cl"}
"""The column of the paper's table that each model is compared with."""
MODELS = tuple(COLUMNS)
LEARN_SPN = "LearnSPN (SPFlow)"
SECONDS = {"CL": 1.0, "LTM": 60.0, LEARN_SPN: 600.0}


def density_tasks(
    datasets: Sequence[str], scale: Scale, n_jobs: int | None = None, download: bool = False
) -> list[Task]:
    """Return the cells of the density tables; LearnSPN only if SPFlow is installed."""
    models = [*MODELS, *([LEARN_SPN] if importlib.util.find_spec("spn") else [])]
    tasks = []
    for position, name in enumerate((*PAPER_SETS, *OTHER_SETS)):
        size = DENSITY_SETS[name].n_variables
        if name not in datasets or size > scale.largest_density:
            continue
        for model in models:
            cost = SECONDS.get(model, 2.0 * scale.n_init) * (0.1 + size / 500)
            stage = 0 if model in ("MEVM", "NB", "CL") else 1 if model != LEARN_SPN else 4
            work = _work(name, model, scale, n_jobs, download)
            cell = {"dataset": name, "model": model}
            tasks.append(Task("density", cell, work, cost, (stage, False, cost > 30, position)))
    return tasks


@lru_cache(maxsize=1)
def _load(name: str, download: bool) -> Any:
    return fetch_density(name, download_if_missing=download)


def _work(
    name: str, model: str, scale: Scale, n_jobs: int | None, download: bool
) -> Callable[[], Row]:
    def work() -> Row:
        data = _load(name, download)
        if model == LEARN_SPN:
            return learn_spn(data)
        if model == "CL":
            return _scores(ChowLiuTree(n_jobs=n_jobs).fit(data.train), data)
        if model == "LTM":
            tree = LatentTree(n_jobs=n_jobs).fit(data.train, X_valid=data.valid)
            shape = {"method": tree.method_, "n_hidden": tree.n_hidden_}
            return {**_scores(tree, data), **shape, "n_iter": len(tree.history_) - 1}
        return _mixture(model, data, scale, n_jobs)

    return work


def _mixture(model: str, data: Any, scale: Scale, n_jobs: int | None) -> Row:
    blocks, init = MIXTURES[model]
    mixture = ExchangeableMixture(
        N_COMPONENTS,
        blocks=blocks,
        init=init,
        n_init=scale.n_init,
        tol=PAPER_TOL,
        random_state=0,
        binarize=None,
        n_jobs=n_jobs,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(data.train)
    return {
        **_scores(mixture, data),
        "n_iter": sum(len(history) - 1 for history in mixture.history_),
        "blocks_mean": f"{mixture.n_blocks_.mean():.2f}",
        "blocks_sd": f"{mixture.n_blocks_.std():.2f}",
    }


def _scores(model: Any, data: Any) -> Row:
    test = model.score_samples(data.test)
    return {
        "train": f"{model.log_likelihood_:.5f}",
        "valid": f"{model.score(data.valid):.5f}",
        "test": f"{test.mean():.5f}",
        "test_error": f"{test.std(ddof=1) / np.sqrt(test.size):.5f}",
        "n_parameters": model.n_parameters_,
    }
