"""What is kept of batches: sums, and rows to learn blocks from again."""

import numpy as np
import pytest

from exchangeable import Blocks, ExchangeableClassifier
from exchangeable.data import sketch as sketches
from exchangeable.data.groups import Group
from exchangeable.data.rows import as_rows
from exchangeable.data.sketch import Sketch

rng = np.random.default_rng(0)
KIND = np.repeat([0, 1], 300)
RATES = np.where(KIND[:, None] == 0, np.repeat([0.2, 0.5], 6), np.repeat([0.6, 0.3], 6))
X = (rng.random((600, 12)) < RATES * rng.uniform(0.6, 1.4, (600, 1))).astype(np.uint8)


def in_batches(order, n_batches, **options):
    model = ExchangeableClassifier(**options)
    for part in np.array_split(order, n_batches):
        model.partial_fit(X[part], KIND[part], classes=[0, 1])
    return model


@pytest.mark.parametrize("blocks", ["evidence", "welch", Blocks("welch", conditions=(1, 3))])
@pytest.mark.parametrize("order", ["given", "shuffled"])
def test_batches_end_where_fit_does_while_all_rows_are_kept(blocks, order):
    whole = ExchangeableClassifier(blocks=blocks).fit(X, KIND)
    rows = np.arange(600) if order == "given" else rng.permutation(600)
    parts = in_batches(rows, 6, blocks=blocks)
    for ours, theirs in zip(parts.partitions_, whole.partitions_, strict=True):
        assert {tuple(b) for b in ours} == {tuple(b) for b in theirs}
    np.testing.assert_allclose(parts.predict_log_proba(X), whole.predict_log_proba(X), atol=1e-9)


def test_single_rows_end_nearly_there():
    """Blocks are learned again when a class has grown by a twentieth, not after every row."""
    whole = ExchangeableClassifier().fit(X, KIND)
    parts = in_batches(rng.permutation(600), 600)
    assert abs(parts.score(X, KIND) - whole.score(X, KIND)) < 0.02
    np.testing.assert_allclose(parts.class_count_, whole.class_count_)


def test_a_sample_is_kept_of_many_rows(monkeypatch):
    monkeypatch.setattr(sketches, "MOST_ROWS", 100)
    parts = in_batches(rng.permutation(600), 10)
    kept = parts._model.sketch
    assert kept.rows.n_rows == 200
    np.testing.assert_array_equal(kept.ones, [X[y == KIND].sum(axis=0) for y in (0, 1)])
    assert kept.group(0).total == pytest.approx(300)
    totals = [np.add.reduceat(h, p.starts) for h, p in
              zip(parts._model.histograms, parts._model.partitions, strict=True)]  # fmt: skip
    for each in totals:
        np.testing.assert_allclose(each, 300)
    whole = ExchangeableClassifier().fit(X, KIND)
    assert abs(parts.score(X, KIND) - whole.score(X, KIND)) < 0.02


def test_the_sample_is_drawn_by_weight(monkeypatch):
    monkeypatch.setattr(sketches, "MOST_ROWS", 200)
    rows = as_rows(np.eye(2, dtype=np.uint8)[np.repeat([0, 1], 2000)], None)
    weights = np.repeat([3.0, 1.0], 2000)
    kept = Sketch.empty(2, 1)
    for part in np.array_split(np.random.default_rng(1).permutation(4000), 7):
        kept = kept.add(rows, [Group(part, weights[part])])
    heavy = np.bincount(kept.rows.indices, minlength=2)[0]
    assert 125 < heavy < 175  # 150 expected, 5 standard errors are 31
    assert kept.group(0).total == pytest.approx(8000)


def test_weights_are_repeated_rows():
    weights = rng.integers(1, 4, size=600)
    model = ExchangeableClassifier()
    model.partial_fit(X[:250], KIND[:250], classes=[0, 1], sample_weight=weights[:250])
    model.partial_fit(X[250:], KIND[250:], sample_weight=weights[250:])
    whole = ExchangeableClassifier().fit(X, KIND, sample_weight=weights)
    np.testing.assert_allclose(model.predict_log_proba(X), whole.predict_log_proba(X), atol=1e-9)


def test_after_fit_blocks_stay():
    model = ExchangeableClassifier().fit(X[:450], KIND[:450])
    before = [[block.tolist() for block in blocks] for blocks in model.partitions_]
    model.partial_fit(X[450:], KIND[450:])
    after = [[block.tolist() for block in blocks] for blocks in model.partitions_]
    assert before == after
    assert model.class_count_.sum() == 600
