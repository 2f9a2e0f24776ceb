"""Writing answers as CSV, TSV, Parquet or JSON lines, to files or standard output."""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

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
    frame = import_pandas("writing a table").DataFrame(columns)
    if form == "parquet":
        with replacing(target) as file:
            frame.to_parquet(file, index=False)
        return
    separator = "\t" if form == "tsv" else ","
    _to(target, lambda file: frame.to_csv(file, sep=separator, index=False, lineterminator="\n"))


def write_json(value: Any, target: str = "-") -> None:
    """Write one JSON object to a file or standard output."""
    _to(target, lambda file: file.write(json.dumps(plain(value), ensure_ascii=False) + "\n"))


def _to(target: str, write: Any) -> None:
    file: IO[str]
    if target == "-":
        write(sys.stdout)
        sys.stdout.flush()
        return
    with replacing(target, "w") as file:
        write(file)


def _json_lines(columns: dict[str, Any]) -> Iterator[str]:
    names: Sequence[str] = list(columns)
    for row in zip(*columns.values(), strict=True):
        entry = {name: plain(value) for name, value in zip(names, row, strict=True)}
        yield json.dumps(entry, ensure_ascii=False) + "\n"


def plain(value: Any) -> Any:
    """Return a value in JSON types: no NumPy types, None for numbers that are not finite.

    >>> plain({"p": np.float64(0.5), "x": [np.int64(1), float("nan")]})
    {'p': 0.5, 'x': [1, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
