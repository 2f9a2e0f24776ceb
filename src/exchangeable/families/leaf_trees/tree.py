"""One tree with hidden states and leaves of any kind: queries about rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.columns.schema import typed, typed_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType, CountRows, TypedRows
from exchangeable.families.contract import Completions, Normal, Normals, averaged
from exchangeable.families.hidden_trees.passes import query_kernels
from exchangeable.families.hidden_trees.passes.states import TreeOfStates, scaled
from exchangeable.families.hidden_trees.rooted import RootedTree
from exchangeable.families.hidden_trees.search import MOST_BRANCHES, Search
from exchangeable.families.leaf_trees.completions import (
    Completed,
    climb,
    completed_blocks,
)
from exchangeable.families.leaf_trees.leaves import Leaf, Shown, chunk_rows, jacobians
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import row_ranges, run

FEW_BRANCHES = 32
"""Branches of a row that are explored if no search can end with certainty."""


@dataclass(frozen=True)
class States(TreeOfStates):
    """The hidden states of a tree: each node's parent, and P(z_v | z_parent)."""

    parent: npt.NDArray[np.int32]
    edges: FloatArray


@dataclass(frozen=True)
class LeafTree(RootedTree):
    """One tree; its classes are some or all states of its root.

    Attributes
    ----------
    passing : States
        The hidden states.
    leaves : sequence of Leaf
        The leaf of each node, in the order of the partition's blocks.
    states : array of shape (n_classes,)
        The state of the root that each class represents.
    """

    passing: States
    leaves: Sequence[Leaf]
    states: IntArray

    @property
    def hidden(self) -> States:
        """The hidden states."""
        return self.passing

    @cached_property
    def partition(self) -> Partition:
        """The blocks of variables, each a node of the tree."""
        return partition_of([leaf.variables for leaf in self.leaves])

    @cached_property
    def types(self) -> tuple[ColumnType, ...]:
        """What the values of each variable stand for."""
        found: dict[int, ColumnType] = {}
        for leaf in self.leaves:
            found |= zip(leaf.variables.tolist(), leaf.types, strict=True)
        return tuple(found[j] for j in range(len(found)))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, without the root's probabilities."""
        h = self.hidden.n_states
        own = sum(leaf.model.n_parameters for leaf in self.leaves)
        return own + (len(self.leaves) - 1) * h * (h - 1)

    @cached_property
    def blocks(self) -> list[tuple[IntArray, bool]]:
        """The variables of each leaf, and whether it reads them as bits."""
        return [(leaf.variables, leaf.of_bits) for leaf in self.leaves]

    def blank(self, observed: Observed) -> Any:
        """Return rows in the form of completions: numbers, or bits as 0 and 1."""
        if isinstance(observed.ones, TypedRows | CountRows):
            return np.array(typed_rows(observed).values)
        return observed.symbols()

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | the root's state), shape (n_rows, n_states)."""
        out = np.empty((observed.n_rows, self.hidden.n_states))

        def one(span: tuple[int, int]) -> None:
            part = observed.take(np.arange(*span))
            shown = Shown.of(self.blocks, part)
            out[slice(*span)] = self.hidden.scores(shown.codes, shown.log_evidence(self.leaves))
            out[slice(*span)] += jacobians(part)[:, None]

        run(one, row_ranges(observed.n_rows, chunk_rows(len(self.leaves), out.shape[1])), n_jobs)
        return out

    def marginals(self, observed: Observed, state: int) -> FloatArray:
        """Return P(x_j = 1 | e, the root's state), or means; known entries stay as they are."""
        shown, posterior = self._posterior(observed, state)
        h, out = self.hidden.n_states, np.empty((observed.n_rows, observed.n_variables))
        for b, leaf in enumerate(self.leaves):
            own = shown.own_codes(b)
            each = [leaf.model.marginals(shown.rows[b].observed, z) for z in range(h)]
            out[:, leaf.variables] = np.einsum("iz,zij->ij", posterior[b], np.stack(each)[:, own])
        known = self.blank(observed).astype(np.float64)
        return np.where(observed.hole_flags(), out, known)

    def predictive(
        self, observed: Observed, variable: int, state: int
    ) -> FloatArray | Normal | Normals:
        """Return the distribution of a variable given the other entries that are known."""
        rows = self.blank(observed).astype(np.float64)
        rows[:, variable] = np.nan
        if isinstance(observed.ones, TypedRows | CountRows):
            asked = typed(rows, typed_rows(observed).types)
        else:
            asked = Observed.from_symbols(np.where(np.isnan(rows), -1, rows).astype(np.int8))
        shown, posterior = self._posterior(asked, state)
        b = int(self.partition.labels[variable])
        leaf, own = self.leaves[b], shown.own_codes(b)
        inside = int(np.flatnonzero(leaf.variables == variable)[0])
        each = [
            leaf.model.predictive(shown.rows[b].observed, inside, z)
            for z in range(self.hidden.n_states)
        ]
        return averaged(each, posterior[b], own)

    def draw(self, observed: Observed, state: int, rng: np.random.Generator) -> Any:
        """Return a completion of each row, drawn from P(x | e, the root's state)."""
        shown = Shown.of(self.blocks, observed)
        evidence = scaled(shown.log_evidence(self.leaves))[0]
        states = np.empty(shown.codes.shape, dtype=np.int64)
        uniforms = rng.random(shown.codes.shape)
        room = self.hidden.room(len(shown.codes))
        query_kernels.draw_states(
            shown.codes, evidence, self.hidden.tree, state, uniforms, room, states
        )
        rows, holes = self.blank(observed), observed.hole_flags()
        for b, leaf in enumerate(self.leaves):
            wanting = holes[:, leaf.variables].any(axis=1)
            for z in np.unique(states[wanting, b]):
                mine = np.flatnonzero(wanting & (states[:, b] == z))
                own = shown.rows[b].observed.take(shown.own_codes(b)[mine])
                rows[np.ix_(mine, leaf.variables)] = leaf.model.draw(own, int(z), rng)
        return rows

    def complete(self, observed: Observed, state: int) -> tuple[Any, FloatArray]:
        """Return a locally optimal completion of each row (by block), and its log P.

        Blocks with too many completions to list change to those that are best in one of their
        states.
        """
        shown = Shown.of(self.blocks, observed)
        found = completed_blocks(self.leaves, shown)
        choices = found.choices
        best = choices.log_evidence[: choices.first.size]
        states = np.empty(shown.codes.shape, dtype=np.int64)
        with np.errstate(divide="ignore"):
            log_edges = np.log(self.hidden.edges)
        query_kernels.best_states(shown.codes, best, self.hidden.tree, log_edges, state, states)
        codes = found.preferred[shown.codes, states].astype(np.int32)
        climb(self.hidden, choices, shown.codes, codes, state)
        scores = self.hidden.scores(codes, choices.log_evidence)[:, state]
        return self._filled(observed, found, codes), scores + jacobians(observed)

    def searched(
        self,
        observed: Observed,
        log_prior: FloatArray,
        classes: IntArray,
        most: int = MOST_BRANCHES,
        at_least: FloatArray | None = None,
    ) -> Completions:
        """Return the result of branch and bound; see `Search.run` for the last two arguments.

        If a block has too many completions to list, the bound is that of the first exploration.
        """
        shown = Shown.of(self.blocks, observed)
        found, shift = completed_blocks(self.leaves, shown), jacobians(observed)
        choices, states = found.choices, self.states[classes]
        search = Search(self.hidden, shown.codes, choices, states, log_prior[classes])
        loose = (found.loose & choices.open)[shown.codes].any(axis=1)
        patience = np.where(loose, min(most, FEW_BRANCHES), most)
        best = search.run(patience, None if at_least is None else at_least - shift)
        highest = self.hidden.scores(shown.codes, choices.log_evidence)[:, states]
        above = np.maximum((highest + log_prior[classes]).max(axis=1), best.bound)
        bound = np.where(loose, above, best.bound)
        rows = self._filled(observed, found, best.codes)
        return Completions(rows, classes[best.state], best.log_prob + shift, bound + shift)

    def _posterior(self, observed: Observed, state: int) -> tuple[Shown, FloatArray]:
        """Return the codes of rows, and P(z_b | e, the root's state), (n_leaves, n_rows, h)."""
        shown = Shown.of(self.blocks, observed)
        evidence = scaled(shown.log_evidence(self.leaves))[0]
        return shown, self.hidden.posterior(shown.codes, evidence, state)

    def _filled(self, observed: Observed, found: Completed, codes: Any) -> Any:
        """Return rows with blocks completed according to codes."""
        rows = self.blank(observed)
        for b, leaf in enumerate(self.leaves):
            rows[:, leaf.variables] = found.rows[b][codes[:, b] - found.first[b]]
        return rows


def partition_of(blocks: Sequence[IntArray]) -> Partition:
    """Return blocks of variables as a partition."""
    labels = np.empty(sum(block.size for block in blocks), dtype=np.int64)
    for number, block in enumerate(blocks):
        labels[block] = number
    return Partition.from_labels(labels)
