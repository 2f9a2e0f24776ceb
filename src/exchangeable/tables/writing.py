"""Writing answers as CSV, TSV, Parquet or JSON lines, to files or standard output."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np

from exchangeable.runtime.text import not_a_formula, printable, without_surrogates
from exchangeable.storage.files import replacing
from exchangeable.tables.reading import form_of, import_pandas


def write_table(columns: dict[str, Any], target: str, as_json: bool) -> None:
    """Write named columns to a file (atomically) or, for ``-``, to standard output.

    Parameters
    ----------
    columns : dict
        Columns of equal length, by name.
    target : str
        A file that ends in .csv, .tsv or .parquet, or ``-``.
    as_json : bool
        Whether to write JSON lines, one object per row.
    """
    if as_json:
        _to(target, lambda file: file.writelines(_json_lines(columns)))
        return
    form = "csv" if target == "-" else form_of(target)
    if form not in ("csv", "tsv", "parquet"):
        raise ValueError(
            f"{target}: tables cannot be written in this format; use .csv, .tsv or .parquet"
        )
    frame = import_pandas("writing a table").DataFrame(
        _texts(columns, without_surrogates if form == "parquet" else _spreadsheet_text)
    )
    if form == "parquet":
        with replacing(target) as file:
            frame.to_parquet(file, index=False)
        return
    options: dict[str, Any] = {"sep": "\t" if form == "tsv" else ",", "lineterminator": "\n"}
    if _has_returns(frame):
        options["quoting"] = csv.QUOTE_NONNUMERIC  # by default they are not quoted
    _to(target, lambda file: frame.to_csv(file, index=False, **options))


def _texts(columns: dict[str, Any], safe: Callable[[str], str]) -> dict[str, Any]:
    """Return columns with names and texts made safe; other cells stay as they are."""
    return {safe(name): _text_column(column, safe) for name, column in columns.items()}


def _text_column(column: Any, safe: Callable[[str], str]) -> Any:
    if getattr(getattr(column, "dtype", None), "kind", "O") not in "OUT":
        return column
    return [safe(str(cell)) if isinstance(cell, str) else cell for cell in column]


def _has_returns(frame: Any) -> bool:
    """Whether a name or text contains a carriage return."""
    texts = [frame[name] for name in frame if frame[name].dtype.kind in "OUT"]
    return any("\r" in str(name) for name in frame) or any(
        isinstance(cell, str) and "\r" in cell for column in texts for cell in column
    )


def _spreadsheet_text(text: str) -> str:
    return not_a_formula(without_surrogates(text))


class _Screen:
    """A terminal, to which control characters in names are written escaped."""

    def write(self, text: str) -> None:
        sys.stdout.write("\n".join(map(printable, text.split("\n"))))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)


def write_json(value: Any, target: str = "-") -> None:
    """Write one JSON object to a file or standard output."""
    _to(target, lambda file: file.write(json.dumps(plain(value), ensure_ascii=False) + "\n"))


def _to(target: str, write: Any) -> None:
    file: IO[str]
    if target == "-":
        write(_Screen() if sys.stdout.isatty() else sys.stdout)
        sys.stdout.flush()
        return
    with replacing(target, "w") as file:
        write(file)


def _json_lines(columns: dict[str, Any]) -> Iterator[str]:
    names: Sequence[str] = list(columns)
    for row in zip(*columns.values(), strict=True):
        entry = plain(dict(zip(names, row, strict=True)))
        yield json.dumps(entry, ensure_ascii=False) + "\n"


def plain(value: Any) -> Any:
    """Return a value in JSON types: no NumPy types, None for numbers that are not finite.

    >>> plain({"p": np.float64(0.5), "x": [np.int64(1), float("nan")]})
    {'p': 0.5, 'x': [1, None]}
    """
    if isinstance(value, dict):
        return {without_surrogates(str(key)): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
