"""Half of the entries deleted: fits to the remaining entries, and accuracy of imputation.

``python benchmarks/missing.py [density|imputation] [SET ...]`` deletes each training entry with
probability one half and fits mixtures of 20 components, three starts each, of which the one with
the highest training log-likelihood is kept:

* ours on the rows with holes, with the default blocks and as latent naive Bayes;
* ours as latent naive Bayes, with the number of components chosen by the likelihood of validation
  rows, half of whose entries are deleted as well;
* the first two after dropping the rows that have a hole, and after filling holes with the column's
  mean (rounded, since the model is for 0 and 1);
* StepMix's Bernoulli mixture for missing data (``measurement="binary_nan"``), the same model as our
  latent naive Bayes;
* ours on all entries, to see how much was lost.

Test rows are complete and scored once. For imputation, every imputer is fitted to the training rows
with holes (ours from one start) and fills in test rows with half of their entries deleted. Results
go to ``results/missing.csv`` and ``results/imputation.csv``, unless sets are named.
"""

import csv
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from stepmix import StepMix
from threadpoolctl import threadpool_limits

from exchangeable import ExchangeableMixture
from exchangeable.datasets import fetch_density

RESULTS = Path(__file__).parent / "results"
SETS = ("plants", "jester", "bnetflix")
FILLED_ROWS = 1000


def dense(X):
    """Return rows as floats."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def punched(X, seed):
    """Return the rows with half of the entries deleted."""
    return np.where(np.random.default_rng(seed).random(X.shape) < 0.5, np.nan, X)


def mixture(blocks, n_init=3):
    """Return ours, with the settings of this comparison."""
    return ExchangeableMixture(20, blocks=blocks, n_init=n_init, random_state=0, binarize=0.5)


class Chosen:
    """Latent naive Bayes whose number of components is chosen by validation rows."""

    def __init__(self, valid):
        self.valid = valid

    def fit(self, X):
        """Try several numbers and keep the best."""
        options = {"blocks": "independent", "random_state": 0, "binarize": 0.5}
        numbers = (20, 50, 100, 200)
        self.best = ExchangeableMixture.select(X, self.valid, numbers, **options).best
        return self

    def __getattr__(self, name):
        return getattr(self.best, name)


def timed_fit(model, X):
    """Return the seconds of one fit."""
    # With small matrix products the threads of BLAS spend more time waiting than working.
    with warnings.catch_warnings(), threadpool_limits(1, "blas"):
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(X)
        return time.perf_counter() - start


def density(name, data):
    """Yield a line for every way to fit."""
    X, test = dense(data.train), dense(data.test)
    holed = punched(X, 0)
    complete = holed[~np.isnan(holed).any(axis=1)]
    filled = SimpleImputer(strategy="mean").fit_transform(holed)
    peer = StepMix(
        20, measurement="binary_nan", n_init=3, abs_tol=1e-3, max_iter=500, random_state=0,
        progress_bar=0, verbose=0,
    )  # fmt: skip
    ways = [
        ("holes, blocks", mixture("evidence"), holed),
        ("holes, naive Bayes", mixture("independent"), holed),
        ("holes, naive Bayes, k chosen", Chosen(punched(dense(data.valid), 2)), holed),
        ("StepMix binary_nan", peer, holed),
        ("rows with holes dropped, blocks", mixture("evidence"), complete),
        ("rows with holes dropped, naive Bayes", mixture("independent"), complete),
        ("mean imputation, blocks", mixture("evidence"), filled),
        ("mean imputation, naive Bayes", mixture("independent"), filled),
        ("no holes, blocks", mixture("evidence"), X),
        ("no holes, naive Bayes", mixture("independent"), X),
    ]
    for way, model, rows in ways:
        if len(rows) < 20:
            yield name, way, len(rows), "too few rows", ""
            continue
        seconds = timed_fit(model, rows)
        yield name, way, len(rows), f"{model.score(test):.3f}", f"{seconds:.1f}"


def imputation(name, data):
    """Yield a line for every imputer: share of wrong entries, squared error, seconds."""
    holed, truth = punched(dense(data.train), 0), dense(data.test)[:FILLED_ROWS]
    rows = punched(truth, 1)
    gaps = np.isnan(rows)
    blocks, single = mixture("evidence", 1), mixture("independent", 1)
    chosen = Chosen(punched(dense(data.valid), 2))
    iterative, nearest = IterativeImputer(random_state=0), KNNImputer()
    imputers = [
        ("ours, marginal", blocks, lambda model: model.impute(rows, "marginal")),
        ("ours, most probable", blocks, lambda model: model.impute(rows)),
        ("ours, one draw", blocks, lambda model: model.impute(rows, "draw", random_state=0)),
        ("ours, naive Bayes, marginal", single, lambda model: model.impute(rows, "marginal")),
        ("ours, naive Bayes, k chosen, marginal", chosen, lambda m: m.impute(rows, "marginal")),
        ("IterativeImputer", iterative, lambda model: model.transform(rows)),
        ("KNNImputer", nearest, lambda model: model.transform(rows)),
        ("most frequent", SimpleImputer(strategy="most_frequent"), lambda m: m.transform(rows)),
        ("mean", SimpleImputer(), lambda model: model.transform(rows)),
    ]
    fitted = {}
    for way, model, fill in imputers:
        if id(model) not in fitted:
            fitted[id(model)] = timed_fit(model, holed)
        start = time.perf_counter()
        filled = fill(model)[gaps]
        seconds = time.perf_counter() - start
        wrong = np.mean((filled > 0.5) != truth[gaps])
        square = np.mean((filled - truth[gaps]) ** 2)
        line = (name, way, f"{wrong:.4f}", f"{square:.4f}")
        yield *line, f"{fitted[id(model)]:.1f}", f"{seconds:.2f}"


def write(path, columns, lines):
    """Print lines as they are finished, and write them to a file unless `path` is None."""
    with open(os.devnull if path is None else path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for line in lines:
            print("  ".join(f"{cell!s:>12}" for cell in line), flush=True)
            writer.writerow(line)
            file.flush()


def main() -> None:
    """Fit and impute on every set."""
    parts = [part for part in sys.argv[1:] if part in ("density", "imputation")]
    names = [name for name in sys.argv[1:] if name not in parts]
    sets = [(name, fetch_density(name)) for name in names or SETS]
    folder = None if names else RESULTS
    if "density" in parts or not parts:
        columns = ("set", "way", "rows", "test", "seconds")
        path = folder and folder / "missing.csv"
        write(path, columns, (line for s in sets for line in density(*s)))
    if "imputation" in parts or not parts:
        columns = ("set", "imputer", "wrong", "squared_error", "fit_seconds", "fill_seconds")
        path = folder and folder / "imputation.csv"
        write(path, columns, (line for s in sets for line in imputation(*s)))


if __name__ == "__main__":
    main()
