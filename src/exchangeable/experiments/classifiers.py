"""The classifiers that are compared, with the paper's settings, and how each is run."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from exchangeable.estimators.classifier import ExchangeableClassifier
from exchangeable.experiments.problems import Problem
from exchangeable.experiments.scale import FULL, Scale
from exchangeable.experiments.store import Row
from exchangeable.fitting.hybrid.settings import Hybrid
from exchangeable.runtime.blas import blas_threads
from exchangeable.runtime.threads import n_threads

IN_PARTS = 200_000
"""With more rows than this, classifiers of other packages learn in parts (`partial_fit`)."""
ROWS_PER_PART = 10_000


@dataclass(frozen=True)
class Entrant:
    """A classifier of the comparison.

    Attributes
    ----------
    name : str
        Title of its column.
    make : callable
        Returns a new classifier, given the number of threads.
    column : str, optional
        The column of the paper's table that it is compared with.
    slow : bool
        Whether it is trained on fewer rows of the Boolean functions.
    seconds : float
        Approximate time on a pair of classes of a text collection, for ordering the work.
    in_full_only : bool
        Whether it is left out of small versions of the experiments.
    """

    name: str
    make: Callable[[int | None], Any]
    column: str | None = None
    slow: bool = False
    seconds: float = 0.05
    in_full_only: bool = False


ENTRANTS = (
    Entrant("MEVM", lambda n: ExchangeableClassifier(blocks="welch", n_jobs=n), "mevm"),
    Entrant(
        "MEVM, evidence",
        lambda n: ExchangeableClassifier(blocks="evidence", n_jobs=n),
        "mevm",
    ),
    Entrant("NB", lambda n: BernoulliNB(alpha=0.1), "nb"),
    Entrant("DT", lambda n: DecisionTreeClassifier(random_state=0), "dt", slow=True, seconds=2.0),
    Entrant("SVM", lambda n: LinearSVC(random_state=0), "svm", slow=True, seconds=0.5),
    Entrant("5-NN", lambda n: KNeighborsClassifier(n_jobs=n), "knn5", slow=True, seconds=0.3),
    Entrant("MultinomialNB", lambda n: MultinomialNB()),
    Entrant("ComplementNB", lambda n: ComplementNB()),
    Entrant(
        "LogisticRegression", lambda n: LogisticRegression(max_iter=1000), slow=True, seconds=1
    ),
    Entrant(
        "hybrid",
        lambda n: ExchangeableClassifier(training="hybrid", n_jobs=n),
        slow=True,
        seconds=6.0,
        in_full_only=True,
    ),
    Entrant(
        "hybrid, 20 per class",
        lambda n: ExchangeableClassifier(training=Hybrid(n_components=20), n_jobs=n),
        slow=True,
        seconds=12.0,
        in_full_only=True,
    ),
)
BY_NAME = {entrant.name: entrant for entrant in ENTRANTS}


def entrants_of(scale: Scale) -> list[Entrant]:
    """Return the classifiers that are compared at a scale."""
    return [each for each in ENTRANTS if scale is FULL or not each.in_full_only]


def run_entrant(
    entrant: Entrant, problem: Problem, n_rows: int | None, n_jobs: int | None, keep_right: bool
) -> Row:
    """Fit a classifier and return the contents of its cell.

    Parameters
    ----------
    entrant : Entrant
        The classifier.
    problem : Problem
        Training and test rows.
    n_rows : int, optional
        Train on this many rows only, drawn at random.
    n_jobs : int, optional
        Number of threads.
    keep_right : bool
        Whether to store which test rows were classified correctly, for significance tests.
    """
    X, y = problem.X, problem.y
    if n_rows is not None and len(y) > n_rows:
        chosen = np.sort(np.random.RandomState(0).permutation(len(y))[:n_rows])
        X, y = X[chosen], y[chosen]
    # A few rows may all belong to one class, which not every classifier accepts.
    model = entrant.make(n_jobs) if y.min() < y.max() else DummyClassifier()
    began = time.perf_counter()
    # With sparse matrices the threads of BLAS only slow each other down.
    n_blas = 1 if issparse(X) else n_threads(n_jobs)
    with warnings.catch_warnings(), blas_threads(n_blas):
        warnings.simplefilter("ignore", ConvergenceWarning)
        _fit(model, X, y)
        fitted = time.perf_counter()
        right = model.predict(_numbers(model, problem.X_test)) == problem.y_test
    row = {
        "accuracy": f"{right.mean():.6f}",
        "n_train": len(y),
        "n_test": len(right),
        "n_variables": X.shape[1],
        "fit_seconds": f"{fitted - began:.3f}",
        "predict_seconds": f"{time.perf_counter() - fitted:.3f}",
    }
    if isinstance(model, ExchangeableClassifier):
        row["blocks"] = " ".join(map(str, model.n_blocks_))
    if keep_right:
        row["right"] = np.packbits(right).tobytes().hex()
    return row


def _fit(model: Any, X: Any, y: Any) -> None:
    if len(y) <= IN_PARTS or isinstance(model, ExchangeableClassifier):
        model.fit(_numbers(model, X), y)
        return
    classes = np.unique(y)
    for start in range(0, len(y), ROWS_PER_PART):
        part = slice(start, start + ROWS_PER_PART)
        model.partial_fit(X[part].astype(np.float64), y[part], classes=classes)


def _numbers(model: Any, X: Any) -> Any:
    """Return rows in the type that a model handles fastest: bytes for ours, floats for others."""
    if issparse(X) or isinstance(model, ExchangeableClassifier):
        return X
    return X.astype(np.float32)
