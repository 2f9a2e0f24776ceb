"""Latent class analysis: the bootstrap test's time, StepMix's estimates, and coverage.

1. ``test``: 1,000 draws of the bootstrap likelihood-ratio test of three against two classes on
   NLTCS (16,181 rows of 16 items), with eight random starts of the larger model in every draw:
   seconds, and processor seconds, which other work on the machine changes less.
2. ``stepmix``: estimates in three steps (BCH and ML) and in one step beside StepMix's, on data of
   its own recipes (Bakk et al. 2013), with the largest difference of coefficients and the time of
   both.
3. ``coverage``: how often 95 % intervals hold the truth, over simulated surveys: three classes,
   eight items, 1,000 rows. Standard errors from the observed information and from the bootstrap;
   covariates in one and three steps; distal outcomes.
4. ``design``: the same of surveys in which 12 clusters of 15 respondents were drawn in each of 4
   strata, where more or fewer belong to a class; two classes, six items. Intervals of class sizes
   and of the mean of an outcome that depends on the cluster, too, with and without the design.

``python benchmarks/bench_classes.py PART ...`` runs some of the parts; figures of all go to
``results/classes.csv``.
"""

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from stepmix import StepMix
from stepmix.datasets import data_bakk_covariate, data_bakk_response

from exchangeable import ExchangeableMixture
from exchangeable.classes import (
    covariate_effects,
    likelihood_ratio_test,
    outcomes,
    standard_errors,
)
from exchangeable.datasets import fetch_density

warnings.simplefilter("ignore")
RESULTS = Path(__file__).parent / "results" / "classes.csv"
PRECISE = {"blocks": "independent", "alpha": 0.0, "tol": 1e-12, "max_iter": 5000, "n_init": 10}
SURVEYS, BOOTSTRAPS, DRAWS = 200, 60, 200
RATES = np.array(
    [
        [0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8],
        [0.8, 0.8, 0.8, 0.8, 0.2, 0.2, 0.2, 0.2],
        [0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2],
    ]
)
TRUTH = np.array([[0.0, 0.0], [0.3, 0.5], [-0.2, -1.0]])
MEANS = np.array([0.0, 0.5, 1.0])
STRATUM_LOGITS = np.array([-1.0, -0.3, 0.3, 1.0])


def note(part: str, case: str, figure: str, value: float) -> None:
    """Print a figure and keep it, in place of one of the same name."""
    print(f"{part:10} {case:34} {figure:26} {value:12.6g}", flush=True)
    kept = {}
    if RESULTS.exists():
        with RESULTS.open() as file:
            kept = {tuple(row[:3]): row[3] for row in list(csv.reader(file))[1:]}
    kept[part, case, figure] = f"{value:.6g}"
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["part", "case", "figure", "value"])
        writer.writerows([*key, number] for key, number in kept.items())


def bootstrap_test() -> None:
    """Time the bootstrap likelihood-ratio test."""
    X = fetch_density("nltcs").train
    options = {"blocks": "independent", "n_init": 10, "random_state": 0, "tol": 1e-7}
    two, three = (ExchangeableMixture(k, **options).fit(X) for k in (2, 3))
    likelihood_ratio_test(two, three, X, n_draws=2, random_state=0)  # compiles
    wall, work = time.perf_counter(), time.process_time()
    found = likelihood_ratio_test(two, three, X, n_draws=1000, random_state=0)
    wall, work = time.perf_counter() - wall, time.process_time() - work
    case = "nltcs, 3 against 2 classes"
    note("test", case, "statistic", found.statistic)
    note("test", case, "largest of 1,000 draws", found.draws.max())
    note("test", case, "p", found.p_value)
    note("test", case, "seconds", wall)
    note("test", case, "processor seconds", work)


def matched(own: np.ndarray, peer: np.ndarray) -> np.ndarray:
    """Return the peer's class that goes with each of ours, by item probabilities."""
    return linear_sum_assignment(((own[:, None] - peer[None]) ** 2).sum(axis=2))[1]


