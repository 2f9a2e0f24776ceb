"""Where chunks come from: every form of rows gives the same fit, and bad ones are named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from exchangeable import ExchangeableClassifier, ExchangeableMixture, write_packed
from exchangeable.data import packed
from exchangeable.data.stream import sources
from scaling_rows import Chunks, assert_same_model, cut


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
    given = ExchangeableClassifier(blocks=[["v0", "v1"], [f"v{j}" for j in range(2, 40)]])
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
            ExchangeableClassifier(blocks="welch").fit(Chunks(parts, later), y)
    with pytest.raises(ValueError, match="more than the 4 chunks"):
        ExchangeableMixture(2).fit(Chunks(parts, [*parts, parts[0][:5]]))
    with pytest.raises(ValueError, match=r"chunk 2 .* has changed"):
        ExchangeableMixture(2).fit(Chunks(parts, parts, parts, changed))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([np.eye(4), np.eye(5)], "chunk 1 .* has 5 columns, those before it have 4"),
        ([np.eye(4), np.empty((0, 4))], "chunk 1 .*: it has no rows"),
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
    (tmp_path / "x.txt").write_text("1,0")
    with pytest.raises(ValueError, match=r"expected one of \.npy"):
        ExchangeableMixture(2).fit(tmp_path / "x.txt")
    with pytest.raises(ValueError, match="y has 1201 entries, X has 1200 rows"):
        ExchangeableClassifier().fit(cut(X), np.append(y, 0))
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is -1.0"):
        ExchangeableMixture(2).fit(cut(X), sample_weight=[1, -1])
    with pytest.raises(ValueError, match="n_components=1201 is more than the rows"):
        ExchangeableMixture(1201).fit(cut(X))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        ExchangeableClassifier().fit(cut(X), y + 0.5)
