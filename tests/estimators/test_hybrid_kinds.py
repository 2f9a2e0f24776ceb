"""Hybrid training of tables: predicts as logistic regression, answers as a distribution."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

import exchangeable
from exchangeable import ExchangeableClassifier, Hybrid

N = 300
rng = np.random.default_rng(4)
LABEL = rng.integers(0, 3, N)
TABLE = pd.DataFrame(
    {
        "city": pd.Categorical.from_codes(
            np.where(rng.random(N) < 0.5, LABEL, rng.integers(0, 3, N)), ["Oslo", "Rome", "Wien"]
        ),
        "grade": pd.Categorical.from_codes(
            rng.binomial(3, 0.2 + 0.25 * LABEL), list("abcd"), ordered=True
        ),
        "visits": rng.negative_binomial(2, 0.6 - 0.2 * (LABEL == 2), N),
        "member": rng.random(N) < 0.3 + 0.2 * LABEL,
        "age": rng.normal(LABEL, 1.0 + 0.5 * (LABEL == 1)),
    }
)
KINDS = {"visits": "count"}
HOLED = TABLE.astype({"member": "boolean", "visits": "Int64"}).mask(rng.random(TABLE.shape) < 0.2)


@pytest.fixture(scope="module")
def trained() -> ExchangeableClassifier:
    return ExchangeableClassifier(training="hybrid", kinds=KINDS).fit(HOLED, LABEL)


def test_answers_are_those_of_a_distribution(trained: ExchangeableClassifier) -> None:
    """Sums over levels and counts, and an integral over a measurement, are what holes are worth."""
    assert [part.name for part in trained._model.parts] == ["levels", "count bins", "normals"]
    row = TABLE.iloc[[0]].assign(grade=None, visits=np.nan)
    states = list(itertools.product("abcd", range(300)))
    rows = pd.concat([row] * len(states), ignore_index=True)
    rows["grade"] = pd.Categorical([grade for grade, _ in states], list("abcd"), ordered=True)
    rows["visits"] = [float(visits) for _, visits in states]
    total = logsumexp(trained.predict_joint_log_proba(rows), axis=0)
    np.testing.assert_allclose(trained.predict_joint_log_proba(row)[0], total, atol=1e-7)
    ages = np.linspace(-30, 30, 6001)
    rows = pd.concat([row.assign(age=0.0)] * ages.size, ignore_index=True).assign(age=ages)
    density = np.exp(trained.predict_joint_log_proba(rows)).sum(axis=0) * (ages[1] - ages[0])
    expected = np.exp(trained.predict_joint_log_proba(row.assign(age=np.nan)))[0]
    np.testing.assert_allclose(density, expected, rtol=1e-6)
    nothing = pd.DataFrame({name: [None] for name in TABLE})
    assert logsumexp(trained.predict_joint_log_proba(nothing)) == pytest.approx(0.0, abs=1e-9)
    visits = trained.conditional("visits", {"grade": "a"})
    assert sum(visits.values()) == pytest.approx(1.0)
    best = trained.most_probable({"city": "Rome"})
    assert np.isfinite(best.log_prob)


def test_shared_terms_make_rows_probable(trained: ExchangeableClassifier) -> None:
    """Draws have the columns' own distributions, nearly: those are what classes share."""
    drawn = trained.sample(4000, random_state=0)[0]
    assert drawn["age"].mean() == pytest.approx(TABLE["age"].mean(), abs=0.15)
    assert drawn["age"].std() == pytest.approx(TABLE["age"].std(), abs=0.2)
    assert drawn["visits"].mean() == pytest.approx(TABLE["visits"].mean(), abs=0.4)
    shares = drawn["city"].value_counts(normalize=True) - TABLE["city"].value_counts(normalize=True)
    assert shares.abs().max() < 0.06


def test_it_is_logistic_regression_of_the_features() -> None:
    X = TABLE[["age", "member"]].assign(other=rng.normal(size=N))
    ours = ExchangeableClassifier(
        training=Hybrid(scores=(), penalty=2.0), kinds=exchangeable.Kinds(transform="none"),
        tol=1e-7, max_iter=500,
    ).fit(X, LABEL)  # fmt: skip
    ages = (X[["age", "other"]] - X[["age", "other"]].mean()) / X[["age", "other"]].std(ddof=0)
    features = np.column_stack([X["member"], ages, ages**2])
    peer = LogisticRegression(C=0.5, tol=1e-10, max_iter=5000).fit(features, LABEL)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(features), atol=1e-4)


def test_files_keep_it(trained: ExchangeableClassifier, tmp_path: Path) -> None:
    exchangeable.save(trained, tmp_path / "trained.exch")
    same = exchangeable.load(tmp_path / "trained.exch")
    np.testing.assert_array_equal(same.predict_proba(HOLED), trained.predict_proba(HOLED))


def test_sparse_counts_are_trained_as_dense_ones() -> None:
    counts = rng.poisson(0.4 + 0.8 * (LABEL[:, None] == np.arange(6) % 3))
    dense = ExchangeableClassifier(training="hybrid", kinds="count").fit(counts, LABEL)
    sparse = ExchangeableClassifier(training="hybrid", kinds="count")
    sparse.fit(sp.csr_array(counts), LABEL)
    expected = dense.predict_joint_log_proba(counts)
    for model, rows in ((sparse, sp.csr_array(counts)), (sparse, counts)):
        np.testing.assert_allclose(model.predict_joint_log_proba(rows), expected, rtol=1e-6)
    assert sparse.score(counts, LABEL) > 0.55


def test_what_cannot_be_trained_so_is_refused() -> None:
    with pytest.raises(ValueError, match="their scores are not log-linear"):
        ExchangeableClassifier("polya", training="hybrid").fit(TABLE, LABEL)
    several = ExchangeableClassifier(training=Hybrid(n_components=2))
    with pytest.raises(ValueError, match="n_components=2 per class is for binary columns"):
        several.fit(TABLE, LABEL)
