"""Trees of blocks with hidden states: parameters, scores and queries.

Every block b has a hidden state z_b with h values. The states form a tree, P(z_root) and
P(z_b | z_parent), and given its state a block is exchangeable: if n of its m variables are on,
P(x_b | z_b) = q_b(n | z_b) / C(m, n). With single variables as blocks it is a hidden Chow-Liu tree.
What other models call a class or component is here a state of the root.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Arrays, Model
from exchangeable.families.hidden_trees import (
    kernels,
    messages,
    query_kernels,
    saved,
    symbol_kernels,
)
from exchangeable.families.hidden_trees.messages import (
    Messages,
    Symbols,
    TreeSums,
    expect_messages,
    score_messages,
)
from exchangeable.families.hidden_trees.on_device import expect_on_device
from exchangeable.families.sums import NO_POSTERIOR, RowsInMemory, Sums
from exchangeable.partitions import Partition, log_factorials
from exchangeable.runtime.threads import row_ranges

BETTER = 1e-9
"""A change of one block that gains less than this is not made."""


@dataclass(frozen=True)
class HiddenTree:
    """One tree; its classes are some or all states of its root.

    Attributes
    ----------
    messages : Messages
        Blocks, parents and parameters.
    states : array of shape (n_classes,)
        The state of the root that each class is.
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
    def n_parameters(self) -> int:
        """Number of free parameters, without the root's probabilities."""
        h, partition = self.messages.n_states, self.messages.partition
        return h * partition.labels.size + (partition.n_blocks - 1) * h * (h - 1)

    def state_probabilities(self) -> FloatArray:
        """Return P(z_b | z_root), shape (n_blocks, n_classes, n_states)."""
        tree, h = self.messages, self.messages.n_states
        chances = np.empty((tree.parent.size, self.states.size, h))
        for b in tree.order:
            above = tree.parent[b]
            root = above == tree.parent.size
            chances[b] = np.eye(h)[self.states] if root else chances[above] @ tree.edges[b]
        return chances

    def marginals(self, observed: Observed, state: int) -> FloatArray:
        """Return P(x_j = 1 | e, the root's state); known entries stay 0 or 1."""
        tree, symbols = self.messages, Symbols.of(observed, self.messages.partition)
        seen = tree.log_evidence(symbols)
        means = np.empty(seen.shape)
        symbol_kernels.hole_means(tree.emissions(symbols), seen, means)
        posterior = self._posterior(symbols, messages.scaled(seen)[0], state)
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
            messages.scaled(seen)[0],
            tree.tree,
            state,
            rng.random(codes.shape),
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
        """Return a completion of each row that no change of one block betters, and its log P."""
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

    def _climb(self, observed: Observed, rows: SymbolArray, state: int) -> None:
        """Change one block of a row at a time, the one that gains most, until none gains."""
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
        """Return what the best count of each block gains, all other blocks as they are."""
        tree, partition = self.messages, self.messages.partition
        symbols = Symbols.of(Observed.from_symbols(rows), partition)
        evidence = messages.scaled(tree.log_evidence(symbols))[0]
        posterior = self._posterior(symbols, evidence, state)
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

    def _posterior(self, symbols: Symbols, evidence: FloatArray, state: int) -> FloatArray:
        """Return P(z_b | e, the root's state), shape (n_blocks, n_rows, n_states)."""
        tree = self.messages
        posterior = np.empty((tree.parent.size, len(symbols.codes), tree.n_states))
        kernels.posterior_tree(
            symbols.codes,
            evidence,
            tree.tree,
            state,
            posterior,
        )
        return posterior

    def _fill(
        self, rows: SymbolArray, symbols: Symbols, taken: IntArray, uniforms: FloatArray
    ) -> None:
        """Turn the given number of holes of each block on."""
        labels = self.messages.partition.labels
        query_kernels.fill(rows, labels, symbols.holes[symbols.codes], taken, uniforms)


@dataclass(frozen=True)
class HiddenSums(Sums):
    """What a pass over the examples has summed for one tree; `posterior` is empty."""

    tree: TreeSums


