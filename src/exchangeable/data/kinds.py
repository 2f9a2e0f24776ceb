"""Kinds of columns: what was decided about each, and the user's values as numbers and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.observed import Observed
from exchangeable.data.raw_columns import (
    LIBRARIES,
    RawColumn,
    library_of,
    make_table,
    missing_entries,
    raw_columns,
)
from exchangeable.data.rows import ColumnType, TypedRows, as_rows
from exchangeable.data.transforms import POWERS, Transform, fit_transform

KINDS = ("binary", "nominal", "ordinal", "count", "continuous")
WITH_LEVELS = ("binary", "nominal", "ordinal")
MOST_LEVELS = 1000
"""Levels that a column may have: more are names, not categories."""
LARGEST_COUNT = 1000
"""Larger whole numbers are measurements, unless they are declared to be counts."""
LARGEST_SCALE = 10
"""Whole numbers from 1 up to at most this are the levels of a scale."""


@dataclass(frozen=True)
class Column:
    """What was decided about a column.

    Attributes
    ----------
    name : str or int
        Its name, or its number in an array.
    kind : str
        One of `KINDS`.
    levels : tuple
        The user's values of a column with levels, in order.
    dtype : str
        What its library calls its type.
    transform : Transform
        How measurements become numbers.
    """

    name: Any
    kind: str
    levels: tuple[Any, ...] = ()
    dtype: str = "float64"
    transform: Transform = field(default_factory=Transform)

    @property
    def type(self) -> ColumnType:
        """What the numbers of the column stand for."""
        return ColumnType(self.kind, len(self.levels))

    def encode(self, raw: RawColumn, unseen: str) -> tuple[FloatArray, FloatArray]:
        """Return the column as numbers, NaN for holes, and log dz/dx of each measurement.

        `unseen` says whether levels that are not known are holes or errors.
        """
        known = ~raw.holes
        numbers = np.full(raw.values.shape, np.nan)
        none = np.zeros(raw.values.shape)
        if self.levels:
            position = {level: float(number) for number, level in enumerate(self.levels)}
            nothing = float("nan")
            try:
                found = [position.get(value, nothing) for value in raw.values.tolist()]
            except TypeError as error:
                raise ValueError(f"column {self.name!r} holds what is no level: {error}") from None
            numbers[known] = np.array(found)[known]
            wrong = np.flatnonzero(known & np.isnan(numbers))
            if wrong.size and unseen == "error":
                raise ValueError(
                    f"row {wrong[0]} of column {self.name!r} is {raw.values[wrong[0]]!r}, which is "
                    f"not one of its levels {_listed(self.levels)}; with unseen='hole' it is taken "
                    "as unknown"
                )
            return numbers, none
        numbers[known] = _as_numbers(raw.values[known], self.name, self.kind)
        if self.kind == "count":
            _check_counts(numbers, self.name)
            return numbers, none
        slopes = np.where(known, self.transform.log_slope(np.where(known, numbers, 0.0)), 0.0)
        return self.transform.apply(numbers), slopes

    def decode(self, numbers: FloatArray) -> npt.NDArray[Any]:
        """Return numbers as the user's values, those of levels as an array of objects."""
        if not self.levels:
            return self.transform.invert(numbers) if self.kind == "continuous" else numbers
        levels = np.empty(len(self.levels), dtype=object)
        levels[:] = self.levels
        chosen = levels[numbers.astype(np.int64)]
        if all(type(level) is bool for level in self.levels):
            return chosen.astype(np.bool_)
        if all(isinstance(level, int | float) for level in self.levels):
            return chosen.astype(np.float64)
        return chosen


