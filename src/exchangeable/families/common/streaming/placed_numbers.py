"""Random numbers by their places in one stream.

Models draw missing entries of many rows from one stream of random numbers. If only some of the rows
are available, each must use the numbers that it would use among all rows: they are determined by
its place.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.threads import row_ranges


class PlacedNumbers:
    """A replacement for a seeded generator that takes its numbers from given places.

    Parameters
    ----------
    seed : int
        The seed of the stream.
    starts, lengths : arrays
        The places, as ranges in the order in which they will be requested.

    Examples
    --------
    >>> whole = np.random.default_rng(3).random(10)
    >>> some = PlacedNumbers(3, np.array([7, 2, 4]), np.array([1, 2, 3]))
    >>> bool((some.random(1) == whole[7]).all())
    True
    >>> bool((some.random((1, 5))[0] == whole[2:7]).all())
    True
    """

    def __init__(self, seed: int, starts: IntArray, lengths: IntArray) -> None:
        some = np.flatnonzero(lengths)
        self._starts, self._lengths = starts[some], lengths[some]
        self._ends = np.cumsum(self._lengths)
        self._taken, self._place = 0, 0
        self._bits = np.random.PCG64(seed)
        self._begin = self._bits.state
        self._generator = np.random.Generator(self._bits)

    def random(self, size: int | tuple[int, ...]) -> FloatArray:
        """Return as many numbers as fill an array of this shape."""
        shape = (size,) if isinstance(size, int) else size
        out = np.empty(prod(shape))
        if not out.size:
            return out.reshape(shape)
        end = self._taken + out.size
        if not self._ends.size or end > self._ends[-1]:
            raise ValueError(f"{end} numbers are asked for, which is more than have a place")
        first, last = np.searchsorted(self._ends, [self._taken, end - 1], side="right")
        starts, lengths = (each[first : last + 1].copy() for each in (self._starts, self._lengths))
        skipped = self._taken - (self._ends[first] - lengths[0])
        lengths[-1] -= self._ends[last] - end
        starts[0] += skipped
        lengths[0] -= skipped
        heads = np.flatnonzero(np.append(True, starts[1:] != starts[:-1] + lengths[:-1]))
        filled = 0
        for head, length in zip(heads, np.add.reduceat(lengths, heads), strict=True):
            out[filled : filled + length] = self._at(int(starts[head]), int(length))
            filled += int(length)
        self._taken = end
        return out.reshape(shape)

    def _at(self, start: int, length: int) -> FloatArray:
        """Return a range of the stream."""
        if start != self._place:
            self._bits.state = self._begin
            self._bits.advance(start)
        self._place = start + length
        return self._generator.random(length)


def stretches_by_rank(
    ranks: IntArray, n_ranks: int, widths: Sequence[int], part: int
) -> tuple[IntArray, IntArray]:
    """Return the starts and lengths of the places of some rows, given their ranks among all.

    All rows are processed in parts of `part` rows; each part uses ``widths[0]`` numbers for each of
    its rows, then ``widths[1]`` for each, and so on. The rows at hand are processed in such parts.

    >>> stretches_by_rank(np.array([1, 2, 4]), 5, (2, 3), 2)
    (array([ 2, 10,  7, 14, 20, 22]), array([2, 2, 3, 3, 2, 3]))
    """
    number = ranks // part
    size = np.minimum(part, n_ranks - number * part)
    within, base = ranks - number * part, number * part * sum(widths)
    starts, lengths = list[IntArray](), list[IntArray]()
    for begin, end in row_ranges(ranks.size, part):
        before = 0
        for width in widths:
            own = slice(begin, end)
            starts.append(base[own] + size[own] * before + within[own] * width)
            lengths.append(np.full(end - begin, width, dtype=np.int64))
            before += width
    if not starts:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate(starts), np.concatenate(lengths)


class Crowd(NamedTuple):
    """Places of rows that use their numbers in the order of their states.

    Attributes
    ----------
    begin : array of shape (n_rows,)
        The start of the numbers of the rows that are equal to this one.
    number, size : arrays of shape (n_rows,)
        Which of them it is, and their number.
    """

    begin: IntArray
    number: IntArray
    size: IntArray

    @classmethod
    def of(cls, order: IntArray, sizes: IntArray, inside: npt.NDArray[np.bool_]) -> "Crowd":
        """Compute the places of the rows inside, given the rank and the numbers of every row.

        >>> crowd = Crowd.of(np.array([1, 0, 1]), np.array([2, 3, 2]), np.array([True] * 3))
        >>> crowd.begin.tolist(), crowd.number.tolist(), crowd.size.tolist()
        ([3, 0, 3], [0, 0, 1], [2, 1, 2])
        """
        members = np.flatnonzero(inside)
        members = members[np.argsort(order[members], kind="stable")]
        ends = np.cumsum(sizes[members])
        _, first, group, count = np.unique(
            order[members], return_index=True, return_inverse=True, return_counts=True
        )
        found = [np.zeros(order.size, dtype=np.int64) for _ in range(3)]
        begins = ends[first] - sizes[members[first]]
        for array, values in zip(
            found, (begins[group], np.arange(group.size) - first[group], count[group]), strict=True
        ):
            array[members] = values
        return cls(*found)

    def take(self, chosen: IntArray) -> "Crowd":
        """Return the places of some of the rows."""
        return Crowd(*(each[chosen] for each in self))

    def stretches(self, order: IntArray, taken: IntArray) -> tuple[IntArray, IntArray]:
        """Return the starts and lengths of the places of these rows, in the order of requests.

        `order` are their ranks; `taken` has a line of numbers for each.
        """
        before = np.cumsum(taken, axis=1) - taken
        starts = self.begin[:, None] + self.size[:, None] * before + self.number[:, None] * taken
        rows, columns = np.indices(taken.shape)
        keys = self.number[rows].ravel(), columns.ravel(), order[rows].ravel()
        asked = np.lexsort(keys)
        return starts.ravel()[asked], taken.ravel()[asked]