@dataclass(frozen=True)
class HiddenModel(Model):
    """One or more hidden trees, with the states of their roots as classes.

    Attributes
    ----------
    trees : list of HiddenTree
        The trees, whose classes follow one another.
    """

    kind: ClassVar[str] = "hidden trees"
    trees: list[HiddenTree]

    @property
    def n_classes(self) -> int:
        """Number of classes: the states of all roots."""
        return sum(tree.states.size for tree in self.trees)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.trees[0].messages.partition.labels.size)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, without the probabilities of the classes."""
        return sum(tree.n_parameters for tree in self.trees)

    @property
    def partitions(self) -> list[Partition]:
        """The blocks of each class: those of its tree."""
        return [tree.messages.partition for tree in self.trees for _ in tree.states]

    @classmethod
    def stack(cls, models: Sequence["HiddenModel"]) -> Self:
        """Return the model of all classes of several models."""
        return cls([tree for model in models for tree in model.trees])

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes, in the order they have here."""
        kept = []
        for tree, begin in self._placed():
            mine = classes[(classes >= begin) & (classes < begin + tree.states.size)] - begin
            if mine.size:
                kept.append(HiddenTree(tree.messages, tree.states[np.sort(mine)]))
        return type(self)(kept)

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) for every class, block and count l."""
        by_class: list[list[FloatArray]] = []
        for tree in self.trees:
            chances, starts = tree.state_probabilities(), tree.messages.partition.starts[1:]
            tables = np.split(np.exp(tree.messages.log_q), starts)
            by_class += [
                [table @ chances[b, s] for b, table in enumerate(tables)]
                for s in range(tree.states.size)
            ]
        return by_class

    def edges(self) -> list[IntArray]:
        """Return, for each class, the (block, parent) of each edge of its tree."""
        by_class = []
        for tree in self.trees:
            parent = tree.messages.parent.astype(np.int64)
            child = np.flatnonzero(parent < parent.size)
            by_class += [np.stack([child, parent[child]], axis=1)] * tree.states.size
        return by_class

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries."""
        scores = [
            score_messages(tree.messages, observed, n_jobs)[:, tree.states] for tree in self.trees
        ]
        return np.concatenate(scores, axis=1)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""
        tree, state = self._class(y)
        out = np.empty((observed.n_rows, self.n_variables))
        for span, part in _tiles(tree, observed):
            out[span] = tree.marginals(part, state)
        return out

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return a probable completion x of each row, and log P(x | y).

        The one that is most probable together with all hidden states, and from there on the best
        change of one block at a time, until none gains: no sum over hidden states has a maximum
        that is easy to find.
        """
        tree, state = self._class(y)
        rows, log_prob = observed.symbols(), np.empty(observed.n_rows)
        for span, part in _tiles(tree, observed):
            rows[span], log_prob[span] = tree.complete(part, state)
        return rows, log_prob

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        tree, state = self._class(y)
        rows = observed.symbols()
        for span, part in _tiles(tree, observed):
            rows[span] = tree.draw(part, state, rng)
        return rows

    def expect(
        self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> HiddenSums:
        """Find the posteriors of all hidden states of one tree, and sum them."""
        messages = self.trees[0].messages
        symbols = Symbols.of(data.examples.observed, messages.partition)
        tree = expect_messages(messages, data.examples, symbols, log_prior, data.n_jobs)
        return HiddenSums(tree.log_likelihood, NO_POSTERIOR, tree.totals, tree)

    def expect_on(
        self, device: Any, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> HiddenSums | None:
        """Do the same on a device."""
        tree = expect_on_device(self.trees[0].messages, device, data, log_prior)
        return HiddenSums(tree.log_likelihood, NO_POSTERIOR, tree.totals, tree)

    def encode(self) -> Arrays:
        """Return the parameters as the arrays that a file keeps."""
        return {
            f"{number}.{name}": array
            for number, tree in enumerate(self.trees)
            for name, array in saved.encode(tree.messages, tree.states).items()
        }

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model of arrays that were read, everything checked."""
        return cls([HiddenTree.make(*parts) for parts in saved.decode(arrays)])

    def _placed(self) -> Iterator[tuple[HiddenTree, int]]:
        """Yield the trees, each with the number of its first class."""
        begin = 0
        for tree in self.trees:
            yield tree, begin
            begin += tree.states.size

    def _class(self, y: int) -> tuple[HiddenTree, int]:
        """Return the tree of a class, and the state of the root that it is."""
        for tree, begin in self._placed():
            if y < begin + tree.states.size:
                return tree, int(tree.states[y - begin])
        raise IndexError(f"class {y} of {self.n_classes}")


def _tiles(tree: HiddenTree, observed: Observed) -> Iterator[tuple[slice, Observed]]:
    """Yield the rows in parts whose messages take little memory."""
    for begin, end in row_ranges(observed.n_rows, tree.messages.tile):
        yield slice(begin, end), observed.take(np.arange(begin, end))
