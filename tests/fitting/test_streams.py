"""Batches of rows for every family: sums that are kept, and a sample that stands for all rows."""

from typing import Any

import numpy as np
import pytest

import exchangeable
from exchangeable import ExchangeableClassifier, ExchangeableMixture
from exchangeable.data import sketch as sketches
from made_rows import clusters

X = clusters(n_rows=1500, n_variables=10, seed=3)
TEST = clusters(n_rows=1500, n_variables=10, seed=3)[::-1]
HOLED = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
KIND = (X[:, :5].sum(axis=1) > X[:, 5:].sum(axis=1)).astype(int)
FAMILIES: list[dict[str, Any]] = [
    {"family": "urns"},
    {"family": "tree"},
    {"family": "weighted tree"},
    {"family": "count tree"},
    {"family": "hidden tree"},
    {"pooling": 3.0},
    {"blocks": [([2, 0, 1], "runs")]},
]
pytestmark = pytest.mark.filterwarnings("ignore:EM ")


def in_batches(rows: Any, n_batches: int, **options: Any) -> ExchangeableMixture:
    model = ExchangeableMixture(**{"n_components": 3, "random_state": 0, "n_jobs": 1} | options)
    for part in np.array_split(rows, n_batches):
        model.partial_fit(part)
    return model


@pytest.mark.parametrize("options", FAMILIES, ids=str)
def test_one_pass_comes_near_to_a_fit(options: dict[str, Any]) -> None:
    whole = ExchangeableMixture(3, random_state=0, n_jobs=1, **options).fit(X)
    first = ExchangeableMixture(3, random_state=0, n_jobs=1, **options).fit(X[:150])
    parts = in_batches(X, 10, **options)
    assert parts.score(TEST) > whole.score(TEST) - 0.1
    assert parts.score(TEST) > first.score(TEST)
    assert parts.n_samples_weight_ == 1500
    assert parts._kept.sums.totals.sum() == pytest.approx(1500)


def classes(rows: Any, order: Any, n_batches: int, **options: Any) -> ExchangeableClassifier:
    model = ExchangeableClassifier(n_jobs=1, **options)
    for part in np.array_split(order, n_batches):
        model.partial_fit(rows[part], KIND[part], classes=[0, 1])
    return model


@pytest.mark.parametrize("options", [FAMILIES[1], FAMILIES[3], FAMILIES[5], FAMILIES[6]], ids=str)
@pytest.mark.parametrize("order", ["given", "sorted by class"])
def test_classes_end_where_fit_does_while_all_rows_are_kept(
    options: dict[str, Any], order: str
) -> None:
    rows = np.arange(len(X)) if order == "given" else np.argsort(KIND, kind="stable")
    parts = classes(X, rows, 4, **options)
    whole = ExchangeableClassifier(n_jobs=1, **options).fit(X, KIND)
    np.testing.assert_allclose(
        parts.predict_joint_log_proba(TEST), whole.predict_joint_log_proba(TEST), rtol=1e-8
    )
    np.testing.assert_allclose(parts.class_count_, whole.class_count_)


@pytest.mark.parametrize("family", ["blocks", "urns", "weighted tree"])
def test_holes_of_batches_are_summed_out(family: str) -> None:
    parts = classes(HOLED, np.arange(len(X)), 5, family=family)
    whole = ExchangeableClassifier(family, n_jobs=1).fit(HOLED, KIND)
    assert abs(parts.score(TEST, KIND[::-1]) - whole.score(TEST, KIND[::-1])) < 0.02
    joint = [m.predict_joint_log_proba(X)[np.arange(len(X)), KIND].mean() for m in (parts, whole)]
    assert joint[0] > joint[1] - 0.05
    np.testing.assert_allclose(parts.class_count_, whole.class_count_)


@pytest.mark.parametrize("family", ["urns", "tree"])
def test_memory_does_not_grow(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "MOST_ROWS", 200)
    model = in_batches(HOLED, 5, family=family)
    assert model._kept.sketch.rows.n_rows == 200
    assert model._kept.sketch.holes.n_rows == 200
    assert model._kept.sketch.sample_weights.sum() == pytest.approx(1500)
    assert model.score(X) > ExchangeableMixture(1, family=family, n_jobs=1).fit(X).score(X)


def test_a_file_goes_on_as_a_fit_does(tmp_path: Any) -> None:
    """What the model says of rows that are gone stands for them."""
    fitted = ExchangeableMixture(3, family="urns", random_state=0, n_jobs=1).fit(X[:1000])
    exchangeable.save(fitted, tmp_path / "m")
    before = fitted.score(TEST)
    again = exchangeable.load(tmp_path / "m")
    for model in (fitted, again):
        model.partial_fit(X[1000:])
        exchangeable.save(model, tmp_path / "after")  # without what is kept
        assert model.score(TEST) > before - 0.05
    np.testing.assert_array_equal(fitted.score_samples(TEST), again.score_samples(TEST))
    assert fitted.set_params(max_iter=2).fit(X)._model is not None
    assert not hasattr(fitted, "_kept")


def test_a_class_may_come_late() -> None:
    first = KIND == 0
    model = ExchangeableClassifier("tree", n_jobs=1)
    model.partial_fit(X[first][:200], KIND[first][:200], classes=[0, 1])
    assert np.isfinite(model.predict_joint_log_proba(X)[:, 0]).all()
    model.partial_fit(X, KIND)
    rows, kinds = np.concatenate([X[first][:200], X]), np.append(np.zeros(200, int), KIND)
    whole = ExchangeableClassifier("tree", n_jobs=1).fit(rows, kinds)
    np.testing.assert_allclose(
        model.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-8
    )
