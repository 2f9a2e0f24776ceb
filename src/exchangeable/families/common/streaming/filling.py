"""Drawing missing entries of rows in chunks, with the same draws as in memory.

In memory the distinct rows are completed one after the other from one stream of random numbers;
each row's place in that stream follows from its number, wherever the row is.
"""

from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import listed
from exchangeable.data.rows import as_rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.common.streaming.recipes import PosteriorRecipe


@dataclass(frozen=True)
class Filling:
    """How missing entries are drawn.

    Attributes
    ----------
    share : array of shape (n_variables,)
        The probability of each variable being on.
    member : array of shape (n_rows,)
        The number of each row's distinct row.
    """

    share: FloatArray
    member: IntArray

    def __call__(self, chunk: Chunk) -> Chunk:
        """Return the rows of a chunk with positive weight, completed."""
        if chunk.holes is None:
            return chunk
        examples = chunk.examples
        numbers = self.member[chunk.first : chunk.first + chunk.n_counting]
        states = examples.observed.symbols()
        drawn = uniforms(numbers, self.share.size) < self.share
        rows = as_rows(np.where(states >= 0, states == 1, drawn).astype(np.uint8), None)
        labels = chunk.labels
        if labels is not None and chunk.weights.size:
            labels = labels[np.flatnonzero(chunk.weights)]
        return Chunk(listed(rows), labels, examples.weights, chunk.first, before=chunk)


@dataclass(frozen=True)
class OfFilled(PosteriorRecipe):
    """Posteriors computed by another recipe after missing entries are drawn."""

    recipe: PosteriorRecipe
    filling: Filling

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        return self.recipe.posterior(self.filling(chunk), n_jobs)


def uniforms(numbers: IntArray, width: int) -> FloatArray:
    """Return some rows of the matrix of random numbers for drawing missing entries.

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
