"""Weighted urns and trees as classifiers, compared with the paper's blocks and with others.

``python benchmarks/urn_accuracy.py choose [SET ...]`` cross-validates the strength of the pooled
prior on training rows only, ``python benchmarks/urn_accuracy.py [SET ...]`` scores every model on
the test rows. Each line is appended to ``results/urn_accuracy_choose.csv`` or
``results/urn_accuracy.csv`` as soon as it is finished; lines already in the file are not computed
again.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB

from exchangeable import ExchangeableClassifier
from exchangeable.datasets import fetch_classification

RESULTS = Path(__file__).parent / "results"
SETS = ("webkb4", "reuters8", "mnist", "polarity2", "enron1", "20newsgroups")
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
MOST_TREE_VARIABLES = 1_000


def load(name: str):
    """Return training and test rows; a variable is a word or a pixel, on or off."""
    data = fetch_classification(name, fold=0 if name in ("polarity2", "enron1") else None)
    return data.X_train, data.y_train, data.X_test, data.y_test


def candidates(n_variables: int) -> dict[str, ExchangeableClassifier]:
    """Return the models that cross-validation compares."""
    models = {
        "evidence": ExchangeableClassifier(),
        "count tree": ExchangeableClassifier("count tree"),
    }
    for pooling in (1.0, 8.0, 64.0):
        families = ["urns"]
        if n_variables <= MOST_TREE_VARIABLES:
            families += ["tree", "weighted tree"]
        for family in families:
            models[f"{family}, pooling {pooling:g}"] = ExchangeableClassifier(
                family, pooling=pooling
            )
    return models


def peers(n_variables: int):
    """Return the models of the table."""
    models = {
        "evidence": ExchangeableClassifier(),
        "urns": ExchangeableClassifier("urns"),
        "count tree": ExchangeableClassifier("count tree"),
        "BernoulliNB": BernoulliNB(alpha=0.1),
        "MultinomialNB": MultinomialNB(alpha=0.1),
        "ComplementNB": ComplementNB(alpha=0.1),
        "LogisticRegression": LogisticRegression(max_iter=200),
    }
    if n_variables <= MOST_TREE_VARIABLES:
        models["tree"] = ExchangeableClassifier("tree")
        models["weighted tree"] = ExchangeableClassifier("weighted tree")
    return models


def run(path: Path, sets, make, score) -> None:
    """Compute the lines that are not in the file yet."""
    done = set()
    if path.exists():
        with path.open(newline="") as file:
            done = {(row["set"], row["model"]) for row in csv.DictReader(file)}
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_text("set,model,accuracy,seconds\n")
    for name in sets:
        parts = load(name)
        for label, model in make(parts[0].shape[1]).items():
            if (name, label) in done:
                continue
            began = time.perf_counter()
            accuracy = score(model, *parts)
            line = [name, label, f"{accuracy:.4f}", f"{time.perf_counter() - began:.2f}"]
            with path.open("a", newline="") as file:
                csv.writer(file).writerow(line)
            print(*line, flush=True)


def main() -> None:
    """Cross-validate, or score test rows."""
    arguments = sys.argv[1:]
    choosing = arguments[:1] == ["choose"]
    sets = arguments[choosing:] or SETS
    if choosing:
        run(
            RESULTS / "urn_accuracy_choose.csv",
            sets,
            candidates,
            lambda model, X, y, *_: np.mean(cross_val_score(model, X, y, cv=FOLDS)),
        )
    else:
        run(
            RESULTS / "urn_accuracy.csv",
            sets,
            peers,
            lambda model, X, y, X_test, y_test: model.fit(X > 0, y).score(X_test > 0, y_test),
        )


if __name__ == "__main__":
    main()
