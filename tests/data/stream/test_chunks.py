"""Fits to rows in chunks equal those to the same rows in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from exchangeable import ExchangeableClassifier, ExchangeableMixture, PackedBits, write_packed
from exchangeable.data import packed
from exchangeable.data.stream import sources
from scaling_rows import assert_same_model

HALVES = [list(range(20)), list(range(20, 40))]
STRUCTURES = ["independent", "full", "welch", "evidence", HALVES]
MIXTURE: dict[str, Any] = dict(n_components=3, random_state=1, max_iter=25, start=0.4, tol=1e-4)


def cut(X: Any, sizes: tuple[int, ...] = (300, 1, 499, 400)) -> list[Any]:
    ends = np.cumsum(sizes)
    return [X[end - size : end] for size, end in zip(sizes, ends, strict=True)]


class Chunks:
    """An object with chunks(), as a user writes it; `passes` yields the parts of each pass."""

    def __init__(self, *passes: list[Any]) -> None:
        self.passes, self.number = passes, -1

    def chunks(self) -> Any:
        self.number += 1
        return iter(self.passes[min(self.number, len(self.passes) - 1)])


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_classifier_equals_the_one_in_memory(rows: Any, structure: Any, weighted: bool) -> None:
    X, y = rows
    weight = np.arange(len(y)) % 4 / 2 if weighted else None
    local = ExchangeableClassifier(structure).fit(X, y, sample_weight=weight)
    chunked = ExchangeableClassifier(structure).fit(cut(X), y, sample_weight=weight)
    assert_same_model(local, chunked)
    np.testing.assert_array_equal(local.class_count_, chunked.class_count_)
    np.testing.assert_allclose(
        local.predict_log_proba(X), chunked.predict_log_proba(cut(X)), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(local.predict(X), chunked.predict(Chunks(cut(X))))


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("init", ["rows", "random"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_mixture_equals_the_one_in_memory(
    rows: Any, structure: Any, init: str, weighted: bool
) -> None:
    X, _ = rows
    weight = np.arange(len(X)) % 4 / 2 if weighted else None
    options = dict(MIXTURE, structure=structure, init=init)
    local = ExchangeableMixture(**options).fit(X, sample_weight=weight)
    chunked = ExchangeableMixture(**options).fit(cut(X), sample_weight=weight)
    assert_same_model(local, chunked)
    assert local.n_iter_ == chunked.n_iter_
    np.testing.assert_allclose(local.history_[0], chunked.history_[0], rtol=1e-10)
    np.testing.assert_allclose(local.score_samples(X), chunked.score_samples(cut(X)), rtol=1e-10)


@pytest.mark.parametrize("structure", ["welch", "evidence", "independent"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_rows_that_repeat_are_dealt_alike(rows: Any, structure: str, weighted: bool) -> None:
    X = rows[0][:, :6]  # in memory equal rows are merged, in chunks they are not
    assert len(np.unique(X, axis=0)) < len(X) / 4
    weight = np.arange(len(X)) % 4 / 2 if weighted else None
    options = dict(MIXTURE, structure=structure, init="random")
    local = ExchangeableMixture(**options).fit(X, sample_weight=weight)
    chunked = ExchangeableMixture(**options).fit(cut(X), sample_weight=weight)
    assert_same_model(local, chunked)
    np.testing.assert_allclose(local.history_[0], chunked.history_[0], rtol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"accept": "component", "structure": "evidence"},
        {"conditions": (1, 2), "structure": "evidence"},
        {"restarts": "average", "n_init": 2},
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


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_a_checkpoint_of_chunks_goes_on_where_it_was(rows: Any, tmp_path: Path) -> None:
    X, _ = rows
    options = dict(MIXTURE, structure="welch", tol=0.0, checkpoint=tmp_path / "state.npz")
    ExchangeableMixture(**{**options, "max_iter": 3}).fit(cut(X))
    going_on = ExchangeableMixture(**{**options, "max_iter": 6}).fit(cut(X))
    assert_same_model(
        ExchangeableMixture(**{**options, "checkpoint": None, "max_iter": 6}).fit(X), going_on
    )
    with pytest.raises(ValueError, match="belongs to another fit: data was"):
        ExchangeableMixture(**options).fit(cut(1 - X))


def stored(X: Any, kind: str, folder: Path) -> Any:
    """Return rows in one of the forms that are read in chunks."""
    if kind == "npy":
        np.save(folder / "x.npy", X)
        return folder / "x.npy"
    if kind == "npz":
        np.savez(folder / "x.npz", X=X)
        return str(folder / "x.npz")
    if kind == "csr files":
        names = [folder / f"{i}.npz" for i in range(4)]
        for name, part in zip(names, cut(X), strict=True):
            sp.save_npz(name, sp.csr_array(part))
        return names
    if kind == "csr parts":
        return [sp.csr_array(part) for part in cut(X)]
    if kind == "zarr":
        import zarr

        array = zarr.open_array(
            folder / "x.zarr", mode="w", shape=X.shape, chunks=(100, 7), dtype="u1"
        )
        array[:] = X
        return array
    if kind == "packed":
        return write_packed(cut(X), folder / "bits.npy")
    raise ValueError(kind)


@pytest.mark.parametrize("kind", ["npy", "npz", "csr files", "csr parts", "zarr", "packed"])
def test_every_form_of_rows_gives_the_same_fit(
    rows: Any, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "CHUNK_BYTES", 5000)  # several chunks of so few rows
    monkeypatch.setattr(packed, "FEWEST_CHUNK_ROWS", 100)
    X, y = rows
    source = stored(X, kind, tmp_path)
    if kind not in ("csr files", "csr parts"):
        assert len(list(sources.as_source(source).chunks())) > 5
    local = ExchangeableClassifier().fit(X, y)
    chunked = ExchangeableClassifier().fit(source, y)
    assert_same_model(local, chunked)
    np.testing.assert_array_equal(local.predict(X), chunked.predict(source))
    assert chunked.score(source, y) == local.score(X, y)


def test_a_large_memory_map_is_read_in_chunks(
    rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert sources.as_source(mapped) is None
    monkeypatch.setattr(sources, "MAPPED_BYTES", 1000)
    assert sources.as_source(mapped) is not None
    assert_same_model(ExchangeableClassifier().fit(X, y), ExchangeableClassifier().fit(mapped, y))


@pytest.mark.parametrize("kind", ["file", "folder", "dataset", "table"])
def test_tables_bring_names_and_labels(rows: Any, kind: str, tmp_path: Path) -> None:
    import pandas as pd
    import pyarrow as pa
    from pyarrow import dataset, parquet

    X, y = rows
    frame = pd.DataFrame(X, columns=[f"v{j}" for j in range(X.shape[1])])
    labels = np.array(["low", "middle", "high"])[y]
    table = pa.Table.from_pandas(frame.assign(label=labels), preserve_index=False)
    (tmp_path / "set").mkdir()
    for number, part in enumerate(cut(np.arange(len(X)))):
        parquet.write_table(table.take(part), tmp_path / "set" / f"{number}.parquet")
    parquet.write_table(table, tmp_path / "one.parquet", row_group_size=100)
    source = {
        "file": tmp_path / "one.parquet",
        "folder": tmp_path / "set",
        "dataset": dataset.dataset(tmp_path / "set"),
        "table": table,
    }[kind]
    local = ExchangeableClassifier().fit(frame, labels)
    chunked = ExchangeableClassifier().fit(source, "label")
    assert_same_model(local, chunked)
    assert chunked.classes_.tolist() == ["high", "low", "middle"]
    assert chunked.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_array_equal(chunked.predict(source), local.predict(frame))
    np.testing.assert_array_equal(chunked.predict(frame), local.predict(frame))
    given = ExchangeableClassifier([["v0", "v1"], [f"v{j}" for j in range(2, 40)]])
    assert given.fit(source, "label").n_blocks_.tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="has no column 'target'"):
        ExchangeableClassifier().fit(source, "target")


def test_chunks_may_bring_their_labels(rows: Any) -> None:
    X, y = rows
    pairs = Chunks(list(zip(cut(X), cut(y), strict=True)))
    assert_same_model(ExchangeableClassifier().fit(X, y), ExchangeableClassifier().fit(pairs))
    with pytest.raises(ValueError, match="y is missing"):
        ExchangeableClassifier().fit(Chunks(cut(X)))


def test_a_class_that_only_the_last_chunk_has(rows: Any) -> None:
    X, y = rows
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    assert_same_model(ExchangeableClassifier().fit(X, y), ExchangeableClassifier().fit(cut(X), y))


def test_a_source_that_is_not_the_same_on_every_pass_is_refused(rows: Any) -> None:
    X, y = rows
    parts = cut(X)
    changed = [parts[0], parts[1], parts[2].copy(), parts[3]]
    changed[2][7, 5] ^= 1
    shorter = [*parts[:2], parts[2][:-1], parts[3]]
    for later, message in [
        (changed, "chunk 2 .* has changed since the first pass: it has other entries"),
        (shorter, "chunk 2 .* has changed since the first pass: it has 498 rows instead of 499"),
        (parts[:3], "ended after 3 of the 4 chunks"),
        ([], "has no chunks; can it be read only once"),
        ([*parts, parts[0][:5]], "chunk 4 .*more rows than the 1200 entries of y"),
    ]:
        with pytest.raises(ValueError, match=message):
            ExchangeableClassifier("welch").fit(Chunks(parts, later), y)
    with pytest.raises(ValueError, match="more than the 4 chunks"):
        ExchangeableMixture(2).fit(Chunks(parts, [*parts, parts[0][:5]]))
    with pytest.raises(ValueError, match=r"chunk 2 .* has changed"):
        ExchangeableMixture(2).fit(Chunks(parts, parts, parts, changed))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([np.eye(4), np.eye(5)], "chunk 1 .* has 5 columns, those before it have 4"),
        ([np.eye(4), np.empty((0, 4))], "chunk 1 .*: it has no rows"),
        ([np.eye(4), np.full((1, 4), np.nan)], "chunk 1 .*: it contains NaN"),
        ([np.eye(4), np.full((1, 4), np.inf)], "chunk 1 .*infinity"),
        ([], "has no chunks"),
        ([np.eye(4), [["a"] * 4]], "chunk 1 .*: .*numeric|chunk 1 .*: .*convert|chunk 1"),
    ],
)
def test_bad_chunks_are_named(parts: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ExchangeableMixture(2).fit(Chunks(parts))


def test_bad_sources_are_refused(rows: Any, tmp_path: Path) -> None:
    X, y = rows
    with pytest.raises(TypeError, match="can be read only once"):
        ExchangeableMixture(2).fit(part for part in cut(X))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ExchangeableMixture(2).fit(tmp_path / "nothing.npy")
    (tmp_path / "x.csv").write_text("1,0")
    with pytest.raises(ValueError, match=r"expected one of \.npy"):
        ExchangeableMixture(2).fit(tmp_path / "x.csv")
    with pytest.raises(ValueError, match="y has 1201 entries, X has 1200 rows"):
        ExchangeableClassifier().fit(cut(X), np.append(y, 0))
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is -1.0"):
        ExchangeableMixture(2).fit(cut(X), sample_weight=[1, -1])
    with pytest.raises(ValueError, match="n_components=1201 is more than the rows"):
        ExchangeableMixture(1201).fit(cut(X))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        ExchangeableClassifier().fit(cut(X), y + 0.5)


def test_what_needs_the_rows_in_memory_says_so(rows: Any) -> None:
    X, y = rows
    for options in ({"urn": "weighted"}, {"dependence": "tree"}, {"pooling": 3.0}):
        for estimator in (ExchangeableClassifier(**options), ExchangeableMixture(2, **options)):
            with pytest.raises(ValueError, match="rows in chunks or on a cluster"):
                estimator.fit(cut(X), y)
    with pytest.raises(ValueError, match="semi_supervised=True needs X in memory"):
        ExchangeableClassifier(semi_supervised=True).fit(cut(X), y)
    with pytest.raises(ValueError, match="condition 3 needs the rows in memory"):
        ExchangeableMixture(2, conditions=(1, 3)).fit(cut(X))
    with pytest.raises(ValueError, match="condition 3 needs the rows in memory"):
        ExchangeableClassifier(conditions=(1, 3)).fit(cut(X), y)


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


@pytest.mark.parametrize("n_variables", [1, 7, 8, 63, 64, 65, 130])
def test_packed_bits_are_the_rows(n_variables: int) -> None:
    rng = np.random.default_rng(n_variables)
    X = (rng.random((700, n_variables)) < 0.4).astype(np.uint8)
    y = rng.integers(0, 2, 700)
    bits = PackedBits(np.packbits(X, axis=1, bitorder="little"), n_variables)
    assert bits.shape == X.shape == PackedBits.pack(X).shape
    assert_same_model(ExchangeableClassifier().fit(X, y), ExchangeableClassifier().fit(bits, y))


def test_bits_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="matrix of uint8, got float64"):
        PackedBits(np.eye(3), 3)
    with pytest.raises(ValueError, match="has 3 bytes per row; 3 variables take 1"):
        PackedBits(np.eye(3, dtype=np.uint8), 3)
    big_endian = PackedBits(np.packbits(np.ones((5, 3), dtype=np.uint8), axis=1), 3)
    with pytest.raises(ValueError, match="bits beyond its 3 variables"):
        ExchangeableMixture(2).fit(big_endian)
