"""EM iterations of weighted urns and trees compared with naive Bayes, and their growth with rows.

1. Processor seconds of one EM iteration on one thread with 20 components: the pass over the rows
   and the step of the parameters, the fastest of several. The peer is our own naive Bayes in the
   same run; all are first checked to give a finite likelihood.
2. Growth with rows: a quarter, half and all rows of one set.

``python benchmarks/bench_urns.py [SET ...]`` measures some sets and writes no file; without names
all are measured and written to ``results/urns.csv``.
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np

from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import as_rows
from exchangeable.datasets import fetch_density
from exchangeable.families import family_named
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import StopRule, run_em
from exchangeable.fitting.runs import begin, families_of
from exchangeable.structure.blocks import Blocks, structure_of

RESULTS = Path(__file__).parent / "results" / "urns.csv"
SETS = ("kdd", "plants", "jester", "bnetflix", "msweb", "book", "cwebkb", "cr52", "c20ng", "bbc")
FAMILIES = {
    "naive Bayes": ("blocks", "independent"),
    "urns": ("urns", "full"),
    "tree": ("tree", "independent"),
    "weighted tree": ("weighted tree", "full"),
}
N_COMPONENTS, POOLING, REPEATS = 20, 8.0, 40


def problem(examples: Examples, name: str) -> Problem:
    """Return a fit of 20 components under a pooled prior."""
    family, blocks = FAMILIES[name]
    n_variables, components = examples.rows.n_variables, range(N_COMPONENTS)
    return Problem(
        N_COMPONENTS,
        structure_of(Blocks(), blocks, False, n_variables, components),
        examples=examples,
        pooling=POOLING,
        shrinkage=family_named(family).shrinkage or 0.0,
    )


def iteration(examples: Examples, name: str) -> float:
    """Return the processor seconds of one EM iteration, the fastest of several."""
    data = InMemory(examples, n_jobs=1)
    families = families_of(family_named(FAMILIES[name][0]), problem(examples, name))
    sums, mixture = families[-1].start(data, "rows", np.random.default_rng(0)), None
    for family in families:  # the last starts from the fit of the one before, if there is one
        state = begin(data, family, sums, before=mixture)
        mixture = run_em(data, family, state, StopRule(tol=0.0, max_iter=3)).mixture
        sums = data.expect(mixture)
    assert np.isfinite(sums.log_likelihood)
    seconds = []
    for _ in range(1 + REPEATS):
        start = time.process_time()
        sums = data.expect(mixture)
        model = families[-1].following(data, mixture.model, sums, 3)[0]
        mixture = Mixture(model, families[-1].log_shares(sums.totals))
        seconds.append(time.process_time() - start)
    return min(seconds[1:])  # the first one finds the polynomials computed above


def examples_of(X) -> Examples:
    """Return distinct rows with their weights."""
    return merge_equal_rows(Observed(as_rows(X, None)), np.ones(len(X)))[0]


def growth() -> list[tuple]:
    """Print how the time of weighted urns grows with rows, and return it as lines of the table."""
    X, lines = fetch_density("baudio").train, []
    for n_rows in (len(X) // 4, len(X) // 2, len(X)):
        seconds = iteration(examples_of(X[:n_rows]), "urns")
        print(f"baudio, {n_rows} rows, urns: {1000 * seconds:.1f} ms")
        lines.append(("baudio", n_rows, "urns", f"{seconds:.5f}"))
    return lines


def main() -> None:
    """Print one line per set."""
    lines: list[tuple] = []
    print("milliseconds per iteration, and ratio to naive Bayes")
    for name in sys.argv[1:] or SETS:
        X = fetch_density(name).train
        times = {family: iteration(examples_of(X), family) for family in FAMILIES}
        cells = [
            f"{family} {1000 * t:.1f} ({t / times['naive Bayes']:.1f})"
            for family, t in times.items()
        ]
        print(f"{name:9} {'  '.join(cells)}", flush=True)
        lines += [(name, len(X), family, f"{t:.5f}") for family, t in times.items()]
    if not sys.argv[1:]:
        lines += growth()
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("w", newline="") as file:
            csv.writer(file).writerows([("set", "rows", "family", "seconds"), *lines])


if __name__ == "__main__":
    main()
