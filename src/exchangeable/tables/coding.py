"""How columns of a table become binary variables; saved with the model and applied to new rows.

A binary column stays as it is. With ``auto``, a column of numbers becomes one variable that is on
above the median, and a column of categories one variable per category (a single one if there are
two categories). Empty cells stay unknown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.tables.raw import RawCoding
from exchangeable.tables.reading import TableData, import_pandas, listed

MOST_LEVELS = 100
"""Categories of a column that can be coded; each repeats the name of the column."""
KINDS = ("binary", "number", "category")


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"binary", "number", "category"}
        How it is coded.
    threshold : float
        Numbers greater than this are on.
    levels : tuple of str
        The categories.
    """

    name: str
    kind: str
    threshold: float = 0.0
    levels: tuple[str, ...] = ()

    @property
    def n_variables(self) -> int:
        """Number of its variables."""
        return len(self._own) if self.kind == "category" else 1

    @property
    def variables(self) -> list[str]:
        """The names of its variables."""
        if self.kind == "number":
            return [f"{self.name}>{self.threshold:g}"]
        if self.kind == "category":
            return [f"{self.name}={level}" for level in self._own]
        return [self.name]

    @property
    def _own(self) -> tuple[str, ...]:
        """The categories that have a variable: with two categories only the second."""
        return self.levels[1:] if len(self.levels) == 2 else self.levels

    def code(self, values: Any, where: str) -> FloatArray:
        """Return the variables of some rows, with NaN for unknown cells."""
        if self.kind == "category":
            texts = _as_texts(values)
            known = np.isin(texts, self.levels)
            coded: FloatArray = (texts[:, None] == np.array(self._own, dtype=object)).astype(
                np.float64
            )
            coded[~known] = np.nan
            return coded
        numbers = _as_numbers(values, self.name, where)
        if self.kind == "number":
            return np.where(np.isnan(numbers), np.nan, numbers > self.threshold)[:, None]
        wrong = np.flatnonzero(~(np.isnan(numbers) | np.isin(numbers, (0, 1))))
        if wrong.size:
            raise ValueError(
                f"{where}: row {wrong[0] + 1}, column {self.name!r} is {numbers[wrong[0]]:g}; "
                "expected 0 or 1, or an empty cell"
            )
        return numbers[:, None]


@dataclass(frozen=True)
class Coding:
    """The columns that a model uses, in order, and the column it predicts, if any."""

    columns: tuple[Column, ...]
    target: str | None = None

    @property
    def n_variables(self) -> int:
        """Number of the model's variables; names are made of it only if it is right."""
        return sum(column.n_variables for column in self.columns)

    @property
    def variables(self) -> list[str]:
        """The names of the model's variables."""
        return [name for column in self.columns for name in column.variables]

    @property
    def is_plain(self) -> bool:
        """Whether every column is used without coding."""
        return all(column.kind == "binary" for column in self.columns)

    def rows(self, table: TableData) -> Any:
        """Return the model's variables as a frame with their names."""
        pandas = import_pandas("reading a table")
        if table.frame is None:
            raise ValueError(
                f"{table.name}: the model was fitted to named columns, which this file does not "
                "have; give a CSV, TSV or Parquet file"
            )
        missing = [c.name for c in self.columns if c.name not in table.frame.columns]
        if missing:
            raise ValueError(
                f"{table.name}: lacks columns that the model uses: {listed(missing)}; add them, "
                "with empty cells where the values are unknown"
            )
        parts = [column.code(table.frame[column.name], table.name) for column in self.columns]
        matrix = np.concatenate(parts, axis=1)
        if not np.isnan(matrix).any():
            matrix = matrix.astype(np.uint8)
        return pandas.DataFrame(matrix, columns=self.variables, index=table.frame.index)

    def n_unseen(self, table: TableData) -> int:
        """Return how many cells hold a category that did not occur in the training rows."""
        unseen = 0
        for column in self.columns:
            if column.kind == "category":
                texts = _as_texts(table.frame[column.name])
                unseen += int((~np.isin(texts, column.levels) & (texts != None)).sum())  # noqa: E711
        return unseen

    def evidence(self, name: str, value: str) -> dict[str, int] | None:
        """Return the variables that a cell of a coded column sets, None for other columns."""
        column = next((c for c in self.columns if c.name == name), None)
        if column is None or column.kind == "binary":
            return None
        if column.kind == "category" and value not in column.levels:
            raise ValueError(
                f"{name}={value}: {value!r} is not a category of {name!r}; expected one of "
                f"{listed(column.levels)}"
            )
        coded = column.code(np.array([value], dtype=object), "--given")[0]
        return {v: int(on) for v, on in zip(column.variables, coded, strict=True)}

    def to_json(self) -> dict[str, Any]:
        """Return the coding as JSON values."""
        columns = [
            {
                "name": c.name,
                "kind": c.kind,
                **({"threshold": c.threshold} if c.kind == "number" else {}),
                **({"levels": list(c.levels)} if c.kind == "category" else {}),
            }
            for c in self.columns
        ]
        return {"kind": "columns", "columns": columns, "target": self.target}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Coding":
        """Return the coding that `to_json` wrote, after checking it."""
        columns = []
        for entry in value["columns"]:
            levels = tuple(entry.get("levels", ()))
            if entry["kind"] not in KINDS or not isinstance(entry["name"], str):
                raise ValueError(f"column {entry!r} is not coded as one of {', '.join(KINDS)}")
            if not all(isinstance(level, str) for level in levels):
                raise ValueError(f"column {entry['name']!r} has a category that is not text")
            if len(levels) > MOST_LEVELS:
                raise ValueError(f"a column has {len(levels):,} levels, more than {MOST_LEVELS}")
            threshold = float(entry.get("threshold", 0.0))
            columns.append(Column(entry["name"], entry["kind"], threshold, levels))
        return cls(tuple(columns), value.get("target"))


