"""The list of the data sets."""

from exchangeable.datasets import list_datasets
from exchangeable.datasets._registry import REGISTRY


def test_everything_is_listed_once(tmp_path):
    entries = list_datasets(tmp_path)
    assert len({(entry.name, entry.variant) for entry in entries}) == len(entries) == 28
    assert not any(entry.present for entry in entries)
    assert {entry.name for entry in entries if entry.size is None} == {
        "pumsb_star",
        "kosarek",
        "tmovie",
        "ad",
    }
    assert all("https://" in entry.address for entry in entries)


def test_present_when_all_files_are(tmp_path):
    entry = list_datasets(tmp_path)[0]
    entry.paths[0].parent.mkdir()
    for path in entry.paths:
        assert not list_datasets(tmp_path)[0].present
        path.write_bytes(b"123")
    entry = list_datasets(tmp_path)[0]
    assert entry.present
    assert entry.size == 9


def test_size_is_the_registered_one_until_the_files_are_there(tmp_path):
    entry = list_datasets(tmp_path)[0]
    names = [f"density/{path.name}" for path in entry.paths]
    assert entry.size == sum(REGISTRY[name].size or 0 for name in names)


def test_mirror_is_the_address(tmp_path, monkeypatch):
    monkeypatch.setenv("EXCHANGEABLE_DATA_URL", "http://mirror/")
    addresses = [entry.address for entry in list_datasets(tmp_path)]
    assert addresses[0] == "http://mirror/density/nltcs.ts.data.gz"
    assert addresses[-1] == "http://mirror/classification/mnist.npz"


def test_sizes_of_the_real_files(real_data):
    names = [name for name, file in REGISTRY.items() if file.size and not name.endswith("jsonl")]
    folder = real_data(*names)
    for entry in list_datasets(folder):
        paths = [path.relative_to(folder).as_posix() for path in entry.paths]
        if entry.present and set(paths) <= set(names):
            assert entry.size == sum(REGISTRY[path].size for path in paths)
