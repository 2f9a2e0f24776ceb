"""Collections prepared from archives, such as the public ones, served on loopback."""

import io
import tarfile
from dataclasses import replace
from hashlib import sha256

import pytest

from exchangeable.datasets import AlteredFileError, DownloadError, fetch_classification
from exchangeable.datasets._collections import COLLECTIONS, read_documents
from exchangeable.datasets._documents import Document, to_json_lines
from exchangeable.datasets._origins import ORIGINS, documents_in, prepare
from exchangeable.datasets._registry import REGISTRY, RegisteredFile

FOLDERS = {
    "as_published/reuters8": "exchangeable-variable-models-dbd5/classification/reuters/{d.id}",
    "as_published/webkb4": "exchangeable-variable-models-dbd5/classification/webkb/{d.id}",
    "polarity2": "txt_sentoken/{d.label}/{d.id}",
    "enron1": "{d.id}",
}
LINES = {
    "reuters8": "exchangeable-variable-models-dbd5/classification/reuters/{stem}.data",
    "webkb4": "exchangeable-variable-models-dbd5/classification/webkb/{stem}.txt",
}


def pack(members):
    """Make an archive in which the members stand in reverse order among others."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in [*sorted(members.items(), reverse=True), ("README.txt", "read me")]:
            info = tarfile.TarInfo(name)
            body = text.encode("latin-1")
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return buffer.getvalue()


def archive_of(collection, documents):
    """Put documents back into the shape in which they are published."""
    if collection in FOLDERS:
        return pack({FOLDERS[collection].format(d=d): d.text for d in documents})
    members = {}
    for d in documents:
        name = LINES[collection].format(stem=d.id.partition(":")[0])
        members[name] = members.get(name, "") + f"{d.label}\t{d.text}\n"
    return pack(members)


DOCUMENTS = {
    "as_published/reuters8": [
        Document("train", "acq", "train/acq/file_001.txt", "b \n"),
        Document("train", "acq", "train/acq/file_002.txt", "a \n"),
        Document("train", "money-fx", "train/money/file_001.txt", "d \n"),
        Document("train", "ship", "train/ship/file_001.txt", "c"),
        Document("test", "acq", "test/acq/file_001.txt", "caf\xe9"),
    ],
    "as_published/webkb4": [
        Document("train", "course", "train/course/file_001.txt", "course\n"),
        Document("test", "course", "test/course/file_001.txt", "x\n"),
    ],
    "polarity2": [
        Document(None, "neg", "cv001_2.txt", "bad \n"),
        Document(None, "pos", "cv000_1.txt", "good \n"),
    ],
    "enron1": [
        Document(None, "ham", "enron1/ham/0001.txt", "Subject: x\r\n"),
        Document(None, "spam", "enron1/spam/0002.txt", "Subject: \xa3\r\n"),
    ],
    "reuters8": [
        Document("train", "earn", "r8-train-all-terms:1", "profit up "),
        Document("train", "acq", "r8-train-all-terms:2", "shares "),
        Document("test", "ship", "r8-test-all-terms:1", "gulf "),
    ],
    "webkb4": [
        Document("train", "student", "webkb-train-stemmed:1", ""),
        Document("train", "course", "webkb-train-stemmed:2", "lectur note"),
        Document("test", "student", "webkb-test-stemmed:1", "home page"),
    ],
}


@pytest.fixture
def publish(loopback, monkeypatch):
    """Serve an archive as a collection's origin."""

    def serve(collection, archive, *, known_hash=False):
        loopback.files["/archive.tar"] = archive
        digest = sha256(archive).hexdigest() if known_hash else None
        origin = replace(
            ORIGINS[collection], address=f"{loopback.address}/archive.tar", sha256=digest
        )
        monkeypatch.setitem(ORIGINS, collection, origin)

    return serve


@pytest.fixture
def registered(monkeypatch):
    """Register the small documents as the text of a collection."""

    def register(collection):
        content = to_json_lines(DOCUMENTS[collection])
        key = f"classification/{collection}.jsonl"
        file = RegisteredFile(key, sha256(content).hexdigest(), len(content))
        monkeypatch.setitem(REGISTRY, key, file)

    return register


def record_of(collection):
    folder, _, name = collection.rpartition("/")
    return COLLECTIONS[name, folder or "standard"]


@pytest.mark.parametrize("collection", ORIGINS)
def test_prepared_from_its_archive(publish, registered, loopback, tmp_path, collection):
    publish(collection, archive_of(collection, DOCUMENTS[collection]), known_hash=True)
    registered(collection)
    record = record_of(collection)
    for _ in range(2):
        assert read_documents(record, tmp_path) == DOCUMENTS[collection]
    assert loopback.requests == ["/archive.tar"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / record.path]


@pytest.mark.parametrize("collection", ORIGINS)
def test_real_collection_put_in_order_from_its_archive(real_data, tmp_path, collection):
    record = record_of(collection)
    documents = read_documents(record, real_data(record.path))
    archive = tmp_path / "archive.tar"
    archive.write_bytes(archive_of(collection, documents))
    content = to_json_lines(documents_in(archive, ORIGINS[collection].members))
    expected = REGISTRY[f"classification/{collection}.jsonl"].sha256
    assert sha256(content).hexdigest() == expected


def test_archive_with_other_documents_is_refused(publish, registered, tmp_path):
    others = [*DOCUMENTS["enron1"], Document(None, "ham", "enron1/ham/0003.txt", "new")]
    publish("enron1", archive_of("enron1", others))
    registered("enron1")
    with pytest.raises(AlteredFileError) as refusal:
        fetch_classification("enron1", data_home=tmp_path)
    for content in (DOCUMENTS["enron1"], sorted(others, key=lambda d: (d.label, d.id))):
        assert sha256(to_json_lines(content)).hexdigest() in str(refusal.value)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_archive_of_another_hash_is_refused(publish, registered, loopback, tmp_path):
    publish("polarity2", archive_of("polarity2", DOCUMENTS["polarity2"]), known_hash=True)
    loopback.files["/archive.tar"] += b"\x00"
    with pytest.raises(AlteredFileError, match=r"archive\.tar"):
        fetch_classification("polarity2", data_home=tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("body", [b"", b"<html>no archive</html>"])
def test_page_that_is_no_archive_is_refused(publish, tmp_path, body):
    publish("webkb4", body)
    path = tmp_path / "webkb4.jsonl.xz"
    with pytest.raises(DownloadError) as failure:
        prepare("webkb4", path)
    assert "archive.tar" in str(failure.value)
    assert str(path) in str(failure.value)
    assert list(tmp_path.iterdir()) == []
