"""A sample of rows that does not depend on where the rows are and how they are divided."""

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import distinct_rows, number_hashes


class RowSample:
    """The distinct rows with the lowest hashes, with the total weight of equal rows.

    The sample of the union of two sets follows from their samples: its rows are in these, with the
    weight of all equal rows.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        Rows.
    mass : array of shape (n_rows, n_classes)
        Their weight in each class.
    hashes : array of shape (n_rows, 2)
        Their hashes.
    most : int
        The number of rows to keep.

    Examples
    --------
    >>> rows = np.random.default_rng(0).integers(0, 3, size=(60, 4)).astype(float)
    >>> mass = np.ones((60, 1))
    >>> whole = RowSample.of(rows, mass, most=10)
    >>> parts = RowSample.of(rows[:20], mass[:20], most=10) + RowSample.of(rows[20:], mass[20:], 10)
    >>> sorted(whole.values.tolist()) == sorted(parts.values.tolist())
    True
    >>> float(whole.mass.sum()) == float(parts.mass.sum())
    True
    """

    def __init__(
        self, values: FloatArray, mass: FloatArray, hashes: npt.NDArray[np.uint64], most: int
    ) -> None:
        first, member = distinct_rows(hashes)
        together = np.zeros((first.size, mass.shape[1]))
        np.add.at(together, member, mass)
        if first.size > most:
            kept = np.sort(np.lexsort(hashes[first].T)[:most])
            first, together = first[kept], together[kept]
        self.values, self.mass, self.hashes, self.most = (
            values[first],
            together,
            hashes[first],
            most,
        )

    @classmethod
    def of(cls, values: FloatArray, mass: FloatArray, most: int) -> "RowSample":
        """Return the sample of some rows."""
        return cls(values, mass, number_hashes(values), most)

    def __add__(self, other: "RowSample") -> "RowSample":
        values = np.concatenate([self.values, other.values])
        mass = np.concatenate([self.mass, other.mass])
        return RowSample(values, mass, np.concatenate([self.hashes, other.hashes]), self.most)
