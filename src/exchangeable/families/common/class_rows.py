"""The rows of each class, their holes drawn once from a model.

Blocks and trees are chosen from such rows; what is chosen is then judged by the exact likelihood.
Draws are always from the same random numbers, so that choices change only with the parameters. In
memory the rows of a class take these one after the other; in chunks a `Completion` finds the place
that each row would have there.
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
"""Under what name the numbers for draws are kept, and how many of them for all classes."""
FEW_ROWS = 256
"""Fewer packed rows are not worth sums for all values of a byte."""


@dataclass(frozen=True)
class ClassRows:
    """The rows of one class, without holes.

    Attributes
    ----------
    rows : Rows
        Rows, among which are those of the class.
    group : Group
        Which they are, and how much of them is the class's.
    posterior : array
        How probable it is that each is of the class.
    """

    rows: Rows
    group: Group
    posterior: FloatArray

    @property
    def moments(self) -> FloatArray:
        """Sums over the rows with each variable on, as in `Sums`, of this one class."""
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
    """Return the rows in memory that are of class y with more probability than `least`."""
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
    """How the holes of rows in chunks are drawn, so that each row's draws are those in memory.

    Attributes
    ----------
    model : Model
        What they are drawn from.
    recipe : PosteriorRecipe
        How posteriors are found.
    member : array of shape (n_rows,)
        Which distinct row each row is.
    rank : array of shape (n_distinct, n_classes)
        The rank of each distinct row among those of a class; −1 where it is not of the class.
    n_inside : array of shape (n_classes,)
        Number of distinct rows of each class.
    order : array of shape (n_distinct,), or empty
        In which order rows take random numbers, where it is that of their states.
    crowds : tuple of Crowd
        Where they then stand, for each class.
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
        """Find the places, given what `sizes_drawn` says of the distinct rows."""
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
        elif not self.crowds:  # no row has holes
            places = taken[:, 0], taken[:, 0]
        else:
            here = distinct[members]
            places = self.crowds[y].take(here).stretches(self.order[here], taken)
        rng = PlacedNumbers(y, *places)
        return _drawn(self.model, examples, members, mass, share, y, rng)


def sizes_drawn(
    chunk: Chunk, model: Model, recipe: PosteriorRecipe, least: float, n_jobs: int | None
) -> dict[int, npt.NDArray[np.int32]]:
    """Return, by the number of a chunk's first row, how many random numbers each row takes.

    It is −1 for classes that a row does not belong to, and 0 where all rows take the same.
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
