"""The start of EM for a tree with leaves if rows come in chunks, by passes that compute sums.

It is the same start as in memory (`start.py`), without a list of every block's distinct rows: the
shares of a row in the states of a leaf are computed again in each pass, by a recipe.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, normalize_log
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.data.stream.chunk import Chunk
from exchangeable.data.stream.views import ChangedPasses
from exchangeable.families.common.streaming.recipes import PosteriorRecipe
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.hidden_trees.passes.row_sums import halved_pairs
from exchangeable.families.hidden_trees.start import States as StartStates
from exchangeable.families.leaf_trees.leaves import Columns, Leaf, Shown, chunk_rows
from exchangeable.families.leaf_trees.start import Ranking, binned, pairs_of_bins, shares_of_states
from exchangeable.runtime.threads import row_ranges

SMALLEST = np.finfo(np.float64).tiny
MOST_RANKS = 1 << 25
"""Number of ranks held at once for ordering rows."""
Blocks = Sequence[tuple[IntArray, bool]]
"""The variables of each leaf, and whether they are read as bits."""


@dataclass(frozen=True)
class LeafColumns:
    """The variables of a leaf, in its order, as bits or as numbers."""

    variables: IntArray
    bits: bool

    def __call__(self, chunk: Chunk) -> Chunk:
        """Return a chunk of these variables; rows that become equal stay separate."""
        own = Columns(Observed(chunk.rows, chunk.holes)).take(self.variables, self.bits)
        return replace(chunk, rows=own.ones, holes=own.holes, before=chunk)


def rows_of_leaf(data: Streamed, variables: IntArray, bits: bool) -> Streamed:
    """Return the rows with the variables of a leaf."""
    change = LeafColumns(variables, bits)
    return replace(
        data,
        passes=ChangedPasses(data.passes, change, n_variables=variables.size),
        average=data.average[variables],
        holes=data.holes[variables],
        numbered=None,
    )


@dataclass(frozen=True)
class OfWhole(PosteriorRecipe):
    """The result of a recipe for rows with all their columns."""

    recipe: PosteriorRecipe

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        return self.recipe.posterior(chunk.origin, n_jobs)


@dataclass(frozen=True)
class Independent(PosteriorRecipe):
    """The posteriors of a mixture in which leaves are independent."""

    leaves: Sequence[Leaf]
    log_prior: FloatArray

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        observed, blocks = chunk.origin.examples.observed, blocks_of(self.leaves)
        out = np.empty((observed.n_rows, self.log_prior.size))
        for begin, end in row_ranges(observed.n_rows, chunk_rows(len(blocks), out.shape[1])):
            shown = Shown.of(blocks, observed.take(np.arange(begin, end)))
            table = shown.log_evidence(self.leaves)
            joint = self.log_prior + sum(table[codes] for codes in shown.codes.T)
            out[begin:end] = np.exp(normalize_log(joint, self.log_prior)[0])
        return out


@dataclass(frozen=True)
class Leaning(PosteriorRecipe):
    """The shares of each row in the states of one leaf when EM starts.

    Attributes
    ----------
    recipe : PosteriorRecipe
        How the posteriors of the components are computed.
    states : States
        The initial states.
    ranking : Ranking
        Which rows rank high in the leaf.
    block : tuple
        The variables of the leaf, and whether they are read as bits.
    totals : array of shape (n_states,)
        The weight of each state.
    weight : float
        That of all rows.
    """

    recipe: PosteriorRecipe
    states: StartStates
    ranking: "Ranking"
    block: tuple[IntArray, bool]
    totals: FloatArray
    weight: float

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the shares of the rows with positive weight."""
        posterior = self.recipe.posterior(chunk, n_jobs)
        own = Columns(chunk.origin.examples.observed).take(*self.block)
        high = self.ranking.high(own)
        seen = posterior[:, self.states.component] * self.states.fits[:, high].T
        return shares_of_states(self.states, seen, self.totals, self.weight)


def blocks_of(leaves: Sequence[Leaf]) -> list[tuple[IntArray, bool]]:
    """Return the blocks of leaves."""
    return [(leaf.variables, leaf.of_bits) for leaf in leaves]


