"""Coding of a column of documents as a binary bag of words, and of sparse matrices."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

from exchangeable.arrays import check_count
from exchangeable.tables.coding import Coding
from exchangeable.tables.layout import Layout
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import TableData


@dataclass(frozen=True)
class WordCoding:
    """A vocabulary: each word is a variable, which is on if the document contains the word.

    Attributes
    ----------
    column : str
        The column that holds the documents.
    variables : list of str
        The vocabulary.
    target : str, optional
        The column that the model predicts.
    """

    column: str
    variables: list[str]
    target: str | None = None
    layout: Layout = field(default_factory=Layout)

    @property
    def n_variables(self) -> int:
        """Number of words."""
        return len(self.variables)

    def rows(self, table: TableData) -> Any:
        """Return the documents' words as a sparse matrix."""
        return _vectorizer(self.variables).transform(documents(table, self.column))

    def evidence(self, name: str, value: str) -> dict[str, int] | None:
        """Return None: words are given as variables, by 0 or 1."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the coding as JSON values."""
        told = {
            "kind": "text",
            "column": self.column,
            "vocabulary": self.variables,
            "target": self.target,
        }
        return told | self.layout.to_json()


@dataclass(frozen=True)
class SparseCoding:
    """Numbered columns of a sparse file."""

    n_columns: int
    target: str | None = None
    layout: Layout = field(default_factory=Layout)

    @property
    def n_variables(self) -> int:
        """Number of columns."""
        return self.n_columns

    @property
    def variables(self) -> list[str]:
        """The numbers of the columns, as text."""
        return [str(j) for j in range(self.n_columns)]

    def rows(self, table: TableData) -> Any:
        """Return the matrix, padded with empty columns if it has fewer than the model."""
        if table.matrix is None:
            raise ValueError(
                f"{table.name}: the model was fitted to a sparse file; give an svmlight or .npz "
                "file"
            )
        matrix = table.matrix.tocsr()
        if matrix.shape[1] > self.n_columns:
            raise ValueError(
                f"{table.name}: the file has {matrix.shape[1]:,} columns, the model only "
                f"{self.n_columns:,}; give the columns that it was fitted to"
            )
        matrix.resize((matrix.shape[0], self.n_columns))
        return matrix

    def evidence(self, name: str, value: str) -> dict[str, int] | None:
        """Return None: columns are given as variables, by 0 or 1."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the coding as JSON values."""
        return {"kind": "sparse", "n_columns": self.n_columns, "target": self.target}


AnyCoding = Coding | WordCoding | SparseCoding | RawCoding


def learn_words(
    table: TableData, column: str, target: str | None, least: int, layout: Layout
) -> WordCoding:
    """Return the vocabulary of all words that occur in at least `least` documents."""
    texts = documents(table, column)
    vectorizer = CountVectorizer(binary=True, min_df=least)
    try:
        vectorizer.fit(texts)
    except ValueError as error:
        raise ValueError(f"{table.name}: column {column!r}: {error}") from None
    words = [str(word) for word in vectorizer.get_feature_names_out()]
    return WordCoding(column, words, target, layout)


def documents(table: TableData, column: str) -> list[str]:
    """Return the texts of a column; an empty cell is an empty document."""
    cells = table.column(column)
    present = cells.dropna()
    if len(present) and not all(isinstance(cell, str) for cell in present):
        row = next(i for i, cell in enumerate(cells) if not isinstance(cell, str) and cell == cell)
        raise ValueError(
            f"{table.name}: row {row + 1}, column {column!r} is {cells.iloc[row]!r}, not text; "
            "--text needs a column of documents"
        )
    return [str(cell) if isinstance(cell, str) else "" for cell in cells]


def _vectorizer(vocabulary: list[str]) -> CountVectorizer:
    return CountVectorizer(binary=True, vocabulary=vocabulary)


def coding_from_json(value: Mapping[str, Any] | None) -> AnyCoding | None:
    """Return the coding that is saved with a model, None if there is none."""
    if value is None:
        return None
    try:
        if value["kind"] == "columns":
            return Coding.from_json(value)
        if value["kind"] == "raw":
            return RawCoding.from_json(value)
        if value["kind"] == "text":
            words = value["vocabulary"]
            if not all(isinstance(word, str) for word in words) or len(set(words)) < len(words):
                raise ValueError("the vocabulary has repeated words, or words that are not text")
            layout = Layout.from_json(value)
            return WordCoding(str(value["column"]), list(words), value.get("target"), layout)
        if value["kind"] == "sparse":
            return SparseCoding(check_count(value["n_columns"], "n_columns"), value.get("target"))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"the model's preprocessing cannot be read: {error}; the file is damaged"
        ) from None
    raise ValueError(
        f"the model's preprocessing is of unknown kind {str(value['kind'])[:80]!r}; it may have "
        "been written by a newer version of exchangeable"
    )
