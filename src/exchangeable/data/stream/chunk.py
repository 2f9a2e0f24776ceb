"""A chunk: some of the rows of a fit, with labels and weights, in the form of its passes."""

import zlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, unique_labels
from exchangeable.data import packed_kernels
from exchangeable.data.columns.raw import missing_entries
from exchangeable.data.examples import MAX_PACKED, Examples, encoded, listed
from exchangeable.data.forms import CODE_BITS, Codes, Words
from exchangeable.data.groups import NO_WEIGHTS, Group
from exchangeable.data.rows import CountRows, Rows, TypedRows, take_rows

SAMPLE = 256
"""The number of ones per row is estimated from about this many rows."""


@dataclass(frozen=True)
class Chunk:
    """Some rows, with their labels and weights.

    Attributes
    ----------
    rows : Rows
        The rows.
    labels : array of shape (n_rows,), optional
        Their classes, if they have any.
    weights : array of shape (n_rows,) or (0,)
        Their weights; empty if all are 1.
    first : int
        Number of rows of positive weight before these.
    holes : Rows, optional
        The missing entries; None if there are none.
    before : Chunk, optional
        The chunk before missing entries were filled in or columns left out, if they were.
    """

    rows: Rows
    labels: npt.NDArray[Any] | None = None
    weights: FloatArray = field(default_factory=lambda: NO_WEIGHTS)
    first: int = 0
    holes: Rows | None = None
    before: "Chunk | None" = None

    @property
    def origin(self) -> "Chunk":
        """The chunk with all columns and missing entries."""
        return self if self.before is None else self.before.origin

    @property
    def n_counting(self) -> int:
        """Number of rows of positive weight."""
        return int(np.count_nonzero(self.weights)) if self.weights.size else self.rows.n_rows

    @cached_property
    def examples(self) -> Examples:
        """The rows of positive weight in the form of EM."""
        rows, weights, holes = self.rows, self.weights, self.holes
        if weights.size:
            counting = np.flatnonzero(weights)
            rows, weights = take_rows(rows, counting), weights[counting]
            holes = None if holes is None else take_rows(holes, counting)
        else:
            weights = np.ones(rows.n_rows)
        if holes is not None or isinstance(rows, TypedRows | CountRows):
            return Examples(rows, weights, holes=holes)
        if rows.bits.size and rows.n_variables <= MAX_PACKED and _is_dense(rows):
            return Examples(rows, weights, words=Words.of(rows).short(), codes=Codes.of(rows))
        rows = listed(rows)
        words = Words.of(rows).short() if rows.n_variables <= MAX_PACKED else None
        return Examples(rows, weights, words=words, codes=encoded(rows))

    def labelled(self, classes: npt.NDArray[Any] | None) -> Examples:
        """Return the rows of positive weight, with the numbers of their classes if given."""
        if classes is None:
            return self.examples
        number = self.numbers(classes)
        counting = number[np.flatnonzero(self.weights)] if self.weights.size else number
        return replace(self.examples, clamp=counting)

    def numbers(self, classes: npt.NDArray[Any]) -> IntArray:
        """Return the number of each row's class, −1 for other labels."""
        result = np.full(self._labels.size, -1)
        given = np.flatnonzero(~self._unlabelled)
        labels = self._labels[given]
        number = np.minimum(np.searchsorted(classes, labels), classes.size - 1)
        result[given] = np.where(classes[number] == labels, number, -1)
        return result

    @cached_property
    def _unlabelled(self) -> npt.NDArray[np.bool_]:
        """Which rows have None or NaN as a label."""
        if self._labels.dtype.kind not in "Of":
            return np.zeros(self._labels.size, dtype=np.bool_)
        return missing_entries(self._labels)

    @property
    def unlabelled_weight(self) -> float:
        """Weight of the rows with None or NaN as a label."""
        if not self.weights.size:
            return float(np.count_nonzero(self._unlabelled))
        return float(self.weights[self._unlabelled].sum())

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The distinct labels of these rows, in order."""
        labels = self._labels[~self._unlabelled]
        return unique_labels(labels, "y") if labels.size else labels

    @property
    def _labels(self) -> npt.NDArray[Any]:
        if self.labels is None:
            raise ValueError(
                "y is missing: give one label per row, the name of a column, or chunks that are "
                "pairs of rows and labels"
            )
        return self.labels

    def groups(self, classes: npt.NDArray[Any]) -> list[Group]:
        """Return the rows of each class, with their weights."""
        number = self.numbers(classes)
        weights = self.weights
        members = [np.flatnonzero(number == y) for y in range(classes.size)]
        return [Group(m, weights[m] if weights.size else weights) for m in members]

    @property
    def signature(self) -> tuple[int, int, int]:
        """Number of rows of positive weight, and a checksum of ones, missing entries and labels."""
        arrays: list[npt.NDArray[Any]] = list(self.rows.arrays)
        if isinstance(self.rows, CountRows):
            arrays.append(self.rows.counts)
        if self.holes is not None:
            arrays += self.holes.arrays
        if self.labels is not None:
            kind = self.labels.dtype.kind
            arrays.append(self.labels.astype(np.str_) if kind == "O" else self.labels)
        checksum = 0
        for array in arrays:
            if array.size:
                checksum = zlib.crc32(np.ascontiguousarray(array).data.cast("B"), checksum)
        return self.rows.n_rows, self.n_counting, checksum


def _is_dense(rows: Rows) -> bool:
    """Whether packed rows have more ones than codes, so that the ones need not be listed."""
    few = rows.bits[:: max(1, rows.n_rows // SAMPLE)]
    lengths = np.empty(len(few), dtype=np.int64)
    packed_kernels.count_ones(few, lengths)
    return bool(lengths.mean() * CODE_BITS > rows.n_variables)
