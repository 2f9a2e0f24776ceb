"""`ExchangeableMixture` compared with StepMix, with latent naive Bayes, and with linear growth.

1. Wall and processor seconds per EM iteration with 20 components, from one start and from ten, on
   one thread. The peer, StepMix (``measurement="binary"``), is measured in the same run, also on
   one thread; both must first reach the same likelihood of the same model. The figures are
   written to ``results/mixture.csv``.
   `threads` prints the same for one start with the threads that both use by default.
2. Seconds to convergence of blocks and of our own latent naive Bayes.
3. Growth with rows, ones and components: four sizes of each, and a plot.

``python benchmarks/bench_mixture.py [same] [stepmix] [threads] [end] [growth] [SET ...]`` runs some
of these parts; ``stepmix`` and ``threads`` may be limited to some sets, and lines of the former
replace older ones in the file. It needs StepMix and matplotlib, the package's `bench` extra.
"""

import csv
import sys
import time
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import scipy.sparse as sp
from stepmix import StepMix
from threadpoolctl import threadpool_limits

from exchangeable import ExchangeableMixture
from exchangeable.datasets import fetch_density

matplotlib.use("Agg")
PLOT = Path(__file__).parent / "results" / "mixture_scaling.png"
RESULTS = Path(__file__).parent / "results" / "mixture.csv"
COLUMNS = ("set", "rows", "model", "wall", "processor")
REPEATS = 9
SETS = ("msnbc", "kdd", "plants", "baudio", "jester", "bnetflix", "book", "cwebkb", "c20ng")
WIDE = ("baudio", "jester", "bnetflix", "msweb", "book", "cwebkb", "cr52", "c20ng")


