"""EM of hidden trees on the processor, beside the matrix products that it consists of.

A pass over a row makes three products with a table of states by states for every edge: messages up,
posteriors down, and sums of pairs. ``python benchmarks/bench_hidden.py [SET]`` prints processor
seconds of one thread for a pass over the rows, beside the same products made by NumPy alone on 128
rows at a time, after checking that both passes over the same rows give the same likelihood.
"""

import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from exchangeable.data.observed import Observed
from exchangeable.datasets import fetch_density
from exchangeable.families.hidden_trees.passes.messages import (
    Messages,
    Symbols,
    expect_messages,
    score_messages,
)
from exchangeable.partitions import Partition

SETS = "accidents", "plants", "jester", "dna"
STATES = 16, 32, 64, 128
ROWS, REPEATS, TILE = 2_000, 5, 128


def processor_seconds(work) -> float:
    """Return the least processor seconds that some work takes, after a first time."""
    work()
    times = []
    for _ in range(REPEATS):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return min(times)


def random_tree(n: int, h: int, rng: np.random.Generator) -> Messages:
    """Return a tree of `n` variables by themselves, each with `h` states."""
    parent = np.array([n, *(rng.integers(0, v) for v in range(1, n))], dtype=np.int32)
    log_q = np.log(rng.dirichlet(np.ones(2), size=(n, h)).transpose(0, 2, 1).reshape(2 * n, h))
    return Messages(
        Partition.from_labels(np.arange(n)), parent, log_q, rng.dirichlet(np.ones(h), size=(n, h))
    )


def products(tree: Messages) -> None:
    """Make the products of one tile of rows."""
    h = tree.n_states
    rows, out, both = np.ones((TILE, h)), np.empty((TILE, h)), np.empty((h, h))
    for table in tree.edges:
        np.dot(rows, table.T, out=out)
        np.dot(rows.T, rows, out=both)
        np.dot(rows, table, out=out)


def main(name: str) -> None:
    """Print a line for each number of states."""
    X, rng = fetch_density(name).train[:ROWS], np.random.default_rng(0)
    observed, weights = Observed.from_symbols(X.astype(np.int8)), np.ones(len(X))
    for h in STATES:
        tree = random_tree(X.shape[1], h, rng)
        symbols, log_prior = Symbols.of(observed, tree.partition), np.full(h, -np.log(h))
        found = expect_messages(tree, weights, symbols, log_prior, 1).log_likelihood
        scores = score_messages(tree, observed, 1) + log_prior
        assert np.isclose(found, np.logaddexp.reduce(scores, axis=1).sum(), rtol=1e-10)
        took = processor_seconds(
            lambda tree=tree, symbols=symbols, prior=log_prior: expect_messages(
                tree, weights, symbols, prior, 1
            )
        )
        least = processor_seconds(lambda tree=tree: products(tree)) * len(X) / TILE
        flops = 6.0 * len(X) * X.shape[1] * h * h
        print(
            f"{name} {len(X):,} x {X.shape[1]}, {h:3} states: a pass {took:.3f} s "
            f"({flops / took / 1e9:.0f} GFLOP/s), products alone {least:.3f} s, "
            f"ratio {took / least:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        for name in [each for each in sys.argv[1:] if each in SETS] or SETS[:1]:
            main(name)
