"""One tree of blocks with hidden states: queries given the root's state."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Completions
from exchangeable.families.hidden_trees.count_choices import count_choices
from exchangeable.families.hidden_trees.passes import query_kernels, symbol_kernels
from exchangeable.families.hidden_trees.passes.messages import Messages, Symbols, score_messages
from exchangeable.families.hidden_trees.passes.states import scaled
from exchangeable.families.hidden_trees.rooted import RootedTree
from exchangeable.families.hidden_trees.search import MOST_BRANCHES, Search
from exchangeable.partitions import Partition, log_factorials

BETTER = 1e-9
"""Changes of one block that gain less than this are not made."""


@dataclass(frozen=True)
class HiddenTree(RootedTree):
    """One tree; its classes are some or all states of its root.

    Attributes
    ----------
    messages : Messages
        Blocks, parents and parameters.
    states : array of shape (n_classes,)
        The state of the root that each class represents.
    """

    messages: Messages
    states: IntArray

    @classmethod
    def make(
        cls,
        partition: Partition,
        parent: npt.NDArray[np.int32],
        log_q: FloatArray,
        edges: FloatArray,
        states: IntArray | None = None,
    ) -> Self:
        """Return the tree of given parameters, with all states of the root by default."""
        kept = np.arange(log_q.shape[1]) if states is None else states
        return cls(Messages(partition, parent, log_q, edges), kept)

    @property
    def hidden(self) -> Messages:
        """The hidden states."""
        return self.messages

    @property
    def partition(self) -> Partition:
        """The blocks of variables, each a node of the tree."""
        return self.messages.partition

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, without the root's probabilities."""
        h, partition = self.messages.n_states, self.messages.partition
        return h * partition.labels.size + (partition.n_blocks - 1) * h * (h - 1)

    def blank(self, observed: Observed) -> SymbolArray:
        """Return rows in which missing entries are `UNASSIGNED`."""
        return observed.symbols()

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | the root's state), shape (n_rows, n_states)."""
        return score_messages(self.messages, observed, n_jobs)

    def marginals(self, observed: Observed, state: int) -> FloatArray:
        """Return P(x_j = 1 | e, the root's state); known entries stay 0 or 1."""
        tree, symbols = self.messages, Symbols.of(observed, self.messages.partition)
        seen = tree.log_evidence(symbols)
        means = np.empty(seen.shape)
        symbol_kernels.hole_means(tree.emissions(symbols), seen, means)
        posterior = tree.posterior(symbols.codes, scaled(seen)[0], state)
        by_block = np.einsum("bis,ibs->ib", posterior, means[symbols.codes])
        known = observed.symbols()
        return np.where(known < 0, by_block[:, tree.partition.labels], known)

    def draw(self, observed: Observed, state: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, the root's state)."""
        tree, symbols = self.messages, Symbols.of(observed, self.messages.partition)
        seen = tree.log_evidence(symbols)
        codes = symbols.codes
        states = np.empty(codes.shape, dtype=np.int64)
        query_kernels.draw_states(
            codes,
            scaled(seen)[0],
            tree.tree,
            state,
            rng.random(codes.shape),
            tree.room(len(codes)),
            states,
        )
        taken = np.empty(codes.shape, dtype=np.int64)
        symbol_kernels.draw_holes(
            tree.emissions(symbols), seen, codes, states, rng.random(codes.shape), taken
        )
        rows = observed.symbols()
        self._fill(rows, symbols, taken, rng.random(rows.shape))
        return rows

    def complete(self, observed: Observed, state: int) -> tuple[SymbolArray, FloatArray]:
        """Return a locally optimal completion of each row (by block), and its log P."""
        tree, symbols = self.messages, Symbols.of(observed, self.messages.partition)
        best = np.empty((symbols.block.size, tree.n_states))
        chosen = np.empty(best.shape, dtype=np.int64)
        symbol_kernels.best_holes(tree.emissions(symbols), best, chosen)
        states = np.empty(symbols.codes.shape, dtype=np.int64)
        with np.errstate(divide="ignore"):
            log_edges = np.log(tree.edges)
        query_kernels.best_states(symbols.codes, best, tree.tree, log_edges, state, states)
        rows = observed.symbols()
        self._fill(rows, symbols, chosen[symbols.codes, states], np.zeros(rows.shape))
        self._climb(observed, rows, state)
        return rows, score_messages(tree, Observed.from_symbols(rows), n_jobs=1)[:, state]

    def searched(
        self,
        observed: Observed,
        log_prior: FloatArray,
        classes: IntArray,
        most: int = MOST_BRANCHES,
        at_least: FloatArray | None = None,
    ) -> Completions:
        """Return the result of branch and bound; see `Search.run` for the last two arguments."""
        symbols = Symbols.of(observed, self.messages.partition)
        choices = count_choices(self.messages, symbols)
        search = Search(
            self.messages, symbols.codes, choices, self.states[classes], log_prior[classes]
        )
        found = search.run(most, at_least)
        rows = observed.symbols()
        counts = found.codes - symbols.block.size - self.messages.partition.starts
        taken = counts - symbols.ones[symbols.codes]
        self._fill(rows, symbols, taken, np.zeros(rows.shape))
        return Completions(rows, classes[found.state], found.log_prob, found.bound)

    def _climb(self, observed: Observed, rows: SymbolArray, state: int) -> None:
        """Change one block of a row at a time, the one with the largest gain, until none gains."""
        partition = self.messages.partition
        shown = Symbols.of(observed, partition)
        least, holes = shown.ones[shown.codes], shown.holes[shown.codes]
        unknown = observed.hole_flags()
        active = np.flatnonzero(holes.any(axis=1))
        while active.size:
            gain, count = self._best_changes(rows[active], least[active], holes[active], state)
            block = gain.argmax(axis=1)
            each = np.arange(active.size)
            moved = gain[each, block] > BETTER
            for i, b, n in zip(active[moved], block[moved], count[each, block][moved], strict=True):
                free = np.flatnonzero(unknown[i] & (partition.labels == b))
                rows[i, free] = np.arange(free.size) < n - least[i, b]
            active = active[moved]

    def _best_changes(
        self, rows: SymbolArray, least: IntArray, holes: IntArray, state: int
    ) -> tuple[FloatArray, IntArray]:
        """Return the gain of the best count of each block, with all other blocks unchanged."""
        tree, partition = self.messages, self.messages.partition
        symbols = Symbols.of(Observed.from_symbols(rows), partition)
        evidence = scaled(tree.log_evidence(symbols))[0]
        posterior = tree.posterior(symbols.codes, evidence, state)
        gain, best = np.zeros(least.shape), np.zeros(least.shape, dtype=np.int64)
        query_kernels.best_changes(
            posterior,
            evidence,
            tree.emissions(symbols),
            symbols.codes,
            least,
            holes,
            self._row_chances,
            gain,
            best,
        )
        return gain, best

    @cached_property
    def _row_chances(self) -> FloatArray:
        """P of one row with each count of each block, by state; the largest of a block is 1."""
        partition, log_q = self.messages.partition, self.messages.log_q
        chances = np.empty(log_q.shape)
        log_factorial = log_factorials(partition.labels.size)
        for begin, m in zip(partition.starts, partition.sizes, strict=True):
            counts = np.arange(m + 1)
            ways = log_factorial[m] - log_factorial[counts] - log_factorial[m - counts]
            table = log_q[begin + counts] - ways[:, None]
            chances[begin + counts] = np.exp(table - table.max())
        return chances

    def _fill(
        self, rows: SymbolArray, symbols: Symbols, taken: IntArray, uniforms: FloatArray
    ) -> None:
        """Turn on the given number of unknown entries of each block."""
        labels = self.messages.partition.labels
        query_kernels.fill(rows, labels, symbols.holes[symbols.codes], taken, uniforms)
