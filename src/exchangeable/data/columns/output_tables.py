"""Writing complete columns as pandas, polars or Arrow tables with their original types."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.data.columns.raw import IN_PANDAS

WHOLE = re.compile(r"\bu?int(8|16|32|64|128)\b")
"""Names of integer types, in lower case."""
DECIMALS = re.compile(r"([Dd]ecimal\d*)\((?:precision=)?(\d+), (?:scale=)?(\d+)\)$")
"""Names of decimal types in polars and Arrow."""
Values = npt.NDArray[Any]
Levels = tuple[Any, ...]


def make_table(
    library: str | None,
    columns: Mapping[Any, Values],
    dtypes: Sequence[str],
    levels: Sequence[Levels],
    ordered: Sequence[bool],
    index: Any = None,
) -> Any:
    """Return complete columns as a table of a library, with their types; else as an array."""
    described = list(zip(columns.values(), dtypes, levels, ordered, strict=True))
    if library == "pandas":
        import pandas

        series = {
            name: _pandas_column(*each, index)
            for name, each in zip(columns, described, strict=True)
        }
        return pandas.DataFrame(series, index=index)
    if library == "polars":
        import polars

        return polars.DataFrame(
            [_polars_column(name, *each) for name, each in zip(columns, described, strict=True)]
        )
    if library == "pyarrow":
        import pyarrow

        return pyarrow.table([_arrow_column(*each) for each in described], names=list(columns))
    stacked = list(columns.values())
    if all(values.dtype.kind in "biuf" for values in stacked):
        return np.stack([values.astype(np.float64) for values in stacked], axis=1)
    table = np.empty((stacked[0].size, len(stacked)), dtype=object)
    for j, values in enumerate(stacked):
        table[:, j] = values
    return table


def _pandas_column(values: Values, dtype: str, levels: Levels, ordered: bool, index: Any) -> Any:
    """Return a series."""
    import pandas

    if dtype.endswith(IN_PANDAS):
        made = _arrow_column(values, dtype.removesuffix(IN_PANDAS), levels, ordered)
        return pandas.Series(pandas.arrays.ArrowExtensionArray(made), index=index)
    kind: Any = pandas.CategoricalDtype(levels, ordered) if dtype == "category" else dtype
    if dtype.startswith("Sparse["):
        kind = _sparse_type(dtype)
    if _has_fractions(values, str(kind)):
        kind = "float64"
    return pandas.Series(_within(values, str(kind)), index=index).astype(kind)


def _polars_column(name: Any, values: Values, dtype: str, levels: Levels, ordered: bool) -> Any:
    """Return a series of polars."""
    import polars

    kind: Any = polars.Enum([str(level) for level in levels]) if dtype == "Enum" else None
    if kind is None:
        kind = getattr(polars, dtype, None)
    listed = _within(values, dtype).tolist()
    if _has_fractions(values, dtype):
        kind = polars.Float64
    elif is_whole(dtype):
        listed = [int(value) for value in listed]
    series = polars.Series(name, listed, dtype=kind, strict=False)
    decimals = _decimals(dtype)
    return series if decimals is None else series.cast(polars.Decimal(*decimals[1:]))


def _arrow_column(values: Values, dtype: str, levels: Levels, ordered: bool) -> Any:
    """Return an array of Arrow."""
    import pyarrow

    if dtype.startswith("dictionary "):
        index, value = map(pyarrow.type_for_alias, dtype.split(" ")[1:])
        place = {level: number for number, level in enumerate(levels)}
        codes = pyarrow.array([place[level] for level in values.tolist()], type=index)
        dictionary = pyarrow.array(list(levels), type=value)
        return pyarrow.DictionaryArray.from_arrays(codes, dictionary, ordered=ordered)
    decimals, listed = _decimals(dtype), _within(values, dtype).tolist()
    if decimals is not None or dtype == "null" or _has_fractions(values, dtype):
        made = pyarrow.array(listed, type=pyarrow.float64())
        if decimals is None:
            return made
        name, *digits = decimals
        return made.cast(getattr(pyarrow, name)(*digits))
    if is_whole(dtype):
        listed = [int(value) for value in listed]
    return pyarrow.array(listed, type=pyarrow.type_for_alias(dtype))


def is_whole(dtype: str) -> bool:
    """Whether a type, by its name in its library, is an integer type.

    >>> is_whole("Int64"), is_whole("Sparse[uint8, 0]"), is_whole("interval"), is_whole("float64")
    (True, True, False, False)
    """
    return WHOLE.search(dtype.lower()) is not None


def _has_fractions(values: Values, dtype: str) -> bool:
    """Whether an integer column holds other numbers, such as means of counts."""
    return is_whole(dtype) and bool((values % 1 != 0).any())


def _within(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """Return numbers clipped to the range of an integer type."""
    own = WHOLE.search(dtype.lower())
    if own is None or own[1] == "128" or values.dtype.kind != "f":
        return values
    low, high = np.iinfo(own[0]).min, np.iinfo(own[0]).max
    return np.asarray(
        np.clip(values, low, np.nextafter(float(high), 0.0) if high > 2**53 else high)
    )


def _sparse_type(dtype: str) -> Any:
    """Return the pandas type with a name, whatever its fill value is."""
    import pandas

    of, fill = dtype.removeprefix("Sparse[").removesuffix("]").split(", ")
    kind = np.dtype(of)
    value = fill == "True" if kind.kind == "b" else kind.type(fill).item()
    return pandas.SparseDtype(kind, value)


def _decimals(dtype: str) -> tuple[str, int, int] | None:
    """Return a decimal type, its digits, and the number of digits after the point.

    >>> _decimals("Decimal(precision=10, scale=2)"), _decimals("decimal128(8, 3)")
    (('Decimal', 10, 2), ('decimal128', 8, 3))
    """
    found = DECIMALS.match(dtype)
    return None if found is None else (found[1], int(found[2]), int(found[3]))
