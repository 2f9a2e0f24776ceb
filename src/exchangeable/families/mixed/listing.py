"""Enumerations for components: completions of columns with levels, and shares of blocks."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.mixed.parts.base import Normal, Part


def all_completions(values: FloatArray, levels: IntArray, most: int) -> list[FloatArray] | None:
    """Return all completions of each row; None if a row has more than `most`, or infinitely many.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        The rows, NaN if missing.
    levels : array of shape (n_columns,)
        The number of levels of each column, 0 if it has none.
    most : int
        The largest number of completions of a row.
    """
    holes = np.isnan(values)
    if (holes & (levels == 0)).any() or (np.where(holes, levels, 1.0).prod(axis=1) > most).any():
        return None
    found = []
    for row, free in zip(values, holes, strict=True):
        ways = list(product(*(range(n) for n in levels[free])))
        rows = np.repeat(row[None, :], len(ways), axis=0)
        rows[:, free] = np.array(ways).reshape(len(ways), -1)
        found.append(rows)
    return found


def block_shares(
    parts: Sequence[Part],
    block: IntArray,
    y: int,
    alone: Callable[[int, int], FloatArray | Normal],
) -> FloatArray:
    """Return the shares of a single column's values, or of the totals of a block that has some.

    `alone` gives the distribution of a column in a class without evidence.
    """
    if block.size == 1:
        own = alone(int(block[0]), y)
        return np.empty(0) if isinstance(own, Normal) else own[0]
    for part in parts:
        if np.isin(block, part.columns).all() and hasattr(part, "log_totals"):
            return np.asarray(np.exp(part.log_totals[:, y]))
    return np.empty(0)
