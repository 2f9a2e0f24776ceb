"""Rows of which some entries are not known."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import UNASSIGNED, IntArray
from exchangeable.engines.examples import take_rows
from exchangeable.engines.rows import Rows
from exchangeable.engines.threads import row_ranges

DENSE_BYTES = 1 << 26


@dataclass(frozen=True)
class Observed:
    """Binary rows with holes: the entries known to be on, and those not known at all.

    Attributes
    ----------
    ones : Rows
        The entries known to be on.
    holes : Rows, optional
        The entries not known; None where every entry is.
    """

    ones: Rows
    holes: Rows | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.ones.n_rows

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.ones.n_variables

    def take(self, chosen: IntArray) -> "Observed":
        """Return some of the rows."""
        holes = None if self.holes is None else take_rows(self.holes, chosen)
        return Observed(take_rows(self.ones, chosen), holes)

    def spans(self) -> list[tuple[int, int]]:
        """Cut the rows into ranges whose dense form is small."""
        return row_ranges(self.n_rows, max(1, DENSE_BYTES // max(8 * self.n_variables, 1)))

    def chunks(self) -> Iterator[tuple[slice, "Observed"]]:
        """Yield the rows in parts whose dense form is small, each with its place."""
        for start, stop in self.spans():
            yield slice(start, stop), self.take(np.arange(start, stop))

    def dense(self) -> npt.NDArray[np.int8]:
        """Return the rows as a matrix of 0, 1 and `UNASSIGNED`."""
        matrix = flags(self.ones).astype(np.int8)
        if self.holes is not None:
            matrix[flags(self.holes)] = UNASSIGNED
        return matrix


def flags(rows: Rows) -> npt.NDArray[np.bool_]:
    """Return rows as a matrix of truth values."""
    if not rows.indptr.size:
        packed = np.ascontiguousarray(rows.bits).view(np.uint8)
        unpacked = np.unpackbits(packed, axis=1, count=rows.n_variables, bitorder="little")
        return unpacked.view(np.bool_)
    matrix = np.zeros((rows.n_rows, rows.n_variables), dtype=np.bool_)
    matrix[np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)), rows.indices] = True
    return matrix
