"""Kinds of columns: what each column of a table is, by its type, its values or the user's word."""

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import is_sparse
from exchangeable.data.one_hot import OneHot, one_hot_of
from exchangeable.data.raw_columns import RawColumn, library_of, raw_columns
from exchangeable.data.schema import (
    KINDS,
    MOST_LEVELS,
    WITH_LEVELS,
    Column,
    Schema,
)
from exchangeable.data.transforms import Transform, fit_transform
from exchangeable.data.values import check_counts, finite_numbers, listed_levels

LARGEST_COUNT = 1000
"""Larger whole numbers are measurements, unless they are declared to be counts."""
LARGEST_SCALE = 10
"""Whole numbers from 1 up to at most this are the levels of a scale."""


def decide(
    X: Any, kinds: Any, unseen: str = "hole", bend: bool = True, groups: Any = None
) -> Schema | None:
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
    groups : lists of columns, or a dict of such lists, optional
        Columns of 0 and 1 that are the levels of one nominal column.
    """
    library = library_of(X)
    if groups is not None:
        one_hot, names = one_hot_of(X, groups)
        return _decided(one_hot.read(X, names), library, kinds, unseen, bend, one_hot)
    if library is None and kinds is None:
        return None
    if is_sparse(X) and isinstance(kinds, str) and kinds == "count":
        dtype = str(X.dtype)
        same = Transform()
        columns = [Column(j, kinds, (), dtype, same) for j in range(X.shape[1])]
        return Schema(tuple(columns), None, unseen)
    return _decided(raw_columns(X), library, kinds, unseen, bend)


def _decided(
    raw: Sequence[RawColumn],
    library: str | None,
    kinds: Any,
    unseen: str,
    bend: bool,
    one_hot: OneHot | None = None,
) -> Schema | None:
    """Return what columns are, None if all are binary and are read as numbers."""
    grouped = set[Any]()
    if one_hot is not None:
        pairs_of = zip(raw, one_hot.places, strict=True)
        grouped = {column.name for column, place in pairs_of if len(place) > 1}
    word = isinstance(kinds, str)
    told = {} if word and grouped else _told(raw, kinds)
    if word and grouped:
        told = _told([column for column in raw if column.name not in grouped], kinds)
    odd = next((name for name in grouped if told.get(name, "nominal") != "nominal"), None)
    if odd is not None:
        raise ValueError(f"kinds says that {odd!r} is {told[odd]}, but groups make it nominal")
    told |= dict.fromkeys(grouped, "nominal")
    if any(_holds_times(column) for column in raw):
        return None  # which are refused where binary numbers are read
    if library is None:
        told = {**{column.name: "binary" for column in raw}, **told}
    decided = [told.get(column.name) or infer_kind(column) for column in raw]
    pairs = list(zip(raw, decided, strict=True))
    if all(kind == "binary" and _holds_bits(column) for column, kind in pairs):
        return None
    found = [_column(column, kind, bend) for column, kind in pairs]
    return Schema(tuple(found), library, unseen, one_hot)


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
    numbers = finite_numbers(known, raw.name, kind)
    if kind == "count":
        check_counts(numbers, raw.name)
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
                f"{listed_levels(sorted(found, key=_order))}"
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
