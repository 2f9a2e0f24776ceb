"""Which parts of a table a model uses: columns by name or pattern, the key, parts of dates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from exchangeable.tables.dates import DateColumn, ambiguous, find_dates
from exchangeable.tables.problems import Problems
from exchangeable.tables.reading import TableData, import_pandas, listed

DATES = ("split", "drop")
"""How to treat columns of dates."""


@dataclass(frozen=True)
class Layout:
    """How a table is read before its columns are coded; saved with the model.

    Attributes
    ----------
    key : str, optional
        The column that identifies rows, which answers include.
    dates : tuple of DateColumn
        Columns of dates whose parts are used.
    empty : tuple of str
        Texts that mean "missing".
    """

    key: str | None = None
    dates: tuple[DateColumn, ...] = ()
    empty: tuple[str, ...] = ()

    def frame(self, table: TableData, problems: Problems) -> Any:
        """Return the columns of a table, and the parts of its dates; note those that are none."""
        if table.frame is None:
            raise ValueError(
                f"{table.name}: the model was fitted to named columns, which this file does not "
                "have; give a CSV, TSV or Parquet file"
            )
        if not self.dates:
            return table.frame
        pandas = import_pandas("reading a table")
        frame = table.frame.copy(deep=False)
        for date in self.dates:
            if date.name in frame.columns:
                parts = dict.fromkeys(date.variables)
                with problems.noted():
                    parts = date.split(frame[date.name], pandas)
                for name, part in parts.items():
                    frame[name] = np.nan if part is None else part.to_numpy()
        return frame

    def source_of(self, name: str) -> str:
        """Return the original column of a variable's column: itself, or a column of dates."""
        return next((date.name for date in self.dates if name in date.variables), name)

    def to_json(self) -> dict[str, Any]:
        """Return the layout as JSON values, nothing for the default."""
        told = {
            "id": self.key,
            "dates": [date.to_json() for date in self.dates],
            "empty": list(self.empty),
        }
        return {key: value for key, value in told.items() if value}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Layout":
        """Return the layout that `to_json` wrote, after checking it."""
        key, empty = value.get("id"), tuple(value.get("empty", ()))
        if not (key is None or isinstance(key, str)) or not all(isinstance(t, str) for t in empty):
            raise ValueError("the name of a key, or what an empty cell is, is not text")
        return cls(key, tuple(DateColumn.from_json(date) for date in value.get("dates", ())), empty)


@dataclass(frozen=True)
class Choice:
    """Which columns a model is fitted to, and their kinds, as far as given by the user.

    Attributes
    ----------
    target, key, weight : str, optional
        The columns with classes, names of rows, and weights.
    drop, keep : sequence of str
        Names or patterns of columns to leave out, and of the only ones to use.
    dates : {"split", "drop"}
        How to treat dates.
    date_format : str, optional
        The date format.
    kinds : mapping from column to kind
        Kinds of the columns.
    empty : tuple of str
        Texts that mean "missing".
    """

    target: str | None = None
    key: str | None = None
    weight: str | None = None
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    dates: str = "split"
    date_format: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    empty: tuple[str, ...] = ()


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that a pattern stands for: itself if it is one, else those it matches.

    >>> matching("date_*", ["date_in", "date_out", "city"])
    ['date_in', 'date_out']
    """
    return [pattern] if pattern in names else [n for n in names if fnmatchcase(n, pattern)]


def choose_columns(
    table: TableData, choice: Choice, problems: Problems
) -> tuple[list[str], Layout, list[str]]:
    """Return the columns to use, with the parts of dates, the layout, and messages for the user.

    Parameters
    ----------
    table : TableData
        The table to fit.
    choice : Choice
        The user's choices.
    problems : Problems
        Collects problems.
    """
    names = [str(name) for name in table.frame.columns]
    apart = {name for name in (choice.target, choice.key, choice.weight) if name is not None}
    for name in sorted(apart - set(names)):
        problems.add(f"no column {name!r}; it has {listed(names)}")
    left_out, kept = set(apart), set(names)
    for pattern in choice.drop:
        found = matching(pattern, names)
        left_out.update(found)
        if not found:
            problems.add(f"no column {pattern!r} to drop; it has {listed(names)}")
    if choice.keep:
        by_pattern = [matching(pattern, names) for pattern in choice.keep]
        kept = {name for found in by_pattern for name in found}
        for pattern, found in zip(choice.keep, by_pattern, strict=True):
            if not found:
                problems.add(f"no column {pattern!r} to keep; it has {listed(names)}")
    used = [name for name in names if name in kept and name not in left_out]
    notes = []
    empty = [name for name in used if not table.frame[name].notna().any()]
    if empty:
        notes.append(f"left out as empty: {listed(empty)}")
    columns, dates = list[str](), list[DateColumn]()
    pandas = import_pandas("reading a table")
    for name in used:
        if name in empty:
            continue
        date = None
        if name not in choice.kinds:
            date = find_dates(table.frame[name], name, choice.date_format, pandas)
        if date is None:
            columns.append(name)
            continue
        if choice.dates == "split":
            columns += date.variables
            dates.append(date)
        notes.append(_about(date, choice, table.frame[name], pandas))
    if not columns and not problems.found:
        problems.add("no columns are left to learn from; drop fewer columns")
    return columns, Layout(choice.key, tuple(dates), choice.empty), notes


def _about(date: DateColumn, choice: Choice, column: Any, pandas: Any) -> str:
    """Describe the treatment of a column of dates, in a sentence."""
    if choice.dates == "drop":
        return f"{date.name!r} holds dates: left out"
    sure = not ambiguous(date, column, pandas)
    order = "" if sure else "; read as day/month/year, --date-format '%m/%d/%Y' says otherwise"
    if not date.parts:
        return f"{date.name!r} holds one date only: left out{order}"
    parts = ", ".join(date.parts)
    return f"{date.name!r} holds dates: split into {parts} (--dates drop leaves it out){order}"
