"""Kinds of the columns of a table, by type, by values, or as declared by the user."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exchangeable.arrays import is_sparse
from exchangeable.data.columns.column import KINDS, MOST_LEVELS, WITH_LEVELS, Column
from exchangeable.data.columns.facts import Seen, facts_of, numbers_of
from exchangeable.data.columns.one_hot import OneHot, one_hot_of
from exchangeable.data.columns.raw import library_of, raw_columns
from exchangeable.data.columns.schema import Schema
from exchangeable.data.columns.transforms import Transform, fit_transform
from exchangeable.data.columns.values import LARGEST_LEVEL, MOST_COUNT, as_float, listed_levels

LARGEST_COUNT = 1000
"""Larger whole numbers are measurements, unless they are declared as counts."""
LARGEST_SCALE = 10
"""Whole numbers from 1 up to at most this are the levels of a scale."""


def decide(
    X: Any, kinds: Any, unseen: str = "hole", bend: bool = True, groups: Any = None
) -> Schema | None:
    """Return the schema of X, None if all columns are binary and are read as numbers.

    Parameters
    ----------
    X : table, array or sparse matrix
        Rows.
    kinds : None, str or mapping
        Kinds given by the user: one for all columns, or by name or number of columns.
    unseen : {"hole", "error"}
        How to treat values of later rows that are no level of their column.
    bend : bool
        Whether skewed measurements are transformed.
    groups : lists of columns, or a dict of such lists, optional
        Columns of 0 and 1 that are the levels of one nominal column.
    """
    library = library_of(X)
    one_hot, raw = None, None
    if groups is not None:
        one_hot, names = one_hot_of(X, groups)
        raw = one_hot.read(X, names)
    elif library is None and kinds is None:
        return None
    elif is_sparse(X) and isinstance(kinds, str) and kinds == "count":
        return sparse_schema(X, unseen)
    raw = raw_columns(X) if raw is None else raw
    told = told_kinds([column.name for column in raw], kinds, one_hot)
    facts = [facts_of(column, told.get(column.name), every=False).seen for column in raw]
    decided = decided_kinds(facts, told, library)
    if decided is None:
        return None
    transforms = {
        j: fit_transform(numbers_of(raw[j], kind), bend)
        for j, kind in enumerate(decided)
        if kind == "continuous"
    }
    return made_schema(facts, decided, transforms, library, unseen, one_hot)


def sparse_schema(X: Any, unseen: str) -> Schema:
    """Return the schema of a sparse matrix of counts."""
    same = Transform()
    columns = [Column(j, "count", (), str(X.dtype), same) for j in range(X.shape[1])]
    return Schema(tuple(columns), None, unseen)


def told_kinds(names: Sequence[Any], kinds: Any, one_hot: OneHot | None = None) -> dict[Any, str]:
    """Return the kinds given by the user, by names of columns; groups are nominal."""
    grouped = set[Any]()
    if one_hot is not None:
        pairs = zip(names, one_hot.places, strict=True)
        grouped = {name for name, place in pairs if len(place) > 1}
    if isinstance(kinds, str):
        names = [name for name in names if name not in grouped]
    told = _told(names, kinds)
    odd = next((name for name in grouped if told.get(name, "nominal") != "nominal"), None)
    if odd is not None:
        raise ValueError(f"kinds says that {odd!r} is {told[odd]}, but groups make it nominal")
    return told | dict.fromkeys(grouped, "nominal")


def decided_kinds(
    facts: Sequence[Seen], told: Mapping[Any, str], library: str | None
) -> list[str] | None:
    """Return the schema of columns, None if all are binary and are read as numbers."""
    stamped = next((seen for seen in facts if seen.stamped), None)
    if stamped is not None:
        example = next(iter(stamped.distinct or ()), None)
        raise ValueError(
            f"column {stamped.name!r} of X holds points or lengths of time{_such_as(example)} "
            f"(type {stamped.dtype}); split them into parts, such as the month, or drop them"
        )
    decided = [
        told.get(seen.name) or ("binary" if library is None else infer_kind(seen)) for seen in facts
    ]
    pairs = zip(facts, decided, strict=True)
    if all(kind == "binary" and seen.bits for seen, kind in pairs):
        return None
    return decided


def _such_as(example: Any) -> str:
    return "" if example is None else f", such as {str(example)!r}"


def made_schema(
    facts: Sequence[Seen],
    decided: Sequence[str],
    transforms: Mapping[int, Transform],
    library: str | None,
    unseen: str,
    one_hot: OneHot | None = None,
) -> Schema:
    """Return the descriptions of columns, given the transforms of measurements."""
    odd = next((seen.name for seen in facts if not isinstance(seen.name, str | int)), None)
    if odd is not None:
        raise ValueError(
            f"X has a column named {odd!r} ({type(odd).__name__}); names must be text or whole "
            "numbers: rename the columns"
        )
    for seen, kind in zip(facts, decided, strict=True):
        if kind == "count" and seen.moments is not None and seen.moments.high > MOST_COUNT:
            raise ValueError(
                f"column {seen.name!r} is a count, but holds {seen.moments.high:,.0f}; the limit "
                f"is {MOST_COUNT:,}: say by kinds that it is continuous"
            )
    unknown = [
        seen.name for seen, kind in zip(facts, decided, strict=True) if _says_nothing(seen, kind)
    ]
    if unknown:
        warnings.warn(
            f"column {unknown[0]!r} has no known value, and is taken as binary"
            + (f"; so are {len(unknown) - 1} others" if len(unknown) > 1 else "")
            + ": drop it, or say by kinds what it is",
            stacklevel=2,
        )
    columns = [
        Column(
            seen.name,
            kind,
            _levels(seen, kind) if kind in WITH_LEVELS else (),
            seen.dtype,
            transforms.get(j, Transform()),
            library is not None and kind == "continuous" and _all_whole(seen),
        )
        for j, (seen, kind) in enumerate(zip(facts, decided, strict=True))
    ]
    return Schema(tuple(columns), library, unseen, one_hot)


def _all_whole(seen: Seen) -> bool:
    return seen.n_known > 0 and seen.moments is not None and seen.moments.whole


def _says_nothing(seen: Seen, kind: str) -> bool:
    """Whether neither a column's values nor its type determine its kind."""
    return kind == "binary" and not seen.n_known and not seen.levels and not seen.boolean


