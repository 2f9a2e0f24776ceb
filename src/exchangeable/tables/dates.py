"""Columns of dates: recognised by type or format, and split into parts."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STANDARD = "ISO8601"
"""pandas's name for dates such as 2024-01-31 and 2024-01-31T12:00."""
WRITTEN = (
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S",
    "%d-%m-%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
)
"""Other date formats, in the order in which they are tried."""
LOOKS_STANDARD = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
)
LOOKS_WRITTEN = re.compile(r"\d{1,4}[./ -]\w{1,9}[./ -]\d{2,4}\b.*|[A-Za-z]{3,9} \d{1,2}, \d{4}")
PARTS = ("year", "month", "weekday", "hour")


@dataclass(frozen=True)
class DateColumn:
    """A column of dates.

    Attributes
    ----------
    name : str
        Its name.
    format : str
        The format, as for ``strptime``; ``ISO8601`` also stands for columns with a date type.
    parts : tuple of str
        The parts that are used, out of year, month, weekday and hour.
    """

    name: str
    format: str
    parts: tuple[str, ...] = ()

    @property
    def variables(self) -> list[str]:
        """The names of the columns of the parts."""
        return [f"{self.name}.{part}" for part in self.parts]

    def split(self, column: Any, pandas: Any) -> dict[str, Any]:
        """Return the parts as columns, empty where the date is."""
        times = _times(column, self.format, pandas)
        if times is None:
            bad = next(c for c in column.dropna() if _times([c], self.format, pandas) is None)
            row = int((column == bad).to_numpy().argmax()) + 1
            raise ValueError(
                f"row {row}, column {self.name!r} is {bad!r}; expected a date written as "
                f"{self.format}, or an empty cell"
            )
        return {f"{self.name}.{part}": _part(times, part) for part in self.parts}

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON values."""
        return {"name": self.name, "format": self.format, "parts": list(self.parts)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "DateColumn":
        """Return the column that `to_json` wrote, after checking it."""
        name, form, parts = value["name"], value["format"], value["parts"]
        if not isinstance(name, str) or not isinstance(form, str) or not set(parts) <= set(PARTS):
            raise ValueError(f"{str(value)[:80]} is not a column of dates")
        return cls(name, form, tuple(parts))


def find_dates(column: Any, name: str, form: str | None, pandas: Any) -> DateColumn | None:
    """Return a column of dates with the parts that vary, None for other columns.

    Parameters
    ----------
    column : Series
        The column.
    name : str
        Its name.
    form : str, optional
        The date format, if known.
    pandas : module
        pandas.
    """
    if column.dtype.kind == "M":
        times, found = column, STANDARD
    else:
        known = column.dropna()
        if not len(known) or not isinstance(known.iloc[0], str):
            return None
        distinct = known.astype(str).str.strip().drop_duplicates()
        tried = [form] if form is not None else _candidates(distinct)
        chosen = next((f for f in tried if _times(distinct, f, pandas) is not None), None)
        if chosen is None:
            return None
        found = chosen
        times = _times(distinct, found, pandas)
    varying = [part for part in PARTS if _part(times, part).nunique() > 1]
    return DateColumn(name, found, tuple(varying))


def _candidates(cells: Any) -> Sequence[str]:
    first = cells.iloc[0]
    if LOOKS_STANDARD.fullmatch(first):
        return [STANDARD] if cells.map(lambda c: bool(LOOKS_STANDARD.fullmatch(c))).all() else []
    return WRITTEN if LOOKS_WRITTEN.fullmatch(first) else []


def _times(cells: Any, form: str, pandas: Any) -> Any:
    """Return cells as dates and times, None if they do not have this format."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = pandas.to_datetime(pandas.Series(cells), format=form, utc=True)
        return found
    except (ValueError, TypeError):
        return None


def _part(times: Any, part: str) -> Any:
    if part == "month":
        return times.dt.month_name()
    if part == "weekday":
        return times.dt.day_name()
    return getattr(times.dt, part)


def ambiguous(date: DateColumn, column: Any, pandas: Any) -> bool:
    """Whether days and months could be the other way round."""
    if not date.format.startswith("%d/%m/"):
        return False
    known = column.dropna()
    return _times(known, date.format.replace("%d/%m/", "%m/%d/"), pandas) is not None
