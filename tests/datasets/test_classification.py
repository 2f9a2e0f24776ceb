"""The collections: the table CountVectorizer would give, the paper's splits, its figures."""

import lzma
from hashlib import sha256
from itertools import combinations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB
from sklearn.utils import Bunch

from exchangeable.datasets import AlteredFileError, DownloadError, fetch_classification
from exchangeable.datasets._classification import paper_folds
from exchangeable.datasets._collections import COLLECTIONS, read_documents
from exchangeable.datasets._documents import Document, strip_posting, to_json_lines
from exchangeable.datasets._registry import REGISTRY, RegisteredFile
from exchangeable.datasets._through_sklearn import arrays_of, documents_of

WORDS = np.array(
    ["stock", "split", "board", "trade", "ship", "grain", "oil", "bank", "rate", "gold", "mine"]
)


def random_documents(n, labels, split_at=None):
    rng = np.random.default_rng(n)
    return [
        Document(
            None if split_at is None else "train" if i < split_at else "test",
            labels[i % len(labels)],
            f"{i:04}",
            " ".join(rng.choice(WORDS[: 3 + i % 10], size=3)),
        )
        for i in range(n)
    ]


@pytest.fixture
def register(monkeypatch, tmp_path):
    """Put documents in the data folder as the registered file of a collection."""

    def put(name, documents, variant="standard"):
        path = COLLECTIONS[name, variant].path
        content = to_json_lines(documents)
        packed = lzma.compress(content)
        for key, data in ((path, packed), (path.removesuffix(".xz"), content)):
            file = RegisteredFile(key, sha256(data).hexdigest(), len(data))
            monkeypatch.setitem(REGISTRY, key, file)
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(packed)
        return tmp_path / path

    return put


def expected(train, test):
    counter = CountVectorizer(binary=True)
    return counter.fit_transform(train).toarray(), counter.transform(test).toarray(), counter


def check_against(data, train, test):
    X_train, X_test, counter = expected(train, test)
    np.testing.assert_array_equal(data.X_train.toarray(), X_train)
    np.testing.assert_array_equal(data.X_test.toarray(), X_test)
    np.testing.assert_array_equal(data.feature_names, counter.get_feature_names_out())
    assert data.X_train.dtype == data.X_test.dtype == np.uint8


def texts(documents, split):
    return [document.text for document in documents if document.split == split]


def test_official_split(register, tmp_path):
    documents = random_documents(40, ["b", "a", "c"], split_at=9)
    register("webkb4", documents)
    for _ in range(2):
        data = fetch_classification("webkb4", data_home=tmp_path)
        check_against(data, texts(documents, "train"), texts(documents, "test"))
    assert list(data.target_names) == ["a", "b", "c"]
    labels = [document.label for document in documents]
    assert [data.target_names[y] for y in data.y_train] == labels[:9]
    assert [data.target_names[y] for y in data.y_test] == labels[9:]
    assert data.documents_train == texts(documents, "train")
    assert data.documents_test == texts(documents, "test")
    assert "webkb4" in data.DESCR


