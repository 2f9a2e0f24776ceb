"""Fits to rows in chunks equal those to the same rows in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from exchangeable import (
    Blocks,
    ExchangeableClassifier,
    ExchangeableMixture,
    Generative,
    PackedBits,
)
from exchangeable.data import observed as observed_rows
from scaling_rows import Chunks, assert_same_model, cut, make_rows

HALVES = [list(range(20)), list(range(20, 40))]
BLOCKS = ["independent", "full", "welch", Blocks("evidence", start=0.4), HALVES]
MIXTURE: dict[str, Any] = dict(n_components=3, random_state=1, max_iter=25, tol=1e-4)


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    return make_rows()


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_classifier_equals_the_one_in_memory(rows: Any, blocks: Any, weighted: bool) -> None:
    X, y = rows
    weight = np.arange(len(y)) % 4 / 2 if weighted else None
    local = ExchangeableClassifier(blocks=blocks).fit(X, y, sample_weight=weight)
    chunked = ExchangeableClassifier(blocks=blocks).fit(cut(X), y, sample_weight=weight)
    assert_same_model(local, chunked)
    np.testing.assert_array_equal(local.class_count_, chunked.class_count_)
    np.testing.assert_allclose(
        local.predict_log_proba(X), chunked.predict_log_proba(cut(X)), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(local.predict(X), chunked.predict(Chunks(cut(X))))


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
@pytest.mark.parametrize("init", ["rows", "random"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_mixture_equals_the_one_in_memory(
    rows: Any, blocks: Any, init: str, weighted: bool
) -> None:
    X, _ = rows
    weight = np.arange(len(X)) % 4 / 2 if weighted else None
    options = dict(MIXTURE, blocks=blocks, init=init)
    local = ExchangeableMixture(**options).fit(X, sample_weight=weight)
    chunked = ExchangeableMixture(**options).fit(cut(X), sample_weight=weight)
    assert_same_model(local, chunked)
    assert local.n_iter_ == chunked.n_iter_
    np.testing.assert_allclose(local.history_[0], chunked.history_[0], rtol=1e-10)
    np.testing.assert_allclose(local.score_samples(X), chunked.score_samples(cut(X)), rtol=1e-10)


@pytest.mark.parametrize("blocks", ["welch", Blocks("evidence", start=0.4), "independent"], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_rows_that_repeat_are_dealt_alike(rows: Any, blocks: Any, weighted: bool) -> None:
    X = rows[0][:, :6]  # in memory equal rows are merged, in chunks they are not
    assert len(np.unique(X, axis=0)) < len(X) / 4
    weight = np.arange(len(X)) % 4 / 2 if weighted else None
    options = dict(MIXTURE, blocks=blocks, init="random")
    local = ExchangeableMixture(**options).fit(X, sample_weight=weight)
    chunked = ExchangeableMixture(**options).fit(cut(X), sample_weight=weight)
    assert_same_model(local, chunked)
    np.testing.assert_allclose(local.history_[0], chunked.history_[0], rtol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"blocks": Blocks("evidence", start=0.4, accept="component")},
        {"blocks": Blocks("evidence", start=0.4, conditions=(1, 2))},
        {"combine": "average", "n_init": 2},
        {"n_init": 3},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_mixture_options_mean_the_same_in_chunks(rows: Any, options: dict[str, Any]) -> None:
    X, _ = rows
    local = ExchangeableMixture(**{**MIXTURE, **options}).fit(X)
    chunked = ExchangeableMixture(**{**MIXTURE, **options}).fit(cut(X))
    assert_same_model(local, chunked)
    assert chunked.log_likelihood_ == pytest.approx(local.log_likelihood_, rel=1e-10)


POOLED: list[dict[str, Any]] = [
    {"pooling": 3.0},
    {"pooling": 3.0, "blocks": "welch"},
    {"family": "urns"},
    {"family": "urns", "blocks": Blocks("evidence", start=0.4, relearn=True)},
    {"family": "tree"},
    {"family": "weighted tree"},
    {"family": "count tree"},
    {"family": "count tree", "blocks": HALVES},
    {"family": "hidden tree"},
    {"family": "hidden tree", "blocks": HALVES},
]


@pytest.mark.parametrize("options", POOLED, ids=str)
@pytest.mark.parametrize("init", ["rows", "random"])
@pytest.mark.filterwarnings("ignore:EM ")
def test_pooled_priors_and_trees_are_those_in_memory(
    rows: Any, options: dict[str, Any], init: str
) -> None:
    X = rows[0] if init == "rows" else rows[0][:, :6]  # rows repeat, and are drawn once in memory
    if "blocks" in options and X.shape[1] == 6 and isinstance(options["blocks"], list):
        options = {**options, "blocks": [[0, 2, 5], [1, 3, 4]]}
    weight = np.arange(len(X)) % 4 / 2
    settings = {**MIXTURE, **options, "init": init, "max_iter": 5}
    local = ExchangeableMixture(**settings).fit(X, sample_weight=weight)
    chunked = ExchangeableMixture(**settings).fit(cut(X), sample_weight=weight)
    assert local.n_iter_ == chunked.n_iter_
    np.testing.assert_allclose(local.history_[0], chunked.history_[0], rtol=1e-10)
    np.testing.assert_allclose(local.score_samples(X), chunked.score_samples(X), rtol=1e-9)
    for a, b in zip(local.edges_, chunked.edges_, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("family", "from_rows", "at_random"),
    [
        ("urns", 13, 8),
        ("tree", 14, 9),
        ("weighted tree", 21, 16),
        ("count tree", 25, 20),
        ("hidden tree", 25, 10),
        ("mixed", 10, 8),
    ],
)
@pytest.mark.filterwarnings("ignore:EM ")
def test_a_first_iteration_takes_as_many_passes_as_the_docs_say(
    rows: Any, family: str, from_rows: int, at_random: int
) -> None:
    for init, wanted in (("rows", from_rows), ("random", at_random)):
        source = Chunks(cut(rows[0]))
        settings = dict(family=family, init=init, tol=0.0, max_iter=1, random_state=0)
        ExchangeableMixture(3, **settings).fit(source)
        assert source.number + 1 == wanted


@pytest.mark.parametrize("options", POOLED[:7], ids=str)
def test_classes_of_every_family_are_those_in_memory(rows: Any, options: dict[str, Any]) -> None:
    X, y = rows
    weight = np.arange(len(X)) % 4 / 2
    local = ExchangeableClassifier(**options).fit(X, y, sample_weight=weight)
    chunked = ExchangeableClassifier(**options).fit(cut(X), y, sample_weight=weight)
    np.testing.assert_allclose(
        local.predict_joint_log_proba(X), chunked.predict_joint_log_proba(X), rtol=1e-9
    )
    np.testing.assert_array_equal(local.class_count_, chunked.class_count_)
    assert local.n_iter_ == chunked.n_iter_


def test_classes_of_several_components_are_those_in_memory(rows: Any) -> None:
    X, y = rows[:2]
    model = ExchangeableClassifier(training=Generative(2, n_init=1), max_iter=5, tol=0.0)
    with pytest.warns(ConvergenceWarning):
        expected = model.fit(X, y).predict_joint_log_proba(X)
    with pytest.warns(ConvergenceWarning):
        found = model.fit(cut(X), y).predict_joint_log_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    with pytest.raises(ValueError, match="needs X in memory"):
        model.set_params(training="hybrid").fit(cut(X), y)


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_a_warm_start_goes_on_in_chunks(rows: Any) -> None:
    X, _ = rows
    models = [ExchangeableMixture(**{**MIXTURE, "max_iter": 3}) for _ in range(2)]
    for model, form in zip(models, (X, cut(X)), strict=True):
        before = model.fit(form).log_likelihood_
        model.set_params(warm_start=True, max_iter=6).fit(form)
        assert model.log_likelihood_ > before
    assert_same_model(*models)


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_a_checkpoint_of_chunks_goes_on_where_it_was(rows: Any, tmp_path: Path) -> None:
    X, _ = rows
    options = dict(MIXTURE, blocks="welch", tol=0.0, checkpoint=tmp_path / "state.npz")
    ExchangeableMixture(**{**options, "max_iter": 3}).fit(cut(X))
    going_on = ExchangeableMixture(**{**options, "max_iter": 6}).fit(cut(X))
    assert_same_model(
        ExchangeableMixture(**{**options, "checkpoint": None, "max_iter": 6}).fit(X), going_on
    )
    with pytest.raises(ValueError, match="belongs to another fit: data was"):
        ExchangeableMixture(**options).fit(cut(1 - X))


HOLED: list[dict[str, Any]] = [
    {"blocks": "welch"},
    {"blocks": Blocks("evidence", start=0.4), "tol": 0.05},
    {"blocks": "independent"},
    {"blocks": [[0, 2, 5], [1, 3, 4]], "pooling": 3.0},
    {"blocks": [([2, 0, 3], "runs"), ([5, 1], ["count", "transitions"])]},
    {"family": "urns"},
    {"family": "urns", "blocks": Blocks("welch", relearn=True)},
    {"family": "tree"},
    {"family": "weighted tree"},
    {"family": "count tree"},
    {"family": "hidden tree"},
]


def make_holes(X: Any) -> Any:
    """Return rows of which some chunks have no holes."""
    holed = X.astype(float)
    holed[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    holed[:250] = X[:250]
    return holed


@pytest.mark.parametrize("options", HOLED, ids=str)
@pytest.mark.parametrize("init", ["rows", "random"])
@pytest.mark.filterwarnings("ignore:EM ")
def test_holes_in_chunks_are_drawn_and_summed_as_in_memory(
    rows: Any, options: dict[str, Any], init: str
) -> None:
    X = make_holes(rows[0][:, :6])  # rows repeat, and are drawn once in memory
    weight = np.arange(len(X)) % 4 / 2
    settings = {**MIXTURE, "init": init, "max_iter": 4, **options}
    local = ExchangeableMixture(**settings).fit(X, sample_weight=weight)
    chunked = ExchangeableMixture(**settings).fit(cut(X), sample_weight=weight)
    np.testing.assert_allclose(local.history_[0], chunked.history_[0], rtol=1e-10)
    np.testing.assert_allclose(local.score_samples(X), chunked.score_samples(X), rtol=1e-9)
    for a, b in zip(local._model.partitions, chunked._model.partitions, strict=True):
        np.testing.assert_array_equal(a.labels, b.labels)


@pytest.mark.filterwarnings("ignore:EM ")
def test_holes_of_many_columns_are_drawn_from_their_places(
    rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_rows, "DENSE_BYTES", 8 * 40 * 130)  # draws take 130 rows at once
    X = make_holes(rows[0])
    for options in ({"blocks": "welch"}, {"family": "weighted tree"}, {"family": "count tree"}):
        settings = {**MIXTURE, "tol": 0.0, "max_iter": 2, **options}
        local = ExchangeableMixture(**settings).fit(X)
        chunked = ExchangeableMixture(**settings).fit(cut(X))
        np.testing.assert_allclose(local.history_[0], chunked.history_[0], rtol=1e-10)


@pytest.mark.parametrize("options", [HOLED[0], HOLED[1], *HOLED[3:6], *HOLED[7:10]], ids=str)
@pytest.mark.parametrize("missing", ["entries", "labels", "both"])
@pytest.mark.filterwarnings("ignore:EM ")
def test_what_is_missing_of_classes_is_found_in_chunks(
    rows: Any, options: dict[str, Any], missing: str
) -> None:
    X, y = rows[0][:, :6], rows[1]
    X = X if missing == "labels" else make_holes(X)
    partly = missing != "entries"
    y = np.where(np.arange(len(y)) % 3 == 0, y, -1) if partly else y
    weight = np.arange(len(X)) % 4 / 2
    prior = "uniform" if partly else None
    settings = {"max_iter": 4, "semi_supervised": partly, "class_prior": prior, **options}
    local = ExchangeableClassifier(**settings).fit(X, y, sample_weight=weight)
    chunked = ExchangeableClassifier(**settings).fit(cut(X), y, sample_weight=weight)
    np.testing.assert_allclose(local.history_, chunked.history_, rtol=1e-10)
    np.testing.assert_allclose(local.class_count_, chunked.class_count_, rtol=1e-10)
    np.testing.assert_allclose(
        local.predict_joint_log_proba(X), chunked.predict_joint_log_proba(X), rtol=1e-9
    )


def test_rows_without_any_label_are_refused_in_chunks(rows: Any) -> None:
    X, y = rows
    semi = ExchangeableClassifier(semi_supervised=True)
    with pytest.raises(ValueError, match="all rows are unlabelled"):
        semi.fit(cut(X), np.full(len(y), -1))
    with pytest.raises(ValueError, match="y contains NaN or None, but every row needs a class"):
        ExchangeableClassifier().fit(cut(X), np.where(y == 0, np.nan, y))
    words = np.array(["low", "middle", "high"], dtype=object)[y]
    words[::3] = None
    local, chunked = (
        ExchangeableClassifier(semi_supervised=True, max_iter=2).fit(form, words)
        for form in (X, cut(X))
    )
    np.testing.assert_allclose(local.predict_proba(X), chunked.predict_proba(X), rtol=1e-9)
    some = np.where(np.arange(len(y)) < 5, y, -1)
    with pytest.raises(ValueError, match="sample_weight is zero for every labelled row"):
        semi.fit(cut(X), some, sample_weight=np.arange(len(y)) >= 5)


def test_held_out_rows_of_another_width_are_refused(rows: Any) -> None:
    X, _ = rows
    for valid in (X[:50, :39], [X[:50, :39]]):
        with pytest.raises(ValueError, match="X has 39 features"):
            ExchangeableMixture(2).fit(cut(X), X_valid=valid)
    with pytest.raises(ValueError, match="X_valid exclude each other"):
        ExchangeableMixture(2, validation_fraction=0.1).fit(cut(X), X_valid=X[:50])


def test_chunks_whose_holes_change_are_refused(rows: Any) -> None:
    X = rows[0].astype(float)

    class Restless:
        number = 0

        def chunks(self) -> Any:
            self.number += 1
            yield X[:699]
            yield np.where(np.arange(501)[:, None] == self.number, np.nan, X[699:])

    with pytest.raises(ValueError, match=r"chunk 1 .* has changed since the first pass"):
        ExchangeableMixture(2, family="urns").fit(Restless())


@pytest.mark.filterwarnings("ignore:EM ")
@pytest.mark.parametrize("method", ["welch", "evidence"])
def test_pairs_of_a_block_are_compared_in_chunks(method: str) -> None:
    """Variables of equal means in two halves that covary: only condition 3 tells them apart."""
    rng = np.random.default_rng(3)
    y, moods = rng.integers(0, 2, 3000), rng.random((3000, 2)) < 0.5
    rate = np.where(moods, 0.8, 0.2)[:, np.repeat([0, 1], 5)]
    X = np.concatenate([rng.random((3000, 10)) < rate, rng.random((3000, 4)) < 0.3], axis=1)
    X = np.where(y[:, None] == 1, X, rng.random(X.shape) < 0.5).astype(float)
    weight = np.arange(3000) % 3 / 2
    parts, n_blocks = np.split(X, [700, 701]), []
    for conditions in ((1,), (1, 3), (1, 2, 3)):
        blocks = Blocks(method, conditions=conditions)
        local = ExchangeableClassifier(blocks=blocks).fit(X, y, sample_weight=weight)
        chunked = ExchangeableClassifier(blocks=blocks).fit(parts, y, sample_weight=weight)
        n_blocks.append(int(local.n_blocks_[1]))
        assert_same_model(local, chunked)
    assert n_blocks[0] < n_blocks[1]
    holed = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    options: Any = dict(blocks=blocks, max_iter=3, tol=0.0, random_state=0)
    for form in (X, holed):
        local = ExchangeableMixture(2, **options).fit(form)
        chunked = ExchangeableMixture(2, **options).fit(np.split(form, [700, 701]))
        assert_same_model(local, chunked)


def test_tables_of_pairs_are_summed_in_several_passes(monkeypatch: Any) -> None:
    rng = np.random.default_rng(4)
    X = (rng.random((900, 12)) < np.repeat([0.1, 0.5, 0.9], 4)).astype(np.uint8)
    blocks = Blocks("welch", conditions=(1, 3))
    numbers = []
    for most in (1 << 21, 20):
        monkeypatch.setattr("exchangeable.structure.condition_passes.MOST_ENTRIES", most)
        source = Chunks(cut(X))
        chunked = ExchangeableClassifier(blocks=blocks).fit(source, np.arange(900) % 2)
        assert_same_model(ExchangeableClassifier(blocks=blocks).fit(X, np.arange(900) % 2), chunked)
        numbers.append(source.number)
    assert numbers[1] > numbers[0]


def test_evidence_merging_takes_as_many_passes_as_the_docs_say() -> None:
    """Weights stand for 10^7 rows; means that all differ leave as many blocks as there can be."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 4000)
    equal, distinct = np.tile(rng.uniform(0.02, 0.4, (2, 20)), 20), rng.uniform(0.02, 0.4, (2, 400))
    for means, weight in ((equal, 1.0), (equal, 2500.0), (distinct, 1.0), (distinct, 2500.0)):
        X = (rng.random((4000, 400)) < means[y]).astype(np.uint8)
        source = Chunks([X[:1500], X[1500:]])
        chunked = ExchangeableClassifier(blocks="evidence").fit(
            source, y, sample_weight=np.full(4000, weight)
        )
        assert source.number + 1 <= 4
        local = ExchangeableClassifier(blocks="evidence").fit(
            X, y, sample_weight=np.full(4000, weight)
        )
        assert_same_model(local, chunked)


def test_predictions_check_the_width_of_chunks(rows: Any) -> None:
    X, y = rows
    classifier = ExchangeableClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"X has 39 features, but .* is expecting 40"):
        classifier.predict([X[:, :39]])
    with pytest.raises(ValueError, match=r"X has 39 features, but .* is expecting 40"):
        classifier.predict(PackedBits.pack(X[:, :39]))
    holes = X.astype(float)
    holes[::3, ::2] = np.nan
    np.testing.assert_allclose(
        classifier.score_samples(cut(holes)), classifier.score_samples(holes)
    )
