"""Rows in any container (arrays, lists, data frames, Arrow tables) as one matrix of numbers.

There are many ways to mark a missing entry: NaN, None, pandas.NA, NaT, a mask, a null. All of them
are converted to NaN here, and nowhere else. Anything that is neither a number nor one of these
raises an error with the name of its column.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import check_sparse, is_missing, is_sparse

NUMBERS = "biuf"
"""Kinds of NumPy types that are read directly."""
HINT = "code it as 0 and 1, with NaN where it is not known"


def as_matrix(X: Any, name: str = "X") -> Any:
    """Return rows as a matrix of numbers, with NaN for missing entries.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or Arrow table
        Rows. Data frames may be of pandas or polars, or have their methods.
    name : str, default="X"
        The name of X in messages.

    Returns
    -------
    ndarray or sparse matrix
        Or X itself, if it is one already or cannot be read: any further checks are left to
        scikit-learn.
    """
    if is_sparse(X):
        check_sparse(X, name)
        if X.dtype.kind not in NUMBERS:
            raise TypeError(f"{name} is a sparse matrix of dtype {X.dtype}; expected numbers")
        return X
    if _is_sparse_frame(X):
        return X.sparse.to_coo()
    columns = _columns(X)
    if columns is not None:
        labels, arrays = columns
        return side_by_side(
            [
                _as_numbers(array, f"column {label!r} of {name}")
                for label, array in zip(labels, arrays, strict=True)
            ],
            len(X),
        )
    X = masks_in_one(X)
    if isinstance(X, np.ma.MaskedArray):
        return _from_masked(X, name)
    array = _as_array(X)
    if array is None or array.dtype.kind in NUMBERS:
        return X if array is None else array
    return _as_numbers(array, name)


def side_by_side(columns: Sequence[npt.NDArray[Any]], n_rows: int) -> npt.NDArray[Any]:
    """Return columns of numbers as a matrix of a type that holds them all."""
    kind = np.result_type(*{column.dtype for column in columns}) if columns else np.dtype(float)
    matrix = np.empty((n_rows, len(columns)), dtype=np.uint8 if kind == np.bool_ else kind)
    for number, column in enumerate(columns):
        matrix[:, number] = column
    return matrix


def arrow_column(column: Any) -> npt.NDArray[Any]:
    """Return a column of an Arrow table as an array; nulls are NaN, None or NaT."""
    if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
        # Nulls among the codes of a dictionary would be lost.
        column = column.cast(column.type.value_type)
    if hasattr(column, "combine_chunks"):
        return np.asarray(column.to_numpy())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def arrow_matrix(batch: Any, names: Sequence[str]) -> npt.NDArray[Any]:
    """Return columns of an Arrow batch as a matrix."""
    columns = [
        _as_numbers(arrow_column(batch.column(number)), f"column {name!r}")
        for number, name in enumerate(names)
    ]
    return side_by_side(columns, batch.num_rows)


def _columns(X: Any) -> tuple[Sequence[Any], Sequence[npt.NDArray[Any]]] | None:
    """Return the names and arrays of the columns of a table, None if X is not one."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas
        if all(isinstance(kind, np.dtype) and kind.kind in NUMBERS for kind in X.dtypes):
            return None  # one array, often without a copy
        return list(X.columns), [_pandas_column(X.iloc[:, j]) for j in range(X.shape[1])]
    library = type(X).__module__.split(".")[0]
    if library == "polars" and hasattr(X, "get_columns"):
        return X.columns, [column.to_numpy() for column in X.get_columns()]
    if library == "pyarrow" and hasattr(X, "column_names"):
        return X.column_names, [arrow_column(column) for column in X.columns]
    return None


def _is_sparse_frame(X: Any) -> bool:
    """Whether X is a pandas frame with only sparse columns, whose zeros are not stored."""
    kinds = list(getattr(X, "dtypes", ())) if hasattr(X, "iloc") and hasattr(X, "columns") else []
    return bool(kinds) and all(
        type(kind).__name__ == "SparseDtype" and kind.fill_value == 0 for kind in kinds
    )


def _pandas_column(column: Any) -> npt.NDArray[Any]:
    if getattr(column.dtype, "kind", "O") in NUMBERS:
        if isinstance(column.dtype, np.dtype) or not column.isna().any():
            return np.asarray(column.to_numpy())
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(column.array)


def masks_in_one(X: Any) -> Any:
    """Return lists of masked rows as one masked array, and lists of masked entries with None.

    NumPy would lose the masks.
    """
    if not isinstance(X, list | tuple):
        return X
    if any(isinstance(row, np.ma.MaskedArray) for row in X):
        return np.ma.array(X)
    if any(_holds_masked(row) for row in X):
        return [[None if entry is np.ma.masked else entry for entry in row] for row in X]
    return X


def unmasked(X: np.ma.MaskedArray[Any, Any]) -> npt.NDArray[Any]:
    """Return an array of objects, with None for masked entries."""
    known = np.ma.getdata(X).astype(object)
    known[np.ma.getmaskarray(X)] = None
    return np.asarray(known)


def _from_masked(X: np.ma.MaskedArray[Any, Any], name: str) -> npt.NDArray[Any]:
    mask = np.ma.getmaskarray(X)
    if X.dtype.kind in NUMBERS:
        return np.where(mask, np.nan, X.data.astype(np.float64))
    if X.dtype.kind != "O":
        raise ValueError(f"{name} is a masked array of dtype {X.dtype}; {HINT}")
    return _as_numbers(unmasked(X), name)


def _as_array(X: Any) -> npt.NDArray[Any] | None:
    """Return X as an array, None if it is not one or contains other than numbers and objects."""
    if not isinstance(X, np.ndarray | list | tuple) and not hasattr(X, "__array__"):
        return None
    return np.asarray(X)


def _holds_masked(row: Any) -> bool:
    return isinstance(row, list | tuple) and any(entry is np.ma.masked for entry in row)


def _as_numbers(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return an array of objects as floats, NaN for missing entries."""
    if array.dtype.kind in NUMBERS:
        return array
    if array.dtype.kind in "mM":
        what = "points in time" if array.dtype.kind == "M" else "lengths of time"
        raise ValueError(
            f"{name} holds {what}{_such_as(array)} (dtype {array.dtype}); split them into parts, "
            f"such as the month, drop them, or {HINT}"
        )
    if array.dtype.kind in "USV":
        raise ValueError(
            f"{name} holds text or records{_such_as(array)} (dtype {array.dtype}), which "
            f"dtype='numeric' is not compatible with; {HINT}"
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}; {HINT}")
    numbers = np.empty(array.shape)
    for at, value in np.ndenumerate(array):
        if is_missing(value):
            numbers[at] = np.nan
            continue
        where = f"{name}, row {at[0]}," if len(at) == 1 else f"{name}{list(at)}"
        if isinstance(value, str | bytes):
            raise ValueError(f"{where} is the text {value!r}; {HINT}")
        try:
            numbers[at] = float(value)
        except OverflowError:
            numbers[at] = np.inf
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where} is {value!r}; {HINT} ({error})") from None
    return numbers


def _such_as(array: npt.NDArray[Any]) -> str:
    """Return the first known value of an array, and its position."""
    known = ~np.isnat(array) if array.dtype.kind in "mM" else np.full(array.shape, True)
    if array.dtype.kind == "V" or not known.any():
        return ""
    at = [int(place) for place in np.argwhere(known)[0]]
    place = f"row {at[0]}" + (f", column {at[1]}" if len(at) == 2 else "")
    return f", such as {str(array[tuple(at)])!r} in {place}"
