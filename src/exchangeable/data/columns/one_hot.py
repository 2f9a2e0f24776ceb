"""One-hot columns: read as one column with levels, and written back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from exchangeable.arrays import check_sparse, is_sparse
from exchangeable.data.columns.output_tables import make_table
from exchangeable.data.columns.raw import RawColumn, raw_columns


@dataclass(frozen=True)
class OneHot:
    """The mapping between the columns of a matrix or table and the columns of a schema.

    Attributes
    ----------
    inputs : tuple
        Names, or numbers, of the columns of the matrix or table.
    dtypes : tuple of str
        The names of their types in their library.
    places : tuple of tuples of int
        For each column of the schema, the original columns: those of its levels, or one alone.
    sparse : bool
        Whether the matrix was sparse.
    """

    inputs: tuple[Any, ...]
    dtypes: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    sparse: bool = False

    def to_plain(self) -> dict[str, Any]:
        """Return the mapping as plain values, for files."""
        return {
            "inputs": list(self.inputs),
            "dtypes": list(self.dtypes),
            "places": [list(place) for place in self.places],
            "sparse": self.sparse,
        }

    @classmethod
    def from_plain(cls, value: Any) -> "OneHot":
        """Return the mapping from the values of `to_plain`, after checking them."""
        if not isinstance(value, Mapping) or not isinstance(value.get("places"), list):
            raise ValueError("columns_ describes groups in a way they cannot be")
        inputs, dtypes, places = (value.get(name) for name in ("inputs", "dtypes", "places"))
        good = (
            isinstance(inputs, list)
            and all(isinstance(name, str | int) for name in inputs)
            and isinstance(dtypes, list)
            and len(dtypes) == len(inputs)
            and all(isinstance(name, str) for name in dtypes)
            and isinstance(places, list)
            and all(isinstance(place, list) and place for place in places)
            and all(type(j) is int for place in places for j in place)
            and sorted(j for place in places for j in place) == list(range(len(inputs)))
            and isinstance(value.get("sparse"), bool)
        )
        if not good:
            raise ValueError("columns_ describes groups in a way they cannot be")
        assert isinstance(inputs, list)
        assert isinstance(dtypes, list)
        assert isinstance(places, list)
        made = tuple(tuple(place) for place in places)
        return cls(tuple(inputs), tuple(dtypes), made, bool(value["sparse"]))

    def read(self, X: Any, names: Sequence[Any]) -> list[RawColumn]:
        """Return the columns of a schema; a group none of whose columns is on is missing."""
        n_columns = X.shape[1] if hasattr(X, "shape") else len(self.inputs)
        if n_columns != len(self.inputs):
            raise ValueError(f"X has {n_columns} columns, expected {len(self.inputs)}")
        if is_sparse(X):
            check_sparse(X)
        matrix = X.tocsc() if is_sparse(X) else None
        raw = None if matrix is not None else raw_columns(X)
        found = []
        for name, place in zip(names, self.places, strict=True):
            if len(place) == 1:
                own = raw[place[0]] if raw is not None else _single(matrix, place[0])
                found.append(own._replace(name=name))
                continue
            levels = tuple(self.inputs[j] for j in place)
            if matrix is not None:
                flags = matrix[:, list(place)].toarray()
            else:
                assert raw is not None
                flags = np.stack([_numbers(raw[j]) for j in place], axis=1)
            found.append(_level_column(flags, name, levels, self.dtypes[place[0]]))
        return found

    def write(
        self, decoded: Sequence[npt.NDArray[Any]], codes: npt.NDArray[Any], X: Any, library: Any
    ) -> Any:
        """Return columns of a schema, and their numbers, as a matrix or table like the one read."""
        made: dict[int, npt.NDArray[Any]] = {}
        for j, place in enumerate(self.places):
            if len(place) == 1:
                made[place[0]] = decoded[j]
                continue
            for number, position in enumerate(place):
                made[position] = codes[:, j] == number
        ordered = [made[position] for position in range(len(self.inputs))]
        if self.sparse and (X is None or is_sparse(X)):
            return sp.csr_array(np.stack([each.astype(np.float64) for each in ordered], axis=1))
        named = dict(zip(self.inputs, ordered, strict=True))
        nothing: list[tuple[Any, ...]] = [()] * len(ordered)
        index = getattr(X, "index", None)
        return make_table(library, named, self.dtypes, nothing, [False] * len(ordered), index)


def one_hot_of(X: Any, groups: Any) -> tuple[OneHot, list[Any]]:
    """Return the mapping for the groups declared by the user, and the names of X's columns."""
    raw_names, dtypes = _inputs(X)
    place = {name: j for j, name in enumerate(raw_names)}
    named = groups.items() if isinstance(groups, Mapping) else _numbered(groups)
    of: dict[int, Any] = {}
    members: dict[Any, tuple[int, ...]] = {}
    for name, columns in named:
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise TypeError(f"groups[{name!r}] is {columns!r}; expected a list of columns")
        own = [_position(column, place, len(raw_names)) for column in columns]
        twice = next((j for j in own if j in of), None)
        if twice is not None or len(set(own)) < len(own):
            column = raw_names[own[0] if twice is None else twice]
            raise ValueError(
                f"groups name column {column!r} twice; a column is a level of one variable"
            )
        if len(own) < 2:
            raise ValueError(f"groups[{name!r}] has {len(own)} columns; a variable has two levels")
        if name in place:
            raise ValueError(f"groups names {name!r}, which is the name of a column of X")
        members[name] = tuple(own)
        of |= dict.fromkeys(own, name)
    names, places, begun = list[Any](), list[tuple[int, ...]](), set[Any]()
    for j, column in enumerate(raw_names):
        if j not in of:
            names.append(column)
            places.append((j,))
        elif of[j] not in begun:
            begun.add(of[j])
            names.append(of[j])
            places.append(members[of[j]])
    made = OneHot(tuple(raw_names), tuple(dtypes), tuple(places), is_sparse(X))
    return made, names


