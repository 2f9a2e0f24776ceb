"""The classification problems: training and test rows of each run of each data set."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from exchangeable.datasets import fetch_classification, make_boolean
from exchangeable.experiments.scale import Scale

BOOLEAN = {"parity": "parity", "counting": "counting", "m_of_n": "threshold", "exact": "exact"}
COLLECTIONS = {"20newsgroups": 20, "reuters8": 8, "webkb4": 4, "mnist": 10}
"""Collections with an official split, and their number of classes."""
FOLDED = ("polarity2", "enron1")
DATASETS = (*BOOLEAN, "20newsgroups", "reuters8", "polarity2", "enron1", "webkb4", "mnist")
N_FOLDS, N_VARIABLES = 10, 1_000
ALL = "all"


@dataclass(frozen=True)
class Problem:
    """Training and test rows."""

    X: Any
    y: npt.NDArray[Any]
    X_test: Any
    y_test: npt.NDArray[Any]


def run_names(table: str, dataset: str, scale: Scale) -> list[str]:
    """Return the names of the runs of a data set: draws, folds, pairs of classes, or all classes.

    >>> from exchangeable.experiments.scale import FULL
    >>> run_names("two-class", "webkb4", FULL)
    ['0-1', '0-2', '0-3', '1-2', '1-3', '2-3']
    """
    if table == "multi-class":
        return [ALL] if dataset in COLLECTIONS else []
    if dataset in BOOLEAN:
        return [str(number) for number in range(scale.boolean_runs)]
    if dataset in FOLDED:
        return [str(number) for number in range(N_FOLDS)][: scale.max_runs]
    pairs = combinations(range(COLLECTIONS[dataset]), 2)
    return [f"{a}-{b}" for a, b in pairs][: scale.max_runs]


@lru_cache(maxsize=1)
def load(dataset: str, run: str, scale: Scale, download: bool = False) -> Problem:
    """Return the rows of one run; the most recent one is cached."""
    if dataset in BOOLEAN:
        seed, function = 2 * int(run), BOOLEAN[dataset]
        train = make_boolean(function, scale.boolean_rows, N_VARIABLES, seed)
        return Problem(*train, *make_boolean(function, scale.boolean_test, N_VARIABLES, seed + 1))
    data = _collection(dataset, download)
    if dataset in FOLDED:
        train, test = data.folds[int(run)]
        return _with_own_words(data.X[train], data.y[train], data.X[test], data.y[test])
    if run == ALL:
        return Problem(data.X_train, data.y_train, data.X_test, data.y_test)
    a, b = (int(number) for number in run.split("-"))
    return _pair(data, a, b, own_words=dataset == "20newsgroups")


@lru_cache(maxsize=1)
def _collection(dataset: str, download: bool) -> Bunch:
    """Return a collection in the variant that the paper used."""
    variant = "as_published" if dataset in ("reuters8", "webkb4") else "standard"
    return fetch_classification(dataset, variant=variant, download_if_missing=download)


def _pair(data: Bunch, a: int, b: int, own_words: bool) -> Problem:
    train, test = np.isin(data.y_train, (a, b)), np.isin(data.y_test, (a, b))
    parts = data.X_train[train], data.y_train[train], data.X_test[test], data.y_test[test]
    return _with_own_words(*parts) if own_words else Problem(*parts)


def _with_own_words(X: Any, y: Any, X_test: Any, y_test: Any) -> Problem:
    """Keep the words that occur in the training rows."""
    words = np.unique(X.indices)
    return Problem(X[:, words], y, X_test[:, words], y_test)
