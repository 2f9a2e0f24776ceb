"""Rows in the form of training: a matrix of bytes, drawn in batches by their weights."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FEW_VARIABLES = 32
"""Fewer columns are padded to this many, so that small fits share compiled code."""
LEAST_STEPS = 16
"""Minimum number of steps in an epoch, if there are enough rows."""
SMALLEST_BATCH = 32


@dataclass(frozen=True)
class Symbols:
    """Rows as bytes: 0, 1, or −1 for missing entries; and their weights."""

    symbols: npt.NDArray[np.int8]
    weights: FloatArray

    def some(self, most: int, rng: np.random.Generator) -> "Symbols":
        """Return the rows, a random sample if there are more than `most`."""
        if self.weights.size <= most:
            return self
        chosen = np.sort(rng.choice(self.weights.size, size=most, replace=False))
        return Symbols(self.symbols[chosen], self.weights[chosen])

    def followed_by(self, others: "Symbols") -> "Symbols":
        """Concatenate these rows and others."""
        return Symbols(
            np.concatenate([self.symbols, others.symbols]),
            np.concatenate([self.weights, others.weights]),
        )

    def batches(
        self, size: int, together: int
    ) -> Iterator[tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]]:
        """Yield all rows, several batches together, padded with rows of weight 0."""
        n, width = self.symbols.shape
        for begin in range(0, n, together * size):
            end = min(n, begin + together * size)
            rows = np.zeros((together * size, width), dtype=np.int8)
            weights = np.zeros(together * size, dtype=np.float32)
            rows[: end - begin], weights[: end - begin] = (
                self.symbols[begin:end],
                self.weights[begin:end],
            )
            yield rows.reshape(together, size, width), weights.reshape(together, size)


def n_columns(n_variables: int) -> int:
    """Return the number of columns in training, including padding."""
    return max(n_variables, FEW_VARIABLES)


def batch_size(n_rows: int, wanted: int) -> int:
    """Return the batch size, a power of two unless it is the requested one.

    >>> batch_size(9000, 512), batch_size(1600, 512), batch_size(10, 512)
    (512, 64, 32)
    """
    even = 1 << max(0, (n_rows // LEAST_STEPS).bit_length() - 1)
    return min(wanted, max(even, SMALLEST_BATCH))


class Dealt:
    """Endless batches of rows, as numbers and weights.

    Each epoch uses all rows in random order. A row of more than average weight is used several
    times, each with part of its weight, so that batches have similar weights.

    Parameters
    ----------
    weights : array of shape (n_rows,)
        How much each row counts.
    size : int
        Batch size.
    rng : Generator
        Generates the order of each epoch.

    Attributes
    ----------
    left : array of int
        The remaining rows of the current epoch.
    """

    def __init__(self, weights: FloatArray, size: int, rng: np.random.Generator) -> None:
        share = weights / weights.mean()
        copies = np.maximum(np.ceil(share), 1).astype(np.int64)
        self.size, self._rng = size, rng
        self._numbers, self._each = np.repeat(np.arange(weights.size), copies), share / copies
        self.left = np.empty(0, dtype=np.int64)

    @property
    def most_left(self) -> int:
        """The maximum number of remaining rows after a batch."""
        return int(self._numbers.size)

    def __iter__(self) -> "Dealt":
        return self

    def __next__(self) -> tuple[IntArray, FloatArray]:
        while self.left.size < self.size:
            order = self._rng.permutation(self._numbers.size)
            self.left = np.concatenate([self.left, self._numbers[order]])
        numbers, self.left = self.left[: self.size], self.left[self.size :]
        return numbers, self._each[numbers]