def stepmix() -> None:
    """Compare estimates with StepMix."""
    peer_options = {
        "measurement": "bernoulli",
        "n_init": 10,
        "random_state": 0,
        "progress_bar": 0,
        "abs_tol": 1e-12,
        "rel_tol": 0,
        "max_iter": 5000,
    }
    newton = {"method": "newton-raphson", "max_iter": 100, "tol": 1e-10}
    for separation in (0.7, 0.8, 0.9):
        X, Z, _ = data_bakk_covariate(2000, separation, random_state=1)
        Z = Z.astype(float)
        model = ExchangeableMixture(3, random_state=0, **PRECISE).fit(X)
        for method in ("BCH", "ML"):
            peer = StepMix(
                3, n_steps=3, correction=method, structural="covariate",
                structural_params=newton, **peer_options,
            ).fit(X, Z)  # fmt: skip
            began = time.perf_counter()
            found = covariate_effects(model, X, Z, method=method.lower())
            seconds = time.perf_counter() - began
            beta = peer._sm.parameters["beta"]
            order = matched(model.profiles().values.T, peer._mm.parameters["pis"])
            case = f"covariate, {method}, separation {separation}"
            difference = np.abs(beta[order] - beta[order][0] - found.coefficients).max()
            note("stepmix", case, "largest difference", difference)
            note("stepmix", case, "seconds of step 3", seconds)
        began = time.perf_counter()
        own = ExchangeableMixture(3, random_state=0, **PRECISE).fit(X, covariates=Z)
        middle = time.perf_counter()
        peer = StepMix(
            3, n_steps=1, structural="covariate", structural_params=newton, **peer_options
        ).fit(X, Z)
        end = time.perf_counter()
        beta = peer._sm.parameters["beta"]
        order = matched(own.profiles().values.T, peer._mm.parameters["pis"])
        case = f"covariate, one step, separation {separation}"
        difference = np.abs(beta[order] - beta[order][0] - own.coefficients_).max()
        note("stepmix", case, "largest difference", difference)
        note("stepmix", case, "log-likelihood less theirs", own.log_likelihood_ - peer.score(X, Z))
        note("stepmix", case, "times faster", (end - middle) / (middle - began))
        X, Y, _ = data_bakk_response(2000, separation, random_state=1)
        model = ExchangeableMixture(3, random_state=0, **PRECISE).fit(X)
        for method in ("BCH", "ML"):
            peer = StepMix(
                3, n_steps=3, correction=method, structural="gaussian_diag", **peer_options
            ).fit(X, Y)
            order = matched(model.profiles().values.T, peer._mm.parameters["pis"])
            found = outcomes(model, X, Y, method=method.lower()).outcomes[0]
            difference = np.abs(peer._sm.parameters["means"][order].ravel() - found.estimates)
            case = f"outcome, {method}, separation {separation}"
            note("stepmix", case, "largest difference", difference.max())