def _told(names: Sequence[Any], kinds: Any) -> dict[Any, str]:
    """Return the kinds given by the user, by names of columns."""
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


def infer_kind(seen: Seen) -> str:
    """Return the kind of a column, inferred from its type and, for numbers, from their range."""
    if seen.bits and set(seen.levels or ()) <= {0, 1}:
        return "binary"
    if seen.levels is not None:
        return "ordinal" if seen.ordered else "nominal"
    if not seen.numeric:
        return "nominal"
    numbers = seen.moments
    if numbers is None or not numbers.whole or numbers.low < 0:
        return "continuous"
    if numbers.low >= 1 and numbers.high <= LARGEST_SCALE:
        return "ordinal"
    spread = numbers.variance >= 0.5 * numbers.mean
    return "count" if numbers.high <= LARGEST_COUNT and spread else "continuous"


def _levels(seen: Seen, kind: str) -> tuple[Any, ...]:
    """Return the levels of a column: those its type declares, or those that occur, in order."""
    occurring = seen.distinct or {}
    plain = [_plain(value) for value in (occurring if seen.levels is None else seen.levels)]
    odd = next((v for v in plain if not isinstance(v, bool | int | float | str)), None)
    if odd is not None:
        raise ValueError(
            f"column {seen.name!r} is {kind}, but holds {odd!r} ({type(odd).__name__}); levels are "
            "text, numbers or truth values"
        )
    large = next((v for v in plain if not isinstance(v, str) and abs(v) > LARGEST_LEVEL), None)
    if large is not None:
        raise ValueError(
            f"column {seen.name!r} is {kind}, but holds {as_float(large):g}; numbers beyond 2^53 "
            "cannot be told apart: make them text"
        )
    found = set(plain)
    if kind == "binary":
        if found <= {0, 1}:
            boolean = seen.boolean or (plain and type(plain[0]) is bool)
            return (False, True) if boolean else (0, 1)
        if len(found) != 2:
            raise ValueError(
                f"column {seen.name!r} is binary, but has {len(found)} levels: "
                f"{listed_levels(sorted(found, key=_order))}"
            )
    levels = tuple(plain) if seen.levels is not None else tuple(sorted(found, key=_order))
    if not levels:
        raise ValueError(
            f"column {seen.name!r} is empty, so that its levels are not known; drop it"
        )
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"column {seen.name!r} has {len(levels):,} levels, the limit is {MOST_LEVELS:,}; drop "
            "it, or say by kinds that it is continuous or a count"
        )
    return levels


def _order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