def test_pair_with_the_words_of_the_whole_training_set(register, tmp_path):
    documents = random_documents(40, ["b", "a", "c"], split_at=20)
    register("reuters8", documents)
    data = fetch_classification("reuters8", classes=("c", "a"), data_home=tmp_path)
    whole = fetch_classification("reuters8", data_home=tmp_path)
    rows = np.isin(whole.y_train, [0, 2])
    np.testing.assert_array_equal(data.X_train.toarray(), whole.X_train.toarray()[rows])
    np.testing.assert_array_equal(data.y_train, whole.y_train[rows] // 2)
    assert list(data.target_names) == ["a", "c"]


def test_pair_of_newsgroups_with_its_own_words(register, tmp_path):
    documents = [
        document._replace(text=f"From: {document.id}\n\n> quoted words\n{document.text}")
        for document in random_documents(40, ["b", "a", "c"], split_at=9)
    ]
    register("20newsgroups", documents)
    data = fetch_classification("20newsgroups", classes=("a", "c"), data_home=tmp_path)
    chosen = [document for document in documents if document.label != "b"]
    train, test = (
        [strip_posting(text) for text in texts(chosen, split)] for split in ("train", "test")
    )
    check_against(data, train, test)
    assert data.documents_train == texts(chosen, "train")
    assert len(data.feature_names) < len(WORDS)


def test_fold_with_its_own_words(register, tmp_path):
    documents = random_documents(30, ["neg", "pos"])
    register("polarity2", documents)
    whole = fetch_classification("polarity2", data_home=tmp_path)
    assert whole.documents == [document.text for document in documents]
    np.testing.assert_array_equal(whole.X.toarray(), expected(whole.documents, [""])[0])
    assert len(whole.folds) == 10
    for number, (train, test) in enumerate(whole.folds):
        data = fetch_classification("polarity2", fold=number, data_home=tmp_path)
        check_against(data, [whole.documents[i] for i in train], [whole.documents[i] for i in test])
        np.testing.assert_array_equal(data.y_train, whole.y[train])
        np.testing.assert_array_equal(data.y_test, whole.y[test])


def test_chosen_class_of_a_collection_with_folds(register, tmp_path):
    documents = random_documents(30, ["neg", "pos"])
    register("polarity2", documents)
    data = fetch_classification("polarity2", classes=["pos"], data_home=tmp_path)
    assert data.X.shape[0] == len(data.y) == len(data.documents) == 15
    for train, test in data.folds:
        assert sorted([*train, *test]) == list(range(15))


def test_folds_of_the_paper():
    folds = paper_folds("polarity2", 2000)
    order = np.arange(2000)
    np.random.RandomState(0).shuffle(order)
    np.testing.assert_array_equal(np.concatenate([test for _, test in folds]), order)
    for train, test in folds:
        assert len(train) == 1800
        assert not set(train) & set(test)
    for train, test in paper_folds("enron1", 5172):
        assert (len(train), len(test)) == (4000, 1000)
        assert not set(train) & set(test)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"name": "webkb"}, "webkb4"),
        ({"name": "mnist", "variant": "as_published"}, "no variant"),
        ({"name": "mnist", "fold": 0}, "official split"),
        ({"name": ["mnist"]}, "unknown data set"),
        ({"name": "polarity2", "fold": 10}, r"\[0, 9\]"),
        ({"name": "polarity2", "fold": "1"}, "fold must be an integer, got '1'"),
        ({"name": "mnist", "threshold": 255}, r"threshold must lie in \[0, 254\], got 255"),
        ({"name": "mnist", "threshold": "50"}, "threshold must be an integer, got '50'"),
    ],
)
def test_what_does_not_exist_is_refused(options, complaint, tmp_path):
    with pytest.raises((ValueError, TypeError), match=complaint):
        fetch_classification(**options, data_home=tmp_path)


def test_unknown_class(register, tmp_path):
    register("webkb4", random_documents(10, ["a", "b"], split_at=5))
    with pytest.raises(ValueError, match="'z'"):
        fetch_classification("webkb4", classes=("a", "z"), data_home=tmp_path)
    for none in ([], "a"):
        with pytest.raises(ValueError, match="classes must be a list of one or more names"):
            fetch_classification("webkb4", classes=none, data_home=tmp_path)


def test_altered_file_is_refused_though_the_fast_form_is_whole(register, tmp_path):
    path = register("webkb4", random_documents(10, ["a", "b"], split_at=5))
    fetch_classification("webkb4", data_home=tmp_path)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(AlteredFileError, match="webkb4"):
        fetch_classification("webkb4", data_home=tmp_path)


def test_prepared_file_from_a_mirror(register, loopback, tmp_path, monkeypatch):
    path = register("enron1", random_documents(5000, ["ham", "spam"]))
    loopback.files["/classification/enron1.jsonl.xz"] = path.read_bytes()
    path.unlink()
    monkeypatch.setenv("EXCHANGEABLE_DATA_URL", f"{loopback.address}/")
    data = fetch_classification("enron1", fold=0, data_home=tmp_path)
    assert data.X_train.shape[0] == 4000
    assert path.is_file()


@pytest.mark.parametrize("name", ["webkb4", "polarity2", "mnist", "20newsgroups"])
def test_missing_and_not_to_be_downloaded(name, tmp_path):
    with pytest.raises(OSError, match=r"download_if_missing is False|dataset not found"):
        fetch_classification(name, data_home=tmp_path, download_if_missing=False)


