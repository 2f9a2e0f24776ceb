"""The collections for classification: their properties, and reading their rows."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exchangeable.datasets._documents import Document, from_json_lines, read_packed
from exchangeable.datasets._files import Progress, check_hash, explained, obtain
from exchangeable.datasets._origins import ORIGINS, prepare
from exchangeable.datasets._registry import (
    MNIST_ADDRESS,
    NEWSGROUPS_ADDRESS,
    REGISTRY,
    mirror_address,
)
from exchangeable.datasets._through_sklearn import digits, newsgroups


@dataclass(frozen=True)
class Collection:
    """One collection: its size, its title, and how the paper splits it and counts its words.

    `n_rows` is the number of training and test rows of the official split, or of one fold if there
    is none; `n_variables` is then the average over the folds, as in the paper. `pairs_share_words`
    means that a choice of classes keeps the words of the whole training set.
    """

    name: str
    n_rows: tuple[int, int]
    n_classes: int
    n_variables: int
    title: str
    variant: str = "standard"
    official_split: bool = True
    pairs_share_words: bool = True

    @property
    def path(self) -> str:
        """The prepared file, in the data folder."""
        if self.name == "mnist":
            return "classification/mnist.npz"
        folder = "" if self.variant == "standard" else f"{self.variant}/"
        return f"classification/{folder}{self.name}.jsonl.xz"

    @property
    def address(self) -> str:
        """Where the collection comes from."""
        if mirror := mirror_address(self.path):
            return mirror
        if self.name == "20newsgroups":
            return NEWSGROUPS_ADDRESS
        if self.name == "mnist":
            return MNIST_ADDRESS
        return ORIGINS[_key(self.path)].address


_R8, _WEBKB = "news wires (Reuters-21578, R8), by word", "university web pages (WebKB), by stem"
_ALL = (
    Collection("20newsgroups", (11314, 7532), 20, 101631, "postings, by word",
               pairs_share_words=False),
    Collection("reuters8", (5485, 2189), 8, 19956, _R8),
    Collection("reuters8", (5485, 2189), 8, 19398, _R8, "as_published"),
    Collection("webkb4", (2803, 1396), 4, 7287, _WEBKB),
    Collection("webkb4", (2803, 1396), 4, 7290, _WEBKB, "as_published"),
    Collection("polarity2", (1800, 200), 2, 38046, "movie reviews (Pang and Lee), by word",
               official_split=False),
    Collection("enron1", (4000, 1000), 2, 44146, "e-mails (Enron-Spam, enron1), by word",
               official_split=False),
    Collection("mnist", (60000, 10000), 10, 784, "handwritten digits, by pixel"),
)  # fmt: skip
COLLECTIONS = {(record.name, record.variant): record for record in _ALL}


def _key(path: str) -> str:
    return path.removeprefix("classification/").removesuffix(".jsonl.xz")


def read_documents(
    record: Collection,
    home: Path,
    *,
    download_if_missing: bool = True,
    progress: Progress | None = None,
    sklearn_home: Any = None,
) -> list[Document]:
    """Read a collection's documents from its prepared file, fetching it first if necessary."""
    path, packed = home / record.path, REGISTRY[record.path]
    mirror = mirror_address(record.path)
    if path.exists():
        pass
    elif mirror:
        obtain(packed, mirror, home, download_if_missing=download_if_missing, progress=progress)
    elif record.name == "20newsgroups":
        with explained(record.address, path) if download_if_missing else nullcontext():
            return newsgroups(sklearn_home, download_if_missing)
    elif download_if_missing:
        prepare(_key(record.path), path, progress)
    else:
        raise OSError(
            f"{path} is missing and download_if_missing is False; put the file there, or allow the "
            "download"
        )
    text = REGISTRY[record.path.removesuffix(".xz")]
    return from_json_lines(read_packed(path, packed.sha256, text.sha256))


def read_digits(
    record: Collection,
    home: Path,
    *,
    download_if_missing: bool = True,
    progress: Progress | None = None,
    sklearn_home: Any = None,
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read all digits of MNIST and their labels: 60,000 for training, then 10,000 for test."""
    path, file = home / record.path, REGISTRY[record.path]
    mirror = mirror_address(record.path)
    if path.exists():
        check_hash(path, file.sha256)
    elif mirror:
        obtain(file, mirror, home, download_if_missing=download_if_missing, progress=progress)
    elif download_if_missing:
        with explained(record.address, path):
            return digits(sklearn_home)
    else:
        raise OSError(
            f"{path} is missing and download_if_missing is False; put the file there, or allow the "
            "download"
        )
    with np.load(path, allow_pickle=False) as arrays:
        pixels = np.concatenate([arrays["x_train"], arrays["x_test"]])
        labels = np.concatenate([arrays["y_train"], arrays["y_test"]])
    return pixels.reshape(len(pixels), -1), labels.astype(np.int64)
