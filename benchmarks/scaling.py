"""Rows that do not fit in memory: seconds, passes and peak memory, locally and with Dask.

``python benchmarks/scaling.py --folder FOLDER`` writes a bit-packed file of the largest size to
FOLDER, fits classifiers and mixtures to its first rows in several sizes, each in its own process
(so that peak memory is measured separately), and writes ``results/scaling.csv`` and
``results/scaling.png``.
"""

import argparse
import csv
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
N_CLASSES, N_GROUPS = 4, 20
ITERATIONS = 2
N_TOPICS = 20
"""Components of the mixture of sparse rows, which are documents of 100,000 words."""
FIELDS = ["engine", "workers", "model", "rows", "variables", "seconds", "cpu_seconds", "passes"]
FIELDS += ["rows_per_second", "peak_mb", "start_mb", "answer"]
KEY = FIELDS[:5]


def make(folder: Path, n_rows: int, n_variables: int) -> None:
    """Write packed rows of four classes, whose variables have one of 20 means, and the classes."""
    if (folder / "y.npy").exists() and len(np.load(folder / "y.npy", mmap_mode="r")) >= n_rows:
        return
    rng = np.random.default_rng(0)
    shape = (n_rows, (n_variables + 7) // 8)
    bits = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.uint8, shape=shape)
    y = rng.integers(0, N_CLASSES, n_rows, dtype=np.uint8)
    means = rng.integers(5, 110, (N_CLASSES, N_GROUPS), dtype=np.uint8)  # of 256
    means = np.tile(means, n_variables // N_GROUPS + 1)[:, :n_variables]
    for start in range(0, n_rows, 20_000):
        part = slice(start, min(start + 20_000, n_rows))
        drawn = rng.integers(0, 256, (part.stop - start, n_variables), dtype=np.uint8)
        bits[part] = np.packbits(drawn < means[y[part]], axis=1, bitorder="little")
    bits.flush()
    np.save(folder / "y.npy", y)


def load(path: str, start: int, stop: int) -> Any:
    """Read some rows of the file, on a worker."""
    return np.load(path, mmap_mode="r")[start:stop].copy()


def sparse_parts(n_rows: int, n_variables: int, n_ones: int = 100) -> list[Any]:
    """Return documents of about 100 words of a vocabulary, whose words follow Zipf's law."""
    import scipy.sparse as sp

    parts = []
    for number, start in enumerate(range(0, n_rows, 10_000)):
        rng, size = np.random.default_rng(number), min(10_000, n_rows - start)
        word = np.floor(n_variables ** rng.random((size, n_ones))).astype(np.int64) - 1
        row = np.repeat(np.arange(size), n_ones)
        ones = np.ones(word.size, dtype=np.uint8)
        matrix = sp.csr_array((ones, (row, word.ravel())), shape=(size, n_variables))
        matrix.sum_duplicates()
        matrix.data[:] = 1
        parts.append(matrix)
    return parts


def on_cluster(path: Path, n_rows: int, n_variables: int, step: int = 100_000) -> Any:
    """Return the rows as a Dask array of bits."""
    import dask
    import dask.array as da

    from exchangeable import PackedBits

    read, width = dask.delayed(load), (n_variables + 7) // 8
    spans = [(a, min(a + step, n_rows)) for a in range(0, n_rows, step)]
    parts = [
        da.from_delayed(read(str(path), a, b), shape=(b - a, width), dtype=np.uint8)
        for a, b in spans
    ]
    return PackedBits(da.concatenate(parts), n_variables)


def memory() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cpu_seconds() -> float:
    """Return the processor time that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(
    engine: str, workers: int, model: str, n_rows: int, n_variables: int, folder: Path
) -> dict[str, Any]:
    """Fit once, and score the result; return one line of the table."""
    from exchangeable import ExchangeableClassifier, ExchangeableMixture, PackedBits
    from exchangeable.data.stream.cluster import ClusterRows
    from exchangeable.data.stream.passes import ChunkedRows

    if model == "mixture sparse":
        local, y = sparse_parts(n_rows, n_variables), np.zeros(n_rows)
    else:
        local = PackedBits(folder / "x.npy", n_variables)[:n_rows]
        y = np.load(folder / "y.npy", mmap_mode="r")[:n_rows]
    threads = workers if engine == "local" else None

    def fit(X: Any, labels: Any) -> Any:
        if model.startswith("mixture"):
            mixture = ExchangeableMixture(
                N_CLASSES if model == "mixture" else N_TOPICS,
                blocks="welch",
                init="rows",
                max_iter=ITERATIONS,
                tol=0.0,
                random_state=0,
                n_jobs=threads,
            )
            return mixture.fit(X)
        blocks = model.removeprefix("classifier ")
        return ExchangeableClassifier(blocks=blocks, n_jobs=threads).fit(X, labels)

    client = None
    if engine == "dask":
        from distributed import Client, LocalCluster

        made = LocalCluster(workers, threads_per_worker=1, processes=True, dashboard_address=None)
        client = Client(made)
    small = min(n_rows, 2000)
    few = local[: 1 if isinstance(local, list) else small]
    if client:
        few = on_cluster(folder / "x.npy", small, n_variables, 500)
    fit(few, np.asarray(y[:small]))  # load the compiled kernels
    passes = []
    for kind in (ChunkedRows, ClusterRows):
        kind.total = _counted(kind.total, passes)  # type: ignore[method-assign]
    X = on_cluster(folder / "x.npy", n_rows, n_variables) if client else local
    start_mb, began, used = memory(), time.perf_counter(), cpu_seconds()
    if client:
        used = sum(client.run(cpu_seconds).values())
    fitted = fit(X, y)
    seconds, before, used = time.perf_counter() - began, used, cpu_seconds() - used
    peak = memory()
    if client:
        peak = max(client.run(memory).values())
        used = sum(client.run(cpu_seconds).values()) - before
        client.close()
        made.close()
    answer = (
        fitted.log_likelihood_
        if model.startswith("mixture")
        else fitted.score(local[: min(n_rows, 100_000)], y[: min(n_rows, 100_000)])
    )
    return {
        "engine": engine,
        "workers": workers,
        "model": model,
        "rows": n_rows,
        "variables": n_variables,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(used, 2),
        "passes": len(passes),
        "rows_per_second": round(n_rows / seconds),
        "peak_mb": round(peak),
        "start_mb": round(start_mb),
        "answer": round(float(answer), 6),
    }


def _counted(total: Any, passes: list[int]) -> Any:
    def counting(self: Any, function: Any) -> Any:
        passes.append(1)
        return total(self, function)

    return counting


def plot(lines: list[dict[str, Any]], path: Path) -> None:
    """Draw processor seconds per pass by rows, with linear growth as dotted lines."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    for model in ("classifier welch", "mixture"):
        wanted = ("local", "2", model)
        own = [e for e in lines if (e["engine"], str(e["workers"]), e["model"]) == wanted]
        if not own:
            continue
        own.sort(key=lambda line: int(line["rows"]))
        rows = np.array([int(line["rows"]) for line in own])
        cost = np.array([float(line["cpu_seconds"]) / int(line["passes"]) for line in own])
        axes.plot(rows, cost, "o-", label=model)
        axes.plot(rows, cost[0] * rows / rows[0], ":", color="grey")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="rows of 1,000 variables",
        ylabel="processor seconds per pass (dotted: linear)",
    )
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure every case in its own process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="folder for the file of rows")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1_250_000, 2_500_000, 5_000_000, 10_000_000]
    )
    parser.add_argument("--dask-rows", type=int, default=10_000_000)
    parser.add_argument("--variables", type=int, default=1000)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--cases", nargs="+", default=["local", "evidence", "sparse", "dask"])
    parser.add_argument("--one", nargs=4, metavar=("ENGINE", "WORKERS", "MODEL", "ROWS"))
    args = parser.parse_args()
    if args.one:
        engine, workers, model, n_rows = args.one
        warnings.simplefilter("ignore")
        line = measure(engine, int(workers), model, int(n_rows), args.variables, args.folder)
        print(json.dumps(line))
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    # In its own process, because children inherit the peak memory of their parent.
    maker = multiprocessing.get_context("spawn").Process(
        target=make, args=(args.folder, max(args.rows), args.variables)
    )
    maker.start()
    maker.join()
    cases: list[tuple[str, int, str, int]] = []
    if "local" in args.cases:
        for model in ("classifier welch", "mixture"):
            cases += [("local", 2, model, n) for n in args.rows]
    if "evidence" in args.cases:
        cases.append(("local", 2, "classifier evidence", args.dask_rows))
    if "sparse" in args.cases:
        cases.append(("local", 1, "mixture sparse", 50_000))
    if "dask" in args.cases:
        for model in ("classifier welch", "mixture"):
            for workers in (1, 2):
                cases += [(e, workers, model, args.dask_rows) for e in ("local", "dask")]
    table = args.results / "scaling.csv"
    lines = list(csv.DictReader(table.open())) if table.exists() else []
    for case in dict.fromkeys(cases):
        command = [sys.executable, __file__, "--folder", str(args.folder)]
        n_variables = 100_000 if case[2] == "mixture sparse" else args.variables
        command += ["--variables", str(n_variables), "--one", *map(str, case)]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        line = json.loads(done.stdout.splitlines()[-1])
        print("  ".join(f"{name} {line[name]}" for name in FIELDS), flush=True)
        key = [str(line[name]) for name in KEY]
        lines = [old for old in lines if [str(old[name]) for name in KEY] != key]
        lines.append(line)
        with table.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(lines)
    plot(lines, args.results / "scaling.png")


if __name__ == "__main__":
    main()
