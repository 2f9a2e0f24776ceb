"""The paper's classification collections as binary tables."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from exchangeable.arrays import check_count
from exchangeable.datasets._collections import (
    COLLECTIONS,
    Collection,
    read_digits,
    read_documents,
)
from exchangeable.datasets._files import Progress, get_data_home
from exchangeable.datasets._words import count_words

Rows = NDArray[np.intp]
N_FOLDS = 10


def fetch_classification(
    name: str,
    *,
    variant: str = "standard",
    fold: int | None = None,
    classes: Sequence[str] | None = None,
    threshold: int | None = 0,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    progress: Progress | None = None,
) -> Bunch:
    """Load one of the paper's collections as a binary table with labels.

    Documents become sparse rows with a one for every word they contain, as
    ``CountVectorizer(binary=True)`` does when fitted to the training documents; postings of
    20 Newsgroups lose their header, footer and quotations first. Images become dense rows.

    Parameters
    ----------
    name : {"20newsgroups", "reuters8", "webkb4", "polarity2", "enron1", "mnist"}
        The collection.
    variant : {"standard", "as_published"}, default="standard"
        "as_published", for "reuters8" and "webkb4", gives the files that the paper used: most
        documents lack their first word, and the 31 empty documents of WebKB contain the name of
        their class, which reveals the label of 13 test documents.
    fold : int from 0 to 9, optional
        For "polarity2" and "enron1", which have no official split: the fold to return as
        training and test rows, with the words of its own training rows.
    classes : sequence of str, optional
        Keep only these of the `target_names`, for instance a pair. As in the paper, a pair of
        newsgroups has the words of its own training rows, a pair of the other collections those
        of the whole training set.
    threshold : int or None, default=0
        For "mnist": a pixel is on if its value is greater than this. The paper's figures were
        computed with 0, although its text says 50. None keeps the grey values, 0 to 255.
    data_home : path-like, optional
        The data folder; by default as in `get_data_home`.
    download_if_missing : bool, default=True
        If False, raise an OSError when the collection is not in the data folder.
    progress : callable, optional
        Makes a progress bar (an object like tqdm's) from a file name, for each download.

    Returns
    -------
    data : Bunch
        With `X_train`, `y_train`, `X_test`, `y_test` (uint8 tables, labels that index
        `target_names`), `feature_names`, `target_names`, `DESCR`, and for text
        `documents_train`, `documents_test`, the documents as they are in the collection.
        Without an official split and without `fold`: `X`, `y` with the words of all documents,
        `documents`, and `folds`, a list of ten pairs of training and test rows.

    Notes
    -----
    The folds of "polarity2" are the ten tenths of the reviews shuffled by ``RandomState(0)``.
    Those of "enron1" are ten splits, the first 4,000 and the next 1,000 e-mails shuffled by
    ``RandomState(0)`` to ``RandomState(9)``; the paper does not give its seeds.

    "20newsgroups" and "mnist" come through scikit-learn if no prepared file is in the data
    folder, and scikit-learn keeps them (in its own folder, unless `data_home` is given).

    Examples
    --------
    >>> from exchangeable.datasets import fetch_classification
    >>> data = fetch_classification("webkb4")  # doctest: +SKIP
    >>> data.X_train.shape, data.X_test.shape  # doctest: +SKIP
    ((2803, 7287), (1396, 7287))
    """
    record = _find(name, variant)
    if fold is not None:
        _check_fold(record, fold)
    if threshold is not None and check_count(threshold, "threshold", minimum=0) > 254:
        raise ValueError(f"threshold must lie in [0, 254], got {threshold}")
    home = get_data_home(data_home)
    options = {
        "download_if_missing": download_if_missing,
        "progress": progress,
        "sklearn_home": data_home,
    }
    if name == "mnist":
        table = _images(record, threshold, home, options)
    else:
        table = _texts(record, home, options)
    kept = _choose(table, classes)
    if record.official_split or fold is not None:
        train, test = table.folds[fold or 0]
        own = classes is not None and not record.pairs_share_words
        words_from = train[kept[train]] if own else train
        return _split(table, train[kept[train]], test[kept[test]], words_from)
    return _whole(table, kept)


def _find(name: str, variant: str) -> Collection:
    if (name, variant) in list(COLLECTIONS):
        return COLLECTIONS[name, variant]
    names = sorted({known for known, _ in COLLECTIONS})
    if name not in names:
        raise ValueError(f"unknown data set {name!r}; expected one of {', '.join(names)}")
    variants = ", ".join(known for own, known in COLLECTIONS if own == name)
    raise ValueError(f"{name} has no variant {variant!r}; expected one of {variants}")


def _check_fold(record: Collection, fold: int) -> None:
    if record.official_split:
        raise ValueError(f"{record.name} has an official split and no folds; leave fold out")
    if check_count(fold, "fold", minimum=0) >= N_FOLDS:
        raise ValueError(f"fold must lie in [0, {N_FOLDS - 1}], got {fold}")


def _texts(record: Collection, home: Path, options: dict[str, Any]) -> Bunch:
    documents = read_documents(record, home, **options)
    X, words = count_words(record, documents, home)
    labels = np.array([document.label for document in documents])
    target_names, y = np.unique(labels, return_inverse=True)
    if record.official_split:
        is_test = np.array([document.split == "test" for document in documents])
        folds = [(np.flatnonzero(~is_test), np.flatnonzero(is_test))]
    else:
        folds = paper_folds(record.name, len(documents))
    return Bunch(
        X=X,
        y=y,
        folds=folds,
        documents=np.array([document.text for document in documents], dtype=object),
        feature_names=np.array(words, dtype=object),
        target_names=target_names.astype(object),
        DESCR=describe(record),
    )


def _images(
    record: Collection, threshold: int | None, home: Path, options: dict[str, Any]
) -> Bunch:
    pixels, digits = read_digits(record, home, **options)
    n_train, n_test = record.n_rows
    if pixels.shape != (n_train + n_test, record.n_variables):
        raise ValueError(
            f"{record.address} returned an array of shape {pixels.shape}, expected "
            f"{(n_train + n_test, record.n_variables)}"
        )
    side = int(np.sqrt(record.n_variables))
    names = [f"pixel_{row}_{column}" for row in range(side) for column in range(side)]
    return Bunch(
        X=pixels if threshold is None else (pixels > threshold).view(np.uint8),
        y=digits,
        folds=[(np.arange(n_train), np.arange(n_train, n_train + n_test))],
        documents=None,
        feature_names=np.array(names, dtype=object),
        target_names=np.array([str(digit) for digit in range(10)], dtype=object),
        DESCR=describe(record),
    )


def paper_folds(name: str, n_documents: int) -> list[tuple[Rows, Rows]]:
    """Return the training and test rows of the ten runs of a collection without a split."""
    folds = []
    for number in range(N_FOLDS):
        order = np.arange(n_documents)
        np.random.RandomState(0 if name == "polarity2" else number).shuffle(order)
        if name == "polarity2":
            test = np.array_split(order, N_FOLDS)[number]
            folds.append((order[~np.isin(order, test)], test))
        else:
            folds.append((order[:4000], order[4000:5000]))
    return folds


def _choose(table: Bunch, classes: Sequence[str] | None) -> NDArray[np.bool_]:
    """Return which rows belong to the chosen classes, and renumber the table's labels to match."""
    kept = np.ones(len(table.y), dtype=bool)
    if classes is None:
        return kept
    if isinstance(classes, str) or not len(classes):
        raise ValueError(f"classes must be a list of one or more names, got {classes!r}")
    if unknown := sorted(set(classes) - set(table.target_names)):
        raise ValueError(f"unknown classes {unknown}; expected some of {list(table.target_names)}")
    chosen = np.isin(table.target_names, list(classes))
    kept = np.asarray(chosen[table.y])
    table.target_names = table.target_names[chosen]
    table.y = (np.cumsum(chosen) - 1)[table.y]
    return kept


def _split(table: Bunch, train: Rows, test: Rows, words_from: Rows) -> Bunch:
    """Return training and test rows, for text with the words that occur in `words_from`."""
    X, names = table.X, table.feature_names
    if table.documents is not None:
        words = np.unique(X[words_from].indices)
        X, names = X[:, words], names[words]
    data = Bunch(
        X_train=X[train],
        y_train=table.y[train],
        X_test=X[test],
        y_test=table.y[test],
        feature_names=names,
        target_names=table.target_names,
        DESCR=table.DESCR,
    )
    if table.documents is not None:
        data.documents_train = table.documents[train].tolist()
        data.documents_test = table.documents[test].tolist()
    return data


def _whole(table: Bunch, kept: NDArray[np.bool_]) -> Bunch:
    """Return all rows of a collection without an official split, with the paper's folds."""
    number = np.cumsum(kept) - 1
    return Bunch(
        X=table.X[np.flatnonzero(kept)],
        y=table.y[kept],
        documents=table.documents[kept].tolist(),
        folds=[(number[a[kept[a]]], number[b[kept[b]]]) for a, b in table.folds],
        feature_names=table.feature_names,
        target_names=table.target_names,
        DESCR=table.DESCR,
    )


def describe(record: Collection) -> str:
    """Return a description of a collection."""
    train, test = record.n_rows
    split = "official split" if record.official_split else f"{N_FOLDS} runs of the paper"
    return (
        f"{record.name} ({record.variant}): {record.title}.\n\n"
        f"{record.n_classes} classes, {train:,} rows for training and {test:,} for test "
        f"({split}), {record.n_variables:,} binary variables.\nSource: {record.address}\n"
    )
