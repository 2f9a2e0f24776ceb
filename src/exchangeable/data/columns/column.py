"""The description of a column: its kind, its levels, and the conversion of values to numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.columns.raw import RawColumn
from exchangeable.data.columns.transforms import POWERS, Transform
from exchangeable.data.columns.values import check_counts, finite_numbers, listed_levels, no_level
from exchangeable.data.rows import ColumnType

KINDS = ("binary", "nominal", "ordinal", "count", "continuous")
WITH_LEVELS = ("binary", "nominal", "ordinal")
MOST_LEVELS = 1000
"""Maximum number of levels of a column: more are names, not categories."""
ASKED = "asked"
"""Marks values that are part of a query rather than of rows."""
MOST_COLUMNS = 10_000_000
"""Maximum number of columns that a file may describe."""


@dataclass(frozen=True)
class Column:
    """The description of a column.

    Attributes
    ----------
    name : str or int
        Its name, or its number in an array.
    kind : str
        One of `KINDS`.
    levels : tuple
        The user's values of a column with levels, in order.
    dtype : str
        The name of its type in its library.
    transform : Transform
        The transform of measurements to numbers.
    whole : bool
        Whether all measurements in the training table were whole numbers.
    """

    name: Any
    kind: str
    levels: tuple[Any, ...] = ()
    dtype: str = "float64"
    transform: Transform = field(default_factory=Transform)
    whole: bool = False

    @property
    def type(self) -> ColumnType:
        """What the numbers of the column stand for."""
        return ColumnType(self.kind, len(self.levels))

    def encode(self, raw: RawColumn, unseen: str) -> tuple[FloatArray, FloatArray]:
        """Return the column as numbers, NaN if missing, and log dz/dx of each measurement.

        `unseen` says whether unknown levels are treated as missing or raise errors (of the rows or
        of a query).
        """
        known = ~raw.holes
        numbers = np.full(raw.values.shape, np.nan)
        none = np.zeros(raw.values.shape)
        if self.levels:
            position = {level: float(number) for number, level in enumerate(self.levels)}
            nothing = float("nan")
            try:
                found = [position.get(value, nothing) for value in raw.values.tolist()]
            except TypeError:
                raise no_level(raw.values[known], self.name) from None
            numbers[known] = np.array(found)[known]
            wrong = np.flatnonzero(known & np.isnan(numbers))
            if wrong.size and unseen == ASKED:
                raise ValueError(
                    f"column {self.name!r} is asked to be {raw.values[wrong[0]]!r}, which is not "
                    f"one of its levels {listed_levels(self.levels)}; leave it out if it is not "
                    "known"
                )
            if wrong.size and unseen == "error":
                raise ValueError(
                    f"row {wrong[0]} of column {self.name!r} is {raw.values[wrong[0]]!r}, which is "
                    f"not one of its levels {listed_levels(self.levels)}; with unseen='hole' it is "
                    "taken as unknown"
                )
            return numbers, none
        numbers[known] = finite_numbers(raw.values[known], self.name, self.kind)
        if self.kind == "count":
            check_counts(numbers, self.name)
            return numbers, none
        slopes = np.where(known, self.transform.log_slope(np.where(known, numbers, 0.0)), 0.0)
        return self.transform.apply(numbers), slopes

    def decode(self, numbers: FloatArray, means: bool = False) -> npt.NDArray[Any]:
        """Return numbers as the user's values, those of levels as an array of objects.

        Measurements are rounded if all in the training table were whole, unless they are means.
        """
        if not self.levels:
            own = self.transform.invert(numbers) if self.kind == "continuous" else numbers
            return np.rint(own) if self.whole and not means else own
        levels = np.empty(len(self.levels), dtype=object)
        levels[:] = self.levels
        chosen = levels[numbers.astype(np.int64)]
        if all(type(level) is bool for level in self.levels):
            return chosen.astype(np.bool_)
        if all(isinstance(level, int | float) for level in self.levels):
            return chosen.astype(np.float64)
        return chosen

    def to_plain(self) -> dict[str, Any]:
        """Return the column as plain values, for files."""
        plain = {
            "name": self.name,
            "kind": self.kind,
            "levels": list(self.levels),
            "dtype": self.dtype,
            "transform": list(self.transform),
        }
        return plain | {"whole": True} if self.whole else plain

    def follows(self, last: "Column") -> bool:
        """Whether it differs from the last column only in its number, which is the next one."""
        numbered = type(self.name) is int and type(last.name) is int
        same = (self.kind, self.dtype, self.whole) == (last.kind, last.dtype, last.whole)
        if not (numbered and same and self.name == last.name + 1):
            return False
        return self.levels == last.levels and self.transform == last.transform


def columns_from_plain(entry: Any) -> list[Column]:
    """Return the columns that an entry describes."""
    column = _column_of(entry)
    times = entry.get("times", 1)
    if not isinstance(times, int) or not 1 <= times <= MOST_COLUMNS:
        raise ValueError(f"columns_ describes column {column.name!r} {times!r} times")
    if times == 1:
        return [column]
    if type(column.name) is not int:
        raise ValueError(f"columns_ describes column {column.name!r}, which has a name, {times}x")
    same = column.kind, column.levels, column.dtype, column.transform, column.whole
    return [Column(column.name + number, *same) for number in range(times)]


def _column_of(entry: Any) -> Column:
    """Return a column from plain values, after checking them."""
    if not isinstance(entry, Mapping) or entry.get("kind") not in KINDS:
        raise ValueError(f"columns_ holds {entry!r}, which is not a column")
    levels: Any = entry.get("levels")
    transform: Any = entry.get("transform")
    good = (
        isinstance(entry.get("name"), str | int)
        and isinstance(entry.get("dtype"), str)
        and isinstance(levels, list)
        and len(levels) <= MOST_LEVELS
        and all(isinstance(level, bool | int | float | str) for level in levels)
        and (bool(levels) == (entry["kind"] in WITH_LEVELS))
        and isinstance(transform, list)
        and len(transform) == 3
        and all(isinstance(number, float) and np.isfinite(number) for number in transform)
        and transform[2] > 0
        and POWERS[0] <= transform[0] <= POWERS[1]
        and isinstance(entry.get("whole", False), bool)
    )
    if not good:
        raise ValueError(f"columns_ describes column {entry.get('name')!r} in a way it cannot be")
    made = Transform(*transform)
    described = entry["name"], entry["kind"], tuple(levels), entry["dtype"]
    return Column(*described, made, entry.get("whole", False))
