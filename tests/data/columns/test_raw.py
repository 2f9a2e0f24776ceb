"""Columns of every type of pandas, polars and Arrow: read exactly, and made again as they were."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from exchangeable.data.columns.kinds import decide
from exchangeable.data.columns.raw import raw_columns
from exchangeable.data.columns.schema import typed_rows

SMALL = [3, 1, 4, 1, 5, 9]
LARGE = [2**40, 1, 2**33, 7, 2**31, 3]
FRACTIONS = [0.1, 1e-30, 1e60, -2.5, 1 / 3, 7.0]
PRICES = [Decimal(text) for text in ("0.10", "1.25", "3.00", "0.99", "7.50", "2.00")]
TEXT = ["a", "b", "c", "a", "b", "c"]
TRUTHS = [True, False, True, True, False, False]


def types() -> Iterator[tuple[str, Callable[[list[Any]], Any], list[Any]]]:
    """Yield names of types, what makes a column of values, and values."""
    for name in ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64"):
        values = LARGE if name.endswith("64") else SMALL
        yield f"pandas {name}", lambda v, name=name: pd.array(v, dtype=name), values
    yield "pandas Float64", lambda v: pd.array(v, dtype="Float64"), FRACTIONS
    yield "pandas boolean", lambda v: pd.array(v, dtype="boolean"), TRUTHS
    yield "pandas string", lambda v: pd.array(v, dtype="string"), TEXT
    arrow: list[tuple[Any, list[Any]]] = [
        *[(getattr(pa, f"{sign}int{size}")(), SMALL) for sign in ("", "u") for size in (8, 16, 32)],
        *[(kind, LARGE) for kind in (pa.int64(), pa.uint64())],
        (pa.float64(), FRACTIONS),
        (pa.bool_(), TRUTHS),
        *[(kind, TEXT) for kind in (pa.string(), pa.large_string())],
        *[(kind, PRICES) for kind in (pa.decimal128(10, 2), pa.decimal256(50, 2))],
        (pa.dictionary(pa.int8(), pa.string()), TEXT),
        (pa.dictionary(pa.int32(), pa.int64()), SMALL),
    ]
    for kind, values in arrow:
        yield f"Arrow {kind}", lambda v, kind=kind: pa.array(v, type=kind), values
        yield f"pandas Arrow {kind}", lambda v, kind=kind: pandas_of(pa.array(v, type=kind)), values
    polars: list[tuple[Any, list[Any]]] = [
        (pl.UInt8, SMALL),
        (pl.Int64, LARGE),
        (pl.Int128, LARGE),
        (pl.Float64, FRACTIONS),
        (pl.Boolean, TRUTHS),
        (pl.Categorical, TEXT),
        (pl.Enum(["a", "b", "c"]), TEXT),
        (pl.Decimal(10, 2), PRICES),
    ]
    for kind, values in polars:
        yield f"polars {kind}", lambda v, kind=kind: pl.Series("a", v, dtype=kind), values


def pandas_of(array: Any) -> Any:
    return pd.arrays.ArrowExtensionArray(pa.chunked_array([array]))


def table_of(column: Any) -> Any:
    """Return a table of a column and one of text, by which it is read as one of any kinds."""
    other = ["u", "v", "w", "u", "v", "w"]
    if isinstance(column, pl.Series):
        return pl.DataFrame({"a": column, "b": other})
    if isinstance(column, pa.Array):
        return pa.table({"a": column, "b": other})
    return pd.DataFrame({"a": column, "b": other})


def type_of(table: Any) -> Any:
    return table.schema.field("a").type if isinstance(table, pa.Table) else table["a"].dtype


def values_of(table: Any) -> list[Any]:
    column = table["a"]
    return column.to_pylist() if isinstance(table, pa.Table) else column.to_list()


TYPES = {name: (make, values) for name, make, values in types()}


@pytest.mark.parametrize("holes", [False, True], ids=["whole", "holes"])
@pytest.mark.parametrize("name", TYPES)
def test_values_are_read_as_they_are_and_come_back_in_their_type(name: str, holes: bool) -> None:
    make, values = TYPES[name]
    table = table_of(make([None, *values[1:]] if holes else values))
    raw = raw_columns(table)[0]
    assert raw.holes.tolist() == [holes] + [False] * 5
    known = raw.values[~raw.holes].tolist()
    expected = [float(v) if isinstance(v, Decimal) else v for v in values[holes:]]
    assert known == expected
    schema = decide(table, None)
    assert schema is not None
    numbers = typed_rows(schema.observed(table)).values
    complete = np.where(np.isnan(numbers), numbers[1], numbers)
    for made in (schema.table(complete), schema.completed(complete, table)):
        assert type_of(made) == type_of(table)
        assert len(values_of(made)) == 6
    assert values_of(schema.completed(complete, table))[holes:] == values[holes:]


def test_whole_numbers_that_floats_cannot_tell_apart_stay_as_they_are() -> None:
    table = pd.DataFrame({"a": np.arange(5) + 2**60, "b": list("uvwxy")})
    schema = decide(table, None)
    assert schema is not None
    again = schema.completed(typed_rows(schema.observed(table)).values, table)
    assert again["a"].tolist() == table["a"].tolist()


@pytest.mark.parametrize("kind", [Decimal, Fraction])
def test_decimals_and_fractions_are_levels_like_other_numbers(kind: Any) -> None:
    table = pd.DataFrame({"a": [kind("0.1"), kind("2"), kind("0.1")]})
    schema = decide(table, {"a": "ordinal"})
    assert schema is not None
    assert schema.columns[0].levels == (0.1, 2)
    assert typed_rows(schema.observed(table)).values[:, 0].tolist() == [0.0, 1.0, 0.0]
    assert typed_rows(schema.evidence({0: kind("0.1")})).values[0, 0] == 0.0


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        ([10**400, 1, 2], None, r"'a' holds 1\.79769e\+308; numbers must lie between"),
        ([10**400, 1, 2], "nominal", r"'a' is nominal, but holds .*; numbers beyond 2\^53"),
        ([2**53 + 1, 2**53 + 2, 0], "nominal", r"'a' is nominal, but holds .* make them text"),
        (list(np.arange(3) * 1j), None, r"'a' is continuous, but holds .*j\); expected numbers"),
        (pd.timedelta_range("1D", periods=3), "count", "'a' is a count, but holds np.timedelta64"),
    ],
)
def test_what_is_no_number_or_level_is_refused_by_name(
    column: Any, kind: str | None, message: str
) -> None:
    table = pd.DataFrame({"a": pd.Series(column, dtype=getattr(column, "dtype", object))})
    with pytest.raises(ValueError, match=f"column {message}"):
        decide(table, None if kind is None else {"a": kind})


def test_dictionaries_of_lists_are_refused_by_name() -> None:
    entries = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array([[1], [2]]))
    with pytest.raises(ValueError, match=r"column 'a' holds \[1\] \(list\); levels are text"):
        decide(pa.table({"a": entries}), None)
