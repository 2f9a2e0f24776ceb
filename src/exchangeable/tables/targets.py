"""Columns with the classes and the weights of rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.tables.coding import as_texts
from exchangeable.tables.reading import TableData

MOST_CLASSES = 1000
UNLABELLED = ("error", "drop", "learn")
"""How to treat rows whose class is missing."""


class Target(NamedTuple):
    """The classes of the rows of a table.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
        The class of every row; None if it is missing, in an array of objects.
    known : ndarray of shape (n_rows,)
        Whether it is known.
    """

    labels: npt.NDArray[Any]
    known: npt.NDArray[np.bool_]


def read_target(table: TableData, name: str, unlabelled: str) -> Target:
    """Return the classes in a column, rejecting invalid ones.

    Parameters
    ----------
    table : TableData
        The table.
    name : str
        The column.
    unlabelled : {"error", "drop", "learn"}
        How to treat rows whose class is missing.
    """
    column = table.column(name)
    if isinstance(column, np.ndarray):
        known = np.full(column.shape, True)
        values = column
    else:
        known = column.notna().to_numpy()
        values = _values(column, known)
    empty = np.flatnonzero(~known)
    if not known.any():
        raise ValueError(f"column {name!r} is empty; --target needs a column with classes")
    if empty.size and unlabelled == "error":
        many = f" ({empty.size:,} rows are without a class)" if empty.size > 1 else ""
        raise ValueError(
            f"row {empty[0] + 1}, column {name!r} is empty{many}: --unlabelled drop leaves such "
            "rows out, --unlabelled learn trains on them too"
        )
    distinct = set(values[known].tolist())
    numbers = values[known].dtype.kind == "f"
    measured = numbers and any(value != round(value) for value in distinct)
    if measured or len(distinct) > MOST_CLASSES:
        raise ValueError(
            f"column {name!r} has {len(distinct):,} different values, which does not look like "
            f"classes; give a column with at most {MOST_CLASSES:,} classes"
        )
    return Target(values, known)


def _values(column: Any, known: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Return labels as numbers, booleans or text; as objects if some are missing."""
    if column.dtype.kind in "iufb" and isinstance(column.dtype, np.dtype) and known.all():
        return np.asarray(column.to_numpy())
    present = column[known]
    found: list[Any]
    if column.dtype.kind == "b":
        found = [bool(value) for value in present]
    elif column.dtype.kind in "iuf":
        numbers = present.to_numpy(dtype=np.float64)
        whole = (numbers == np.round(numbers)).all()
        found = [int(v) for v in numbers] if whole else numbers.tolist()
    else:
        found = [str(value) for value in present]
    values = np.full(known.shape, None, dtype=object)
    values[known] = found
    if known.all() and column.dtype.kind in "iufb":
        return np.array(found)
    return values


def read_weights(table: TableData, name: str) -> FloatArray:
    """Return the weight of each row, rejecting invalid ones."""
    column = table.column(name)
    if column.dtype.kind not in "iuf":
        first = column.dropna().iloc[0] if column.notna().any() else "empty"
        raise ValueError(f"column {name!r} holds {first!r}; --weights needs numbers")
    weights = column.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(
            f"row {bad[0] + 1}, column {name!r} is {weights[bad[0]]:g}; weights must be finite and "
            "not negative, and no cell empty"
        )
    return np.asarray(weights)


def positions(column: Any, classes: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Return the number of each cell's class, −1 for an empty cell, −2 for another text.

    >>> positions([1.0, None, 3.0], [1, 2]).tolist()
    [0, -1, -2]
    """
    place = {text: number for number, text in enumerate(as_texts(list(classes)).tolist())}
    texts = as_texts(column).tolist()
    return np.array([-1 if text is None else place.get(text, -2) for text in texts])
