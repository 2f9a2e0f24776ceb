"""Choose the defaults of evidence merging by cross-validation on training rows alone.

``python benchmarks/choose_defaults.py`` prints, and writes to ``results/choose_defaults.csv``, the
five-fold accuracy of `ExchangeableClassifier` for every start and prior on each collection of the
paper that is present, and on its Boolean functions. No test row is ever looked at.
"""

import csv
import itertools
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score

from exchangeable import ExchangeableClassifier
from exchangeable.datasets import fetch_classification, make_boolean

STARTS = (0.1, 0.3, 0.5, 0.7, 0.9)
PRIORS = (0.01, 0.1, 1.0)
RESULTS = Path(__file__).parent / "results" / "choose_defaults.csv"


def training_sets():
    """Yield the name and the training rows of every set that is present."""
    for function in ("parity", "counting", "threshold", "exact", "conjunction", "disjunction"):
        yield (function, *make_boolean(function, 20_000, 1_000, random_state=0))
    for name in ("20newsgroups", "reuters8", "webkb4", "polarity2", "enron1", "mnist"):
        fold = 0 if name in ("polarity2", "enron1") else None
        try:
            data = fetch_classification(name, fold=fold, download_if_missing=False)
        except OSError as error:
            print(f"{name}: left out ({error})")
            continue
        yield name, data.X_train, data.y_train


def main() -> None:
    """Cross-validate every setting on every set."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    rows = []
    for name, X, y in training_sets():
        sweep = cross_val_score(ExchangeableClassifier("welch"), X, y, cv=folds).mean()
        print(f"{name}: the paper's sweep {sweep:.4f}")
        rows.append((name, "welch", 0.1, "", f"{sweep:.4f}"))
        for start, prior in itertools.product(STARTS, PRIORS):
            model = ExchangeableClassifier(start=start, prior=prior)
            accuracy = cross_val_score(model, X, y, cv=folds).mean()
            rows.append((name, "evidence", start, prior, f"{accuracy:.4f}"))
        best = np.array([float(row[4]) for row in rows[-len(STARTS) * len(PRIORS) :]])
        table = best.reshape(len(STARTS), len(PRIORS))
        print("  start \\ prior " + " ".join(f"{prior:>7}" for prior in PRIORS))
        for start, line in zip(STARTS, table, strict=True):
            print(f"  {start:>13} " + " ".join(f"{value:7.4f}" for value in line), flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        csv.writer(file).writerows([("set", "structure", "start", "prior", "accuracy"), *rows])


if __name__ == "__main__":
    main()
