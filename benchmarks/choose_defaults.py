"""Choose the defaults of evidence merging by cross-validation on training rows only.

``python benchmarks/choose_defaults.py`` prints, and writes to ``results/choose_defaults.csv``, the
five-fold accuracy of `ExchangeableClassifier` for every start and prior on those collections of the
paper that are in the data folder, and on its Boolean functions. Test rows are never used.
``python benchmarks/choose_defaults.py guards`` does the same for the two guards of evidence
merging, the test of all means and the limit of standard errors, and writes
``results/choose_guards.csv``.
"""

import csv
import itertools
import sys
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score

from exchangeable import Blocks, ExchangeableClassifier
from exchangeable.datasets import fetch_classification, make_boolean
from exchangeable.structure import learner

STARTS = (0.1, 0.3, 0.5, 0.7, 0.9)
PRIORS = (0.01, 0.1, 1.0)
RESULTS = Path(__file__).parent / "results"
# Level of the test of all means (above 1 it always rejects), limit of standard errors.
GUARDS = ((0.01, 20.0), (2.0, 20.0), (0.01, np.inf), (0.01, 10.0), (0.01, 6.0), (0.01, 4.0))
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def training_sets():
    """Yield the name and the training rows of every set in the data folder."""
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
    rows = []
    for name, X, y in training_sets():
        sweep = cross_val_score(ExchangeableClassifier(blocks="welch"), X, y, cv=FOLDS).mean()
        print(f"{name}: the paper's sweep {sweep:.4f}")
        rows.append((name, "welch", 0.1, "", f"{sweep:.4f}"))
        for start, prior in itertools.product(STARTS, PRIORS):
            model = ExchangeableClassifier(blocks=Blocks("evidence", start=start, prior=prior))
            accuracy = cross_val_score(model, X, y, cv=FOLDS).mean()
            rows.append((name, "evidence", start, prior, f"{accuracy:.4f}"))
        best = np.array([float(row[4]) for row in rows[-len(STARTS) * len(PRIORS) :]])
        table = best.reshape(len(STARTS), len(PRIORS))
        print("  start \\ prior " + " ".join(f"{prior:>7}" for prior in PRIORS))
        for start, line in zip(STARTS, table, strict=True):
            print(f"  {start:>13} " + " ".join(f"{value:7.4f}" for value in line), flush=True)
    write("choose_defaults.csv", [("set", "blocks", "start", "prior", "accuracy"), *rows])


def guards() -> None:
    """Cross-validate the guards of evidence merging on every set."""
    rows = []
    for name, X, y in training_sets():
        for level, limit in GUARDS:
            learner.EQUAL_MEANS_LEVEL, learner.FAR_APART = level, limit
            accuracy = cross_val_score(ExchangeableClassifier(), X, y, cv=FOLDS).mean()
            rows.append((name, level, limit, f"{accuracy:.4f}"))
        accuracies = [
            f"({level}, {limit:g}) {value}" for _, level, limit, value in rows[-len(GUARDS) :]
        ]
        print(f"{name:13} " + "  ".join(accuracies), flush=True)
    write("choose_guards.csv", [("set", "level", "limit", "accuracy"), *rows])


def write(name: str, rows: list[tuple]) -> None:
    """Write a table to the folder of results."""
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / name).open("w", newline="") as file:
        csv.writer(file).writerows(rows)


if __name__ == "__main__":
    guards() if sys.argv[1:] == ["guards"] else main()
