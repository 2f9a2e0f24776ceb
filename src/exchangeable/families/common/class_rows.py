"""The rows of each class, with missing entries drawn once from a model.

Blocks and trees are chosen from such rows, and the choice is then judged by the exact likelihood.
Draws always use the same random numbers, so that choices change only with the parameters. In memory
the rows of a class use these one after the other; in chunks a `Completion` computes the place that
each row would have there.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data import row_kernels
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.observed import part_rows
from exchangeable.data.rows import Rows, as_rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.common.streaming.placed_numbers import (
    Crowd,
    PlacedNumbers,
    stretches_by_rank,
)
from exchangeable.families.common.streaming.recipes import PosteriorRecipe
from exchangeable.families.contract import Model
from exchangeable.runtime.kernels.uniforms import Uniforms

UNIFORMS, MOST_UNIFORMS = "uniform numbers", 3 << 22
"""The name under which the random numbers are cached, and their maximum number for all classes."""
FEW_ROWS = 256
"""With fewer packed rows, sums for all values of a byte are not worthwhile."""


@dataclass(frozen=True)
class ClassRows:
    """The rows of one class, without missing entries.

    Attributes
    ----------
    rows : Rows
        Rows that include those of the class.
    group : Group
        Which rows they are, and their weight in the class.
    posterior : array
        The probability of the class for each of them.
    """

    rows: Rows
    group: Group
    posterior: FloatArray

    @property
    def moments(self) -> FloatArray:
        """Sums over the rows with each variable on, as in `Sums`, for this class."""
        weights, n_rows = self.group.weights, self.rows.n_rows
        if self.rows.indptr.size or self.group.members.size < n_rows or n_rows < FEW_ROWS:
            squares = Group(self.group.members, weights * self.posterior)
            return np.stack(group_ones(self.rows, [self.group, squares], 1))
        moments = np.zeros((2, self.rows.n_variables))
        by_value = np.zeros(((self.rows.n_variables + 7) // 8, 256, 2))
        packed = self.rows.bits.view(np.uint8)
        row_kernels.sum_powers_of_bytes(packed, weights, self.posterior, by_value, moments)
        return moments


def class_rows(
    examples: Examples, posterior: FloatArray, y: int, model: Model | None, least: float
) -> ClassRows:
    """Return the rows in memory that belong to class y with a probability above `least`."""
    of_class = posterior[:, y]
    members = np.flatnonzero(of_class > least)
    share = of_class.take(members)
    mass = examples.weights.take(members) * share
    if examples.holes is None or model is None:
        return ClassRows(examples.rows, Group(members, mass), share)
    uniforms = examples.derived.setdefault(UNIFORMS, Uniforms(MOST_UNIFORMS))
    rows = model.drawn_rows(examples.observed.take(members), y, uniforms)
    return ClassRows(rows, Group(np.arange(members.size), mass), share)


def _drawn(
    model: Model,
    examples: Examples,
    members: IntArray,
    mass: FloatArray,
    share: FloatArray,
    y: int,
    rng: Any,
) -> ClassRows:
    drawn = model.draw(examples.observed.take(members), y, rng)
    rows = as_rows(drawn.astype(np.uint8), None, 1)
    return ClassRows(rows, Group(np.arange(members.size), mass), share)


@dataclass(frozen=True)
class Completion:
    """How missing entries of rows in chunks are drawn, with the same draws as in memory.

    Attributes
    ----------
    model : Model
        The model from which they are drawn.
    recipe : PosteriorRecipe
        How posteriors are computed.
    member : array of shape (n_rows,)
        The number of each row's distinct row.
    rank : array of shape (n_distinct, n_classes)
        The rank of each distinct row among those of a class; −1 if it does not belong to it.
    n_inside : array of shape (n_classes,)
        Number of distinct rows of each class.
    order : array of shape (n_distinct,), or empty
        The order in which rows use random numbers, if it is that of their states.
    crowds : tuple of Crowd
        Their places in the stream, for each class.
    """

    model: Model
    recipe: PosteriorRecipe
    member: IntArray
    rank: IntArray
    n_inside: IntArray
    order: IntArray
    crowds: tuple[Crowd, ...]

    @classmethod
    def of(
        cls,
        model: Model,
        recipe: PosteriorRecipe,
        member: IntArray,
        sizes: npt.NDArray[np.int32],
        order: IntArray,
    ) -> "Completion":
        """Compute the places, from the result of `sizes_drawn` about the distinct rows."""
        inside = sizes >= 0
        rank = np.where(inside, np.cumsum(inside, axis=0) - 1, -1)
        crowds = [
            Crowd.of(order, sizes[:, y].astype(np.int64), inside[:, y])
            for y in range(model.n_classes)
            if order.size
        ]
        n_inside = np.count_nonzero(inside, axis=0)
        return cls(model, recipe, member, rank, n_inside, order, tuple(crowds))

    def rows(self, chunk: Chunk, n_jobs: int | None = None) -> list[ClassRows]:
        """Return the rows of every class; equal rows of a chunk are merged."""
        every = chunk.examples
        numbers = self.member[chunk.first : chunk.first + chunk.n_counting]
        distinct, first, equal = np.unique(numbers, return_index=True, return_inverse=True)
        weights = np.bincount(equal.ravel(), every.weights, distinct.size).astype(np.float64)
        posterior = self.recipe.posterior(chunk, n_jobs)[first]
        observed = every.observed.take(first)
        examples = Examples(observed.ones, weights, holes=observed.holes)
        return [
            self._of_class(examples, distinct, posterior, y) for y in range(self.model.n_classes)
        ]

    def _of_class(
        self, examples: Examples, distinct: IntArray, posterior: FloatArray, y: int
    ) -> ClassRows:
        rank = self.rank[distinct, y]
        members = np.flatnonzero(rank >= 0)
        share = posterior[members, y]
        mass = examples.weights[members] * share
        taken = self.model.numbers_drawn(examples.observed.take(members), y)
        if isinstance(taken, tuple):
            part = part_rows(self.model.n_variables)
            places = stretches_by_rank(rank[members], int(self.n_inside[y]), taken, part)
        elif not self.crowds:  # no row has missing entries
            places = taken[:, 0], taken[:, 0]
        else:
            here = distinct[members]
            places = self.crowds[y].take(here).stretches(self.order[here], taken)
        rng = PlacedNumbers(y, *places)
        return _drawn(self.model, examples, members, mass, share, y, rng)


def sizes_drawn(
    chunk: Chunk, model: Model, recipe: PosteriorRecipe, least: float, n_jobs: int | None
) -> dict[int, npt.NDArray[np.int32]]:
    """Return the number of random numbers of each row, by the number of a chunk's first row.

    It is −1 for classes that a row does not belong to, and 0 if all rows use equally many.
    """
    examples = chunk.examples
    if not examples.weights.size:
        return {}
    posterior = recipe.posterior(chunk, n_jobs)
    sizes = np.where(posterior > least, 0, -1).astype(np.int32)
    for y in range(model.n_classes):
        members = np.flatnonzero(sizes[:, y] == 0)
        taken = model.numbers_drawn(examples.observed.take(members), y)
        if not isinstance(taken, tuple):
            sizes[members, y] = taken.sum(axis=1)
    return {chunk.first: sizes}
