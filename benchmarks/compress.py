"""Densities made smaller: `ExchangeableDensity.compress` at losses of held-out log-likelihood.

``python benchmarks/compress.py [SET ...]`` searches each set for `SECONDS`, makes what is found
smaller at each of `LOSSES`, and writes sizes, files, scoring seconds, log-likelihoods, and how long
it took, to ``results/compress.csv`` and as a table to ``results/compress.md``.
"""

import csv
import sys
import tempfile
import time
from pathlib import Path

import exchangeable
from exchangeable import ExchangeableDensity
from exchangeable.datasets import fetch_density

SECONDS, LOSSES = 60.0, (0.001, 0.003, 0.01)
SETS = ("nltcs", "plants", "jester")
RESULTS = Path(__file__).parent / "results"
COLUMNS = (
    "dataset",
    "loss",
    "parameters",
    "times_smaller",
    "megabytes",
    "scoring_seconds",
    "valid",
    "test",
    "test_loss",
    "seconds",
)


def measured(density, data, path):
    """Return parameters, megabytes, seconds that scoring takes, and both log-likelihoods."""
    exchangeable.save(density, path)
    density.score(data.test[:10])
    began = time.process_time()
    test = density.score(data.test)
    seconds = time.process_time() - began
    return (
        density.n_parameters_,
        path.stat().st_size / 1e6,
        seconds,
        density.score(data.valid),
        test,
    )


def lines_of(name, path):
    """Search a set, and return a line about what is found and about each smaller density."""
    data = fetch_density(name)
    density = ExchangeableDensity(time_budget=SECONDS, random_state=0, n_jobs=1)
    density.fit(data.train, X_valid=data.valid)
    before = measured(density, data, path)
    lines = [line(name, "none", before, before, 0.0)]
    for loss in LOSSES:
        began = time.process_time()
        small = density.compress(data.valid, loss=loss)
        seconds = time.process_time() - began
        lines.append(line(name, f"{loss:.1%}", measured(small, data, path), before, seconds))
        print(*lines[-1], flush=True)
    return lines


def line(name, loss, after, before, seconds):
    """Return a line of the table."""
    size, megabytes, scoring, valid, test = after
    return (
        name,
        loss,
        str(size),
        f"{before[0] / size:.1f}",
        f"{megabytes:.2f}",
        f"{scoring:.2f}",
        f"{valid:.4f}",
        f"{test:.4f}",
        f"{(before[4] - test) / abs(before[4]):.2%}",
        f"{seconds:.0f}",
    )


def main():
    """Search, make smaller, and write the tables."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            each
            for name in sys.argv[1:] or SETS
            for each in lines_of(name, Path(folder) / "density.exch")
        ]
    with (RESULTS / "compress.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *lines])
    titles = [column.replace("_", " ") for column in COLUMNS]
    table = [titles, ["---"] * len(COLUMNS), *lines]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in table)
    (RESULTS / "compress.md").write_text(
        text.replace(" -", " \N{MINUS SIGN}").replace("\N{MINUS SIGN}--", "---")
    )


if __name__ == "__main__":
    main()
