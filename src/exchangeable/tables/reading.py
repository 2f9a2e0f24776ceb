"""Reading tables (CSV, TSV, Parquet, svmlight, sparse ``.npz``) from files or standard input."""

import sys
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from exchangeable.arrays import check_sparse
from exchangeable.tables.delimited import Delimited, Dialect, read_delimited, repeated

FORMATS = ("csv", "tsv", "parquet", "svmlight", "npz")
ENDINGS = {
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
    "parquet": "parquet",
    "pq": "parquet",
    "svm": "svmlight",
    "svmlight": "svmlight",
    "libsvm": "svmlight",
    "npz": "npz",
}
LABEL = "label"
"""Name of the column with the labels of an svmlight file."""


@dataclass(frozen=True)
class TableData:
    """A table: a frame with named columns, or a sparse matrix with numbered ones.

    Attributes
    ----------
    name : str
        Name of the file, for messages.
    frame : DataFrame, optional
        Named columns.
    matrix : CSR array, optional
        Numbered columns.
    labels : ndarray, optional
        The labels of an svmlight file.
    notes : tuple of str
        Messages for the user about how it was read.
    problems : tuple of str
        Its problems.
    """

    name: str
    frame: Any = None
    matrix: Any = None
    labels: Any = None
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int((self.matrix if self.frame is None else self.frame).shape[0])

    def column(self, name: str) -> Any:
        """Return a column by its name; the error for an unknown one lists those that exist."""
        if self.frame is None:
            if name == LABEL and self.labels is not None:
                return self.labels
            known = (
                f"only {LABEL!r}" if self.labels is not None else "none; use --labels FILE instead"
            )
            raise ValueError(f"{self.name}: no column {name!r}; of named columns it has {known}")
        if name not in self.frame.columns:
            raise ValueError(f"{self.name}: no column {name!r}; it has {listed(self.frame)}")
        return self.frame[name]


def listed(names: Any, most: int = 12) -> str:
    """Return the first few names as text.

    >>> listed("abc", most=2)
    "'a', 'b' and 1 more"
    """
    shown = [str(name) for name in names]
    left = len(shown) - most
    return ", ".join(repr(name) for name in shown[:most]) + (
        f" and {left} more" if left > 0 else ""
    )


def counted(number: int, noun: str) -> str:
    """Return a number with a noun.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def import_pandas(purpose: str) -> Any:
    """Return pandas, or an error that says how to install it."""
    try:
        import pandas
    except ImportError:
        raise ValueError(
            f"{purpose} needs pandas and pyarrow; install them with: "
            "pip install 'exchangeable[table]'"
        ) from None
    return pandas


def read_table(source: str, dialect: Dialect | None = None) -> TableData:
    """Read a table.

    Parameters
    ----------
    source : str
        A file, or ``-`` for standard input.
    dialect : Dialect, optional
        The known parts of the format; by default the ending of the file decides, standard input is
        CSV, and the rest is guessed.
    """
    dialect = dialect or Dialect()
    name = "standard input" if source == "-" else source
    form = dialect.form or ("csv" if source == "-" else form_of(source))
    stream: IO[bytes] | str = BytesIO(sys.stdin.buffer.read()) if source == "-" else source
    if source != "-" and not Path(source).is_file():
        raise ValueError(f"{source}: no such file")
    try:
        if form in ("csv", "tsv"):
            pandas = import_pandas("reading a table")
            usual = "\t" if form == "tsv" else ","
            return _frame(name, read_delimited(stream, usual, dialect, pandas))
        if form == "parquet":
            frame = import_pandas("reading Parquet").read_parquet(stream)
            frame = frame.replace(list(dialect.empty), np.nan) if dialect.empty else frame
            return _frame(name, Delimited(frame, [], repeated(frame.columns)))
        if form == "svmlight":
            matrix, labels = load_svmlight_file(stream)
            whole = (labels == np.round(labels)).all()
            return TableData(name, None, matrix, labels.astype(np.int64) if whole else labels)
        return TableData(name, None, _sparse(stream))
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, ImportError) as error:
        text = " ".join(str(error).split())
        raise ValueError(text if name in text else f"{name}: {text}") from error


def _frame(name: str, found: Delimited) -> TableData:
    """Return a frame whose names are text, and whose booleans with missing values are booleans."""
    frame = found.frame
    frame.columns = [str(column) for column in frame.columns]
    for at, kind in enumerate(frame.dtypes):
        if isinstance(kind, np.dtype) and kind.kind == "O":
            known = frame.iloc[:, at].dropna()
            if len(known) and all(isinstance(cell, bool) for cell in known):
                frame.isetitem(at, frame.iloc[:, at].astype("boolean"))
    return TableData(name, frame, notes=tuple(found.notes), problems=tuple(found.problems))


def form_of(path: str) -> str:
    """Return the format that belongs to a file's ending.

    >>> form_of("survey.csv.gz"), form_of("words.parquet")
    ('csv', 'parquet')
    """
    endings = [ending[1:].lower() for ending in Path(path).suffixes]
    if endings and endings[-1] in ("gz", "bz2", "xz", "zst"):
        endings.pop()
    if not endings or endings[-1] not in ENDINGS:
        raise ValueError(
            f"{path}: the format is not clear from the ending; give it with --format "
            f"({', '.join(FORMATS)})"
        )
    return ENDINGS[endings[-1]]


def _sparse(stream: IO[bytes] | str) -> Any:
    try:
        matrix = sp.load_npz(stream)
        check_sparse(matrix, "the matrix")
        return sp.csr_array(matrix)
    except (AttributeError, TypeError) as error:
        raise ValueError(
            f"the file is not a sparse matrix written by scipy.sparse.save_npz: {error}"
        ) from None


def read_labels(path: str, n_rows: int, unlabelled: str = "error") -> tuple[Any, Any]:
    """Read one label per line, as integers if all of them are; and which lines have one.

    Parameters
    ----------
    path : str
        The file.
    n_rows : int
        Number of rows of the table that they belong to.
    unlabelled : {"error", "drop", "learn"}, default="error"
        Whether an empty line is an error; otherwise its label is None.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    if len(lines) != n_rows:
        raise ValueError(
            f"{path}: the file has {len(lines):,} labels, the table {n_rows:,} rows; give one "
            "label per row"
        )
    labels = np.array([line.strip() or None for line in lines], dtype=object)
    known = labels != None  # noqa: E711
    blank = np.flatnonzero(~known)
    if blank.size and unlabelled == "error":
        raise ValueError(
            f"{path}: line {blank[0] + 1} is empty; every row needs a label: --unlabelled drop "
            "leaves such rows out, --unlabelled learn trains on them too"
        )
    try:
        numbers = labels[known].astype(np.int64)
    except ValueError:
        return labels, known
    if known.all():
        return numbers, known
    labels[known] = numbers.tolist()
    return labels, known
