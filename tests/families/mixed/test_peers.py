"""The same numbers as scikit-learn's naive Bayes, StepMix, and R's eRm, where they do the same."""

import itertools
import shutil
import subprocess
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy.special import gammaln
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB

from exchangeable import ExchangeableClassifier, ExchangeableMixture, Kinds
from exchangeable.data.columns.kinds import decide
from exchangeable.data.examples import merge_equal_rows
from exchangeable.families import REGISTRY
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.mixed.algebra.totals import log_counts
from exchangeable.fitting.em import StopRule, run_em
from exchangeable.fitting.runs import begin, families_of
from exchangeable.fitting.tasks import problem_of

rng = np.random.default_rng(5)
Y = rng.integers(0, 3, 400)
LEVELS = rng.binomial(4, np.array([0.2, 0.5, 0.7])[Y][:, None], (400, 6))
COUNTS = rng.poisson(np.array([[1, 4, 2], [3, 1, 1], [0.5, 0.5, 5]])[Y])
NUMBERS = rng.normal(np.array([0.0, 2.0, 4.0])[Y][:, None] * [1, 10, 0.1], [1, 20, 0.05])


def test_categorical_naive_bayes() -> None:
    for alpha in (0.1, 2.0):
        peer = CategoricalNB(alpha=alpha).fit(LEVELS, Y)
        own = ExchangeableClassifier(kinds="nominal", alpha=alpha).fit(LEVELS, Y)
        np.testing.assert_allclose(
            own.predict_joint_log_proba(LEVELS), peer.predict_joint_log_proba(LEVELS), atol=1e-9
        )


def test_gaussian_naive_bayes() -> None:
    peer = GaussianNB(var_smoothing=0).fit(NUMBERS, Y)
    kinds = Kinds("continuous", transform="none")
    own = ExchangeableClassifier(kinds=kinds, alpha=0.0).fit(NUMBERS, Y)
    np.testing.assert_allclose(
        own.predict_joint_log_proba(NUMBERS), peer.predict_joint_log_proba(NUMBERS), atol=1e-9
    )


