"""Views: passes over rows in which each chunk is replaced by another one when it is read."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import IntArray
from exchangeable.data.columns.selection import take_columns
from exchangeable.data.rows import NO_BITS, NO_INDICES, Rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.data.stream.passes import Passes

Change = Callable[[Chunk], Chunk]


class ChangedPasses:
    """Passes over chunks converted by a function.

    Parameters
    ----------
    passes : Passes
        The rows.
    change : callable
        Returns the replacement of a chunk; it can be sent to where the chunk is.
    mark : int
        Distinguishes the rows from those of the same passes under other conversions.
    n_variables : int, optional
        Number of variables, if it changes.
    """

    def __init__(
        self, passes: Passes, change: Change, mark: int = 0, n_variables: int | None = None
    ) -> None:
        self.passes, self.change, self.mark = passes, change, mark
        self.n_jobs = passes.n_jobs
        self.n_variables = passes.n_variables if n_variables is None else n_variables
        self.names: Sequence[str] | None = passes.names
        self.schema = passes.schema

    @property
    def fingerprint(self) -> int:
        """A checksum of the rows."""
        return self.passes.fingerprint ^ self.mark

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        """Return the sum of the results of the function for every chunk."""
        return self.passes.total(partial(_on_changed, function=function, change=self.change))


def _on_changed(chunk: Chunk, function: Callable[[Chunk], Any], change: Change) -> Any:
    return function(change(chunk))


class WatchedPasses:
    """Passes that record whether rows have missing entries.

    Parameters
    ----------
    passes : Passes
        The rows.
    """

    def __init__(self, passes: Passes) -> None:
        self.passes, self.has_holes = passes, False

    @property
    def n_jobs(self) -> int | None:
        """Number of threads."""
        return self.passes.n_jobs

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        """Return the sum of the results of the function for every chunk."""
        result, holed = self.passes.total(partial(_watched, function=function))
        self.has_holes = self.has_holes or holed > 0
        return result


def _watched(chunk: Chunk, function: Callable[[Chunk], Any]) -> tuple[Any, int]:
    return function(chunk), int(chunk.holes is not None)


def with_holes(chunk: Chunk) -> Chunk:
    """Return a chunk that may have holes, even if it has none: passes then treat all alike."""
    if chunk.holes is not None:
        return chunk
    n_rows, n_variables = chunk.rows.n_rows, chunk.rows.n_variables
    nowhere = Rows(n_rows, n_variables, NO_BITS, np.zeros(n_rows + 1, np.int64), NO_INDICES)
    return replace(chunk, holes=nowhere)


@dataclass(frozen=True)
class SomeColumns:
    """Some of the variables, in ascending order.

    Attributes
    ----------
    columns : array
        Their numbers.
    """

    columns: IntArray

    def __call__(self, chunk: Chunk) -> Chunk:
        """Return a chunk of these variables; rows that become equal stay separate."""
        holes = None if chunk.holes is None else take_columns(chunk.holes, self.columns)
        rows = take_columns(chunk.rows, self.columns)
        return replace(chunk, rows=rows, holes=holes, before=chunk)


@dataclass(frozen=True)
class Selection:
    """Some of the rows; the others have no weight.

    Attributes
    ----------
    chosen : array of shape (n_counting,)
        Selects among the rows of positive weight.
    """

    chosen: npt.NDArray[np.bool_]

    @property
    def mark(self) -> int:
        """A checksum of the choice."""
        return zlib.crc32(np.packbits(self.chosen).tobytes())

    def __call__(self, chunk: Chunk) -> Chunk:
        """Return a chunk in which only the selected rows have a weight."""
        here = self.chosen[chunk.first : chunk.first + chunk.n_counting]
        kept = chunk.weights.copy() if chunk.weights.size else np.ones(chunk.rows.n_rows)
        kept[np.flatnonzero(kept)[~here]] = 0.0
        first = int(np.count_nonzero(self.chosen[: chunk.first]))
        return replace(chunk, weights=kept, first=first)
