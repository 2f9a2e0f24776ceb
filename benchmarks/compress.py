"""Densities made smaller: `ExchangeableDensity.compress` at a loss of 0.1 % of held-out rows.

``python benchmarks/compress.py [SET ...]`` searches each set for `SECONDS`, makes what is found
smaller, and writes sizes, files, scoring seconds and test log-likelihoods, before and after, to
``results/compress.csv``.
"""

import csv
import sys
import tempfile
import time
from pathlib import Path

import exchangeable
from exchangeable import ExchangeableDensity
from exchangeable.datasets import fetch_density

SECONDS, LOSS = 100.0, 0.001
SETS = ("nltcs", "plants", "jester")
COLUMNS = ("dataset", "density", "parameters", "megabytes", "scoring_seconds", "valid", "test")


def measured(name, what, density, data, folder):
    """Return a line about a density."""
    path = folder / f"{name}-{what}.exch"
    exchangeable.save(density, path)
    began = time.process_time()
    test = density.score(data.test)
    seconds = time.process_time() - began
    valid = density.score(data.valid)
    size = path.stat().st_size / 1e6
    return (name, what, density.n_parameters_, f"{size:.2f}", f"{seconds:.2f}", valid, test)


def main():
    """Search, make smaller, and write the table."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in sys.argv[1:] or SETS:
            data = fetch_density(name)
            density = ExchangeableDensity(time_budget=SECONDS, random_state=0)
            density.fit(data.train, X_valid=data.valid)
            began = time.process_time()
            small = density.compress(data.valid, loss=LOSS)
            print(f"{name}: made smaller in {time.process_time() - began:.0f} processor s")
            for what, each in (("before", density), ("after", small)):
                rows.append(measured(name, what, each, data, Path(temporary)))
                print(*rows[-1], flush=True)
    with (Path(__file__).parent / "results" / "compress.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*row[:5], f"{row[5]:.5f}", f"{row[6]:.5f}") for row in rows)


if __name__ == "__main__":
    main()
