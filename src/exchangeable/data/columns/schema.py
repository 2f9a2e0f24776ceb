"""The schema of a table: converts the user's values to numbers (NaN if missing), and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, is_sparse
from exchangeable.data.columns.column import ASKED, MOST_COLUMNS, Column, columns_from_plain
from exchangeable.data.columns.one_hot import OneHot
from exchangeable.data.columns.output_tables import make_table
from exchangeable.data.columns.raw import (
    LIBRARIES,
    RawColumn,
    library_of,
    missing_entries,
    raw_columns,
)
from exchangeable.data.columns.values import plain_numbers, sparse_counts
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType, CountRows, TypedRows, as_rows

UNSEEN = ("hole", "error")
"""How to treat a value that is no level of its column."""


@dataclass(frozen=True)
class Schema:
    """The columns of a table, and the library of its type.

    `one_hot` describes which of them were one-hot columns.
    """

    columns: tuple[Column, ...]
    library: str | None = None
    unseen: str = "hole"
    one_hot: OneHot | None = None

    @property
    def n_inputs(self) -> int:
        """Number of columns of the training table."""
        return len(self.columns) if self.one_hot is None else len(self.one_hot.inputs)

    @property
    def names(self) -> list[str] | None:
        """The names of the columns of the training table, None if it had none."""
        own = self.one_hot.inputs if self.one_hot is not None else [c.name for c in self.columns]
        return [str(name) for name in own] if all(isinstance(n, str) for n in own) else None

    @cached_property
    def types(self) -> tuple[ColumnType, ...]:
        """What the numbers of each column stand for."""
        return tuple(column.type for column in self.columns)

    def observed(self, X: Any) -> Observed:
        """Return a table or array of the user's values as rows."""
        if is_sparse(X) and all(column.kind == "count" for column in self.columns):
            counts = sparse_counts(X)
            if counts is not None:
                self._check_width(counts.shape[1])
                return Observed(CountRows.of(counts, self.types))
        return self._rows(self._raw(X))

    def _raw(self, X: Any) -> list[RawColumn]:
        """Return the columns of a table before they are interpreted."""
        if self.one_hot is not None:
            return self.one_hot.read(X, [column.name for column in self.columns])
        found = raw_columns(X)
        self._check_width(len(found))
        return found

    def _check_width(self, n_columns: int) -> None:
        if n_columns != len(self.columns):
            raise ValueError(f"X has {n_columns} columns, expected {len(self.columns)}")

    def _rows(self, raw: Sequence[RawColumn]) -> Observed:
        n_rows = raw[0].values.size if raw else 0
        values, jacobian = np.empty((n_rows, len(raw))), np.zeros(n_rows)
        for j, (column, given) in enumerate(zip(self.columns, raw, strict=True)):
            values[:, j], slopes = column.encode(given, self.unseen)
            jacobian += slopes
        return typed(values, self.types, jacobian)

    def evidence(self, given: Mapping[int, Any] | None) -> Observed:
        """Return one row in which some columns are known, given by their numbers."""
        known = {} if given is None else given
        raw = []
        for j, column in enumerate(self.columns):
            values = np.empty(1, dtype=object)
            values[0] = known.get(j)
            values = plain_numbers(values)
            raw.append(RawColumn(column.name, values, missing_entries(values)))
        schema = Schema(self.columns, self.library, ASKED)
        return schema._rows(raw)

    def table(self, values: FloatArray) -> Any:
        """Return complete rows as a table of the user's values, like the training table."""
        decoded = [c.decode(values[:, j]) for j, c in enumerate(self.columns)]
        if self.one_hot is not None:
            return self.one_hot.write(decoded, values, None, self.library)
        return self._table(decoded, self.library)

    def completed(self, values: FloatArray, X: Any, means: bool = False) -> Any:
        """Return complete rows as a table like X; known values of X stay as they are.

        `means` says that numbers are means, which are not rounded to whole numbers.
        """
        decoded = []
        for j, (column, raw) in enumerate(zip(self.columns, self._raw(X), strict=True)):
            filled = column.decode(values[:, j], means)
            known = ~np.isnan(column.encode(raw, "hole")[0])
            if filled.dtype.kind in "biuf" and raw.values.dtype == object:
                filled = filled.astype(object) if column.levels else filled
            filled[known] = raw.values[known]
            if known.all():  # whole numbers may be larger than floats can distinguish
                filled = raw.values
            decoded.append(filled)
        if self.one_hot is not None:
            return self.one_hot.write(decoded, values, X, library_of(X))
        return self._table(decoded, library_of(X), getattr(X, "index", None))

    def _table(
        self, decoded: Sequence[npt.NDArray[Any]], library: str | None, index: Any = None
    ) -> Any:
        dtypes = [column.dtype for column in self.columns]
        if library != self.library:  # names of types in one library are unknown in another
            dtypes = ["object" if column.levels else "float64" for column in self.columns]
        names = [column.name for column in self.columns]
        levels = [column.levels for column in self.columns]
        ordered = [column.kind == "ordinal" for column in self.columns]
        made = dict(zip(names, decoded, strict=True))
        return make_table(library, made, dtypes, levels, ordered, index)

    def to_plain(self) -> dict[str, Any]:
        """Return the schema as plain values, for files.

        Columns that differ only in their numbers, as in an array, are described once.
        """
        columns: list[dict[str, Any]] = []
        last = None
        for c in self.columns:
            if last is not None and c.follows(last):
                columns[-1]["times"] = columns[-1].get("times", 1) + 1
            else:
                columns.append(c.to_plain())
            last = c
        plain = {"library": self.library, "unseen": self.unseen, "columns": columns}
        return plain if self.one_hot is None else plain | {"one_hot": self.one_hot.to_plain()}

    @classmethod
    def from_plain(cls, value: Any) -> "Schema":
        """Return the schema from the values of `to_plain`, after checking them."""
        if not isinstance(value, Mapping) or not isinstance(value.get("columns"), list):
            raise ValueError("columns_ is not a description of columns")
        library, unseen = value.get("library"), value.get("unseen")
        if library not in (None, *LIBRARIES) or unseen not in UNSEEN:
            raise ValueError(f"columns_ says library={library!r}, unseen={unseen!r}")
        columns = [column for entry in value["columns"] for column in columns_from_plain(entry)]
        if len(columns) > MOST_COLUMNS:
            raise ValueError(f"columns_ describes more than {MOST_COLUMNS:,} columns")
        one_hot = None if "one_hot" not in value else OneHot.from_plain(value["one_hot"])
        if one_hot is not None and not _match(columns, one_hot):
            raise ValueError("columns_ describes groups that are not its columns")
        return cls(tuple(columns), library, unseen, one_hot)


def _match(columns: Sequence[Column], one_hot: OneHot) -> bool:
    """Whether groups have the levels of the columns."""
    if len(columns) != len(one_hot.places):
        return False
    return all(
        len(place) == 1 or column.levels == tuple(one_hot.inputs[j] for j in place)
        for column, place in zip(columns, one_hot.places, strict=True)
    )


def typed(
    values: FloatArray, types: tuple[ColumnType, ...], log_jacobian: FloatArray | None = None
) -> Observed:
    """Return a matrix of numbers with NaN for missing entries as rows."""
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
    if isinstance(observed.ones, CountRows):
        return TypedRows.of(observed.ones.matrix.toarray(), observed.ones.types)
    symbols = observed.symbols().astype(np.float64)
    symbols[symbols < 0] = np.nan
    return TypedRows.of(symbols, (ColumnType("binary", 2),) * observed.n_variables)
