"""The density benchmark: from the address or the folder to tables of zeros and ones."""

import gzip
from hashlib import sha256

import numpy as np
import pytest

from exchangeable.datasets import AlteredFileError, fetch_density
from exchangeable.datasets._density import DENSITY_SETS, DensitySet, density_address, parse_rows
from exchangeable.datasets._registry import REGISTRY, RegisteredFile

DENSITY_OF_TRAINING_ROWS = {
    "nltcs": 0.3317,
    "msnbc": 0.1663,
    "kdd": 0.0081,
    "plants": 0.1798,
    "baudio": 0.1983,
    "jester": 0.6099,
    "bnetflix": 0.5411,
    "accidents": 0.2911,
    "tretail": 0.0237,
    "dna": 0.2535,
    "msweb": 0.0103,
    "book": 0.0165,
    "cwebkb": 0.0632,
    "cr52": 0.0369,
    "c20ng": 0.0494,
    "bbc": 0.0771,
}
DOWNLOAD_ONLY = ("pumsb_star", "kosarek", "tmovie", "ad")


def as_file(table: np.ndarray) -> bytes:
    lines = (",".join(str(value) for value in row) + "\n" for row in table)
    return gzip.compress("".join(lines).encode(), mtime=0)


@pytest.fixture
def tiny(loopback, monkeypatch):
    """Register a small set and serve its files on the mirror."""
    rng = np.random.default_rng(0)
    record = DensitySet("tiny", 11, (20, 5, 7), "a small set")
    tables = [rng.integers(0, 2, size=(n, 11), dtype=np.uint8) for n in record.n_rows]
    monkeypatch.setitem(DENSITY_SETS, "tiny", record)
    monkeypatch.setenv("EXCHANGEABLE_DATA_URL", loopback.address)
    for path, table in zip(record.paths, tables, strict=True):
        body = as_file(table)
        loopback.files[f"/{path}"] = body
        file = RegisteredFile(path, sha256(body).hexdigest(), len(body))
        monkeypatch.setitem(REGISTRY, path, file)
    return tables


def test_downloaded_once_and_read_alike_ever_after(tiny, loopback, tmp_path):
    for _ in range(2):
        data = fetch_density("tiny", data_home=tmp_path)
        for table, split in zip(tiny, ("train", "valid", "test"), strict=True):
            np.testing.assert_array_equal(data[split], table)
            assert data[split].dtype == np.uint8
    assert sorted(loopback.requests) == sorted(loopback.files)
    assert "11 binary variables" in data.DESCR


def test_altered_source_is_refused_though_the_fast_form_is_whole(tiny, tmp_path):
    fetch_density("tiny", data_home=tmp_path)
    path = tmp_path / "density" / "tiny.valid.data.gz"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AlteredFileError, match=r"tiny\.valid"):
        fetch_density("tiny", data_home=tmp_path)


def test_environment_names_the_folder(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("EXCHANGEABLE_DATA", str(tmp_path))
    fetch_density("tiny")
    assert (tmp_path / "density" / "tiny.ts.data.gz").is_file()


def test_missing_and_not_to_be_downloaded(tiny, loopback, tmp_path):
    with pytest.raises(OSError, match=r"tiny\.ts.*missing"):
        fetch_density("tiny", data_home=tmp_path, download_if_missing=False)
    assert loopback.requests == []


def test_unknown_name():
    with pytest.raises(ValueError, match=r"'nltc'.*nltcs"):
        fetch_density("nltc")


@pytest.mark.parametrize(
    ("text", "complaint"), [(b"0,1\n1,2\n", "other than"), (b"0,1\n1\n", "2 rows of 2")]
)
def test_rows_that_are_not_binary(tmp_path, text, complaint):
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(text))
    with pytest.raises(ValueError, match=complaint):
        parse_rows(path, 2, 2)


def test_all_sixty_files_are_registered():
    paths = [path for record in DENSITY_SETS.values() for path in record.paths]
    assert len(paths) == len(set(paths)) == 60
    assert {path for path in REGISTRY if path.startswith("density/")} == set(paths)
    assert all(len(REGISTRY[path].sha256) == 64 for path in paths)
    assert set(DENSITY_SETS) == {*DENSITY_OF_TRAINING_ROWS, *DOWNLOAD_ONLY}


@pytest.mark.parametrize("name", DOWNLOAD_ONLY)
def test_address_of_the_sets_that_are_only_downloaded(name):
    for path in DENSITY_SETS[name].paths:
        address = density_address(path)
        assert address.startswith("https://raw.githubusercontent.com/nicoladimauro/dcsn/dd0f7a43")
        assert address.endswith("/data/generative/" + path.removeprefix("density/"))


@pytest.mark.parametrize("name", DENSITY_OF_TRAINING_ROWS)
def test_real_set(real_data, name):
    record = DENSITY_SETS[name]
    folder = real_data(*record.paths)
    data = fetch_density(name, data_home=folder, download_if_missing=False)
    shapes = [data[split].shape for split in ("train", "valid", "test")]
    assert shapes == [(n, record.n_variables) for n in record.n_rows]
    assert data.train.max() == 1
    assert data.train.mean() == pytest.approx(DENSITY_OF_TRAINING_ROWS[name], abs=5e-5)


def test_real_file_over_the_network(real_data, loopback, tmp_path, monkeypatch):
    folder = real_data(*DENSITY_SETS["nltcs"].paths)
    monkeypatch.setenv("EXCHANGEABLE_DATA_URL", loopback.address)
    for path in DENSITY_SETS["nltcs"].paths:
        loopback.files[f"/{path}"] = (folder / path).read_bytes()
    data = fetch_density("nltcs", data_home=tmp_path)
    assert data.train.shape == (16181, 16)
    assert (tmp_path / "density" / "nltcs.ts.data.gz").is_file()


def test_splits_of_c20ng_differ_in_density(real_data):
    folder = real_data(*DENSITY_SETS["c20ng"].paths)
    data = fetch_density("c20ng", data_home=folder, download_if_missing=False)
    densities = [round(float(data[split].mean()), 3) for split in ("train", "valid", "test")]
    assert densities == [0.049, 0.041, 0.056]
