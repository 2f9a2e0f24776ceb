"""Blocks with statistics that are trained for their predictions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

import exchangeable
from enumeration import agreeing, all_states
from exchangeable import ExchangeableClassifier

N = 9
STATES = all_states(N)
rng = np.random.default_rng(3)


def drawn(n: int) -> tuple[Any, Any]:
    """Return chains of three classes that turn more or less often, one item, and a copy of it."""
    y = rng.integers(0, 3, n)
    turns = np.cumsum(rng.random((n, 7)) < np.array([0.1, 0.4, 0.7])[y][:, None], axis=1)
    item = rng.random((n, 1)) < np.array([0.2, 0.5, 0.7])[y][:, None]
    return np.hstack([(turns + rng.integers(0, 2, (n, 1))) % 2, item, item]).astype(float), y


X, Y = drawn(400)
TEST, KIND = drawn(1500)
HOLED = np.where(rng.random(X.shape) < 0.2, np.nan, X)
SEVEN = (range(7), ["count", "runs"])


@pytest.mark.parametrize("blocks", [[SEVEN], [SEVEN, ([8, 7], "runs")]], ids=["rest", "no rest"])
@pytest.mark.parametrize("rows", [X, HOLED], ids=["complete", "holes"])
def test_it_is_a_distribution_that_sums_out_what_is_unknown(blocks: Any, rows: Any) -> None:
    model = ExchangeableClassifier(blocks=blocks, training="hybrid").fit(rows, Y)
    joint = model.predict_joint_log_proba(STATES)
    assert logsumexp(joint) == pytest.approx(0.0, abs=1e-9)
    for row in HOLED[:10]:
        expected = logsumexp(joint[agreeing(STATES, row)], axis=0)
        found = model.predict_joint_log_proba(row[None])[0]
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_evidence_chooses_the_statistic_and_a_copied_item_counts_once() -> None:
    """Naive Bayes believes an item twice; what is trained for predictions does not."""
    apart = [SEVEN, ([7], "count"), ([8], "count")]
    fits = [
        ExchangeableClassifier(blocks=apart, training=each).fit(X, Y)
        for each in ("generative", "hybrid")
    ]
    losses = [-fit.predict_log_proba(TEST)[np.arange(1500), KIND].mean() for fit in fits]
    assert losses[1] < losses[0]
    assert repr(fits[1]._fitted().blocks[0].statistic) == "Runs(7)"


def test_without_generative_scores_it_is_a_logistic_regression_of_the_values() -> None:
    """The same P(y | x) as scikit-learn's, fitted to indicators of the number of runs."""
    model = ExchangeableClassifier(
        blocks=[(range(7), "runs")],
        training=exchangeable.Hybrid(scores=(), penalty=1.0),
        tol=1e-7,
        max_iter=500,
    ).fit(X[:, :7], Y)
    runs = 1 + np.count_nonzero(np.diff(X[:, :7], axis=1), axis=1)
    plain = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(np.eye(8)[runs], Y)
    runs = 1 + np.count_nonzero(np.diff(TEST[:, :7], axis=1), axis=1)
    apart = np.abs(model.predict_proba(TEST[:, :7]) - plain.predict_proba(np.eye(8)[runs]))
    assert apart.max() < 1e-4


def test_it_is_saved(tmp_path: Path) -> None:
    model = ExchangeableClassifier(blocks=[SEVEN], training="hybrid").fit(X, Y)
    exchangeable.save(model, tmp_path / "model")
    again = exchangeable.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(HOLED), model.predict_proba(HOLED))
