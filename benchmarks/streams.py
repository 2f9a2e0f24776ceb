"""Rows that come in batches, beside fits to all rows at once.

``python benchmarks/streams.py`` prints, for the paper's collections, the test accuracy of `fit` and
of ten batches by `partial_fit`, in random order, sorted by class and sorted by how many variables
are on; for sets of the density benchmark the validation log-likelihood of ten iterations of EM, of
EM until it has converged, and of one pass in ten batches; and how a mixture follows rows that
change. ``python benchmarks/streams.py large --rows 10000000`` compares one pass over rows that are
made as they are read with ten iterations of EM over the same chunks. All seconds are processor
seconds. ``results/streams.txt`` is what both print.
"""

import argparse
import resource
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.datasets import fetch_classification, fetch_density

COLLECTIONS = ("20newsgroups", "reuters8", "webkb4", "polarity2", "enron1", "mnist")
SETS = ("nltcs", "msnbc", "kdd", "plants", "jester", "book")
N_BATCHES = 10


def classifiers() -> None:
    """Print accuracies."""
    print("collection | fit | ten batches, random order | sorted by class | sorted by ones")
    for name in COLLECTIONS:
        fold = {"fold": 0} if name in ("polarity2", "enron1") else {}
        data = fetch_classification(name, download_if_missing=False, **fold)
        X, y = data.X_train, np.asarray(data.y_train)
        whole = ExchangeableClassifier().fit(X, y).score(data.X_test, data.y_test)
        cells = []
        ones = np.asarray(X.sum(axis=1)).ravel()
        shuffled = np.random.default_rng(0).permutation(y.size)
        for order in (shuffled, *(np.argsort(key, kind="stable") for key in (y, ones))):
            model = ExchangeableClassifier()
            for part in np.array_split(order, N_BATCHES):
                model.partial_fit(X[part], y[part], classes=np.unique(y))
            cells.append(model.score(data.X_test, data.y_test))
        print(" | ".join([name, *(f"{cell:.4f}" for cell in (whole, *cells))]), flush=True)


def mixtures() -> None:
    """Print log-likelihoods of validation rows."""
    print("\nset | ten iterations | converged | one pass | seconds: ten, converged, one pass")
    for name in SETS:
        data = fetch_density(name, download_if_missing=False)
        X, scores, seconds = data.train, [], []
        for options in ({"max_iter": 10, "tol": 0.0}, {}):
            begin = time.process_time()
            model = ExchangeableMixture(20, random_state=0, **options).fit(X)
            seconds.append(time.process_time() - begin)
            scores.append(model.score(data.valid))
        begin = time.process_time()
        model = ExchangeableMixture(20, random_state=0)
        for part in np.array_split(np.random.default_rng(0).permutation(X.shape[0]), N_BATCHES):
            model.partial_fit(X[part])
        seconds.append(time.process_time() - begin)
        scores.append(model.score(data.valid))
        cells = " | ".join(f"{score:.3f}" for score in scores)
        print(f"{name} | {cells} | {', '.join(f'{each:.1f}' for each in seconds)}", flush=True)


def drift(figure: str | None = None) -> None:
    """Print scores of new rows as the clusters that they come from move; draw them if asked."""
    print("\nbatch | rows so far | the truth | moving model | all rows so far | first batch")
    rng = np.random.default_rng(0)
    start, end = rng.uniform(0.1, 0.9, (2, 4, 30))
    model, seen, lines = ExchangeableMixture(4, random_state=0), list[Any](), list[list[float]]()
    for batch in range(21):
        rates = start + (end - start) * batch / 20
        rows = (rng.random((2000, 30)) < rates[rng.integers(0, 4, size=2000)]).astype(float)
        if seen:
            each = rows @ np.log(rates).T + (1 - rows) @ np.log1p(-rates).T - np.log(4)
            truth = float(np.logaddexp.reduce(each, axis=1).mean())
            others = (ExchangeableMixture(4, random_state=0) for _ in range(2))
            fitted = [
                each.fit(X) for each, X in zip(others, (np.concatenate(seen), seen[0]), strict=True)
            ]
            lines.append([truth, *(each.score(rows) for each in (model, *fitted))])
            if batch % 4 == 0:
                scores = " | ".join(f"{score:.2f}" for score in lines[-1])
                print(f"{batch} | {2000 * batch} | {scores}", flush=True)
        model.partial_fit(rows)
        seen.append(rows)
    if figure is not None:
        _draw(np.array(lines), figure)