@dataclass(frozen=True)
class Schema:
    """The columns of a table, and the library that it came from."""

    columns: tuple[Column, ...]
    library: str | None = None
    unseen: str = "hole"

    @property
    def types(self) -> tuple[ColumnType, ...]:
        """What the numbers of each column stand for."""
        return tuple(column.type for column in self.columns)

    def observed(self, X: Any) -> Observed:
        """Return a table or array of the user's values as rows."""
        found = raw_columns(X)
        if len(found) != len(self.columns):
            raise ValueError(f"X has {len(found)} columns, expected {len(self.columns)}")
        return self._rows(found)

    def _rows(self, raw: Sequence[RawColumn]) -> Observed:
        n_rows = raw[0].values.size if raw else 0
        values, jacobian = np.empty((n_rows, len(raw))), np.zeros(n_rows)
        for j, (column, given) in enumerate(zip(self.columns, raw, strict=True)):
            values[:, j], slopes = column.encode(given, self.unseen)
            jacobian += slopes
        return typed(values, self.types, jacobian)

    def evidence(self, given: Mapping[int, Any] | None) -> Observed:
        """Return one row of which some columns are known, by their numbers."""
        known = {} if given is None else given
        raw = []
        for j, column in enumerate(self.columns):
            values = np.empty(1, dtype=object)
            values[0] = known.get(j)
            raw.append(RawColumn(column.name, values, missing_entries(values)))
        schema = Schema(self.columns, self.library, "error")
        return schema._rows(raw)

    def table(self, values: FloatArray) -> Any:
        """Return complete rows as a table of the user's values, like the one that was fitted."""
        decoded = [c.decode(values[:, j]) for j, c in enumerate(self.columns)]
        return self._table(decoded, self.library)

    def completed(self, values: FloatArray, X: Any) -> Any:
        """Return complete rows as a table like X; what X knows stays as it is there."""
        decoded = []
        for j, (column, raw) in enumerate(zip(self.columns, raw_columns(X), strict=True)):
            filled = column.decode(values[:, j])
            known = ~np.isnan(column.encode(raw, "hole")[0])
            if filled.dtype.kind in "biuf" and raw.values.dtype == object:
                filled = filled.astype(object) if column.levels else filled
            filled[known] = raw.values[known]
            decoded.append(filled)
        return self._table(decoded, library_of(X), getattr(X, "index", None))

    def _table(
        self, decoded: Sequence[npt.NDArray[Any]], library: str | None, index: Any = None
    ) -> Any:
        dtypes = [column.dtype for column in self.columns]
        if library != self.library:  # what types are called in one library another does not know
            dtypes = ["object" if column.levels else "float64" for column in self.columns]
        names = [column.name for column in self.columns]
        levels = [column.levels for column in self.columns]
        ordered = [column.kind == "ordinal" for column in self.columns]
        made = dict(zip(names, decoded, strict=True))
        return make_table(library, made, dtypes, levels, ordered, index)

    def to_plain(self) -> dict[str, Any]:
        """Return the schema as plain values, for files."""
        columns = [
            {
                "name": c.name,
                "kind": c.kind,
                "levels": list(c.levels),
                "dtype": c.dtype,
                "transform": list(c.transform),
            }
            for c in self.columns
        ]
        return {"library": self.library, "unseen": self.unseen, "columns": columns}

    @classmethod
    def from_plain(cls, value: Any) -> "Schema":
        """Return the schema that `to_plain` gave, after checking it."""
        if not isinstance(value, Mapping) or not isinstance(value.get("columns"), list):
            raise ValueError("columns_ is not a description of columns")
        library, unseen = value.get("library"), value.get("unseen")
        if library not in (None, *LIBRARIES) or unseen not in UNSEEN:
            raise ValueError(f"columns_ says library={library!r}, unseen={unseen!r}")
        return cls(tuple(_column_of(entry) for entry in value["columns"]), library, unseen)


UNSEEN = ("hole", "error")


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
    )
    if not good:
        raise ValueError(f"columns_ describes column {entry.get('name')!r} in a way it cannot be")
    return Column(
        entry["name"], entry["kind"], tuple(levels), entry["dtype"], Transform(*transform)
    )


