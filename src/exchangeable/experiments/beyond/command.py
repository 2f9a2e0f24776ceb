"""``python -m exchangeable.experiments.beyond``: the density benchmark from a terminal."""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from exchangeable.experiments.beyond.cells import KEY, MODELS, SETS, Beyond
from exchangeable.experiments.beyond.side_by_side import SideBySide, merge
from exchangeable.experiments.store import Store

DESCRIPTION = "What the default density gives, per data set, time budget and seed."


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from a terminal."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS, metavar="MODEL")
    parser.add_argument("--time-budget", nargs="+", type=float, default=[600.0])
    parser.add_argument("--seed", nargs="+", type=int, default=[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--n-jobs", type=int)
    parser.add_argument("--compress", type=float, metavar="LOSS")
    parser.add_argument(
        "--peer",
        nargs=2,
        metavar=("NAME", "FILE"),
        help="run nothing; add log-probabilities of the test rows of one set (.npy) under a name",
    )
    parser.add_argument("--results", type=Path, default=Path("results/beyond.csv"))
    parser.add_argument(
        "--processes",
        type=int,
        metavar="NUMBER",
        help="one process per set, this many at a time, each with --n-jobs threads (1 by default)",
    )
    parser.add_argument(
        "--folder", type=Path, help="where processes leave cells and rows, for --merge"
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="after which processes are stopped"
    )
    parser.add_argument(
        "--merge", nargs="+", type=Path, metavar="FOLDER", help="run nothing; add these to results"
    )
    options = parser.parse_args(arguments)

    def tell(text: str) -> None:
        os.write(1, f"{time.strftime('%H:%M:%S')} {text}\n".encode())

    if options.processes:
        _side_by_side(options, tell)
        return
    store = Store(options.results, KEY)
    experiment = Beyond(store, tell, options.n_jobs, options.device, options.compress)
    if options.peer:
        (name,), (peer, path) = options.sets, options.peer
        experiment.add(name, peer, np.load(path).astype(np.float64))
        return
    if options.merge:
        merge(experiment, options.merge)
        return
    experiment.run(options.sets, options.models, options.time_budget, options.seed)


def _side_by_side(options: argparse.Namespace, tell: Callable[[str], None]) -> None:
    """Run one process per set."""
    if options.folder is None:
        raise SystemExit("--processes needs --folder, where processes leave what they find")
    told = ["--device", options.device, "--n-jobs", str(options.n_jobs or 1)]
    told += ["--models", *options.models, "--seed", *map(str, options.seed)]
    told += ["--time-budget", *(f"{budget:g}" for budget in options.time_budget)]
    if options.compress is not None:
        told += ["--compress", str(options.compress)]
    SideBySide(options.folder, told, options.processes, options.seconds, tell).run(options.sets)
