"""Tables of columns of every kind in chunks: the same fits as in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import exchangeable
from exchangeable import ExchangeableClassifier, ExchangeableMixture, Kinds
from scaling_rows import Chunks
from typed_tables import CUTS, N, assert_same_answers, in_parts, make_table

TABLE, HOLED, GROUP = make_table()
LABELS = np.array(["low", "middle", "high"])[GROUP]
OPTIONS: Any = dict(n_components=3, max_iter=3, tol=0.0, random_state=0, n_jobs=1)
pytestmark = pytest.mark.filterwarnings("ignore:EM ")


def mixture(**options: Any) -> ExchangeableMixture:
    return ExchangeableMixture(**{**OPTIONS, **options})


@pytest.mark.parametrize("blocks", ["independent", "full", "evidence"])
@pytest.mark.parametrize("family", ["mixed", "polya"])
@pytest.mark.parametrize("rows", [TABLE, HOLED], ids=["complete", "holes"])
def test_every_part_is_fitted_as_in_memory(rows: Any, family: str, blocks: str) -> None:
    weight = np.arange(N) % 4 / 2
    # Where the likelihood of a distribution's size is flat, rounding moves the size.
    atol = 1e-7 if rows is HOLED and family == "polya" else 1e-10
    for init in ("rows", "random"):
        settings: Any = dict(family=family, blocks=blocks, init=init, pooling=2.0)
        local = mixture(**settings).fit(rows, sample_weight=weight)
        chunked = mixture(**settings).fit(in_parts(rows), sample_weight=weight)
        assert_same_answers(local, chunked, rows, atol)
        np.testing.assert_allclose(local.history_, chunked.history_, rtol=1e-11)
    options: Any = dict(family=family, blocks=blocks, max_iter=4, n_jobs=1)
    local = ExchangeableClassifier(**options).fit(rows, LABELS, sample_weight=weight)
    chunked = ExchangeableClassifier(**options).fit(in_parts(rows), LABELS, sample_weight=weight)
    assert_same_answers(local, chunked, rows, atol)
    assert local.n_iter_ == chunked.n_iter_


@pytest.mark.parametrize("blocks", ["independent", "full"])
@pytest.mark.parametrize("rows", [TABLE, HOLED], ids=["complete", "holes"])
def test_hidden_trees_are_fitted_as_in_memory(rows: Any, blocks: str) -> None:
    weight = np.arange(N) % 4 / 2
    for init in ("rows", "random"):
        settings: Any = dict(family="mixed tree", blocks=blocks, init=init)
        local = mixture(**settings).fit(rows, sample_weight=weight)
        chunked = mixture(**settings).fit(in_parts(rows), sample_weight=weight)
        np.testing.assert_allclose(local.history_, chunked.history_, rtol=1e-10)
        assert_same_answers(local, chunked, rows, 1e-8)


def test_missing_labels_and_held_out_rows_in_chunks() -> None:
    some = np.where(np.arange(N) % 3 == 0, None, LABELS)
    options: Any = dict(semi_supervised=True, max_iter=3, n_jobs=1)
    local = ExchangeableClassifier(**options).fit(HOLED, some)
    assert_same_answers(local, ExchangeableClassifier(**options).fit(in_parts(HOLED), some), TABLE)
    valid = [HOLED[:40], HOLED[40:90]]
    local = mixture().fit(TABLE, X_valid=pd.concat(valid))
    chunked = mixture().fit(in_parts(TABLE), X_valid=valid)
    assert_same_answers(local, chunked, TABLE)
    np.testing.assert_allclose(local.valid_history_, chunked.valid_history_, rtol=1e-11)
    share: Any = dict(validation_fraction=0.3)
    assert_same_answers(mixture(**share).fit(HOLED), mixture(**share).fit(in_parts(HOLED)), TABLE)


def test_files_and_other_libraries(tmp_path: Path) -> None:
    arrow = pa.Table.from_pandas(HOLED.assign(kind=LABELS), preserve_index=False)
    pq.write_table(arrow, tmp_path / "rows.parquet", row_group_size=97)
    local = ExchangeableClassifier(n_jobs=1).fit(arrow.drop_columns("kind"), LABELS)
    from_file = ExchangeableClassifier(n_jobs=1).fit(tmp_path / "rows.parquet", "kind")
    assert_same_answers(local, from_file, arrow.drop_columns("kind"))
    predicted = from_file.predict(tmp_path / "rows.parquet")
    assert predicted.tolist() == local.predict(arrow.drop_columns("kind")).tolist()
    numbers = TABLE.drop(columns="answer")
    numbers.to_csv(tmp_path / "rows.csv", index=False)
    assert_same_answers(
        mixture().fit(numbers), mixture().fit(tmp_path / "rows.csv"), numbers, atol=1e-9
    )
    polars = pl.from_pandas(HOLED)
    parts = [polars[begin:end] for begin, end in CUTS]
    assert_same_answers(mixture().fit(polars), mixture().fit(parts), polars)
    labelled = [
        part.assign(kind=own) for part, own in zip(in_parts(TABLE), _cut_labels(), strict=True)
    ]
    frames = ExchangeableClassifier(n_jobs=1).fit(Chunks(labelled), "kind")
    assert_same_answers(ExchangeableClassifier(n_jobs=1).fit(TABLE, LABELS), frames, TABLE)


def _cut_labels() -> list[Any]:
    return [LABELS[begin:end] for begin, end in CUTS]


def test_a_model_fitted_to_chunks_answers_in_values_and_is_saved(tmp_path: Path) -> None:
    model = mixture().fit(in_parts(HOLED))
    exchangeable.save(model, tmp_path / "model.exch")
    again = exchangeable.load(tmp_path / "model.exch")
    assert set(again.conditional("city", {"age": 34.0, "answer": "yes"})) == {
        "Bonn", "Oslo", "Rome", "Riga",
    }  # fmt: skip
    sampled = again.sample(5, random_state=0)[0]
    assert sampled.dtypes["answer"] == TABLE.dtypes["answer"]
    np.testing.assert_array_equal(again.predict(in_parts(HOLED)), model.predict(HOLED))


def test_how_often_a_table_is_read() -> None:
    """Once to decide, and twice more where measurements are bent; then what families need."""
    even = TABLE.drop(columns="income")
    numbers = []
    for rows in (even, TABLE):
        source = Chunks(in_parts(rows))
        mixture(init="random", max_iter=1).fit(source)
        numbers.append(source.number + 1)
    assert numbers[1] == numbers[0] + 2
    bits = Chunks([np.eye(4)[:2], np.eye(4)[2:]])
    ExchangeableMixture(2, random_state=0).fit(bits)
    array = bits.number
    frames = Chunks([pd.DataFrame(np.eye(4)[:2]), pd.DataFrame(np.eye(4)[2:])])
    ExchangeableMixture(2, random_state=0).fit(frames)
    assert frames.number == array + 1


def test_powers_are_found_from_the_same_rows(monkeypatch: Any) -> None:
    monkeypatch.setattr("exchangeable.data.columns.transforms.MOST_ROWS", 50)
    local = mixture().fit(HOLED)
    assert_same_answers(local, mixture().fit(in_parts(HOLED)), TABLE)
    power = next(c["transform"][0] for c in local.columns_["columns"] if c["name"] == "income")
    monkeypatch.undo()
    columns = mixture().fit(HOLED).columns_["columns"]
    everyone = next(c["transform"][0] for c in columns if c["name"] == "income")
    assert power != everyone
    assert abs(power - everyone) < 0.2


def test_sparse_counts_and_one_hot_columns() -> None:
    rng = np.random.default_rng(0)
    counts = sp.csr_array(rng.poisson(np.where(GROUP[:, None] == np.arange(6) % 3, 2.0, 0.2)))
    parts = [counts[begin:end] for begin, end in CUTS]
    for options in (dict(blocks="full"), dict(family="polya", blocks="full"), {}):
        local = mixture(kinds="count", **options).fit(counts)
        chunked = mixture(kinds="count", **options).fit(parts)
        np.testing.assert_allclose(
            local.score_samples(counts), chunked.score_samples(parts), atol=1e-10
        )
    hot = np.concatenate([np.eye(3)[GROUP], np.eye(2)[GROUP % 2]], axis=1)
    kinds = Kinds(groups={"city": [0, 1, 2], "size": [3, 4]})
    local = mixture(kinds=kinds).fit(hot)
    chunked = mixture(kinds=kinds).fit([hot[begin:end] for begin, end in CUTS])
    np.testing.assert_allclose(local.score_samples(hot), chunked.score_samples(hot), atol=1e-10)
    assert chunked.n_features_in_ == 5


def test_what_cannot_be_says_so() -> None:
    first, second = TABLE[:150], TABLE[150:]
    other = second.assign(answer=second["answer"].cat.reorder_categories(["yes", "so-so", "no"]))
    with pytest.raises(ValueError, match=r"chunk 1 .*'answer' has the ordered levels"):
        mixture().fit([first, other])
    with pytest.raises(ValueError, match=r"chunk 1 .*'city' of the first chunk is called 'town'"):
        mixture().fit([first, second.rename(columns={"city": "town"})])
    with pytest.raises(ValueError, match=r"chunk 1 .*'visits' is a count, but holds -1"):
        mixture(kinds={"visits": "count"}).fit([first, second.assign(visits=-1)])
    with pytest.raises(ValueError, match=r"column 'city' is nominal .* family='urns' is for"):
        mixture(family="urns").fit(in_parts(TABLE))


def test_a_chunk_that_changes_is_noticed() -> None:
    changed = TABLE.assign(age=TABLE["age"] + (np.arange(N) == 200))
    source = Chunks(
        in_parts(TABLE), in_parts(TABLE), in_parts(TABLE), in_parts(TABLE), in_parts(changed)
    )
    with pytest.raises(ValueError, match=r"chunk 2 .* has changed since the first pass"):
        mixture().fit(source)


def test_a_warm_start_makes_room_for_larger_counts() -> None:
    for blocks in ("independent", "full"):
        for family in ("mixed", "polya"):
            model = mixture(family=family, blocks=blocks, warm_start=True)
            few = TABLE[TABLE["visits"] + TABLE["calls"] < 6]
            before = model.fit(few).score(TABLE)
            model.set_params(max_iter=6).fit(TABLE)
            assert model.score(TABLE) > before
            assert np.isfinite(model.score_samples(TABLE)).all()
