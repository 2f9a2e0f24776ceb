"""Trees over the counts of blocks compared with independent blocks, in mixtures and classifiers.

``python benchmarks/count_trees.py [SET ...]`` fits mixtures of 20 components to sets of the density
benchmark (four starts, the best is kept; validation rows decide when trees stop) and writes the
average log-likelihood of validation and test rows. For classifiers it writes the accuracy of
five-fold cross-validation on the training rows, and the accuracy on the test rows. "without edges"
is the same fit with edges shrunk to nothing, which leaves only the effects of the pooled prior and
of early stopping. Each line is appended to ``results/count_trees.csv`` as soon as it is finished;
lines already in the file are not computed again.
"""

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from urn_accuracy import load

from exchangeable import Blocks, ExchangeableClassifier, ExchangeableMixture
from exchangeable.datasets import fetch_density

RESULTS = Path(__file__).parent / "results" / "count_trees.csv"
DENSITY = ("nltcs", "plants", "jester", "baudio")
TEXT = ("reuters8", "webkb4", "polarity2")
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)
NO_EDGES = 1e9
MODELS = {
    f"{blocks}, {label}": options
    for blocks in ("welch", "evidence")
    for label, options in {
        "independent": {"blocks": blocks},
        "without edges": {"family": "count tree", "blocks": Blocks(blocks, shrinkage=NO_EDGES)},
        "tree": {"family": "count tree", "blocks": blocks},
    }.items()
}
OF_VARIABLES = {"tree over variables": {"family": "tree"}}


def mixture(name: str, options) -> list[str]:
    """Return validation and test log-likelihood, blocks, edges and processor seconds."""
    data = fetch_density(name)
    model = ExchangeableMixture(20, n_init=4, random_state=0, **options)
    began = time.process_time()
    model.fit(data.train, X_valid=data.valid if "family" in options else None)
    seconds = time.process_time() - began
    return [
        f"{model.score(data.valid):.4f}",
        f"{model.score(data.test):.4f}",
        *shape(model, seconds),
    ]


def classifier(name: str, options) -> list[str]:
    """Return accuracy by cross-validation and on test rows, blocks, edges, processor seconds."""
    X, y, X_test, y_test = load(name)
    model = ExchangeableClassifier(**options)
    chosen = np.mean(cross_val_score(model, X > 0, y, cv=FOLDS))
    began = time.process_time()
    model.fit(X > 0, y)
    seconds = time.process_time() - began
    return [f"{chosen:.4f}", f"{model.score(X_test > 0, y_test):.4f}", *shape(model, seconds)]


def shape(model, seconds: float) -> list[str]:
    """Return the average numbers of blocks and edges, and the processor seconds of the fit."""
    edges = np.mean([len(edges) for edges in model.edges_])
    return [f"{model.n_blocks_.mean():.1f}", f"{edges:.1f}", f"{seconds:.2f}"]


def main() -> None:
    """Compute the lines that are not in the file yet."""
    warnings.simplefilter("ignore")
    done = set()
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            done = {(row["set"], row["model"]) for row in csv.DictReader(file)}
    else:
        RESULTS.write_text("set,model,valid,test,blocks,edges,cpu_seconds\n")
    for name in sys.argv[1:] or (*TEXT, *DENSITY):
        compute = mixture if name in DENSITY else classifier
        for label, options in {**MODELS, **(OF_VARIABLES if name in DENSITY else {})}.items():
            if (name, label) not in done:
                line = [name, label, *compute(name, options)]
                with RESULTS.open("a", newline="") as file:
                    csv.writer(file).writerow(line)
                print(*line, flush=True)


if __name__ == "__main__":
    main()
