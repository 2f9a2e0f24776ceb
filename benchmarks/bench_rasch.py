"""Rasch models beside R's eRm, in the same run; figures go to ``results/rasch.csv``.

``python benchmarks/run.py rasch`` (it needs R with the package eRm, and takes about half an hour)

* ``speed``: conditional maximum likelihood with standard errors of 100 items that 100,000 persons
  answered, here and by eRm's ``RM``, both from a matrix in memory. Processor times are given as
  well, because a machine may be busy; eRm uses one core. ``RM`` calls R's ``nlm``, whose tolerances
  cannot be set through it, so that it is started once more from its own estimates before item
  parameters are compared: they must agree to 1e-4, ours must be no less likely, and ``RM`` alone,
  without the second start, must take at least 50 times our processor time;
* ``holes``: the same of 30 items and 2,000 persons with one of 40 patterns of missing answers (eRm
  takes time for each pattern), and ours alone at 100 items × 100,000 persons, each with a different
  pattern of missing answers;
* ``recovery``: 100 samples of 2,000 persons of two classes, 10 items each: how often the 95 %
  intervals of the 20 item parameters hold the true values, standard deviations of the estimates
  over their standard errors, and the same of differences between the classes; answers complete, and
  with a tenth of them missing;
* ``bootstrap``: 100 samples of 40 schools of 25 persons, 8 items, whose difficulties vary between
  schools: how often 95 % intervals hold the true values, from the information and from 100 draws
  of persons and of schools.

``python benchmarks/bench_rasch.py PART ...`` runs some parts. Nothing is tuned.
"""

import csv
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from exchangeable import RaschModel
from exchangeable.classes import item_errors

RESULTS = Path(__file__).parent / "results" / "rasch.csv"
TIME_LIMIT = 1500
AGREEMENT, TIMES_FASTER = 1e-4, 50
ROWS: list[tuple[str, str, str, float]] = []
ERM = """
suppressMessages(library(eRm))
x <- matrix(readBin('{path}', 'int', {n} * {m}, size = 1), {n}, {m}, byrow = TRUE)
x[x < 0] <- NA
colnames(x) <- paste0('i', 1:{m})
t <- system.time(r <- RM(x))
again <- RM(x, etaStart = r$etapar)
cat(t['elapsed'], t['user.self'] + t['sys.self'], format(r$loglik, digits = 14))
cat(' ', format(again$loglik, digits = 14), r$betapar, again$betapar)
"""


def note(part: str, case: str, what: str, value: float) -> None:
    """Print a figure and keep it."""
    ROWS.append((part, case, what, round(float(value), 4)))
    print(f"{part:10} {case:34} {what:44} {value:10.4f}", flush=True)


def answers(n_persons: int, n_items: int, seed: int = 0) -> np.ndarray:
    """Return answers of persons with normal abilities to items of difficulties from −2 to 2."""
    rng = np.random.default_rng(seed)
    difficulty, ability = np.linspace(-2, 2, n_items), rng.normal(size=(n_persons, 1))
    return (rng.random((n_persons, n_items)) < 1 / (1 + np.exp(difficulty - ability))) * np.int8(1)


