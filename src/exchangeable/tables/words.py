"""A column of documents as a binary bag of words, and sparse matrices as they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

from exchangeable.arrays import check_count
from exchangeable.tables.coding import Coding
from exchangeable.tables.reading import TableData


@dataclass(frozen=True)
class WordCoding:
    """Which words of a text column are variables: on where the document contains the word.

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

    @property
    def n_variables(self) -> int:
        """Number of words."""
        return len(self.variables)

    def rows(self, table: TableData) -> Any:
        """Return the documents' words as a sparse matrix."""
        return _vectorizer(self.variables).transform(documents(table, self.column))

    def evidence(self, name: str, value: str) -> dict[str, int] | None:
        """Words have no other form: None."""
        return None

    def n_unseen(self, table: TableData) -> int:
        """Words that were not there when the model was fitted say nothing: 0."""
        return 0

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "kind": "text",
            "column": self.column,
            "vocabulary": self.variables,
            "target": self.target,
        }


@dataclass(frozen=True)
class SparseCoding:
    """Numbered columns of a sparse file."""

    n_columns: int
    target: str | None = None

    @property
    def n_variables(self) -> int:
        """Number of columns."""
        return self.n_columns

    @property
    def variables(self) -> list[str]:
        """The numbers of the columns, as text."""
        return [str(j) for j in range(self.n_columns)]

    def rows(self, table: TableData) -> Any:
        """Return the matrix, with empty columns added where it has fewer than the model."""
        if table.matrix is None:
            raise ValueError(f"{table.name}: the model was fitted to a sparse file, this is none")
        matrix = table.matrix.tocsr()
        if matrix.shape[1] > self.n_columns:
            raise ValueError(
                f"{table.name}: {matrix.shape[1]} columns, but the model has {self.n_columns}"
            )
        matrix.resize((matrix.shape[0], self.n_columns))
        return matrix

    def evidence(self, name: str, value: str) -> dict[str, int] | None:
        """Columns have no other form: None."""
        return None

    def n_unseen(self, table: TableData) -> int:
        """There are no categories: 0."""
        return 0

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"kind": "sparse", "n_columns": self.n_columns, "target": self.target}


AnyCoding = Coding | WordCoding | SparseCoding


def learn_words(table: TableData, column: str, target: str | None, least: int) -> WordCoding:
    """Return the vocabulary of the words that occur in at least so many documents."""
    texts = documents(table, column)
    vectorizer = CountVectorizer(binary=True, min_df=least)
    try:
        vectorizer.fit(texts)
    except ValueError as error:
        raise ValueError(f"{table.name}: column {column!r}: {error}") from None
    return WordCoding(column, [str(word) for word in vectorizer.get_feature_names_out()], target)


def documents(table: TableData, column: str) -> list[str]:
    """Return the texts of a column; an empty cell is an empty document."""
    cells = table.column(column)
    present = cells.dropna()
    if len(present) and not all(isinstance(cell, str) for cell in present):
        row = next(i for i, cell in enumerate(cells) if not isinstance(cell, str)) + 1
        raise ValueError(f"{table.name}: row {row}, column {column!r} is not text")
    return [str(cell) if isinstance(cell, str) else "" for cell in cells]


def _vectorizer(vocabulary: list[str]) -> CountVectorizer:
    return CountVectorizer(binary=True, vocabulary=vocabulary)


def coding_from_json(value: Mapping[str, Any] | None) -> AnyCoding | None:
    """Return the coding that a model file records, None if it records none."""
    if value is None:
        return None
    try:
        if value["kind"] == "columns":
            return Coding.from_json(value)
        if value["kind"] == "text":
            words = value["vocabulary"]
            if not all(isinstance(word, str) for word in words) or len(set(words)) < len(words):
                raise ValueError("a vocabulary holds different words")
            return WordCoding(str(value["column"]), list(words), value.get("target"))
        if value["kind"] == "sparse":
            return SparseCoding(check_count(value["n_columns"], "n_columns"), value.get("target"))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"the model's preprocessing cannot be read: {error}") from None
    raise ValueError(f"the model's preprocessing is of unknown kind {str(value['kind'])[:80]!r}")