def _draw(lines: Any, path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
    rows = 2000 * np.arange(1, len(lines) + 1)
    names = ("the truth", "partial_fit", "fit to all rows so far", "fit to the first batch")
    styles = (("k", ":"), ("#b3432b", "-"), ("#3b5b92", "--"), ("#8a8a8a", "-."))
    for line, name, (color, style) in zip(lines.T, names, styles, strict=True):
        axes.plot(rows, line, style, color=color, label=name)
    axes.set_xlabel("rows so far")
    axes.set_ylabel("log-likelihood of the next batch")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)


CHUNK, FIRST, KINDS, COLUMNS = 100_000, 10_000, 8, 24


class Made:
    """Rows of eight kinds, made anew whenever they are read; a kind's columns go in fours."""

    def __init__(self, n_rows: int, seed: int = 0) -> None:
        self.n_rows, self.seed = n_rows, seed
        rng = np.random.default_rng(7)
        self.rates = np.repeat(rng.uniform(0.05, 0.95, (KINDS, COLUMNS // 4)), 4, axis=1)
        self.shares = rng.dirichlet(np.full(KINDS, 4.0))

    def chunks(self) -> Iterator[Any]:
        """Yield chunks of rows."""
        for number in range(-(-self.n_rows // CHUNK)):
            rng = np.random.default_rng([self.seed, number])
            size = min(CHUNK, self.n_rows - number * CHUNK)
            kind = rng.choice(KINDS, size, p=self.shares)
            yield (rng.random((size, COLUMNS), dtype=np.float32) < self.rates[kind]).astype("u1")

    def log_likelihood(self, X: Any) -> float:
        """Return the average log-probability of rows under what they are made by."""
        each = X @ np.log(self.rates).T + (1 - X) @ np.log1p(-self.rates).T + np.log(self.shares)
        return float(np.logaddexp.reduce(each, axis=1).mean())


def large(n_rows: int) -> None:
    """Print log-likelihoods of other rows after one pass and after ten iterations of EM."""
    rows = Made(n_rows)
    others = next(Made(CHUNK, seed=1).chunks()).astype(float)
    print(f"\n{n_rows:,} rows | log-likelihood of other rows | seconds | passes | peak memory, MB")
    print(f"the truth | {rows.log_likelihood(others):.5f} | | |", flush=True)
    begin, model = time.process_time(), ExchangeableMixture(KINDS, random_state=0)
    for number, chunk in enumerate(rows.chunks()):
        if number == 0:
            model.partial_fit(chunk[:FIRST])  # to which EM is fitted until it has converged
            chunk = chunk[FIRST:]
        model.partial_fit(chunk)
        if number + 1 == -(-n_rows // CHUNK) // 10:
            print(f"after a tenth of the rows | {_cells(model, others, begin)} | 1/10 | {_peak()}")
    print(f"one pass of partial_fit | {_cells(model, others, begin)} | 1 | {_peak()}", flush=True)
    begin = time.process_time()
    model = ExchangeableMixture(KINDS, random_state=0, max_iter=10, tol=0.0).fit(rows)
    print(f"ten iterations of EM | {_cells(model, others, begin)} | 10 | {_peak()}", flush=True)


def _cells(model: ExchangeableMixture, others: Any, begin: float) -> str:
    seconds = time.process_time() - begin
    return f"{model.score(others):.5f} | {seconds:.0f}"


def _peak() -> str:
    """Return the most memory this process has held so far, in megabytes."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}"


PARTS = {"classifiers": classifiers, "mixtures": mixtures, "drift": drift}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="classifiers, mixtures, drift, large")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--figure", help="file for a picture of what drift prints")
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten iterations do not converge
        for name in given.parts or PARTS:
            if name == "large":
                large(given.rows)
            elif name == "drift":
                drift(given.figure)
            else:
                PARTS[name]()
