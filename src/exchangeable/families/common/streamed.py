"""Rows in chunks or on a cluster, as EM sees them: only sums are had."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples, distinct_rows, row_hashes
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.observed import flags
from exchangeable.data.rows import take_rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.data.stream.passes import Passes
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.filling import FilledPasses, Filling
from exchangeable.families.common.recipes import Drawn, Labelled, PosteriorRecipe, Scored
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import NO_POSTERIOR, Sums


@dataclass(frozen=True)
class Streamed:
    """Rows in chunks, or on a cluster.

    Posteriors are not kept: a pass computes those that it needs from the parameters again.

    Attributes
    ----------
    passes : Passes
        The rows.
    n_rows : int
        Number of rows that count.
    total : float
        The weight of all rows together.
    average : array of shape (n_variables,)
        Share of the weight that has each variable on.
    holes : array of shape (n_variables,)
        The weight of the rows that do not tell each variable.
    classes : array of shape (n_classes,), optional
        The classes, where every row has the label of one.
    numbered : tuple, optional
        What is known of the distinct rows, where it is.
    """

    passes: Passes
    n_rows: int
    total: float
    average: FloatArray
    holes: FloatArray
    classes: npt.NDArray[Any] | None = None
    numbered: tuple[IntArray, IntArray, FloatArray] | None = None

    @classmethod
    def of(cls, passes: Passes, classes: npt.NDArray[Any] | None = None) -> "Streamed":
        """Make the first pass."""
        n_rows, total, ones, holes = passes.total(partial(_first_look, n_jobs=passes.n_jobs))
        average = ones / total if total > 0 else ones
        return cls(passes, int(n_rows), float(total), average, holes, classes)

    @cached_property
    def filled(self) -> "Streamed":
        """The rows with their holes, if there are any, drawn by how often each variable is on.

        The draws are those that rows in memory get.
        """
        if not self.holes.any():
            return self
        share = (self.average * self.total + 0.5) / (self.total - self.holes + 1.0)
        passes = FilledPasses(self.passes, Filling(share, self._distinct[1]))
        return replace(self, passes=passes, holes=np.zeros_like(share), numbered=self._distinct)

    def for_run(self, n_jobs: int | None) -> "Streamed":
        """Return the rows for one run of EM; runs over chunks take turns, with all threads."""
        return self

    @property
    def n_jobs(self) -> int | None:
        """Number of threads."""
        return self.passes.n_jobs

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.passes.n_variables

    @property
    def fingerprint(self) -> int:
        """A checksum of the rows."""
        return self.passes.fingerprint

    @cached_property
    def _distinct(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Where each distinct row occurs first, which of them each row is, and their weights.

        Rows are compared by 128 bits of hash, which this process holds while it compares them.
        """
        if self.numbered is not None:
            return self.numbered
        parts = self.passes.total(partial(_hashes, classes=self.classes))
        hashes, weights = (
            np.concatenate([parts[first][part] for first in sorted(parts)]) for part in (0, 1)
        )
        first, member = distinct_rows(hashes)
        summed = np.bincount(member, weights, minlength=first.size).astype(np.float64)
        return first, member, summed

    @property
    def weights(self) -> FloatArray:
        """The weight of each distinct row."""
        return self._distinct[2]

    def distinct_at(self, chosen: IntArray) -> npt.NDArray[np.bool_]:
        """Return some of the distinct rows as a matrix."""
        rows: npt.NDArray[np.uint8] = self.passes.total(
            partial(rows_at, chosen=self._distinct[0][chosen])
        )
        return rows > 0

    def summed(self, function: Callable[..., Any], shares: Any = None) -> Any:
        """Return the sum over chunks of a function of their rows, and of posteriors if given.

        `shares` say how to find these, or are those of the distinct rows.
        """
        recipe = Drawn(shares, self._distinct[1]) if isinstance(shares, np.ndarray) else shares
        function = partial(
            _on_chunk, function=function, recipe=recipe, classes=self.classes, n_jobs=self.n_jobs
        )
        total = self.passes.total(function)
        return replace(total, recipe=recipe) if isinstance(total, Sums) else total

    def expect(self, mixture: Mixture, moments: bool = False) -> Sums:
        """Return what a pass under some parameters sums."""
        return self._expect([mixture], moments)[0]

    def best(self, candidates: Sequence[Mixture], moments: bool = False) -> tuple[Sums, Mixture]:
        """Return the candidate with the highest log-likelihood, and what a pass under it sums."""
        sums = self._expect(candidates, moments)
        best = len(candidates) - 1
        for number in range(best):
            if sums[number].log_likelihood >= sums[best].log_likelihood:
                best = number
        return sums[best], candidates[best]

    def _expect(self, candidates: Sequence[Mixture], moments: bool) -> list[Sums]:
        function = partial(_expect_each, candidates=candidates, moments=moments, n_jobs=self.n_jobs)
        known = None if self.classes is None else Labelled(self.classes)
        return [
            replace(sums, recipe=known or Scored(mixture))
            for mixture, sums in zip(candidates, self.summed(function), strict=True)
        ]


