"""Classes that are mixtures: missing labels, hidden trees as classes, batches."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import exchangeable
from enumeration import all_states
from exchangeable import Blocks, ExchangeableClassifier, Generative
from exchangeable.data.observed import as_observed
from exchangeable.estimators.fits.chosen import class_mixtures
from exchangeable.fitting.classes.mixtures import InMemoryRows, shares_of_class, told_of
from exchangeable.fitting.tasks import spec_of

N = 6
STATES = all_states(N)
rng = np.random.default_rng(4)
pytestmark = pytest.mark.filterwarnings("ignore:EM ", "ignore:. of . components lost")


def drawn(n: int) -> tuple[Any, Any]:
    """Return rows of two classes with the same means: chains whose neighbours agree, or differ."""
    y = rng.integers(0, 2, n)
    turns = np.cumsum(rng.random((n, N)) < np.where(y == 0, 0.15, 0.85)[:, None], axis=1)
    return ((turns + rng.integers(0, 2, (n, 1))) % 2).astype(float), y


X, Y = drawn(500)
TEST, KIND = drawn(800)
SOME = np.where(np.arange(500) < 460, -1, Y)
TREE: dict[str, Any] = {"family": "hidden tree", "training": Generative(3, n_init=1)}
OPTIONS = [TREE, {"training": Generative(3), "blocks": "independent"}]


def test_a_hidden_tree_for_each_class_sees_what_blocks_cannot() -> None:
    tree = ExchangeableClassifier(**TREE, n_jobs=1).fit(X, Y)
    blocks = ExchangeableClassifier(n_jobs=1).fit(X, Y)
    assert tree.score(TEST, KIND) > 0.9 > blocks.score(TEST, KIND)
    assert logsumexp(tree.predict_joint_log_proba(STATES)) == pytest.approx(0.0, abs=1e-9)
    assert ExchangeableClassifier("hidden tree", n_jobs=1).fit(X, Y).score(TEST, KIND) > 0.9


@pytest.mark.parametrize("options", OPTIONS, ids=["hidden tree", "several components"])
def test_rows_without_a_label_help(options: dict[str, Any]) -> None:
    learned = ExchangeableClassifier(semi_supervised=True, n_jobs=1, **options).fit(X, SOME)
    alone = ExchangeableClassifier(n_jobs=1, **options).fit(X[460:], Y[460:])
    joint = [model.predict_joint_log_proba(TEST) for model in (learned, alone)]
    told = [logsumexp(each, axis=1).mean() for each in joint]
    assert told[0] > told[1] + 0.1
    assert learned.class_count_.sum() == pytest.approx(500)


def test_the_likelihood_of_rows_and_labels_rises_with_every_step() -> None:
    found = []

    class Watched(InMemoryRows):
        def told(self, classes: Any) -> Any:
            joint = classes.joint(self.observed)
            known = self.labels >= 0
            labelled = joint[np.flatnonzero(known), self.labels[known]].sum()
            found.append(labelled + logsumexp(joint[~known], axis=1).sum())
            return super().told(classes)

    model = ExchangeableClassifier(tol=0.0, max_iter=12, pooling=1e-6, **TREE)
    model.set_params(alpha=1e-6, n_jobs=1, blocks=Blocks(shrinkage=1e-6))
    plan = class_mixtures(model, spec_of(model), TREE["training"], N, 2)
    plan.fit(Watched(as_observed(X, None), SOME, np.ones(500), 1))
    assert len(found) == 12
    assert all(after > before - 1e-3 for before, after in pairwise(found))
    assert found[-1] > found[0] + 10


def test_shares_add_up() -> None:
    joint = np.log(rng.dirichlet(np.ones(3), 5)) - 2.0
    labels, weights = np.array([-1, 0, 2, -1, 1]), np.array([1.0, 2.0, 1.0, 0.5, 1.0])
    log_likelihood, totals = told_of(joint, labels, weights)
    assert totals.sum() == pytest.approx(weights.sum())
    known = 2 * joint[1, 0] + joint[2, 2] + joint[4, 1]
    assert log_likelihood == pytest.approx(known - 2.0 * 1.5)
    shares = np.stack([shares_of_class(joint, labels, y) for y in range(3)], axis=1)
    np.testing.assert_allclose(shares[[0, 3]], np.exp(joint[[0, 3]] + 2.0))
    np.testing.assert_array_equal(shares[[1, 2, 4]], np.eye(3)[[0, 2, 1]])
    rows = InMemoryRows(as_observed(X[:5], None), labels, weights)
    assert rows.totals.tolist() == [2.0, 1.0, 1.0]
    assert rows.unlabelled == 1.5


def test_batches_come_near_to_a_fit_in_whatever_order(tmp_path: Any) -> None:
    whole = ExchangeableClassifier(**{**TREE, "training": "generative"}, n_jobs=1).fit(X, Y)
    for order in (np.arange(500), np.argsort(Y, kind="stable")):
        parts = ExchangeableClassifier("hidden tree", n_jobs=1)
        for part in np.array_split(order, 5):
            parts.partial_fit(X[part], Y[part], classes=[0, 1])
        assert parts.score(TEST, KIND) > whole.score(TEST, KIND) - 0.03
        np.testing.assert_array_equal(parts.class_count_, np.bincount(Y))
    exchangeable.save(parts, tmp_path / "model")
    again = exchangeable.load(tmp_path / "model").partial_fit(X, Y)
    assert again.score(TEST, KIND) > whole.score(TEST, KIND) - 0.03


def test_a_class_may_come_late() -> None:
    model = ExchangeableClassifier("hidden tree", n_jobs=1)
    model.partial_fit(X[Y == 0], Y[Y == 0], classes=[0, 1])
    assert (model.predict(TEST) == 0).all()
    model.partial_fit(X[Y == 1], Y[Y == 1])
    assert model.score(TEST, KIND) > 0.9


def test_rows_of_a_file_outweigh_a_small_batch(tmp_path: Any) -> None:
    model = ExchangeableClassifier("hidden tree", n_jobs=1).fit(X, Y)
    before = model.predict_joint_log_proba(TEST)
    exchangeable.save(model, tmp_path / "model")
    again = exchangeable.load(tmp_path / "model").partial_fit(X[Y == 1][:10], np.zeros(10, int))
    moved = np.abs(again.predict_joint_log_proba(TEST) - before)[:, 0].mean()
    assert 0.01 < moved < 0.8


def test_weights_count_in_chunks_where_labels_are_missing() -> None:
    weights, some = np.where(np.arange(500) % 5, 0.5, 4.0), np.where(np.arange(500) % 3, -1, Y)
    options: dict[str, Any] = {"semi_supervised": True, "max_iter": 4, "n_jobs": 1}
    here, there = (
        ExchangeableClassifier("hidden tree", **options).fit(rows, some, sample_weight=weights)
        for rows in (X, [X[:200], X[200:]])
    )
    np.testing.assert_allclose(here.class_count_, there.class_count_, rtol=1e-9)
    joint = [model.predict_joint_log_proba(TEST) for model in (here, there)]
    np.testing.assert_allclose(*joint, rtol=1e-9)
