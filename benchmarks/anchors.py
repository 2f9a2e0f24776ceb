"""How firmly components that a network has decoded are anchored where EM goes on from them.

``python benchmarks/anchors.py SET COMPONENT STRENGTH ...`` trains a mixture of 512 components on
1,500 rows of a data set of the density benchmark, and goes on with 2,500 more: by a warm start on
all of them, and in batches of 500. For each strength of the anchors it prints the average
log-likelihood of the validation rows; test rows are not read.
"""

import argparse
import time
import warnings
from copy import deepcopy

from sklearn.exceptions import ConvergenceWarning

from exchangeable import ExchangeableMixture, Neural
from exchangeable.datasets import fetch_density
from exchangeable.families.neural import anchored

FIRST, ALL, BATCH = 1500, 4000, 500


def main() -> None:
    """Train, go on with each strength, and score."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("set")
    parser.add_argument("component")
    parser.add_argument("strengths", nargs="+", type=float, metavar="STRENGTH")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    data = fetch_density(options.set)
    rows, valid = data.train[:ALL], data.valid
    settings = {"family": Neural(options.component), "random_state": 0, "n_jobs": 1}
    first = ExchangeableMixture(512, max_iter=60, **settings).partial_fit(rows[:FIRST])
    whole = ExchangeableMixture(512, max_iter=60, **settings).fit(rows)
    print(
        f"{options.set}, neural {options.component}: valid {first.score(valid):.3f} after "
        f"{FIRST:,} rows, {whole.score(valid):.3f} trained on all {ALL:,}",
        flush=True,
    )
    for strength in options.strengths:
        anchored.STRENGTH, processor = strength, time.process_time()
        warm = deepcopy(first).set_params(warm_start=True, max_iter=15).fit(rows)
        batches = deepcopy(first)
        for begin in range(FIRST, ALL, BATCH):
            batches.partial_fit(rows[begin : begin + BATCH])
        print(
            f"strength {strength:g}: valid {warm.score(valid):.3f} by a warm start, "
            f"{batches.score(valid):.3f} in batches (processor "
            f"{time.process_time() - processor:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
