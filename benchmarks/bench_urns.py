"""EM iterations of weighted urns and trees beside our own naive Bayes iteration, and their growth.

1. Processor seconds of one EM iteration on one thread, 20 components: the pass over the rows and
   the step of the parameters, the least of several. The peer is naive Bayes in the same run; both
   are first checked to give probabilities.
2. Growth with rows: a quarter, half and all of the rows of one set.

Written to ``results/urns.csv``.
"""

import csv
import time
from pathlib import Path

import numpy as np

from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.datasets import fetch_density
from exchangeable.families.common.expectation import expect
from exchangeable.families.urns.family import IndependentFamily
from exchangeable.fitting.density_em import StopRule, log_shares
from exchangeable.fitting.density_fit import SHRINKAGE, DensityOptions, DensityRuns
from exchangeable.fitting.search import WHOLE

RESULTS = Path(__file__).parent / "results" / "urns.csv"
SETS = ("kdd", "plants", "jester", "bnetflix", "msweb", "book", "cwebkb", "cr52", "c20ng")
KINDS = ("independent", "urns", "tree", "weighted tree")
REPEATS = 20


def iteration(examples, kind: str) -> float:
    """Return the processor seconds of one EM iteration, the least of several."""
    options = DensityOptions(
        kind, 20, WHOLE, shrinkage=SHRINKAGE.get(kind, 0.0), rule=StopRule(max_iter=3)
    )
    runs = DensityRuns.of(examples, None, options, [np.random.default_rng(0)])
    fitted = runs.run(0, threads=1)
    assert np.isfinite(fitted.worth)
    model, log_prior = fitted.model, fitted.log_prior
    family = {"independent": IndependentFamily(runs.pool), "tree": runs.trees()}.get(kind)
    if family is None:
        sums = expect(model, examples, log_prior, 1)
        urns = runs.urns(runs.partitions(sums))
        family = urns
        if kind == "weighted tree":
            begun = DensityRuns.of(
                examples, None, DensityOptions("urns", 20, WHOLE), [np.random.default_rng(0)]
            )
            family = runs.weighted_trees(urns, begun.run(0, threads=1).model)
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        sums = expect(model, examples, log_prior, 1)
        model, log_prior = family.following(examples, model, sums, 3, 1), log_shares(sums.totals)
        model.scores  # noqa: B018  made when first asked for
        seconds.append(time.process_time() - start)
    return min(seconds)


def examples_of(X):
    """Return distinct rows with their weights."""
    return merge_equal_rows(Observed(as_rows(X, None)), np.ones(len(X)))[0]


def main() -> None:
    """Print and write a line a set."""
    lines = []
    print("milliseconds an iteration, and ratio to naive Bayes")
    for name in SETS:
        X = fetch_density(name).train
        times = [iteration(examples_of(X), kind) for kind in KINDS]
        told = "  ".join(
            f"{kind} {1000 * t:.1f} ({t / times[0]:.1f})"
            for kind, t in zip(KINDS, times, strict=True)
        )
        print(f"{name:9} {told}", flush=True)
        lines += [(name, len(X), kind, f"{t:.5f}") for kind, t in zip(KINDS, times, strict=True)]
    X = fetch_density("baudio").train
    for n_rows in (len(X) // 4, len(X) // 2, len(X)):
        t = iteration(examples_of(X[:n_rows]), "urns")
        print(f"baudio, {n_rows} rows, weighted urns: {1000 * t:.1f} ms")
        lines.append(("baudio", n_rows, "urns", f"{t:.5f}"))
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        csv.writer(file).writerows([("set", "rows", "family", "seconds"), *lines])


if __name__ == "__main__":
    main()
