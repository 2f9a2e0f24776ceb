"""Test accuracy on the paper's collections: the table in the README.

``python benchmarks/accuracy.py [SET ...]`` fits naive Bayes, the paper's sweep and the defaults to
the training rows of each collection and prints the accuracy on its test rows, averaged over the ten
runs where there is no official split.
"""

import sys

import numpy as np

from exchangeable import ExchangeableClassifier
from exchangeable.datasets import fetch_classification, make_boolean

BLOCKS = ("independent", "welch", "evidence")
SETS = ("20newsgroups", "reuters8", "webkb4", "mnist", "polarity2", "enron1", "parity")


def runs(name: str):
    """Yield training and test rows, once or for each of the ten runs."""
    if name == "parity":
        yield (
            *make_boolean(name, 1_000_000, 1_000, random_state=0),
            *make_boolean(name, 10_000, 1_000, random_state=1),
        )
        return
    for fold in range(10) if name in ("polarity2", "enron1") else [None]:
        data = fetch_classification(name, fold=fold)
        yield data.X_train, data.y_train, data.X_test, data.y_test


def main() -> None:
    """Print one line per collection."""
    print("set           " + " ".join(f"{name:>12}" for name in BLOCKS))
    for name in sys.argv[1:] or SETS:
        scores = [
            [
                ExchangeableClassifier(blocks=blocks).fit(X, y).score(X_test, y_test)
                for blocks in BLOCKS
            ]
            for X, y, X_test, y_test in runs(name)
        ]
        mean = np.mean(scores, axis=0)
        print(f"{name:13} " + " ".join(f"{value:12.4f}" for value in mean), flush=True)


if __name__ == "__main__":
    main()
