"""Values of columns as numbers, checked."""

import sys
from collections.abc import Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, check_sparse

LARGEST_NUMBER = 1e100
"""For larger measurements the moments, which are sums of cubes, would overflow."""
MOST_COUNT = 100_000
"""The largest count that can be fitted."""
LARGEST_LEVEL = 2**53
"""Beyond it, not every whole number has a float: levels would become equal."""


def sparse_counts(X: Any) -> Any:
    """Return a sparse matrix of counts in canonical form, None if some are missing."""
    check_sparse(X)
    matrix = X.tocsr()
    values = np.asarray(matrix.data, dtype=np.float64)
    if np.isnan(values).any():
        return None
    matrix = type(matrix)((values, matrix.indices, matrix.indptr), shape=matrix.shape)
    bad = np.flatnonzero((values < 0) | (values != np.floor(values)) | np.isinf(values))
    if bad.size:
        check_counts(values[bad[:1]], int(matrix.indices[bad[0]]))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def listed_levels(levels: Sequence[Any]) -> str:
    """Return the first few levels as text."""
    return ", ".join(map(repr, levels[:10])) + (", …" if len(levels) > 10 else "")


def no_level(known: npt.NDArray[Any], name: Any) -> ValueError:
    """Return the error about a column with values, such as lists, that cannot be levels."""
    odd = next(value for value in known if not isinstance(value, Hashable))
    return ValueError(
        f"column {name!r} holds {odd!r} ({type(odd).__name__}); levels are text, numbers or truth "
        "values"
    )


def as_float(value: Any) -> float:
    """Return a value as a float, the largest one for larger whole numbers.

    >>> as_float(Fraction(1, 4)), as_float(-(10**400))
    (0.25, -1.7976931348623157e+308)
    """
    if isinstance(value, complex | np.complexfloating):
        raise TypeError(f"{value!r} is not a real number")
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


def _is_real(value: Any) -> bool:
    try:
        as_float(value)
    except (TypeError, ValueError):
        return False
    return True


def plain_numbers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column with decimals and fractions converted to floats."""
    if values.dtype != object:
        return values
    exact = [isinstance(value, Decimal | Fraction) for value in values]
    if not any(exact):
        return values
    plain = values.copy()
    for row in np.flatnonzero(exact):
        plain[row] = as_float(values[row])
    return plain


def finite_numbers(values: npt.NDArray[Any], name: Any, kind: str) -> FloatArray:
    """Return known values as finite numbers."""
    try:
        plain = values.dtype.kind in "biuf"
        numbers = np.asarray(values if plain else [as_float(v) for v in values], np.float64)
    except (TypeError, ValueError):
        odd = next(value for value in values if not _is_real(value))
        article = "a " if kind == "count" else ""
        raise ValueError(
            f"column {name!r} is {article}{kind}, but holds {odd!r}; expected numbers"
        ) from None
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"column {name!r} holds {numbers[~np.isfinite(numbers)][0]} (Input X contains "
            "infinity); replace it by a number or NaN"
        )
    largest = numbers[np.abs(numbers) > LARGEST_NUMBER]
    if largest.size:
        raise ValueError(
            f"column {name!r} holds {largest[0]:g}; numbers must lie between -{LARGEST_NUMBER:g} "
            f"and {LARGEST_NUMBER:g}: divide the column by a constant"
        )
    return numbers


def check_counts(numbers: FloatArray, name: Any) -> None:
    """Reject known numbers that are negative or not whole."""
    known = numbers[~np.isnan(numbers)]
    bad = known[(known < 0) | (known != np.floor(known)) | np.isinf(known)]
    if bad.size:
        raise ValueError(f"column {name!r} is a count, but holds {bad[0]:g}; expected 0, 1, 2, …")
