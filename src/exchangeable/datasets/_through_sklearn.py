"""The two collections that scikit-learn can fetch, in the form of our prepared files.

scikit-learn checks its downloads and keeps them in its own folder.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_20newsgroups, fetch_openml

from exchangeable.datasets._documents import Document


def newsgroups(data_home: Any, download_if_missing: bool) -> list[Document]:
    """Fetch 20 Newsgroups, in the order of its folders and files."""
    options = {"data_home": data_home, "download_if_missing": download_if_missing}
    train, test = (
        fetch_20newsgroups(subset=split, shuffle=False, **options) for split in ("train", "test")
    )
    return [*documents_of(train, "train"), *documents_of(test, "test")]


def documents_of(half: Any, split: str) -> list[Document]:
    """Turn one half of scikit-learn's 20 Newsgroups into documents."""
    labels = [half.target_names[target] for target in half.target]
    names = [Path(name).name for name in half.filenames]
    return [
        Document(split, label, f"{label}/{name}", text)
        for label, name, text in zip(labels, names, half.data, strict=True)
    ]


def digits(data_home: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Fetch MNIST, whose first 60,000 digits on OpenML are the training digits."""
    return arrays_of(
        fetch_openml(
            "mnist_784", version=1, as_frame=False, parser="liac-arff", data_home=data_home
        )
    )


def arrays_of(data: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Turn OpenML's floating-point pixels and text labels into two arrays of integers."""
    return data.data.astype(np.uint8), data.target.astype(np.int64)