def survey(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return answers, a covariate and an outcome."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=1000)
    scores = np.column_stack([np.ones(1000), z]) @ TRUTH.T
    chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    kind = (rng.random((1000, 1)) > chance.cumsum(axis=1)).sum(axis=1)
    X = (rng.random((1000, 8)) < RATES[kind]).astype(float)
    return X, z, rng.normal(MEANS[kind], 1)


def coverage() -> None:
    """Count how often intervals hold the truth."""
    held: dict[str, list[np.ndarray]] = {}
    sizes = average_sizes()
    options = {"blocks": "independent", "alpha": 1e-3, "tol": 1e-8, "max_iter": 3000, "n_init": 5}

    def count(name: str, interval: np.ndarray, truth: np.ndarray) -> None:
        known = np.isfinite(interval).all(axis=0)
        inside = (interval[0] <= truth) & (truth <= interval[1])
        held.setdefault(name, []).append(inside[known])

    for seed in range(SURVEYS):
        X, z, y = survey(seed)
        model = ExchangeableMixture(3, random_state=seed, **options).fit(X)
        order = matched(RATES, model.profiles().values.T)
        found = {"information": standard_errors(model, X, method="information")}
        if seed < BOOTSTRAPS:
            drawn = {"n_draws": DRAWS, "random_state": seed}
            found["bootstrap"] = standard_errors(model, X, **drawn)
        for method, errors in found.items():
            shown = errors.profiles
            count(f"class sizes, {method}", shown.size_interval[:, order], sizes)
            count(f"item probabilities, {method}", shown.interval[:, :, order], RATES.T)
        reference = int(order[0])
        for method in ("bch", "ml"):
            effects = covariate_effects(model, X, z, method=method, reference=reference)
            count(f"covariate, {method}", effects.interval[:, order[1:], 1], TRUTH[1:, 1])
            one = outcomes(model, X, y, method=method).outcomes[0]
            count(f"outcome, {method}", one.interval[:, order], MEANS)
        joint = ExchangeableMixture(3, random_state=seed, **options).fit(X, covariates=z)
        order = matched(RATES, joint.profiles().values.T)
        effects = covariate_effects(joint, X, z, method="one-step", reference=int(order[0]))
        count("covariate, one step", effects.interval[:, order[1:], 1], TRUTH[1:, 1])
    for name, inside in held.items():
        note("coverage", name, "share of 95 % intervals", np.concatenate(inside, axis=None).mean())


def clustered(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return answers, an outcome, strata and clusters."""
    rng = np.random.default_rng(seed)
    strata, clusters = np.repeat(np.arange(4), 180), np.repeat(np.arange(48), 15)
    shift = rng.normal(0, 0.8, 48)[clusters]
    chance = 1 / (1 + np.exp(-(STRATUM_LOGITS[strata] + shift)))
    kind = (rng.random(720) < chance).astype(int)
    rates = np.where(kind[:, None] == 1, 0.8, 0.2)
    X = (rng.random((720, 6)) < rates).astype(float)
    return X, rng.normal(kind + rng.normal(0, 0.5, 48)[clusters], 1), strata, clusters


def design() -> None:
    """Count how often intervals of clustered samples hold the truth."""
    held: dict[str, list[np.ndarray]] = {}
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    share = 1 / (1 + np.exp(-(STRATUM_LOGITS[:, None] + 0.8 * nodes)))
    share = float((share @ weights).mean() / weights.sum())
    options = {"blocks": "independent", "alpha": 1e-3, "tol": 1e-8, "max_iter": 3000, "n_init": 3}
    for seed in range(SURVEYS):
        X, y, strata, clusters = clustered(seed)
        model = ExchangeableMixture(2, random_state=seed, **options).fit(X)
        upper = int(model.profiles().values.mean(axis=0).argmax())
        for name, known in (
            ("without the design", {}),
            ("with the design", {"strata": strata, "clusters": clusters}),
        ):
            methods = ("information", "bootstrap") if seed < BOOTSTRAPS else ("information",)
            for method in methods:
                drawn = {"method": method, "n_draws": DRAWS, "random_state": seed}
                found = standard_errors(model, X, **drawn, **known).profiles
                low, high = found.size_interval[:, upper]
                inside = np.array([low <= share <= high])
                held.setdefault(f"class sizes, {method}, {name}", []).append(inside)
            one = outcomes(model, X, y, **known).outcomes[0]
            low, high = one.interval[:, [upper, 1 - upper]]
            inside = (low <= np.array([1.0, 0.0])) & (np.array([1.0, 0.0]) <= high)
            held.setdefault(f"outcome, bch, {name}", []).append(inside)
    for name, inside in held.items():
        note("design", name, "share of 95 % intervals", np.concatenate(inside).mean())


def average_sizes() -> np.ndarray:
    """Return the class sizes over all values of the covariate."""
    z = np.random.default_rng(0).normal(size=2_000_000)
    scores = TRUTH[:, 0] + z[:, None] * TRUTH[:, 1]
    chance = np.exp(scores)
    return (chance / chance.sum(axis=1, keepdims=True)).mean(axis=0)


PARTS = {"test": bootstrap_test, "stepmix": stepmix, "coverage": coverage, "design": design}

if __name__ == "__main__":
    for name in [part for part in sys.argv[1:] if part in PARTS] or PARTS:
        PARTS[name]()
