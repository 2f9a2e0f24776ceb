"""Rows in chunks or on a cluster, as EM sees them: only sums are available."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples, distinct_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType
from exchangeable.data.stacking import stack_observed
from exchangeable.data.stream.passes import Passes
from exchangeable.data.stream.views import ChangedPasses, Selection, SomeColumns, with_holes
from exchangeable.families.common.class_rows import Completion, sizes_drawn
from exchangeable.families.common.streaming.filling import Filling, OfFilled
from exchangeable.families.common.streaming.of_chunks import (
    STATES_PER_WORD,
    by_class,
    expect_each,
    first_look,
    hashes_of,
    log_likelihood_of,
    masses_of,
    observed_at,
    on_chunk,
    on_completed,
    rows_at,
    state_words,
)
from exchangeable.families.common.streaming.recipes import (
    Drawn,
    Labelled,
    PartlyLabelled,
    PosteriorRecipe,
    Scored,
)
from exchangeable.families.contract import Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import ROUNDING, Sums

WORDS = 4
"""Number of 64-bit words with states of each row that one pass returns."""


@dataclass(frozen=True)
class Streamed:
    """Rows in chunks, or on a cluster.

    Posteriors are not stored: a pass computes those that it needs from the parameters again.

    Attributes
    ----------
    passes : Passes
        The rows.
    n_rows : int
        Number of rows with positive weight.
    total : float
        The total weight of the rows.
    average : array of shape (n_variables,)
        Share of the weight with each variable on.
    holes : array of shape (n_variables,)
        The weight of the rows in which each variable is missing.
    classes : array of shape (n_classes,), optional
        The classes, if rows have labels.
    partly : bool
        Whether some rows are unlabelled.
    has_holes : bool
        Whether any entry is missing, perhaps in other columns than these.
    numbered : tuple, optional
        Information about the distinct rows, if it has been computed.
    filling : Filling, optional
        How missing entries were drawn, if they were.
    """

    passes: Passes
    n_rows: int
    total: float
    average: FloatArray
    holes: FloatArray
    classes: npt.NDArray[Any] | None = None
    partly: bool = False
    has_holes: bool = False
    numbered: tuple[IntArray, IntArray, FloatArray] | None = None
    filling: Filling | None = None

    @classmethod
    def of(
        cls, passes: Passes, classes: npt.NDArray[Any] | None = None, partly: bool = False
    ) -> "Streamed":
        """Make the first pass."""
        n_rows, total, ones, holes = passes.total(partial(first_look, n_jobs=passes.n_jobs))
        average = ones / total if total > 0 else ones
        if holes.any():
            passes = ChangedPasses(passes, with_holes)
        found = bool(holes.any())
        return cls(passes, int(n_rows), float(total), average, holes, classes, partly, found)

    @cached_property
    def filled(self) -> "Streamed":
        """The rows with missing entries, if there are any, drawn by frequency.

        The draws are the same as in memory.
        """
        if not self.has_holes:
            return self
        share = (self.average * self.total + 0.5) / (self.total - self.holes + 1.0)
        filling = Filling(share, self.member)
        return replace(
            self,
            passes=ChangedPasses(self.passes, filling),
            holes=np.zeros_like(share),
            has_holes=False,
            numbered=self._distinct,
            filling=filling,
        )

    def to_find(self, recipe: PosteriorRecipe) -> PosteriorRecipe:
        """Return the recipe for the posteriors of these rows, even if they are not completed."""
        return recipe if self.filling is None else OfFilled(recipe, self.filling)

    def for_run(self, n_jobs: int | None) -> "Streamed":
        """Return the rows for one run of EM; runs over chunks take turns, with all threads."""
        return self

    @property
    def n_jobs(self) -> int | None:
        """Number of threads."""
        return self.passes.n_jobs

    @property
    def rounding(self) -> float:
        """The relative error of the log-likelihood of a pass."""
        return ROUNDING

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.passes.n_variables

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """A cache for what depends on the rows alone, which lives as long as they do."""
        return {}

    @property
    def fingerprint(self) -> int:
        """A checksum of the rows."""
        return self.passes.fingerprint

    @cached_property
    def _distinct(self) -> tuple[IntArray, IntArray, FloatArray]:
        """First occurrence of each distinct row, the distinct row of each row, and their weights.

        Rows are compared by 128-bit hashes, which this process holds during the comparison.
        """
        if self.numbered is not None:
            return self.numbered
        parts = self.passes.total(partial(hashes_of, classes=self.classes))
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

    @property
    def member(self) -> IntArray:
        """The number of each row's distinct row."""
        return self._distinct[1]

    def shares_of_equals(self, recipe: PosteriorRecipe) -> FloatArray:
        """Return the posteriors of the distinct rows: the average over equal ones."""
        first, member, _ = self._distinct
        parts = self.passes.total(partial(masses_of, recipe=recipe, n_jobs=self.n_jobs))
        mass = np.concatenate([parts[number] for number in sorted(parts)])
        shares = np.zeros((first.size, mass.shape[1]))
        np.add.at(shares, member, mass)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @cached_property
    def _order(self) -> IntArray:
        """The rank of each distinct row in the order of states: unknown before off before on.

        It is refined from left to right, some columns in each pass.
        """
        first = self._distinct[0]
        rank = np.zeros(first.size, dtype=np.int64)
        for begin in range(0, self.n_variables, WORDS * STATES_PER_WORD):
            columns = slice(begin, begin + WORDS * STATES_PER_WORD)
            parts = self.passes.total(partial(state_words, columns=columns))
            words = np.concatenate([parts[number] for number in sorted(parts)])[first]
            keys = [*words.T[::-1], rank.astype(np.uint64)]
            order = np.lexsort(keys)
            lines = np.stack(keys, axis=1)[order]
            steps = (lines[1:] != lines[:-1]).any(axis=1)
            rank[order] = np.concatenate([[0], np.cumsum(steps)])
        return rank

    def distinct_at(self, chosen: IntArray) -> npt.NDArray[np.bool_]:
        """Return some of the distinct rows as a matrix."""
        rows: npt.NDArray[np.uint8] = self.passes.total(
            partial(rows_at, chosen=self._distinct[0][chosen])
        )
        return rows > 0

    def at(self, chosen: IntArray, shares: Any = None) -> tuple[Observed, FloatArray | None]:
        """Return some of the distinct rows, and their posteriors if there is a recipe for them."""
        recipe = self.recipe_of(shares)
        first = self._distinct[0][chosen]
        found = self.passes.total(
            partial(observed_at, chosen=first, recipe=recipe, n_jobs=self.n_jobs)
        )
        parts = [found[number] for number in sorted(found)]
        order = np.argsort(np.concatenate([here for here, *_ in parts]), kind="stable")
        rows = stack_observed([observed for _, observed, _ in parts]).take(order)
        if recipe is None:
            return rows, None
        return rows, np.concatenate([posterior for *_, posterior in parts])[order]

    def recipe_of(self, shares: Any) -> Any:
        """Return the recipe for posteriors, which may be given for the distinct rows."""
        return Drawn(shares, self._distinct[1]) if isinstance(shares, np.ndarray) else shares

    @property
    def types(self) -> tuple[ColumnType, ...]:
        """The kinds of the columns; bits are binary columns."""
        schema = self.passes.schema
        return (ColumnType("binary", 2),) * self.n_variables if schema is None else schema.types

    def summed(self, function: Callable[..., Any], shares: Any = None) -> Any:
        """Return the sum over chunks of a function of their rows, and of posteriors if given.

        `shares` are a recipe for these, or those of the distinct rows.
        """
        recipe = self.recipe_of(shares)
        function = partial(
            on_chunk, function=function, recipe=recipe, classes=self.classes, n_jobs=self.n_jobs
        )
        total = self.passes.total(function)
        return replace(total, recipe=recipe) if isinstance(total, Sums) else total

    def log_likelihood_held_out(self, rows: Examples, mixture: Mixture) -> float:
        """Return the log-likelihood of other rows, which are in memory."""
        return mixture.log_likelihood(rows, self.n_jobs)

    def log_likelihood(self, mixture: Mixture) -> float:
        """Return the weighted log-likelihood of all rows."""
        return float(self.summed(partial(log_likelihood_of, mixture=mixture, n_jobs=self.n_jobs)))

    def columns(self, columns: IntArray) -> "Streamed":
        """Return the rows with some of their variables; those that become equal stay separate."""
        passes = ChangedPasses(self.passes, SomeColumns(columns), n_variables=columns.size)
        return replace(
            self,
            passes=passes,
            average=self.average[columns],
            holes=self.holes[columns],
            numbered=self._distinct if self.has_holes else None,
        )

    def parted(self, kept: IntArray) -> tuple["Streamed", "Streamed"]:
        """Return some of the rows, by their numbers, and the others."""
        chosen = np.zeros(self.n_rows, dtype=np.bool_)
        chosen[kept] = True
        parts = [Selection(chosen), Selection(~chosen)]
        passes = [ChangedPasses(self.passes, part, part.mark) for part in parts]
        first, second = (Streamed.of(part, self.classes, self.partly) for part in passes)
        return first, second

    def completion(self, model: Model, shares: Any, least: float) -> Completion:
        """Return how missing entries of each class's rows are drawn from a model."""
        first, member, _ = self._distinct
        recipe = self.recipe_of(shares)
        parts = self.passes.total(
            partial(sizes_drawn, model=model, recipe=recipe, least=least, n_jobs=self.n_jobs)
        )
        sizes = np.concatenate([parts[number] for number in sorted(parts)])[first]
        order = self._order if sizes.max(initial=0) > 0 else np.empty(0, dtype=np.int64)
        return Completion.of(model, recipe, member, sizes, order)

    def by_class(
        self, function: Callable[..., Any], shares: Any, model: Model | None, least: float
    ) -> Any:
        """Return the sum over chunks of a function of the rows of every class, as `ClassRows`.

        Missing entries are drawn from the model; a row belongs to a class if its share exceeds
        `least`.
        """
        if model is None or not self.has_holes:
            return self.summed(partial(by_class, function=function, least=least), shares)
        completion = self.completion(model, shares, least)
        return self.completed(function, completion)

    def completed(self, function: Callable[..., Any], completion: Completion) -> Any:
        """Return the same, given how missing entries are drawn."""
        return self.passes.total(
            partial(on_completed, function=function, completion=completion, n_jobs=self.n_jobs)
        )

    def expect(self, mixture: Mixture, moments: bool = False) -> Sums:
        """Return the sums of a pass under some parameters."""
        return self._expect([mixture], moments)[0]

    def best(self, candidates: Sequence[Mixture], moments: bool = False) -> tuple[Sums, Mixture]:
        """Return the candidate with the highest log-likelihood, and the sums of a pass under it."""
        sums = self._expect(candidates, moments)
        best = len(candidates) - 1
        for number in range(best):
            if sums[number].log_likelihood >= sums[best].log_likelihood:
                best = number
        return sums[best], candidates[best]

    def _expect(self, candidates: Sequence[Mixture], moments: bool) -> list[Sums]:
        function = partial(expect_each, candidates=candidates, moments=moments, n_jobs=self.n_jobs)
        return [
            replace(sums, recipe=self._recipe(mixture))
            for mixture, sums in zip(candidates, self.summed(function), strict=True)
        ]

    def _recipe(self, mixture: Mixture) -> PosteriorRecipe:
        """Return the recipe for posteriors under some parameters."""
        if self.classes is None:
            return Scored(mixture)
        return PartlyLabelled(mixture, self.classes) if self.partly else Labelled(self.classes)
