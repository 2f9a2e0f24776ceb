"""The binary table of the words of documents, counted once and cached."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from exchangeable.datasets._collections import Collection
from exchangeable.datasets._documents import Document, strip_posting, to_json_lines
from exchangeable.datasets._fast import fast_form


def count_words(
    record: Collection, documents: Sequence[Document], home: Path
) -> tuple[csr_array, list[str]]:
    """Return which words occur in which documents, a column for every word of the collection.

    The vocabulary of a part of the documents is then given by the columns that are not empty there.
    """
    content = sha256(to_json_lines(documents)).hexdigest()

    def count() -> dict[str, Any]:
        postings = record.name == "20newsgroups"
        texts = [strip_posting(d.text) if postings else d.text for d in documents]
        counter = CountVectorizer(binary=True, dtype=np.uint8)
        counts = counter.fit_transform(texts)
        counts.sort_indices()
        words = "\n".join(counter.get_feature_names_out()).encode()
        return {
            "indices": counts.indices,
            "indptr": counts.indptr,
            "words": np.frombuffer(words, dtype=np.uint8),
        }

    name = record.path.rpartition("/")[2].partition(".")[0]
    parts = fast_form(name, ("words 1", sklearn.__version__, content), home, count)
    words = parts["words"].tobytes().decode().split("\n")
    ones = np.ones(len(parts["indices"]), dtype=np.uint8)
    shape = (len(documents), len(words))
    return csr_array((ones, parts["indices"], parts["indptr"]), shape=shape), words
