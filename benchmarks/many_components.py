"""What a mixture of very many components costs to ask.

``python benchmarks/many_components.py [--component tree] [--components 8192] [--variables 1000]
[--rows 10000]`` makes a mixture of independent variables, or of trees of the same edges, and times
the marginals of one row and of many, and the scores of many. Before that the marginals of a row are
compared with plain sums over the components, a few of them for trees.
"""

import argparse
import time

import numpy as np

from exchangeable.data.observed import Observed, as_observed
from exchangeable.families.contract import Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.trees.model import TreeModel
from exchangeable.queries import answers

FEW = 64
"""Trees whose marginals are compared with those of each by itself."""


def main() -> None:
    """Compare, and time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--component", choices=("independent", "tree"), default="independent")
    for name, value in {"components": 8192, "variables": 1000, "rows": 10_000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n, k = options.variables, options.components
    slope = rng.normal(-2.0, 1.0, (n, k))
    question = np.full((1, n), -1, dtype=np.int8)
    question[0, :5] = 1
    row = Observed.from_symbols(question)
    if options.component == "tree":
        mixture = trees_of(slope, rng)
    else:
        mixture = even(TreeModel.make(-np.logaddexp(0.0, slope).sum(axis=0), slope))
        compare(mixture, row, slope)
    clock, processor = measured(lambda: answers.marginals(mixture, row))
    print(f"first marginals of a row: {clock:.2f} s (processor {processor:.2f} s)", flush=True)
    clock, processor = measured(lambda: [answers.marginals(mixture, row) for _ in range(20)])
    print(
        f"marginals of a row: {clock * 50:.1f} ms (processor {processor * 50:.1f} ms)", flush=True
    )
    few = np.full((options.rows, n), -1, dtype=np.int8)
    few[:, : n // 10] = rng.random((options.rows, n // 10)) < 0.1
    told(f"marginals of {options.rows:,} rows, a tenth of each known", mixture, few)
    for share in (0.02, 0.1, 0.5):
        rows = as_observed((rng.random((options.rows, n)) < share).astype(np.uint8), None)
        clock, processor = measured(lambda rows=rows: mixture.log_evidence(rows))
        print(
            f"log P of {options.rows:,} rows, {share:.0%} of entries on: {clock:.1f} s "
            f"(processor {processor:.1f} s)",
            flush=True,
        )


def even(model: TreeModel) -> Mixture:
    """Return the mixture of equal shares."""
    return Mixture(model, np.full(model.n_classes, -np.log(model.n_classes)))


def trees_of(slope: np.ndarray, rng: np.random.Generator) -> Mixture:
    """Return trees of the same random edges, having compared marginals with those of each."""
    n, k = slope.shape
    above = [n, *(int(rng.integers(max(0, j - 8), j)) for j in range(1, n))]
    parent = np.ascontiguousarray(np.repeat(np.array(above, dtype=np.int32)[:, None], k, axis=1))
    pair = rng.normal(0.0, 1.0, slope.shape)
    totals = np.zeros(k)
    some = TreeModel.make(totals[:FEW], *(each[:, :FEW].copy() for each in (slope, parent, pair)))
    symbols = rng.integers(-1, 2, (3, n)).astype(np.int8)
    shares = rng.random((3, FEW))
    rows = Observed.from_symbols(symbols)
    one_by_one = Model.mean_marginals(some, rows, shares)
    np.testing.assert_allclose(some.mean_marginals(rows, shares), one_by_one, rtol=1e-9)
    whole = TreeModel.make(totals, slope, parent, pair)
    return even(TreeModel.make(-whole.log_totals(), slope, parent, pair))


def compare(mixture: Mixture, row: Observed, slope: np.ndarray) -> None:
    """Compare the marginals of a row that knows five ones with plain sums."""
    found = answers.marginals(mixture, row)[0]
    chances = 1 / (1 + np.exp(-slope))
    weights = chances[:5].prod(axis=0)
    np.testing.assert_allclose(found[5:], chances[5:] @ weights / weights.sum(), rtol=1e-9)


def told(what: str, mixture: Mixture, symbols: np.ndarray) -> None:
    """Print how long the marginals of some rows take."""
    asked = Observed.from_symbols(symbols)
    clock, processor = measured(lambda: answers.marginals(mixture, asked))
    print(f"{what}: {clock:.1f} s (processor {processor:.1f} s)", flush=True)


def measured(work):
    """Return the seconds that some work takes, by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


if __name__ == "__main__":
    main()