def _numbered(groups: Any) -> list[tuple[str, Any]]:
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise TypeError(f"groups={groups!r}; expected lists of columns, or a dict of such lists")
    return [(f"group {number}", columns) for number, columns in enumerate(groups)]


def _inputs(X: Any) -> tuple[list[Any], list[str]]:
    """Return the names and types of the columns of a matrix or table."""
    if is_sparse(X):
        return list(range(X.shape[1])), [str(X.dtype)] * X.shape[1]
    raw = raw_columns(X)
    return [column.name for column in raw], [column.dtype for column in raw]


def _position(column: Any, place: Mapping[Any, int], n_columns: int) -> int:
    """Return the number of a column given by name or number."""
    if column in place:
        return place[column]
    number = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if not number or not 0 <= column < n_columns:
        raise ValueError(f"groups names {column!r}, which is not a column of X")
    return int(column)


def _single(matrix: Any, j: int) -> RawColumn:
    """Return a column of a sparse matrix."""
    values = matrix[:, [j]].toarray().ravel()
    holes = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.size, np.bool_)
    return RawColumn(j, values, holes, dtype=str(values.dtype))


def _numbers(raw: RawColumn) -> npt.NDArray[np.float64]:
    """Return a column of 0 and 1 as numbers, NaN if missing."""
    try:
        values = np.where(raw.holes, np.nan, raw.values).astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"column {raw.name!r} is in a group, but does not hold 0 and 1") from None
    return values


def _level_column(
    flags: npt.NDArray[Any], name: Any, levels: tuple[Any, ...], dtype: str
) -> RawColumn:
    """Return the level of each row of a group."""
    flags = np.asarray(flags, dtype=np.float64)
    on = np.nan_to_num(flags)
    if not np.isin(on, (0.0, 1.0)).all():
        row, at = np.argwhere(~np.isin(on, (0.0, 1.0)))[0]
        raise ValueError(
            f"row {row} of column {levels[at]!r} is {on[row, at]:g}; columns of group {name!r} "
            "must be 0 or 1"
        )
    several = np.flatnonzero(on.sum(axis=1) > 1)
    if several.size:
        both = [levels[at] for at in np.flatnonzero(on[several[0]])]
        raise ValueError(
            f"row {several[0]} has {both[0]!r} and {both[1]!r} of group {name!r} on; a variable "
            "has one level"
        )
    known = on.sum(axis=1) == 1
    values = np.empty(len(on), dtype=object)
    values[:] = [levels[at] for at in on.argmax(axis=1)]
    return RawColumn(name, values, ~known, levels, False, dtype)