def erm(X: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
    """Return eRm's time on the clock and the processor, log-likelihoods and item difficulties.

    Of these there are two: of its fit, and of another fit that starts from the first.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.bin"
        np.where(np.isnan(X), -1, X).astype(np.int8).tofile(path)
        code = ERM.format(path=path, n=X.shape[0], m=X.shape[1])
        done = subprocess.run(
            ["Rscript", "-e", code], capture_output=True, text=True, timeout=TIME_LIMIT, check=True
        )
    clock, processor, *rest = map(float, done.stdout.split())
    return clock, processor, np.array(rest[:2]), -np.array(rest[2:]).reshape(2, -1)


def seconds_of(
    X: np.ndarray, n_jobs: int | None, repeats: int = 3
) -> tuple[float, float, RaschModel]:
    """Return the median time of a fit on the clock and the processor, and the fit."""
    RaschModel(n_jobs=n_jobs).fit(X[:500])
    times = []
    for _ in range(repeats):
        clock, processor = time.perf_counter(), time.process_time()
        model = RaschModel(n_jobs=n_jobs).fit(X)
        times.append((time.perf_counter() - clock, time.process_time() - processor))
    clock, processor = np.median(times, axis=0)
    return clock, processor, model


def compare(part: str, X: np.ndarray) -> None:
    """Fit the same answers here and by eRm."""
    case = f"{X.shape[1]} items x {X.shape[0]:,} persons"
    clock, processor, model = seconds_of(X, None)
    note(part, case, "RaschModel, seconds", clock)
    note(part, case, "RaschModel, processor seconds", processor)
    with threadpool_limits(1):
        _, alone, _ = seconds_of(X, 1)
    note(part, case, "RaschModel on one thread, processor seconds", alone)
    try:
        their_clock, theirs, log_likelihoods, difficulties = erm(X)
    except subprocess.TimeoutExpired:
        note(part, case, f"eRm stopped after {TIME_LIMIT} s: times ours", TIME_LIMIT / clock)
        return
    own = model.item_parameters_.locations[:, 0]
    for start, log_likelihood, difficulty in zip(
        ("", ", started again"), log_likelihoods, difficulties, strict=True
    ):
        gap = np.abs(own - difficulty).max()
        note(part, case, f"eRm{start}: largest difference of items, 1e-6", gap * 1e6)
        less = model.log_likelihood_ - log_likelihood
        note(part, case, f"eRm{start}: ours minus its log-likelihood, 1e-6", 1e6 * less)
        assert less > -1e-9 * abs(log_likelihood), less
    assert gap < AGREEMENT, gap
    assert theirs > TIMES_FASTER * processor, (theirs, processor)
    note(part, case, "eRm, seconds", their_clock)
    note(part, case, "eRm, processor seconds", theirs)
    note(part, case, "eRm, times ours", their_clock / clock)
    note(part, case, "eRm, times ours, processor", theirs / processor)
    note(part, case, "eRm, times ours on one thread, processor", theirs / alone)


def speed() -> None:
    """Compare complete answers."""
    compare("speed", answers(100_000, 100).astype(float))


def holes() -> None:
    """Compare missing answers, and time ours where everybody lacks others."""
    rng = np.random.default_rng(1)
    X = answers(2_000, 30).astype(float)
    X[(rng.random((40, 30)) < 0.2)[rng.integers(0, 40, size=2_000)]] = np.nan
    compare("holes", X)
    X = answers(100_000, 100).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    clock, processor, _ = seconds_of(X, None, 1)
    case = "100 items x 100,000 patterns"
    note("holes", case, "RaschModel, seconds", clock)
    note("holes", case, "RaschModel, processor seconds", processor)


def recovery(n_samples: int = 100) -> None:
    """Fit samples of two classes, and look how often intervals hold the truth."""
    first = np.linspace(-1.5, 1.5, 10)
    truth = np.stack([first, np.random.default_rng(1).permutation(first)])
    for share in (0.0, 0.1):
        errors, spreads, gaps, gap_errors = [], [], [], []
        for sample in range(n_samples):
            rng = np.random.default_rng(1000 + sample)
            kind, ability = rng.integers(0, 2, size=2000), rng.normal(size=(2000, 1))
            X = 1.0 * (rng.random((2000, 10)) < 1 / (1 + np.exp(truth[kind] - ability)))
            X[rng.random(X.shape) < share] = np.nan
            model = RaschModel(2, n_init=3, random_state=sample).fit(X)
            items, found = model.item_parameters_, model.differences(0, 1)
            distance = np.abs(items.locations[:, None] - truth.T[:, :, None]).sum(axis=0)
            straight = np.trace(distance) < np.trace(distance[::-1])
            order = [0, 1] if straight else [1, 0]
            errors.append(items.locations[:, order] - truth.T)
            spreads.append(items.standard_errors[:, order])
            wanted = (truth[0] - truth[1]) * (1 if straight else -1)
            gaps.append(found.difference - wanted)
            gap_errors.append(found.standard_error)
        case = f"two classes, {share:.0%} missing"
        for what, error, spread in (
            ("item parameters", np.array(errors), np.array(spreads)),
            ("differences", np.array(gaps), np.array(gap_errors)),
        ):
            inside = np.abs(error) < 1.96 * spread
            note("recovery", case, f"{what}: held by 95 % intervals", inside.mean())
            ratio = np.sqrt((error**2).mean()) / np.sqrt((spread**2).mean())
            note("recovery", case, f"{what}: root of squared errors / s.e.", ratio)


def bootstrap(n_samples: int = 100) -> None:
    """Draw samples of schools, and count how often intervals hold the truth."""
    truth = np.linspace(-1.5, 1.5, 8)
    school = np.repeat(np.arange(40), 25)
    held: dict[str, list[np.ndarray]] = {}
    for sample in range(n_samples):
        rng = np.random.default_rng(2000 + sample)
        difficulty = truth + rng.normal(0, 0.4, size=(40, 8))[school]
        chance = 1 / (1 + np.exp(difficulty - rng.normal(size=(1000, 1))))
        X = (rng.random(chance.shape) < chance).astype(float)
        model = RaschModel().fit(X)
        drawn = {"n_draws": 100, "random_state": sample}
        for name, items in (
            ("information", model.item_parameters_),
            ("draws of persons", item_errors(model, X, **drawn).parameters),
            ("draws of schools", item_errors(model, X, clusters=school, **drawn).parameters),
        ):
            low, high = items.intervals()
            held.setdefault(name, []).append((low[:, 0] <= truth) & (truth <= high[:, 0]))
    for name, inside in held.items():
        note("bootstrap", "40 schools of 25", f"{name}: held by 95 % intervals", np.mean(inside))


def main() -> None:
    """Run the parts that are named, or all."""
    warnings.simplefilter("ignore")
    parts = {"speed": speed, "holes": holes, "recovery": recovery, "bootstrap": bootstrap}
    for name in [name for name in sys.argv[1:] if name in parts] or parts:
        parts[name]()
    kept = []
    if RESULTS.exists():
        done = {row[0] for row in ROWS}
        kept = [row for row in csv.reader(RESULTS.open()) if row[0] not in {"part", *done}]
    with RESULTS.open("w", newline="") as file:
        csv.writer(file).writerows([("part", "case", "what", "value"), *kept, *ROWS])


if __name__ == "__main__":
    main()
