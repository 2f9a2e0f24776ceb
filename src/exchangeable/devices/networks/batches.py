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


def deal(weights: FloatArray, rng: np.random.Generator) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield epochs without end: the rows in random order, and how much each counts.

    A row of more than average weight is dealt out several times, each for part of its weight, so
    that batches have similar weights.
    """
    share = weights / weights.mean()
    copies = np.maximum(np.ceil(share), 1).astype(np.int64)
    numbers, each = np.repeat(np.arange(weights.size), copies), np.repeat(share / copies, copies)
    while True:
        order = rng.permutation(numbers.size)
        yield numbers[order], each[order]


def dealt(
    weights: FloatArray, size: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield batches without end, of rows by number and how much each counts."""
    numbers, each = np.empty(0, dtype=np.int64), np.empty(0)
    epochs = deal(weights, rng)
    while True:
        while numbers.size < size:
            more = next(epochs)
            numbers, each = np.concatenate([numbers, more[0]]), np.concatenate([each, more[1]])
        yield numbers[:size], each[:size]
        numbers, each = numbers[size:], each[size:]