def sums_of_leaves(
    examples: Examples, posterior: FloatArray, leaves: Sequence[Leaf]
) -> tuple[FloatArray, list[Any]]:
    """Return the weights of components with independent leaves, and the sums for leaves."""
    shown = Shown.of(blocks_of(leaves), examples.observed)
    mass = examples.weights[:, None] * posterior
    sums = [
        leaf.model.shared_out(shown.rows[b], shown.by_code(b, mass))
        for b, leaf in enumerate(leaves)
    ]
    return mass.sum(axis=0), sums


def ranked(data: Streamed, blocks: Blocks, rankings: Sequence[Ranking]) -> list[Ranking]:
    """Return the order of the rows of each leaf, with bins."""
    group = max(1, MOST_RANKS // max(1, data.n_rows))
    done: list[Ranking] = []
    for begin, end in row_ranges(len(blocks), group):
        some, own = blocks[begin:end], rankings[begin:end]
        own = [
            ranking.scaled(*scale) for ranking, scale in zip(own, _scales(data, some), strict=True)
        ]
        found = data.passes.total(partial(_ranks, blocks=some, rankings=own))
        parts = [found[number] for number in sorted(found)]
        for b, ranking in enumerate(own):
            ranks, weights = (np.concatenate([part[b][i] for part in parts]) for i in (0, 1))
            done.append(ranking.cut(ranks, *binned(ranks, weights)))
    return done


def _scales(data: Streamed, blocks: Blocks) -> list[tuple[FloatArray, FloatArray]]:
    """Return the mean and the spread of every column of leaves that have numbers."""
    sums = data.summed(partial(_moments, blocks=blocks, usual=None))
    usual = [
        np.divide(total, known, out=np.zeros_like(total), where=known > 0) for known, total in sums
    ]
    squares = data.summed(partial(_moments, blocks=blocks, usual=usual))
    return [
        (own, np.sqrt(np.divide(square, known, out=np.zeros_like(square), where=known > 0)))
        for own, (known, square) in zip(usual, squares, strict=True)
    ]


def _moments(
    examples: Examples, blocks: Blocks, usual: Sequence[FloatArray] | None
) -> list[tuple[FloatArray, FloatArray]]:
    """Return the weight of the rows in which each column is known, and its sum, or of squares.

    Squares are of deviations from `usual`.
    """
    columns, sums = Columns(examples.observed), []
    for b, (variables, _) in enumerate(blocks):
        values = columns.typed.values[:, variables]
        known = ~np.isnan(values)
        filled = np.where(known, values if usual is None else (values - usual[b]) ** 2, 0.0)
        sums.append((examples.weights @ known, examples.weights @ filled))
    return sums


def _ranks(
    chunk: Chunk, blocks: Blocks, rankings: Sequence[Ranking]
) -> dict[int, list[tuple[FloatArray, FloatArray]]]:
    """Return the distinct ranks of a chunk's rows in each leaf, and their weights."""
    examples, found = chunk.examples, []
    if not examples.weights.size:
        return {}
    columns = Columns(examples.observed)
    for block, ranking in zip(blocks, rankings, strict=True):
        ranks, place = np.unique(ranking.ranks(columns.take(*block)), return_inverse=True)
        weights = np.bincount(place.ravel(), examples.weights)
        found.append((ranks, weights.astype(np.float64)))
    return {chunk.first: found}


def pair_sums(
    examples: Examples, blocks: Blocks, rankings: Sequence[Ranking], starts: IntArray, width: int
) -> FloatArray:
    """Return the weight of the rows with each bin of one leaf and each of another."""
    columns = Columns(examples.observed)
    every = np.stack(
        [
            start + ranking.bins(columns.take(*block))
            for start, block, ranking in zip(starts, blocks, rankings, strict=True)
        ],
        axis=1,
    )
    return pairs_of_bins(every, examples.weights, width)


def start_sums(
    examples: Examples,
    posterior: FloatArray,
    blocks: Blocks,
    rankings: Sequence[Ranking],
    states: StartStates,
    parent: npt.NDArray[np.int32],
) -> tuple[FloatArray, FloatArray]:
    """Return the weight of each state of every leaf, and of components by halves of pairs."""
    columns, mass = Columns(examples.observed), examples.weights[:, None] * posterior
    pairs = zip(blocks, rankings, strict=True)
    high = [ranking.high(columns.take(*block)) for block, ranking in pairs]
    masses = [(mass[:, states.component] * states.fits[:, own].T).sum(axis=0) for own in high]
    many = np.stack(high, axis=1).astype(np.bool_)
    return np.stack(masses), halved_pairs(many, mass, parent)