def _first_look(
    chunk: Chunk, n_jobs: int | None = None
) -> tuple[int, float, FloatArray, FloatArray]:
    """Return how many rows count, their weight, and that of each variable's ones and holes."""
    group = Group(np.arange(chunk.rows.n_rows), chunk.weights)
    ones = group_ones(chunk.rows, [group], n_jobs)[0]
    holes = np.zeros_like(ones)
    if chunk.holes is not None:
        holes = group_ones(chunk.holes, [group], n_jobs)[0]
    return chunk.n_counting, group.total, ones, holes


def _hashes(
    chunk: Chunk, classes: npt.NDArray[Any] | None
) -> dict[int, tuple[npt.NDArray[np.uint64], FloatArray]]:
    """Return the hashes and the weights of a chunk's rows, by the number of its first row."""
    examples = chunk.labelled(classes)
    if not examples.weights.size:
        return {}
    known = None if classes is None else examples.clamp
    return {chunk.first: (row_hashes(examples.observed, known), examples.weights)}


def rows_at(chunk: Chunk, chosen: IntArray) -> npt.NDArray[np.uint8]:
    """Return the chosen rows of all that count, zeros for those that are not in this chunk."""
    matrix = np.zeros((chosen.size, chunk.rows.n_variables), dtype=np.uint8)
    counting = np.flatnonzero(chunk.weights) if chunk.weights.size else None
    here = np.flatnonzero((chosen >= chunk.first) & (chosen < chunk.first + chunk.n_counting))
    if here.size:
        number = chosen[here] - chunk.first
        row = number if counting is None else counting[number]
        matrix[here] = flags(take_rows(chunk.rows, row))
    return matrix


def _on_chunk(
    chunk: Chunk,
    function: Callable[..., Any],
    recipe: PosteriorRecipe | None,
    classes: npt.NDArray[Any] | None,
    n_jobs: int | None,
) -> Any:
    """Return a function of a chunk's rows, without the posteriors that it may have found."""
    shares = () if recipe is None else (recipe.posterior(chunk, n_jobs),)
    return _without_posteriors(function(chunk.labelled(classes), *shares))


def _without_posteriors(result: Any) -> Any:
    if isinstance(result, list):
        return [_without_posteriors(each) for each in result]
    return replace(result, posterior=NO_POSTERIOR) if isinstance(result, Sums) else result


def _expect_each(
    examples: Examples, candidates: Sequence[Mixture], moments: bool, n_jobs: int | None = None
) -> list[Sums]:
    """Return the sums over some rows under each of several mixtures."""
    return [
        mixture.model.expect(InMemory(examples, n_jobs=n_jobs), mixture.log_prior, moments)
        for mixture in candidates
    ]
