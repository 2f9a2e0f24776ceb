"""Weighted urns and trees as classifiers, beside the paper's blocks and the usual ones.

``python benchmarks/urn_accuracy.py choose`` cross-validates the pooled prior's strength on training
rows alone, ``python benchmarks/urn_accuracy.py`` scores every model on the test rows. Each line is
appended to ``results/urn_accuracy_choose.csv`` or ``results/urn_accuracy.csv`` as it ends; lines
that are there are not computed again. Names of collections may follow, to run only these.
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
    """Return training and test rows, words or pixels on or off."""
    data = fetch_classification(name, fold=0 if name in ("polarity2", "enron1") else None)
    return data.X_train, data.y_train, data.X_test, data.y_test


def candidates(n_variables: int) -> dict[str, ExchangeableClassifier]:
    """Return what cross-validation chooses from."""
    models = {
        "evidence": ExchangeableClassifier(),
        "tree over counts": ExchangeableClassifier(structure="evidence", dependence="tree"),
    }
    for pooling in (1.0, 8.0, 64.0):
        models[f"weighted, pooling {pooling:g}"] = ExchangeableClassifier(
            urn="weighted", pooling=pooling
        )
        if n_variables <= MOST_TREE_VARIABLES:
            models[f"tree, pooling {pooling:g}"] = ExchangeableClassifier(
                dependence="tree", pooling=pooling
            )
            models[f"weighted tree, pooling {pooling:g}"] = ExchangeableClassifier(
                urn="weighted", dependence="tree", pooling=pooling
            )
    return models


def peers(n_variables: int):
    """Return the models of the table."""
    models = {
        "evidence": ExchangeableClassifier(),
        "weighted": ExchangeableClassifier(urn="weighted"),
        "tree over counts": ExchangeableClassifier(structure="evidence", dependence="tree"),
        "BernoulliNB": BernoulliNB(alpha=0.1),
        "MultinomialNB": MultinomialNB(alpha=0.1),
        "ComplementNB": ComplementNB(alpha=0.1),
        "LogisticRegression": LogisticRegression(max_iter=200),
    }
    if n_variables <= MOST_TREE_VARIABLES:
        models["tree"] = ExchangeableClassifier(dependence="tree")
        models["weighted tree"] = ExchangeableClassifier(urn="weighted", dependence="tree")
    return models


def run(path: Path, sets, make, score) -> None:
    """Compute what is not in the file yet, line by line."""
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
    """Choose, or test."""
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
