"""Rows as training reads them: a matrix of bytes, dealt out in batches by their weights."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

FEW_VARIABLES = 32
"""Fewer are padded to this many, so that small fits share what is compiled."""
LEAST_STEPS = 16
"""An epoch has at least this many steps, as far as rows go."""
SMALLEST_BATCH = 32


@dataclass(frozen=True)
class Symbols:
    """Rows as bytes: 0, 1, or −1 for entries that are not known, and how much each counts."""

    symbols: npt.NDArray[np.int8]
    weights: FloatArray

    def some(self, most: int, rng: np.random.Generator) -> "Symbols":
        """Return the rows, a draw of them if there are more than `most`."""
        if self.weights.size <= most:
            return self
        chosen = np.sort(rng.choice(self.weights.size, size=most, replace=False))
        return Symbols(self.symbols[chosen], self.weights[chosen])

    def followed_by(self, others: "Symbols") -> "Symbols":
        """Return these rows and then others."""
        return Symbols(
            np.concatenate([self.symbols, others.symbols]),
            np.concatenate([self.weights, others.weights]),
        )

    def batches(
        self, size: int, together: int
    ) -> Iterator[tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]]:
        """Yield all rows, several batches together, filled up with rows that do not count."""
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
    """Return the number of columns that training works with."""
    return max(n_variables, FEW_VARIABLES)


def batch_size(n_rows: int, wanted: int) -> int:
    """Return how many rows a step takes, a power of two unless it is what was asked for.

    >>> batch_size(9000, 512), batch_size(1600, 512), batch_size(10, 512)
    (512, 64, 32)
    """
    even = 1 << max(0, (n_rows // LEAST_STEPS).bit_length() - 1)
    return min(wanted, max(even, SMALLEST_BATCH))


class Dealt:
    """Batches without end, of rows by number and how much each counts.

    Each epoch deals out all rows in random order. A row of more than average weight is dealt out
    several times, each for part of its weight, so that batches have similar weights.

    Parameters
    ----------
    weights : array of shape (n_rows,)
        How much each row counts.
    size : int
        Rows of a batch.
    rng : Generator
        Draws the order of each epoch.

    Attributes
    ----------
    left : array of int
        What is left of the latest epoch, by number of the row.
    """

    def __init__(self, weights: FloatArray, size: int, rng: np.random.Generator) -> None:
        share = weights / weights.mean()
        copies = np.maximum(np.ceil(share), 1).astype(np.int64)
        self.size, self._rng = size, rng
        self._numbers, self._each = np.repeat(np.arange(weights.size), copies), share / copies
        self.left = np.empty(0, dtype=np.int64)

    @property
    def most_left(self) -> int:
        """The most rows that can be left after a batch."""
        return int(self._numbers.size)

    def __iter__(self) -> "Dealt":
        return self

    def __next__(self) -> tuple[IntArray, FloatArray]:
        while self.left.size < self.size:
            order = self._rng.permutation(self._numbers.size)
            self.left = np.concatenate([self.left, self._numbers[order]])
        numbers, self.left = self.left[: self.size], self.left[self.size :]
        return numbers, self._each[numbers]