def test_multinomial_naive_bayes() -> None:
    """Its score is that of the counts given their total, without what all classes share."""
    peer = MultinomialNB(alpha=0.5).fit(COUNTS, Y)
    own = ExchangeableClassifier(kinds="count", blocks="full", alpha=0.5).fit(COUNTS, Y)
    part = own._model.parts[0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(part.log_shares.T, peer.feature_log_prob_, atol=1e-12)
    total = COUNTS.sum(axis=1)
    shared = gammaln(total + 1) - gammaln(COUNTS + 1).sum(axis=1)
    lengths = log_counts(total.astype(float), part.means, part.sizes)
    given = own.predict_joint_log_proba(COUNTS) - lengths - shared[:, None]
    np.testing.assert_allclose(given, peer.predict_joint_log_proba(COUNTS), atol=1e-9)


def log_likelihood_after(X: np.ndarray, kind: Any, posterior: np.ndarray, steps: int) -> float:
    """Return the average log-likelihood after some steps of EM from given posteriors."""
    k = posterior.shape[1]
    estimator = ExchangeableMixture(k, alpha=0.0)
    schema = decide(X, kind, bend=False)
    assert schema is not None
    examples, member = merge_equal_rows(schema.observed(X), np.ones(len(X)))
    assert (member == np.arange(len(X))).all()
    spec = REGISTRY["mixed"]
    problem = problem_of(estimator, spec, X.shape[1], range(k), labelled=False)
    family = families_of(spec, replace(problem, examples=examples))[-1]
    data = InMemory(examples)
    state = begin(data, family, family.held(data, posterior))
    return run_em(data, family, state, StopRule(0.0, steps)).history[-1]


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
@pytest.mark.parametrize("kind", ["nominal", "continuous", "both"])
def test_stepmix_from_the_same_start(kind: str, holes: bool) -> None:
    stepmix = pytest.importorskip("stepmix")
    source = np.random.default_rng(1)
    kinds: Any = {0: "nominal", 1: "nominal", 2: "continuous"} if kind == "both" else kind
    both = np.column_stack([LEVELS[:, :2], NUMBERS[:, 0]])
    X: Any = {"continuous": NUMBERS, "nominal": LEVELS, "both": both}[kind].astype(float)
    if holes:
        X = np.where(source.random(X.shape) < 0.1, np.nan, X)
    X = pd.DataFrame(X).drop_duplicates().to_numpy()
    suffix = "_nan" if holes else ""
    levels, numbers = f"categorical{suffix}", f"gaussian_diag{suffix}"
    measurement: Any = {
        "nominal": levels,
        "continuous": numbers,
        "both": {
            "levels": {"model": levels, "n_columns": 2},
            "numbers": {"model": numbers, "n_columns": 1},
        },
    }[kind]
    peer = stepmix.StepMix(3, measurement=measurement, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(X)
        posterior = source.dirichlet(np.ones(3), len(X))
        peer._m_step(X, posterior)
        for _ in range(20):
            peer._m_step(X, np.exp(peer._e_step(X)[1]))
        expected = peer.score(X)
    assert log_likelihood_after(X, kinds, posterior, 20) == pytest.approx(expected, abs=1e-6)


def conditional_fit(items: np.ndarray) -> np.ndarray:
    """Return log ε of binary items by conditional maximum likelihood, written out."""
    counts = items.sum(axis=0)
    totals = np.bincount(items.sum(axis=1), minlength=items.shape[1] + 1)

    def cost(free: np.ndarray) -> float:
        log_weights = np.concatenate([[0.0], free])
        polynomial = np.ones(1)
        for weight in np.exp(log_weights):
            polynomial = np.convolve(polynomial, [1.0, weight])
        return float(totals @ np.log(polynomial) - counts @ log_weights)

    found = optimize.minimize(cost, np.zeros(items.shape[1] - 1), method="BFGS", tol=1e-10)
    best = np.concatenate([[0.0], found.x])
    return np.asarray(best - best.mean())


def item_parameters(items: np.ndarray, kinds: str) -> list[np.ndarray]:
    """Return log ε of the levels of every item, from one component without a prior."""
    table = pd.DataFrame(items, columns=[f"I{j}" for j in range(items.shape[1])])
    names = list(table.columns)
    table["x"] = rng.choice(["a", "b"], len(table))  # another kind, so that the family is `mixed`
    told = dict.fromkeys(names, kinds)
    model = ExchangeableMixture(
        1, kinds=told, blocks=[names, ["x"]], alpha=0.0, tol=0.0, max_iter=3000, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = model.fit(table)._model.parts[1]  # type: ignore[attr-defined]
    begins = [*part.starts, len(part.log_shares)]
    lines = [part.log_shares[a:b, 0] for a, b in itertools.pairwise(begins)]
    return [line - line[0] for line in lines]


ABILITY = rng.normal(size=300)
RASCH = (rng.random((300, 5)) < 1 / (1 + np.exp(np.linspace(-1, 1, 5) - ABILITY[:, None]))) * 1
GRADED = rng.binomial(3, 1 / (1 + np.exp(np.linspace(-1, 1, 4) - ABILITY[:, None])))


def test_rasch_weights_are_those_of_conditional_maximum_likelihood() -> None:
    own = np.array([line[1] for line in item_parameters(RASCH, "binary")])
    np.testing.assert_allclose(own - own.mean(), conditional_fit(RASCH), atol=1e-4)


@pytest.mark.parametrize("items", [RASCH, GRADED], ids=["Rasch", "partial credit"])
def test_item_parameters_are_those_of_erm(items: np.ndarray, tmp_path: Any) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    if subprocess.run(["Rscript", "-e", "library(eRm)"], capture_output=True).returncode:
        pytest.skip("R has no package eRm")
    path = tmp_path / "items.csv"
    np.savetxt(path, items, delimiter=",", fmt="%d")
    model = "RM" if items is RASCH else "PCM"
    code = f"library(eRm); cat({model}(as.matrix(read.csv('{path}', header=FALSE)))$betapar)"
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True)
    expected = np.array(done.stdout.split(), dtype=float)  # easiness of every level, summing to 0
    lines = item_parameters(items, "binary" if items is RASCH else "ordinal")
    own = np.concatenate([line[1:] for line in lines])
    scores = np.concatenate([np.arange(1, line.size) for line in lines])
    own -= scores * own.sum() / scores.sum()
    np.testing.assert_allclose(own, expected, atol=1e-4)
