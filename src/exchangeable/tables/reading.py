"""Reading tables (CSV, TSV, Parquet, svmlight, sparse ``.npz``) from files or standard input."""

import sys
import warnings
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from exchangeable.arrays import check_sparse

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
    """

    name: str
    frame: Any = None
    matrix: Any = None
    labels: Any = None

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


def import_pandas(purpose: str) -> Any:
    """Return pandas, or say how to install it."""
    try:
        import pandas
    except ImportError:
        raise ValueError(
            f"{purpose} needs pandas and pyarrow; install them with: "
            "pip install 'exchangeable[table]'"
        ) from None
    return pandas


def read_table(source: str, form: str | None = None) -> TableData:
    """Read a table.

    Parameters
    ----------
    source : str
        A file, or ``-`` for standard input.
    form : {"csv", "tsv", "parquet", "svmlight", "npz"}, optional
        The format; by default the file's ending decides, and standard input is CSV.
    """
    name = "standard input" if source == "-" else source
    form = form or ("csv" if source == "-" else form_of(source))
    stream: IO[bytes] | str = BytesIO(sys.stdin.buffer.read()) if source == "-" else source
    if source != "-" and not Path(source).is_file():
        raise ValueError(f"{source}: no such file")
    try:
        if form in ("csv", "tsv"):
            return TableData(name, _delimited(stream, "\t" if form == "tsv" else ","))
        if form == "parquet":
            return TableData(name, import_pandas("reading Parquet").read_parquet(stream))
        if form == "svmlight":
            matrix, labels = load_svmlight_file(stream)
            whole = (labels == np.round(labels)).all()
            return TableData(name, None, matrix, labels.astype(np.int64) if whole else labels)
        return TableData(name, None, _sparse(stream))
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, ImportError) as error:
        text = " ".join(str(error).split())
        raise ValueError(text if name in text else f"{name}: {text}") from error


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


def _delimited(stream: IO[bytes] | str, separator: str) -> Any:
    pandas = import_pandas("reading a table")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:
            frame = pandas.read_csv(stream, sep=separator, index_col=False)
        except pandas.errors.EmptyDataError:
            raise ValueError("the file is empty") from None
        except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
            raise ValueError(f"the file is not a valid table: {error}") from None
    if frame.columns.duplicated().any():
        twice = frame.columns[frame.columns.duplicated()]
        raise ValueError(f"two columns are named {twice[0]!r}; rename one of them")
    return frame


def _sparse(stream: IO[bytes] | str) -> Any:
    try:
        matrix = sp.load_npz(stream)
        check_sparse(matrix, "the matrix")
        return sp.csr_array(matrix)
    except (AttributeError, TypeError) as error:
        raise ValueError(
            f"the file is not a sparse matrix written by scipy.sparse.save_npz: {error}"
        ) from None


def read_labels(path: str, n_rows: int) -> Any:
    """Read one label per line, as integers if all of them are."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    if len(lines) != n_rows:
        raise ValueError(
            f"{path}: the file has {len(lines):,} labels, the table {n_rows:,} rows; give one "
            "label per row"
        )
    blank = [number for number, line in enumerate(lines, 1) if not line.strip()]
    if blank:
        raise ValueError(f"{path}: line {blank[0]} is empty; every row needs a label")
    labels = np.array([line.strip() for line in lines], dtype=object)
    try:
        return labels.astype(np.int64)
    except ValueError:
        return labels
