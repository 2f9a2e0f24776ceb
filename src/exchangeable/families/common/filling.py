"""Holes of rows in chunks, drawn by how often each variable is on, as those in memory are.

In memory the distinct rows are filled one after the other from one stream of random numbers; each
row's place in that stream follows from its number, wherever the row lies.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import listed
from exchangeable.data.rows import as_rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.data.stream.passes import Passes


@dataclass(frozen=True)
class Filling:
    """How holes are filled.

    Attributes
    ----------
    share : array of shape (n_variables,)
        How probable each variable is to be on.
    member : array of shape (n_rows,)
        Which distinct row each row is.
    """

    share: FloatArray
    member: IntArray

    def fill(self, chunk: Chunk) -> Chunk:
        """Return the rows of a chunk that count, without holes."""
        examples = chunk.examples
        numbers = self.member[chunk.first : chunk.first + chunk.n_counting]
        states = examples.observed.symbols()
        drawn = uniforms(numbers, self.share.size) < self.share
        rows = as_rows(np.where(states >= 0, states == 1, drawn).astype(np.uint8), None)
        return Chunk(listed(rows), None, examples.weights, chunk.first)


def uniforms(numbers: IntArray, width: int) -> FloatArray:
    """Return some rows of the matrix of random numbers from which holes are drawn.

    >>> every = np.random.default_rng(0).random((9, 4))
    >>> bool((uniforms(np.array([3, 4, 5, 0, 8]), 4) == every[[3, 4, 5, 0, 8]]).all())
    True
    """
    drawn = np.empty((numbers.size, width))
    cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
    for part in np.split(np.arange(numbers.size), cuts):
        if part.size:
            stream = np.random.PCG64(0).advance(int(numbers[part[0]]) * width)
            drawn[part] = np.random.Generator(stream).random((part.size, width))
    return drawn


class FilledPasses:
    """Passes over rows whose holes are filled.

    Parameters
    ----------
    passes : Passes
        The rows.
    filling : Filling
        How their holes are filled.
    """

    def __init__(self, passes: Passes, filling: Filling) -> None:
        self.passes, self.filling = passes, filling
        self.n_jobs, self.n_variables = passes.n_jobs, passes.n_variables
        self.names: Sequence[str] | None = passes.names

    @property
    def fingerprint(self) -> int:
        """A checksum of the rows as they are."""
        return self.passes.fingerprint

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        """Return the sum of what the function returns for every chunk, filled."""
        return self.passes.total(partial(_filled, function=function, filling=self.filling))


def _filled(chunk: Chunk, function: Callable[[Chunk], Any], filling: Filling) -> Any:
    return function(filling.fill(chunk))