def learn_coding(
    table: TableData,
    target: str | None,
    drop: Sequence[str],
    binarize: str,
    any_kind: bool = False,
) -> Coding | RawCoding:
    """Return how to code a table's columns, refusing what the model cannot be fitted to.

    Parameters
    ----------
    table : TableData
        The table to fit.
    target : str, optional
        The column to be predicted, which is not used as a variable.
    drop : sequence of str
        Columns to leave out.
    binarize : {"never", "auto"}
        Whether to code columns that are not binary.
    any_kind : bool, default=False
        Whether the model takes such columns as they are.
    """
    for name in drop:
        table.column(name)
    used = [str(name) for name in table.frame.columns if name != target and name not in drop]
    if not used:
        raise ValueError(f"{table.name}: no columns are left to learn from; drop fewer columns")
    columns = [_learn_column(name, table.frame[name], table.name) for name in used]
    refused = [c for c in columns if c.kind != "binary"]
    if refused and binarize != "auto" and any_kind:
        return RawCoding(tuple(used), target)
    if refused and binarize != "auto":
        shown = ", ".join(f"{c.name!r} ({_kind_of(c)})" for c in refused[:12])
        more = f" and {len(refused) - 12} more" if len(refused) > 12 else ""
        raise ValueError(
            f"{table.name}: {len(refused)} of {len(columns)} columns are not binary: {shown}{more}"
            "; code them with --binarize auto, or leave them out with --drop COLUMN"
        )
    many = next((c for c in columns if len(c.levels) > MOST_LEVELS), None)
    if many is not None:
        raise ValueError(
            f"{table.name}: column {many.name!r} has {len(many.levels):,} categories; the limit "
            f"is {MOST_LEVELS}: leave it out with --drop {many.name!r}"
        )
    coding = Coding(tuple(columns), target)
    if len(set(coding.variables)) < len(coding.variables):
        raise ValueError(
            f"{table.name}: two variables get the same name after coding; rename a column"
        )
    return coding


def _kind_of(column: Column) -> str:
    return "numbers" if column.kind == "number" else f"{len(column.levels)} categories"


def _learn_column(name: str, values: Any, where: str) -> Column:
    present = values.dropna()
    if not len(present):
        raise ValueError(f"{where}: column {name!r} is empty; leave it out with --drop {name!r}")
    if present.dtype.kind in "iufb" or str(present.dtype) in ("boolean", "Int64", "Float64"):
        numbers = present.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"{where}: column {name!r} holds an infinite number; replace it, or leave the "
                f"column out with --drop {name!r}"
            )
        if np.isin(numbers, (0, 1)).all():
            return Column(name, "binary")
        return Column(name, "number", float(np.median(numbers)))
    return Column(name, "category", 0.0, tuple(sorted(set(_as_texts(present).tolist()))))


def _as_texts(values: Any) -> Any:
    """Return cells as text, None for empty ones."""
    pandas = import_pandas("reading a table")
    cells = pandas.Series(values).astype(object)
    return np.array([None if pandas.isna(v) else str(v) for v in cells], dtype=object)


def _as_numbers(values: Any, name: str, where: str) -> FloatArray:
    pandas = import_pandas("reading a table")
    series = pandas.Series(values)
    numbers = pandas.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(np.isnan(numbers) & series.notna().to_numpy())
    if wrong.size:
        raise ValueError(
            f"{where}: row {wrong[0] + 1}, column {name!r} is {series.iloc[wrong[0]]!r}; "
            "expected a number, or an empty cell"
        )
    return np.asarray(numbers, dtype=np.float64)
