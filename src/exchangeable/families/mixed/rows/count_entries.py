"""Rows of counts as sparse matrices, with missing entries stored separately."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from exchangeable.arrays import FloatArray, IntArray, is_sparse
from exchangeable.families.mixed.rows.asking import Highest


class Entries(NamedTuple):
    """Nonzero counts as a sparse matrix, with the known total and the holes of each row."""

    matrix: Any
    totals: FloatArray
    holes: npt.NDArray[np.bool_] | None


def entries_of(values: Any) -> Entries:
    """Return the counts of rows, dense with NaN for missing ones, or sparse without any."""
    if is_sparse(values):
        return Entries(values, np.asarray(values.sum(axis=1), dtype=np.float64), None)
    holes = np.isnan(values)
    matrix = sp.csr_array(np.nan_to_num(values))
    totals = np.asarray(matrix.sum(axis=1), dtype=np.float64)
    return Entries(matrix, totals, holes if holes.any() else None)


def first_look(values: Any, mass: FloatArray) -> tuple[Highest, FloatArray, float]:
    """Return the largest count of each column, the largest total and whether any is unknown.

    They come with the units of each column, and the weight of the rows.
    """
    entries, weights = entries_of(values), mass.sum(axis=1)
    highest = np.zeros(values.shape[1] + 2, dtype=np.int64)
    np.maximum.at(highest, entries.matrix.indices, entries.matrix.data.astype(np.int64))
    highest[-2:] = int(entries.totals.max(initial=0)), entries.holes is not None
    return Highest(highest), np.asarray(weights @ entries.matrix), float(weights.sum())


def reach_of(highest: Highest) -> IntArray:
    """Return the largest counts, and the reach for totals: larger if some counts are unknown."""
    *_, top, holed = highest.numbers
    largest = highest.numbers[:-1].copy()
    largest[-1] = 2 * top + 10 if holed else top
    return np.asarray(largest)
