"""Functions of one chunk whose results add up over chunks."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples, row_hashes
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.observed import Observed, flags
from exchangeable.data.rows import CountRows, TypedRows, take_rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.common.class_rows import ClassRows, Completion, class_rows
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.recipes import PosteriorRecipe
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import NO_POSTERIOR, Sums

STATES_PER_WORD = 32
"""Number of states of entries in a number of 64 bits."""


def first_look(
    chunk: Chunk, n_jobs: int | None = None
) -> tuple[int, float, FloatArray, FloatArray]:
    """Return the number of rows, their weight, and the weights of ones and missing entries.

    Columns of other kinds have no ones.
    """
    group = Group(np.arange(chunk.rows.n_rows), chunk.weights)
    if isinstance(chunk.rows, TypedRows | CountRows):
        ones = np.zeros(chunk.rows.n_variables)
    else:
        ones = group_ones(chunk.rows, [group], n_jobs)[0]
    holes = np.zeros_like(ones)
    if chunk.holes is not None:
        holes = group_ones(chunk.holes, [group], n_jobs)[0]
    return chunk.n_counting, group.total, ones, holes


def hashes_of(
    chunk: Chunk, classes: npt.NDArray[Any] | None
) -> dict[int, tuple[npt.NDArray[np.uint64], FloatArray]]:
    """Return the hashes and the weights of a chunk's rows, by the number of its first row."""
    examples = chunk.labelled(classes)
    if not examples.weights.size:
        return {}
    known = None if classes is None else examples.clamp
    return {chunk.first: (row_hashes(examples.observed, known), examples.weights)}


def masses_of(chunk: Chunk, recipe: PosteriorRecipe, n_jobs: int | None) -> dict[int, FloatArray]:
    """Return the share of each row in each component, by the number of the first row."""
    weights = chunk.examples.weights
    if not weights.size:
        return {}
    return {chunk.first: weights[:, None] * recipe.posterior(chunk, n_jobs)}


def state_words(chunk: Chunk, columns: slice) -> dict[int, npt.NDArray[np.uint64]]:
    """Return some columns of the rows, two bits per entry, by the first row's number."""
    states = chunk.examples.observed.symbols()[:, columns] + 1
    if not states.shape[0]:
        return {}
    n_words = -(-states.shape[1] // STATES_PER_WORD)
    wide = np.zeros((states.shape[0], n_words * STATES_PER_WORD), dtype=np.uint64)
    wide[:, : states.shape[1]] = states
    shifts = np.arange(2 * STATES_PER_WORD - 2, -1, -2, dtype=np.uint64)
    words = (wide.reshape(-1, n_words, STATES_PER_WORD) << shifts).sum(axis=2, dtype=np.uint64)
    return {chunk.first: words}


def rows_at(chunk: Chunk, chosen: IntArray, holes: bool = False) -> npt.NDArray[np.uint8]:
    """Return the chosen rows, or which entries are missing; zeros for those of other chunks."""
    found = chunk.holes if holes else chunk.rows
    matrix = np.zeros((chosen.size, chunk.rows.n_variables), dtype=np.uint8)
    counting = np.flatnonzero(chunk.weights) if chunk.weights.size else None
    here = np.flatnonzero((chosen >= chunk.first) & (chosen < chunk.first + chunk.n_counting))
    if here.size and found is not None:
        number = chosen[here] - chunk.first
        row = number if counting is None else counting[number]
        matrix[here] = flags(take_rows(found, row))
    return matrix


def observed_at(
    chunk: Chunk, chosen: IntArray, recipe: PosteriorRecipe | None, n_jobs: int | None
) -> dict[int, tuple[IntArray, Observed, FloatArray | None]]:
    """Return which of the chosen rows are in this chunk, the rows and their posteriors."""
    here = np.flatnonzero((chosen >= chunk.first) & (chosen < chunk.first + chunk.n_counting))
    if not here.size:
        return {}
    number = chosen[here] - chunk.first
    posterior = None if recipe is None else recipe.posterior(chunk, n_jobs)[number]
    return {chunk.first: (here, chunk.examples.observed.take(number), posterior)}


def on_chunk(
    chunk: Chunk,
    function: Callable[..., Any],
    recipe: PosteriorRecipe | None,
    classes: npt.NDArray[Any] | None,
    n_jobs: int | None,
) -> Any:
    """Return the value of a function of a chunk's rows, without posteriors."""
    shares = () if recipe is None else (recipe.posterior(chunk, n_jobs),)
    return _without_posteriors(function(chunk.labelled(classes), *shares))


def log_likelihood_of(examples: Examples, mixture: Mixture, n_jobs: int | None) -> float:
    """Return the log-likelihood of some rows."""
    return mixture.log_likelihood(examples, n_jobs)


def by_class(
    examples: Examples, posterior: FloatArray, function: Callable[..., Any], least: float
) -> Any:
    """Return the value of a function of the rows of every class."""
    every = range(posterior.shape[1])
    return function([class_rows(examples, posterior, y, None, least) for y in every])


def on_completed(
    chunk: Chunk,
    function: Callable[[list[ClassRows]], Any],
    completion: Completion,
    n_jobs: int | None,
) -> Any:
    """Return the value of a function of the completed rows of every class."""
    return function(completion.rows(chunk, n_jobs))


def _without_posteriors(result: Any) -> Any:
    if isinstance(result, list):
        return [_without_posteriors(each) for each in result]
    if not isinstance(result, Sums):
        return result
    parts = {each.name: getattr(result, each.name) for each in fields(result)}
    inner = {name: _without_posteriors(p) for name, p in parts.items() if isinstance(p, Sums)}
    return replace(result, posterior=NO_POSTERIOR, **inner)


def expect_each(
    examples: Examples, candidates: Sequence[Mixture], moments: bool, n_jobs: int | None = None
) -> list[Sums]:
    """Return the sums over some rows under each of several mixtures."""
    return [
        mixture.model.expect(InMemory(examples, n_jobs=n_jobs), mixture.log_prior, moments)
        for mixture in candidates
    ]