def typed(
    values: FloatArray, types: tuple[ColumnType, ...], log_jacobian: FloatArray | None = None
) -> Observed:
    """Return a matrix of numbers with NaN for holes as rows."""
    rows = TypedRows.of(values, types, log_jacobian)
    holes = np.isnan(values)
    return Observed(rows, as_rows(holes, None) if holes.any() else None)


def typed_rows(observed: Observed) -> TypedRows:
    """Return rows as `TypedRows`; those of bits become binary columns.

    >>> rows = Observed.from_symbols(np.array([[1, 0, -1]]))
    >>> typed_rows(rows).values.tolist()
    [[1.0, 0.0, nan]]
    """
    if isinstance(observed.ones, TypedRows):
        return observed.ones
    symbols = observed.symbols().astype(np.float64)
    symbols[symbols < 0] = np.nan
    return TypedRows.of(symbols, (ColumnType("binary", 2),) * observed.n_variables)


def decide(X: Any, kinds: Any, unseen: str = "hole", bend: bool = True) -> Schema | None:
    """Return what each column of X is, None if all are binary and are read as numbers.

    Parameters
    ----------
    X : table, array or sparse matrix
        Rows.
    kinds : None, str or mapping
        What the user says: a kind for all columns, or kinds by names or numbers of columns.
    unseen : {"hole", "error"}
        What values that are no level of their column are, in rows to come.
    bend : bool
        Whether skewed measurements are transformed.
    """
    library = library_of(X)
    if library is None and kinds is None:
        return None
    raw = raw_columns(X)
    told = _told(raw, kinds)
    if any(_holds_times(column) for column in raw):
        return None  # which are refused where binary numbers are read
    if library is None:
        told = {**{column.name: "binary" for column in raw}, **told}
    decided = [told.get(column.name) or infer_kind(column) for column in raw]
    pairs = list(zip(raw, decided, strict=True))
    if all(kind == "binary" and _holds_bits(column) for column, kind in pairs):
        return None
    columns = [_column(column, kind, bend) for column, kind in pairs]
    return Schema(tuple(columns), library, unseen)


def _told(raw: Sequence[RawColumn], kinds: Any) -> dict[Any, str]:
    """Return the kinds that the user names, by names of columns."""
    names = [column.name for column in raw]
    if kinds is None:
        return {}
    if isinstance(kinds, str):
        _check_kind(kinds, "kinds")
        return dict.fromkeys(names, kinds)
    if not isinstance(kinds, Mapping):
        raise TypeError(
            f"kinds={kinds!r}; expected one of {', '.join(KINDS)}, or a dict from column to kind"
        )
    told = {}
    for key, kind in kinds.items():
        _check_kind(kind, f"kinds[{key!r}]")
        if key not in names:
            number = isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names)
            if not number:
                raise ValueError(f"kinds names {key!r}, which is not a column of X")
            key = names[key]
        told[key] = kind
    return told


def _check_kind(kind: Any, name: str) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"{name}={kind!r} is unknown; expected one of {', '.join(KINDS)}")


def infer_kind(raw: RawColumn) -> str:
    """Return what a column seems to be, by its type and, for numbers, by their range."""
    known = raw.values[~raw.holes]
    if _holds_bits(raw):
        return "binary"
    if raw.levels is not None:
        return "ordinal" if raw.ordered else "nominal"
    if raw.values.dtype.kind not in "iuf":
        if not all(isinstance(value, Number) for value in known):
            return "nominal"
        known = known.astype(np.float64)
    if not (known == np.floor(known)).all() or known.min() < 0:
        return "continuous"
    if known.min() >= 1 and known.max() <= LARGEST_SCALE:
        return "ordinal"
    spread = known.astype(np.float64).var() >= 0.5 * known.mean()
    return "count" if known.max() <= LARGEST_COUNT and spread else "continuous"


