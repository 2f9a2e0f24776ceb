"""What a mixture of very many independent components costs to ask.

``python benchmarks/many_components.py [--components 8192] [--variables 1000] [--rows 10000]`` makes
such a mixture and times the marginals of one row and of many, and the scores of many, having
compared marginals with plain sums over the components.
"""

import argparse
import time

import numpy as np

from exchangeable.data.observed import Observed, as_observed
from exchangeable.families.mixture import Mixture
from exchangeable.families.trees.model import TreeModel
from exchangeable.queries import answers


def main() -> None:
    """Compare, and time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, value in {"components": 8192, "variables": 1000, "rows": 10_000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n, k = options.variables, options.components
    slope = rng.normal(-2.0, 1.0, (n, k))
    model = TreeModel.make(-np.logaddexp(0.0, slope).sum(axis=0), slope)
    mixture = Mixture(model, np.full(k, -np.log(k)))
    question = np.full((1, n), -1, dtype=np.int8)
    question[0, :5] = 1
    row = Observed.from_symbols(question)
    found = answers.marginals(mixture, row)[0]
    chances = 1 / (1 + np.exp(-slope))
    weights = chances[:5].prod(axis=0)
    np.testing.assert_allclose(found[5:], chances[5:] @ weights / weights.sum(), rtol=1e-9)
    clock, processor = measured(lambda: [answers.marginals(mixture, row) for _ in range(20)])
    print(
        f"marginals of a row: {clock * 50:.1f} ms (processor {processor * 50:.1f} ms)", flush=True
    )
    few = np.full((options.rows, n), -1, dtype=np.int8)
    few[:, : n // 10] = rng.random((options.rows, n // 10)) < 0.1
    asked = Observed.from_symbols(few)
    clock, processor = measured(lambda: answers.marginals(mixture, asked))
    print(
        f"marginals of {options.rows:,} rows, a tenth of each known: {clock:.1f} s "
        f"(processor {processor:.1f} s)",
        flush=True,
    )
    for share in (0.02, 0.1, 0.5):
        rows = as_observed((rng.random((options.rows, n)) < share).astype(np.uint8), None)
        clock, processor = measured(lambda rows=rows: mixture.log_evidence(rows))
        print(
            f"log P of {options.rows:,} rows, {share:.0%} of entries on: {clock:.1f} s "
            f"(processor {processor:.1f} s)",
            flush=True,
        )


def measured(work):
    """Return the seconds that some work takes, by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


if __name__ == "__main__":
    main()
