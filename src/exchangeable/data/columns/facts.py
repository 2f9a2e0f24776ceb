"""Facts about the values of a column that suffice to decide its kind, levels and transform.

Facts about two sets of rows add up, so that tables in chunks need only one pass.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.columns.column import MOST_LEVELS, WITH_LEVELS
from exchangeable.data.columns.raw import RawColumn
from exchangeable.data.columns.transforms import Moments
from exchangeable.data.columns.values import check_counts, finite_numbers, no_level


class ColumnFacts:
    """Facts about the columns of some rows.

    Parameters
    ----------
    seen : Seen
        What they tell.
    """

    def __init__(self, seen: "Seen") -> None:
        self.seen = seen

    def __add__(self, other: "ColumnFacts") -> "ColumnFacts":
        one, two = self.seen, other.seen
        if one.name != two.name:
            raise ValueError(
                f"column {one.name!r} of the first chunk is called {two.name!r} in another; all "
                "chunks must have the same columns in the same order"
            )
        levels = _common_levels(one, two)
        return ColumnFacts(
            Seen(
                one.name,
                _common_type(one.dtype, two.dtype),
                levels,
                one.ordered and levels is not None,
                one.stamped or two.stamped,
                one.bits and two.bits,
                one.boolean if one.n_known or not two.n_known else two.boolean,
                one.numeric and two.numeric,
                one.n_known + two.n_known,
                _union(one.distinct, two.distinct),
                None if one.moments is None or two.moments is None else one.moments + two.moments,
            )
        )


@dataclass(frozen=True)
class Seen:
    """Facts about one column of some rows.

    Attributes
    ----------
    name, dtype : object and str
        As in `RawColumn`.
    levels : tuple, optional
        The levels that its type declares.
    ordered, stamped : bool
        Whether they have an order, and whether values are dates or durations.
    bits, boolean, numeric : bool
        Whether all known values are 0 and 1, whether the first is a boolean, whether all are
        numbers.
    n_known : int
        Number of known values.
    distinct : dict or None
        The distinct values in order of appearance; None if they are measurements.
    moments : Moments or None
        Moments of numbers.
    """

    name: Any
    dtype: str
    levels: tuple[Any, ...] | None
    ordered: bool
    stamped: bool
    bits: bool
    boolean: bool
    numeric: bool
    n_known: int
    distinct: dict[Any, None] | None
    moments: Moments | None


def facts_of(raw: RawColumn, told: str | None = None, every: bool = True) -> ColumnFacts:
    """Return the facts about a column, for which the user may have given a kind.

    `every` requests moments even if they do not matter for a table in memory.
    """
    known = raw.values[~raw.holes]
    bits, numeric = _holds_bits(known), _holds_numbers(known)
    boolean = known.dtype.kind == "b" or (known.size > 0 and isinstance(known[0], bool | np.bool_))
    moments, whole = None, not numeric
    if told in ("count", "continuous") or (told is None and numeric and (every or not bits)):
        numbers = finite_numbers(known, raw.name, told or "continuous")
        if told == "count":
            check_counts(numbers, raw.name)
        whole = bool((numbers == np.floor(numbers)).all())
        moments = Moments.of(numbers) if every or whole else None
    listed = told in WITH_LEVELS or (told is None and (whole or bits or raw.levels is not None))
    distinct = _distinct(known, raw.name) if listed else None
    timed = any(hasattr(value, "isoformat") for value in known[:1].tolist())
    stamped = timed or raw.values.dtype.kind in "mM"
    seen = Seen(
        raw.name,
        raw.dtype,
        raw.levels,
        raw.ordered,
        stamped,
        bits,
        boolean,
        numeric,
        known.size,
        distinct,
        moments,
    )
    return ColumnFacts(seen)


def _holds_bits(known: npt.NDArray[Any]) -> bool:
    """Whether all known values are 0 and 1, as numbers or booleans."""
    if known.dtype.kind == "b":
        return True
    if known.dtype.kind == "O":
        return all(isinstance(v, Number | np.bool_) and (v == 0 or v == 1) for v in known)
    return known.dtype.kind in "iuf" and bool(((known == 0) | (known == 1)).all())


def _holds_numbers(known: npt.NDArray[Any]) -> bool:
    """Whether all known values are numbers."""
    if known.dtype.kind in "biuf":
        return True
    return known.dtype.kind == "O" and all(isinstance(value, Number) for value in known)


def _distinct(known: npt.NDArray[Any], name: Any) -> dict[Any, None]:
    """Return the distinct values, in order of appearance, or of size if they are numbers."""
    try:
        listed: Iterable[Any] = np.unique(known) if known.dtype.kind in "biuf" else known
        return dict.fromkeys(np.asarray(listed).tolist())
    except TypeError:
        raise no_level(known, name) from None


def _union(one: dict[Any, None] | None, two: dict[Any, None] | None) -> dict[Any, None] | None:
    """Return the values of both; of too many to be levels, enough to know that."""
    if one is None or two is None:
        return None
    both = one | two
    return both if len(both) <= MOST_LEVELS + 1 else dict.fromkeys(list(both)[: MOST_LEVELS + 1])


def _common_levels(one: Seen, two: Seen) -> tuple[Any, ...] | None:
    """Return the levels that both types declare: dictionaries grow, other types must agree."""
    if one.levels == two.levels:
        return one.levels
    if one.levels is None or two.levels is None:
        return None
    if one.dtype.startswith("dictionary") and not one.ordered:
        return tuple(dict.fromkeys((*one.levels, *two.levels)))
    if one.ordered or two.ordered:
        raise ValueError(
            f"column {one.name!r} has the ordered levels {list(one.levels)} in one chunk and "
            f"{list(two.levels)} in another; give all chunks the same categories"
        )
    return None


def _common_type(one: str, two: str) -> str:
    """Return the type that a column has in the union of two tables.

    >>> _common_type("int64", "float64"), _common_type("int64", "object")
    ('float64', 'object')
    """
    if one == two:
        return one
    try:
        return str(np.result_type(np.dtype(one.lower()), np.dtype(two.lower())))
    except TypeError:
        return "object"


def numbers_of(raw: RawColumn, kind: str) -> FloatArray:
    """Return a column as numbers, NaN if missing."""
    numbers = np.full(raw.values.shape, np.nan)
    numbers[~raw.holes] = finite_numbers(raw.values[~raw.holes], raw.name, kind)
    return numbers