def _holds_bits(raw: RawColumn) -> bool:
    """Whether all known values are 0 and 1, as numbers or truth values."""
    known = raw.values[~raw.holes]
    if known.dtype.kind == "b":
        return True
    if known.dtype.kind == "O":
        return all(isinstance(v, Number | np.bool_) and (v == 0 or v == 1) for v in known)
    return known.dtype.kind in "iuf" and bool(((known == 0) | (known == 1)).all())


def _holds_times(raw: RawColumn) -> bool:
    """Whether values are points or lengths of time."""
    first = raw.values[~raw.holes][:1]
    stamped = any(hasattr(value, "isoformat") for value in first.tolist())
    return raw.values.dtype.kind in "mM" or stamped


def _column(raw: RawColumn, kind: str, bend: bool) -> Column:
    """Return a column of a kind, with its levels or its transform."""
    known = raw.values[~raw.holes]
    if kind in WITH_LEVELS:
        return Column(raw.name, kind, _levels(raw, known, kind), raw.dtype)
    numbers = _as_numbers(known, raw.name, kind)
    if kind == "count":
        _check_counts(numbers, raw.name)
        return Column(raw.name, kind, (), raw.dtype)
    transform = fit_transform(numbers, bend) if numbers.size else Transform()
    return Column(raw.name, kind, (), raw.dtype, transform)


def _levels(raw: RawColumn, known: npt.NDArray[Any], kind: str) -> tuple[Any, ...]:
    """Return the levels of a column: those its type declares, or those that occur, in order."""
    try:
        distinct = dict.fromkeys(known.tolist())
    except TypeError as error:
        raise ValueError(f"column {raw.name!r} holds what is no level: {error}") from None
    plain = [_plain(value) for value in (distinct if raw.levels is None else raw.levels)]
    odd = next((v for v in plain if not isinstance(v, bool | int | float | str)), None)
    if odd is not None:
        raise ValueError(
            f"column {raw.name!r} holds {odd!r} ({type(odd).__name__}); the levels of a {kind} "
            "column are text, numbers or truth values"
        )
    found = set(plain)
    if kind == "binary":
        if found <= {0, 1}:
            boolean = raw.values.dtype.kind == "b" or (plain and type(plain[0]) is bool)
            return (False, True) if boolean else (0, 1)
        if len(found) != 2:
            raise ValueError(
                f"column {raw.name!r} is binary, but has {len(found)} levels: "
                f"{_listed(sorted(found, key=_order))}"
            )
    levels = tuple(plain) if raw.levels is not None else tuple(sorted(found, key=_order))
    if not levels:
        raise ValueError(f"column {raw.name!r} is empty, so that its levels are not known; drop it")
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"column {raw.name!r} has {len(levels):,} levels, the limit is {MOST_LEVELS:,}; drop "
            "it, or say by kinds that it is continuous or a count"
        )
    return levels


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _listed(levels: Sequence[Any]) -> str:
    return ", ".join(map(repr, levels[:10])) + (", …" if len(levels) > 10 else "")


def _as_numbers(values: npt.NDArray[Any], name: Any, kind: str) -> FloatArray:
    """Return known values as finite numbers."""
    try:
        numbers = np.array([float(v) for v in values]) if values.dtype == object else values
        numbers = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        text = next(v for v in values if not isinstance(v, int | float | np.number))
        raise ValueError(
            f"column {name!r} is {kind}, but holds {text!r}; expected numbers"
        ) from None
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"column {name!r} holds {numbers[~np.isfinite(numbers)][0]} (Input X contains "
            "infinity); replace it by a number or NaN"
        )
    return numbers


def _check_counts(numbers: FloatArray, name: Any) -> None:
    known = numbers[~np.isnan(numbers)]
    bad = known[(known < 0) | (known != np.floor(known))]
    if bad.size:
        raise ValueError(f"column {name!r} is a count, but holds {bad[0]:g}; expected 0, 1, 2, …")
