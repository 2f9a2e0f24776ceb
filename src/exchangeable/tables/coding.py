"""Coding columns of a table as binary variables; saved with the model and applied to new rows.

A binary column stays as it is. With ``auto``, a column of numbers becomes one variable that is on
above the median, and a column of categories one variable per category (a single one if there are
two categories). Empty cells stay unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.tables.layout import Layout
from exchangeable.tables.problems import Problems
from exchangeable.tables.raw import missing_columns
from exchangeable.tables.reading import TableData, import_pandas, listed

MOST_LEVELS = 100
"""Maximum number of categories of a column; the name of each variable repeats that of the
column."""
KINDS = ("binary", "number", "category")
TRUTH = ("False", "True")
"""The words of a column of booleans."""


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
        The categories; for a column of booleans their words.
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

    def code(self, values: Any) -> FloatArray:
        """Return the variables of some rows, with NaN for unknown cells."""
        if self.kind == "category":
            texts = as_texts(values)
            known = np.isin(texts, self.levels)
            coded: FloatArray = (texts[:, None] == np.array(self._own, dtype=object)).astype(
                np.float64
            )
            coded[~known] = np.nan
            return coded
        numbers = _as_numbers(values, self.name)
        if self.kind == "number":
            return np.where(np.isnan(numbers), np.nan, numbers > self.threshold)[:, None]
        wrong = np.flatnonzero(~(np.isnan(numbers) | np.isin(numbers, (0, 1))))
        if wrong.size:
            raise ValueError(
                f"row {wrong[0] + 1}, column {self.name!r} is {numbers[wrong[0]]:g}; expected 0 or "
                f"1, or an empty cell{_more(wrong.size)}"
            )
        return numbers[:, None]

    def decode(self, values: Any) -> Any:
        """Return a binary column in the user's values: booleans if it had these."""
        return np.asarray(values).astype(np.bool_) if self.levels == TRUTH else values


@dataclass(frozen=True)
class Coding:
    """The columns that a model uses, in order, and the column it predicts, if any."""

    columns: tuple[Column, ...]
    target: str | None = None
    layout: Layout = field(default_factory=Layout)

    @property
    def n_variables(self) -> int:
        """Number of the model's variables; their names are only created if it is right."""
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
        problems = Problems(table.name)
        problems.found += table.problems
        frame = self.layout.frame(table, problems)
        problems.found += self._missing(frame)
        parts = []
        for column in self.columns:
            if column.name in frame.columns:
                with problems.noted():
                    parts.append(column.code(frame[column.name]))
        problems.report()
        matrix = np.concatenate(parts, axis=1)
        if not np.isnan(matrix).any():
            matrix = matrix.astype(np.uint8)
        pandas = import_pandas("reading a table")
        return pandas.DataFrame(matrix, columns=self.variables, index=frame.index)

    def _missing(self, frame: Any) -> list[str]:
        return missing_columns(frame, [column.name for column in self.columns], self.layout)

    def unseen(self, table: TableData) -> dict[str, list[str]]:
        """Return the cells whose category did not occur in the training rows, by column."""
        found = {}
        frame = self.layout.frame(table, Problems(table.name))
        for column in self.columns:
            if column.kind == "category":
                texts = as_texts(frame[column.name])
                new = texts[~np.isin(texts, column.levels) & (texts != None)]  # noqa: E711
                if new.size:
                    found[column.name] = new.tolist()
        return found

    def evidence(self, name: str, value: str) -> dict[str, int] | None:
        """Return the variables that a cell of a column sets, None if there is no such column."""
        column = next((c for c in self.columns if c.name == name), None)
        if column is None:
            return None
        if column.kind == "binary":
            words = {"0": 0, "1": 1} | {word.lower(): on for on, word in enumerate(TRUTH)}
            if value.lower() not in words:
                expected = " or ".join(column.levels) if column.levels else "0 or 1"
                raise ValueError(f"{name}={value}: {name!r} must be {expected}, got {value!r}")
            return {name: words[value.lower()]}
        if column.kind == "category" and value not in column.levels:
            raise ValueError(
                f"{name}={value}: {value!r} is not a category of {name!r}; expected one of "
                f"{listed(column.levels)}"
            )
        coded = column.code(np.array([value], dtype=object))[0]
        return {v: int(on) for v, on in zip(column.variables, coded, strict=True)}

    def to_json(self) -> dict[str, Any]:
        """Return the coding as JSON values."""
        columns = [
            {
                "name": c.name,
                "kind": c.kind,
                **({"threshold": c.threshold} if c.kind == "number" else {}),
                **({"levels": list(c.levels)} if c.levels else {}),
            }
            for c in self.columns
        ]
        told = {"kind": "columns", "columns": columns, "target": self.target}
        return told | self.layout.to_json()

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
        return cls(tuple(columns), value.get("target"), Layout.from_json(value))


def learn_column(name: str, values: Any) -> Column:
    """Return how a column would be coded."""
    present = values.dropna()
    if not len(present):
        raise ValueError(f"column {name!r} is empty; leave it out with --drop {name!r}")
    if present.dtype.kind in "iufb" or str(present.dtype) in ("boolean", "Int64", "Float64"):
        numbers = present.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"column {name!r} holds an infinite number; replace it, or leave the column out "
                f"with --drop {name!r}"
            )
        if np.isin(numbers, (0, 1)).all():
            truth = str(present.dtype) in ("bool", "boolean")
            return Column(name, "binary", levels=TRUTH if truth else ())
        return Column(name, "number", float(np.median(numbers)))
    return Column(name, "category", 0.0, tuple(sorted(set(as_texts(present).tolist()))))


def as_texts(values: Any) -> Any:
    """Return cells as text, None for empty ones.

    Whole numbers are written without a point: a missing value in a column makes them floats.
    """
    pandas = import_pandas("reading a table")
    cells = pandas.Series(values).astype(object)
    return np.array([None if pandas.isna(v) else _text(v) for v in cells], dtype=object)


def _text(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return str(int(value)) if whole else str(value)


def _as_numbers(values: Any, name: str) -> FloatArray:
    pandas = import_pandas("reading a table")
    series = pandas.Series(values)
    numbers = pandas.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(np.isnan(numbers) & series.notna().to_numpy())
    if wrong.size:
        raise ValueError(
            f"row {wrong[0] + 1}, column {name!r} is {series.iloc[wrong[0]]!r}; expected a number, "
            f"or an empty cell{_more(wrong.size)}"
        )
    return np.asarray(numbers, dtype=np.float64)


def _more(n_wrong: int) -> str:
    return f" ({n_wrong - 1:,} more such rows)" if n_wrong > 1 else ""
