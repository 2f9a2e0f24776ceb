"""Rows that come in batches, beside fits to all rows at once.

``python benchmarks/streams.py`` prints, for the paper's collections, the test accuracy of `fit` and
of ten batches by `partial_fit`, in random order and sorted by class; for sets of the density
benchmark the validation log-likelihood of ten iterations of EM, of EM until it has converged, and
of one pass in ten batches; and how a mixture follows rows that change.
"""

import time
import warnings

import numpy as np

from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.datasets import fetch_classification, fetch_density

COLLECTIONS = ("20newsgroups", "reuters8", "webkb4", "polarity2", "enron1", "mnist")
SETS = ("nltcs", "msnbc", "kdd", "plants", "jester", "book")
N_BATCHES = 10


def classifiers() -> None:
    """Print accuracies."""
    print("collection | fit | ten batches, random order | ten batches, sorted by class")
    for name in COLLECTIONS:
        fold = {"fold": 0} if name in ("polarity2", "enron1") else {}
        data = fetch_classification(name, download_if_missing=False, **fold)
        X, y = data.X_train, np.asarray(data.y_train)
        whole = ExchangeableClassifier().fit(X, y).score(data.X_test, data.y_test)
        cells = []
        for order in (np.random.default_rng(0).permutation(y.size), np.argsort(y, kind="stable")):
            model = ExchangeableClassifier()
            for part in np.array_split(order, N_BATCHES):
                model.partial_fit(X[part], y[part], classes=np.unique(y))
            cells.append(model.score(data.X_test, data.y_test))
        print(f"{name} | {whole:.4f} | {cells[0]:.4f} | {cells[1]:.4f}", flush=True)


def mixtures() -> None:
    """Print log-likelihoods of validation rows."""
    print("\nset | ten iterations | converged | one pass | seconds: ten, converged, one pass")
    for name in SETS:
        data = fetch_density(name, download_if_missing=False)
        X, scores, seconds = data.train, [], []
        for options in ({"max_iter": 10, "tol": 0.0}, {}):
            begin = time.perf_counter()
            model = ExchangeableMixture(20, random_state=0, **options).fit(X)
            seconds.append(time.perf_counter() - begin)
            scores.append(model.score(data.valid))
        begin = time.perf_counter()
        model = ExchangeableMixture(20, random_state=0)
        for part in np.array_split(np.random.default_rng(0).permutation(X.shape[0]), N_BATCHES):
            model.partial_fit(X[part])
        seconds.append(time.perf_counter() - begin)
        scores.append(model.score(data.valid))
        cells = " | ".join(f"{score:.3f}" for score in scores)
        print(f"{name} | {cells} | {', '.join(f'{each:.1f}' for each in seconds)}", flush=True)


def drift() -> None:
    """Print scores of new rows as the clusters that they come from move."""
    print("\nbatch | rows so far | moving model | model of the first batch")
    rng = np.random.default_rng(0)
    start, end = rng.uniform(0.1, 0.9, (2, 4, 30))
    model, first = ExchangeableMixture(4, random_state=0), None
    for batch in range(21):
        rates = start + (end - start) * batch / 20
        rows = rng.random((2000, 30)) < rates[rng.integers(0, 4, size=2000)]
        if first is not None and batch % 4 == 0:
            scores = f"{model.score(rows):.3f} | {first.score(rows):.3f}"
            print(f"{batch} | {2000 * batch} | {scores}", flush=True)
        model.partial_fit(rows)
        if first is None:
            first = ExchangeableMixture(4, random_state=0).fit(rows)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten iterations do not converge
        classifiers()
        mixtures()
        drift()