def timed(model, X):
    """Return the wall and processor seconds of one fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start, processor = time.perf_counter(), time.process_time()
        model.fit(X)
        return time.perf_counter() - start, time.process_time() - processor


def ours(blocks, n_iterations, **options):
    """Return a mixture that runs exactly this many iterations."""
    return ExchangeableMixture(
        20,
        blocks=blocks,
        init="random",
        tol=0.0,
        max_iter=n_iterations,
        random_state=0,
        **options,
    )


def stepmix(n_iterations, n_components=20):
    """Return the peer with the same model and number of iterations."""
    return StepMix(
        n_components,
        measurement="binary",
        n_init=1,
        max_iter=n_iterations,
        abs_tol=0,
        rel_tol=0,
        random_state=0,
        progress_bar=0,
    )


def per_iteration(makers, X, few=2, many=14):
    """Return wall and processor seconds per iteration of each: the extra time of many over few.

    They take turns, so that a busy machine slows all of them.
    """
    for make in makers:
        timed(make(few), X)
    turns = range(REPEATS)
    seconds = [[(timed(make(few), X), timed(make(many), X)) for make in makers] for _ in turns]
    short, long = np.moveaxis(np.min(seconds, axis=0), 1, 0)
    return np.maximum(long - short, 1e-9) / (many - few)


def check_same_model() -> None:
    """Check that both give the same likelihood for one component."""
    X = fetch_density("nltcs").train
    one = ExchangeableMixture(1, blocks="independent", alpha=0.0, random_state=0).fit(X)
    peer = stepmix(5, 1).fit(X)
    assert abs(one.score(X) - peer.score(X)) < 1e-3, (one.score(X), peer.score(X))
    print(f"one component on nltcs: ours {one.score(X):.5f}, StepMix {peer.score(X):.5f}")


def against_stepmix() -> None:
    """Print seconds per iteration, and how many times faster that is than the peer, by both clocks.

    Both use one thread: threads of a library for matrices that wait for work count as busy.
    """
    columns = {
        "sweep": ("welch", 1),
        "sweep, ten starts": ("welch", 10),
        "evidence": ("evidence", 1),
        "naive Bayes": ("independent", 1),
    }
    print("set        rows x variables  StepMix            | " + "  ".join(columns))
    makers = [stepmix] + [
        lambda n, b=blocks, i=starts: ours(b, n, n_init=i, n_jobs=1)
        for blocks, starts in columns.values()
    ]
    for name in [s for s in sys.argv[1:] if s in SETS] or SETS:
        X = fetch_density(name).train
        with threadpool_limits(1):
            peer, *each = per_iteration(makers, X)
        lines, cells = [(name, len(X), "StepMix", *peer)], []
        for (title, (_, starts)), total in zip(columns.items(), each, strict=True):
            seconds = total / starts
            faster = peer / seconds
            lines.append((name, len(X), title, *seconds))
            cells.append(
                f"{seconds[0] * 1e3:6.1f} {seconds[1] * 1e3:6.1f} ms"
                f" ({faster[0]:5.1f} {faster[1]:5.1f} x)"
            )
        print(
            f"{name:9} {len(X):7,} x {X.shape[1]:4}  {peer[0] * 1e3:7.1f} {peer[1] * 1e3:7.1f} ms"
            f" | {'  '.join(cells)}",
            flush=True,
        )
        keep(name, lines)


def with_default_threads() -> None:
    """Print wall milliseconds per iteration of the sweep and of the peer, each with its threads.

    They do not take turns: the peer's threads go on spinning for a while when they have ended.
    """
    for name in [s for s in sys.argv[1:] if s in SETS] or SETS:
        X = fetch_density(name).train
        peer = per_iteration([stepmix], X)[0][0]
        own = per_iteration([lambda n: ours("welch", n)], X)[0][0]
        print(
            f"{name:9} StepMix {peer * 1e3:6.1f} ms   sweep {own * 1e3:5.1f} ms"
            f"   ({peer / own:4.1f} x)",
            flush=True,
        )


def keep(name: str, lines: list[tuple]) -> None:
    """Write the lines of a set in place of those that the file has of it."""
    older: list[list[str]] = []
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            older = [line for line in list(csv.reader(file))[1:] if line[0] != name]
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        made = [(*line[:3], *(f"{value:.6f}" for value in line[3:])) for line in lines]
        csv.writer(file).writerows([COLUMNS, *older, *made])


def to_convergence() -> None:
    """Print seconds and iterations to convergence from one start, averaged over five."""
    print("set        sweep                evidence             naive Bayes          NB / sweep")
    for name in WIDE:
        X = fetch_density(name).train
        cells, seconds = [], []
        for blocks in ("welch", "evidence", "independent"):
            spent, steps = [], []
            for seed in range(5):
                model = ExchangeableMixture(20, blocks=blocks, init="random", random_state=seed)
                spent.append(timed(model, X)[0])
                steps.append(model.n_iter_)
            seconds.append(np.mean(spent))
            cells.append(f"{np.mean(spent):5.2f} s, {np.mean(steps):4.0f} iterations")
        print(f"{name:9} {'  '.join(cells)}   {seconds[2] / seconds[0]:5.2f}", flush=True)


def growth() -> None:
    """Time one iteration for four numbers each of rows, ones and components, and plot them."""
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    n_rows, n_ones, k = 8_000, 40, 20

    def rows_of(n, ones):
        columns = rng.integers(0, 1000, size=(n, ones))
        matrix = sp.csr_matrix(
            (np.ones(n * ones), columns.ravel(), np.arange(0, n * ones + 1, ones)), (n, 1000)
        )
        return (matrix > 0).astype(np.uint8)

    def one_iteration(X, components):
        def make(n):
            return ExchangeableMixture(
                components, blocks="welch", tol=0.0, max_iter=n, init="random", random_state=0
            )

        return per_iteration([make], X)[0][0]

    cases = {
        "rows": [(n, n_ones, k) for n in (4_000, 8_000, 16_000, 32_000)],
        "ones per row": [(n_rows, ones, k) for ones in (20, 40, 80, 160)],
        "components": [(n_rows, n_ones, c) for c in (10, 20, 40, 80)],
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained", sharey=True)
    for axis, (what, shapes) in zip(axes, cases.items(), strict=True):
        sizes = [shape[list(cases).index(what)] for shape in shapes]
        seconds = [one_iteration(rows_of(n, ones), c) for n, ones, c in shapes]
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        figures = ", ".join(
            f"{size:,}: {s * 1e3:.1f} ms" for size, s in zip(sizes, seconds, strict=True)
        )
        print(f"{what:12} {figures}   exponent {slope:.2f}", flush=True)
        axis.loglog(sizes, [s * 1e3 for s in seconds], "o-", base=2)
        axis.loglog(sizes, np.array(sizes) * seconds[0] * 1e3 / sizes[0], ":", color="grey")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.minorticks_off()
        axis.set_xlabel(what)
        axis.set_title(f"exponent {slope:.2f}", fontsize=10)
    axes[0].set_yticks([10, 20, 40, 80], ["10", "20", "40", "80"])
    axes[0].set_ylabel("ms per EM iteration")
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, dpi=120)


if __name__ == "__main__":
    parts = {
        "same": check_same_model,
        "stepmix": against_stepmix,
        "threads": with_default_threads,
        "end": to_convergence,
        "growth": growth,
    }
    for part in [p for p in sys.argv[1:] if p in parts] or parts:
        parts[part]()
