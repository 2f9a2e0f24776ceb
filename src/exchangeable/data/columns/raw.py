"""Columns of tables (pandas, polars, Arrow) and arrays, before they are interpreted.

A column is an array of its values with a mask of missing ones, the levels that its type declares,
and the name of the type, so that a table with the same types can be written (`output_tables`).
"""

from collections.abc import Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import check_sparse, is_missing, is_sparse
from exchangeable.data.columns.values import no_level, plain_numbers
from exchangeable.data.containers import masks_in_one, unmasked

LIBRARIES = ("pandas", "polars", "pyarrow")
"""Libraries whose tables are read column by column."""
IN_PANDAS = "[pyarrow]"
"""The suffix that pandas adds to the names of Arrow types."""


class RawColumn(NamedTuple):
    """A column before it is interpreted.

    Attributes
    ----------
    name : str or int
        Its name, or its number in an array.
    values : array
        Numbers, booleans or objects; values of missing entries do not matter.
    holes : array of bool
        Which entries are missing.
    levels : tuple, optional
        The levels that its type declares.
    ordered : bool
        Whether they have an order.
    dtype : str
        The name of its type in its library.
    """

    name: Any
    values: npt.NDArray[Any]
    holes: npt.NDArray[np.bool_]
    levels: tuple[Any, ...] | None = None
    ordered: bool = False
    dtype: str = "float64"


def library_of(X: Any) -> str | None:
    """Return the library of a table, None for arrays and everything else."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return "pandas"
    library = type(X).__module__.split(".")[0]
    if library == "polars" and hasattr(X, "collect"):
        raise TypeError("X is a LazyFrame of polars, which has no rows yet; pass X.collect()")
    if library == "polars" and hasattr(X, "get_columns"):
        return "polars"
    return "pyarrow" if library == "pyarrow" and hasattr(X, "column_names") else None


def raw_columns(X: Any) -> list[RawColumn]:
    """Return the columns of a table or array."""
    library = library_of(X)
    if library == "pandas":
        return [_from_pandas(X.iloc[:, j], name) for j, name in enumerate(X.columns)]
    if library == "polars":
        return [_from_polars(column) for column in X.get_columns()]
    if library == "pyarrow":
        return [
            _from_arrow(column, name)
            for name, column in zip(X.column_names, X.columns, strict=True)
        ]
    if is_sparse(X):
        check_sparse(X)
    matrix = X.toarray() if is_sparse(X) else masks_in_one(X)
    if isinstance(matrix, np.ma.MaskedArray):
        matrix = unmasked(matrix)
    array = np.asarray(matrix)
    if array.dtype.kind in "US":  # lists of numbers and text would all become text
        array = np.asarray(matrix, dtype=object)
    if array.ndim != 2:
        hint = "; for a single row pass X.reshape(1, -1)" if array.ndim == 1 else ""
        raise ValueError(f"Expected 2D array, got {array.ndim}D array instead{hint}")
    return [_from_array(array[:, j], j) for j in range(array.shape[1])]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _from_array(values: npt.NDArray[Any], name: Any, dtype: str | None = None) -> RawColumn:
    values = plain_numbers(values)
    holes = missing_entries(values)
    return RawColumn(name, values, holes, dtype=str(values.dtype) if dtype is None else dtype)


def missing_entries(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which entries of an array are missing."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=np.bool_)
    return np.array(
        [is_missing(v) or (isinstance(v, Number) and v != v) for v in values.ravel()],
        dtype=np.bool_,
    ).reshape(values.shape)


def _from_pandas(column: Any, name: Any) -> RawColumn:
    if hasattr(column.dtype, "pyarrow_dtype"):
        import pyarrow

        found = _from_arrow(pyarrow.array(column.array), name)
        return found._replace(dtype=found.dtype + IN_PANDAS)
    holes, dtype = np.asarray(column.isna().to_numpy()), str(column.dtype)
    if dtype.startswith("Sparse"):
        column = column.sparse.to_dense()
    if hasattr(column.dtype, "categories"):
        levels = tuple(_plain(level) for level in column.dtype.categories)
        values = column.astype(object).to_numpy()
        return RawColumn(name, values, holes, levels, bool(column.dtype.ordered), "category")
    if getattr(column.dtype, "kind", "O") in "biuf" and not isinstance(column.dtype, np.dtype):
        own = getattr(column.dtype, "numpy_dtype", np.dtype(np.float64))
        kind, missing = (np.dtype(np.float64), np.nan) if holes.any() else (own, None)
        values = column.to_numpy(dtype=kind, na_value=missing)
        if column.dtype.kind == "b":
            values = np.where(holes, 0, values).astype(np.bool_)
        return RawColumn(name, values, holes, dtype=dtype)
    return RawColumn(name, plain_numbers(column.to_numpy()), holes, dtype=dtype)


def _from_polars(column: Any) -> RawColumn:
    holes, dtype = column.is_null().to_numpy(), str(column.dtype)
    if dtype.startswith(("Enum", "Categorical")):
        enum = dtype.startswith("Enum")
        levels = tuple(column.dtype.categories) if enum else None
        values = _objects(column.to_list())
        return RawColumn(
            column.name, values, holes, levels, enum, "Enum" if enum else "Categorical"
        )
    if dtype == "Boolean":
        return RawColumn(column.name, column.fill_null(False).to_numpy(), holes, dtype="Boolean")
    if dtype.endswith("Int128"):  # which NumPy does not have
        return RawColumn(column.name, _objects(column.to_list()), holes, dtype=dtype)
    values = plain_numbers(column.to_numpy())
    if values.ndim > 1:  # records and arrays, which are rejected as values
        values = _objects(column.to_list())
    return RawColumn(column.name, values, holes | missing_entries(values), dtype=dtype)


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return an array of objects with one entry per object, even if these are lists."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _from_arrow(column: Any, name: str) -> RawColumn:
    holes = np.array(column.is_null().to_pylist(), dtype=np.bool_)
    dtype = str(column.type)
    if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
        chunks = column.chunks if hasattr(column, "chunks") else [column]
        listed = _objects([v for chunk in chunks for v in chunk.dictionary.to_pylist()])
        try:
            levels = dict.fromkeys(plain_numbers(listed).tolist())
        except TypeError:
            raise no_level(listed, name) from None
        values = plain_numbers(_objects(column.to_pylist()))
        ordered = bool(column.type.ordered)
        return RawColumn(
            name,
            values,
            holes,
            tuple(levels),
            ordered,
            f"dictionary {column.type.index_type} {column.type.value_type}",
        )
    values = plain_numbers(_objects(column.to_pylist()))
    if dtype == "bool":
        values = np.where(holes, False, values).astype(np.bool_)
    elif dtype.startswith(("int", "uint", "float", "double", "halffloat")):
        values = np.where(holes, np.nan, values).astype(np.float64)
    return RawColumn(name, values, holes | missing_entries(values), dtype=dtype)
