"""Trees of blocks with hidden states: parameters, scores and queries.

Every block b has a hidden state z_b with h values. The states form a tree, P(z_root) and
P(z_b | z_parent), and given its state a block is exchangeable: if n of its m variables are on,
P(x_b | z_b) = q_b(n | z_b) / C(m, n). With single variables as blocks it is a hidden Chow-Liu tree.
What other models call a class or component is here a state of the root.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Arrays, Completions, Model
from exchangeable.families.hidden_trees import saved
from exchangeable.families.hidden_trees.messages import (
    Symbols,
    TreeSums,
    expect_messages,
    score_messages,
)
from exchangeable.families.hidden_trees.on_device import expect_on_device
from exchangeable.families.hidden_trees.search import log_rows
from exchangeable.families.hidden_trees.tree import HiddenTree
from exchangeable.families.page import OnPage
from exchangeable.families.sums import NO_POSTERIOR, RowsInMemory, Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import row_ranges


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

    def units(self) -> IntArray:
        """Return the number of the tree of each class."""
        return np.repeat(np.arange(len(self.trees)), [tree.states.size for tree in self.trees])

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

    def on_page(self) -> OnPage:
        """Return, for each tree, blocks, parents, look-ups by count and state, and its edges."""
        trees = [
            {
                "labels": tree.messages.partition.labels,
                "parent": tree.messages.parent,
                "table": log_rows(tree.messages),
                "edges": tree.messages.edges,
                "states": tree.states,
            }
            for tree in self.trees
        ]
        steps = sum(
            float(tree.messages.edges.size * tree.states.size) / 8 + 4.0 * tree.messages.log_q.size
            for tree in self.trees
        )
        return OnPage("hidden trees", "exchangeable.families.hidden_trees", {"trees": trees}, steps)

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

    def most_probable(
        self, observed: Observed, log_prior: FloatArray, classes: IntArray
    ) -> Completions:
        """Return the completion and class that are jointly most probable, out of some classes.

        They are found by branch and bound; where that takes too long, the bound is above.
        """
        best = Completions.none(observed)
        for tree, begin in self._placed():
            end = begin + tree.states.size
            mine = classes[(classes >= begin) & (classes < end)] - begin
            if not mine.size:
                continue
            found = Completions.none(observed)
            for span, part in _tiles(tree, observed):
                some = tree.most_probable(part, log_prior[begin:end], mine)
                for whole, piece in zip(found, some, strict=True):
                    whole[span] = piece
            best.take_better(found._replace(classes=found.classes + begin))
        return best

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
