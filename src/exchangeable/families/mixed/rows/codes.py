"""Rows of columns with levels as codes, each for several columns."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray

Codes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.integer[Any]]
MOST_CODES = 512
"""Columns share a code as long as there are at most this many codes, and far fewer than rows."""


class CodedRows(NamedTuple):
    """Rows as codes of groups of columns, in spans, and the levels that each code represents."""

    codes: list[Codes]
    members: Codes


def positions(values: FloatArray, starts: IntArray, n_levels: int) -> Codes:
    """Return levels by their index among those of all columns, `n_levels` if missing.

    One line per column.
    """
    levels = np.where(np.isnan(values), n_levels, values + starts)
    return np.ascontiguousarray(levels.T.astype(np.int32))


def coded(levels: Codes, starts: IntArray, sizes: IntArray) -> tuple[Codes, Codes]:
    """Return rows as codes of groups of columns, and the levels that each code represents.

    Parameters
    ----------
    levels : array of shape (n_columns, n_rows)
        The level of each column, by its index among those of all columns; their number if missing.
    starts, sizes : arrays of shape (n_columns,)
        The start of each column's levels, and their number.

    Examples
    --------
    >>> levels = np.array([[0, 1] * 40, [2, 4] * 40], dtype=np.int32)
    >>> codes, members = coded(levels, np.array([0, 2]), np.array([2, 2]))
    >>> codes[:, :3].tolist(), members.tolist()
    ([[0, 5, 0]], [[0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4]])
    """
    hole = int(sizes.sum())
    most = min(MOST_CODES, max(2, levels.shape[1] // 8))
    groups: list[tuple[Integers, Integers]] = []
    for column, start, size in zip(levels, starts, sizes, strict=True):
        digits, own = column - start, np.arange(start, start + size)
        gaps = column == hole
        if gaps.any():
            digits, own = np.where(gaps, size, digits), np.append(own, hole)
        if groups and len(groups[-1][1]) * own.size <= most:
            codes, members = groups[-1]
            both = np.repeat(members, own.size, axis=0), np.tile(own, len(members))[:, None]
            groups[-1] = codes * own.size + digits, np.concatenate(both, axis=1)
        else:
            groups.append((digits, own[:, None]))
    widest = max(members.shape[1] for _, members in groups)
    offsets = np.cumsum([0, *(len(members) for _, members in groups)])[:-1]
    padded = [
        np.pad(members, ((0, 0), (0, widest - members.shape[1])), constant_values=hole)
        for _, members in groups
    ]
    codes = np.stack([code + at for (code, _), at in zip(groups, offsets, strict=True)])
    return codes.astype(np.int32), np.concatenate(padded).astype(np.int32)
