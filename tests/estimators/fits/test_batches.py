"""Mixtures whose rows come in batches: stochastic EM."""

import numpy as np
import pytest

import exchangeable
from exchangeable import ExchangeableMixture
from exchangeable.data import sketch as sketches
from made_rows import clusters

X = clusters(n_rows=6000, n_variables=16, seed=3)
TEST = clusters(n_rows=2000, n_variables=16, seed=3)[::-1]


def in_batches(rows, n_batches, **options):
    model = ExchangeableMixture(**({"n_components": 3, "random_state": 0} | options))
    for part in np.array_split(rows, n_batches):
        model.partial_fit(part)
    return model


def test_one_pass_comes_near_to_many_iterations():
    whole = ExchangeableMixture(3, random_state=0).fit(X)
    parts = in_batches(X, 12)
    assert parts.score(TEST) > whole.score(TEST) - 0.02
    first = ExchangeableMixture(3, random_state=0).fit(X[:500])
    assert parts.score(TEST) > first.score(TEST)
    assert parts.n_samples_weight_ == 6000
    assert parts._model.totals.sum() == pytest.approx(6000)
    for partition, histogram, total in zip(
        parts._model.partitions, parts._model.histograms, parts._model.totals, strict=True
    ):
        np.testing.assert_allclose(np.add.reduceat(histogram, partition.starts), total)


def test_the_same_seed_gives_the_same_model_whatever_n_jobs():
    scores = [in_batches(X, 5, n_jobs=n_jobs).score_samples(TEST) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*scores)


def test_blocks_are_revised_as_rows_come_in():
    rng = np.random.default_rng(0)
    kind = rng.random((4000, 1)) < 0.5
    rows = (rng.random((4000, 12)) < np.where(kind, np.repeat([0.7, 0.4], 6), 0.15)).astype(int)
    few = ExchangeableMixture(2, random_state=0).fit(rows[:60])
    many = ExchangeableMixture(2, random_state=0)
    many.partial_fit(rows[:60])
    for part in np.array_split(rows[60:], 10):
        many.partial_fit(part)
    as_sets = [
        {tuple(block) for blocks in model.partitions_ for block in blocks} for model in (few, many)
    ]
    assert as_sets[0] != as_sets[1]
    assert many.score(rows) > few.score(rows)


def test_memory_does_not_grow(monkeypatch):
    monkeypatch.setattr(sketches, "MOST_ROWS", 300)
    model = in_batches(X, 8)
    assert model._model.sketch.rows.n_rows == 300


def test_drift_is_followed():
    """Rows change for good half-way; what comes later is what the model is of."""
    turned = X[:, ::-1]
    model = in_batches(X[:2000], 4)
    before = model.score(turned)
    for part in np.array_split(turned, 10):
        model.partial_fit(part)
    settled = ExchangeableMixture(3, random_state=0).fit(turned)
    assert before < model.score(turned)
    assert model.score(turned) > settled.score(turned) - 0.5 * (settled.score(turned) - before)


def test_weights_of_zero_do_not_count():
    weight = np.tile([1.0, 0.0], 1500)
    model = ExchangeableMixture(3, random_state=0).partial_fit(X[:1000])
    model.partial_fit(X[:3000], sample_weight=weight)
    assert model.n_samples_weight_ == 2500


def test_it_goes_on_from_fit_and_from_a_file_with_the_blocks_there_are(tmp_path):
    fitted = ExchangeableMixture(3, random_state=0).fit(X[:3000])
    exchangeable.save(fitted, tmp_path / "m")
    again = exchangeable.load(tmp_path / "m")
    for model in (fitted, again):
        model.partial_fit(X[3000:])
    np.testing.assert_array_equal(fitted.score_samples(TEST), again.score_samples(TEST))


def test_what_cannot_be_is_refused():
    assert not hasattr(ExchangeableMixture(2, combine="average"), "partial_fit")
    model = ExchangeableMixture(2, random_state=0).fit(X[:200])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :5])