def test_mnist_from_its_file(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    arrays = {
        "x_train": rng.integers(0, 256, (60000, 28, 28), dtype=np.uint8),
        "y_train": rng.integers(0, 10, 60000, dtype=np.uint8),
        "x_test": rng.integers(0, 256, (10000, 28, 28), dtype=np.uint8),
        "y_test": rng.integers(0, 10, 10000, dtype=np.uint8),
    }
    path = tmp_path / "classification" / "mnist.npz"
    path.parent.mkdir()
    np.savez(path, **arrays)
    digest = sha256(path.read_bytes()).hexdigest()
    key = "classification/mnist.npz"
    monkeypatch.setitem(REGISTRY, key, RegisteredFile(key, digest, None))
    data = fetch_classification("mnist", data_home=tmp_path)
    pixels = arrays["x_train"].reshape(60000, 784)
    np.testing.assert_array_equal(data.X_train, pixels > 0)
    np.testing.assert_array_equal(data.y_test, arrays["y_test"])
    assert data.X_train.dtype == np.uint8
    assert data.feature_names[29] == "pixel_1_1"
    pair = fetch_classification("mnist", classes=("3", "8"), threshold=50, data_home=tmp_path)
    np.testing.assert_array_equal(pair.X_train, pixels[np.isin(arrays["y_train"], [3, 8])] > 50)
    assert set(pair.y_train) == {0, 1}
    grey = fetch_classification("mnist", threshold=None, data_home=tmp_path)
    np.testing.assert_array_equal(grey.X_train, pixels)


def test_what_scikit_learn_fetches_becomes_the_same_rows():
    half = Bunch(
        data=["From: x\n\none", "From: y\n\ntwo"],
        target=np.array([1, 0]),
        target_names=["alt.atheism", "sci.space"],
        filenames=np.array(["/home/sci.space/60001", "/home/alt.atheism/49960"]),
    )
    assert documents_of(half, "test") == [
        Document("test", "sci.space", "sci.space/60001", "From: x\n\none"),
        Document("test", "alt.atheism", "alt.atheism/49960", "From: y\n\ntwo"),
    ]
    openml = Bunch(data=np.array([[0.0, 255.0]]), target=np.array(["7"], dtype=object))
    pixels, digits = arrays_of(openml)
    assert (pixels.dtype, pixels.tolist(), digits.tolist()) == (np.uint8, [[0, 255]], [7])


def test_no_network_says_what_was_tried_and_where_to_put_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("EXCHANGEABLE_DATA_URL", "http://127.0.0.1:1")
    with pytest.raises(DownloadError) as failure:
        fetch_classification("reuters8", data_home=tmp_path)
    assert "http://127.0.0.1:1/classification/reuters8.jsonl.xz" in str(failure.value)
    assert str(tmp_path / "classification" / "reuters8.jsonl.xz") in str(failure.value)


FIGURES = {
    ("20newsgroups", "standard"): 0.5366,
    ("reuters8", "standard"): None,
    ("reuters8", "as_published"): 0.8616,
    ("webkb4", "standard"): None,
    ("webkb4", "as_published"): 0.7830,
    ("mnist", "standard"): 0.8415,
}


def naive_bayes(data):
    model = BernoulliNB(alpha=0.1).fit(data.X_train, data.y_train)
    return model.score(data.X_test, data.y_test)


@pytest.mark.parametrize(("name", "variant"), FIGURES)
def test_real_collection(real_data, name, variant):
    record = COLLECTIONS[name, variant]
    folder = real_data(record.path)
    data = fetch_classification(name, variant=variant, data_home=folder, download_if_missing=False)
    train, test = record.n_rows
    assert data.X_train.shape == (train, record.n_variables)
    assert len(data.y_train) == train
    assert data.X_test.shape == (test, record.n_variables)
    assert len(data.y_test) == test
    assert len(data.target_names) == record.n_classes
    assert data.X_train.max() == 1
    if figure := FIGURES[name, variant]:
        assert naive_bayes(data) == pytest.approx(figure, abs=5e-5)


def test_real_pairs_of_newsgroups_have_as_many_words_as_in_the_paper(real_data):
    folder = real_data(COLLECTIONS["20newsgroups", "standard"].path)
    data = fetch_classification("20newsgroups", data_home=folder)
    words = [np.unique(data.X_train[data.y_train == y].indices) for y in range(20)]
    pairs = [len(np.union1d(a, b)) for a, b in combinations(words, 2)]
    assert np.mean(pairs) == pytest.approx(19726.1, abs=0.05)
    pair = fetch_classification("20newsgroups", classes=data.target_names[:2], data_home=folder)
    assert pair.X_train.shape[1] == pairs[0]


def test_real_reviews(real_data):
    folder = real_data(COLLECTIONS["polarity2", "standard"].path)
    runs = [
        fetch_classification("polarity2", fold=number, data_home=folder) for number in range(10)
    ]
    assert np.mean([run.X_train.shape[1] for run in runs]) == pytest.approx(38045.8)
    assert np.mean([naive_bayes(run) for run in runs]) == pytest.approx(0.7935)


def test_real_emails(real_data):
    folder = real_data(COLLECTIONS["enron1", "standard"].path)
    runs = [fetch_classification("enron1", fold=number, data_home=folder) for number in range(10)]
    words = np.mean([run.X_train.shape[1] for run in runs])
    assert words == pytest.approx(COLLECTIONS["enron1", "standard"].n_variables, abs=0.5)
    assert np.mean([naive_bayes(run) for run in runs]) == pytest.approx(0.915, abs=0.01)


def test_empty_pages_of_the_published_variant_give_away_their_label(real_data):
    record = COLLECTIONS["webkb4", "as_published"]
    documents = read_documents(record, real_data(record.path))
    told = [document for document in documents if document.text.strip() == document.label]
    assert len(told) == 31
    assert sum(document.split == "test" for document in told) == 13
