"""Trees of blocks with hidden states: parameters, scores and queries.

Every block b has a hidden state z_b with h values. The states form a tree, P(z_root) and P(z_b |
z_parent), and given its state a block is exchangeable: if n of its m variables are on, P(x_b | z_b)
= q_b(n | z_b) / C(m, n). With single variables as blocks it is a hidden Chow-Liu tree. The classes
or components of other models are the states of the root here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.families.contract import Arrays
from exchangeable.families.hidden_trees import saved
from exchangeable.families.hidden_trees.count_choices import log_rows
from exchangeable.families.hidden_trees.passes.messages import Symbols, TreeSums, expect_messages
from exchangeable.families.hidden_trees.passes.on_device import expect_on_device
from exchangeable.families.hidden_trees.rooted import RootedTrees
from exchangeable.families.hidden_trees.tree import HiddenTree
from exchangeable.families.page import OnPage
from exchangeable.families.sums import NO_POSTERIOR, RowsInMemory, Sums


@dataclass(frozen=True)
class HiddenSums(Sums):
    """The sums of a pass over the examples for one tree; `posterior` is empty."""

    tree: TreeSums


@dataclass(frozen=True)
class HiddenModel(RootedTrees):
    """One or more hidden trees over counts, with the states of their roots as classes.

    Attributes
    ----------
    trees : list of HiddenTree
        The trees, with their classes in sequence.
    """

    kind: ClassVar[str] = "hidden trees"
    trees: list[HiddenTree]

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) for every class, block and count l."""
        by_class: list[list[FloatArray]] = []
        for tree in self.trees:
            chances, starts = tree.state_probabilities(), tree.partition.starts[1:]
            tables = np.split(np.exp(tree.messages.log_q), starts)
            by_class += [
                [table @ chances[b, s] for b, table in enumerate(tables)]
                for s in range(tree.states.size)
            ]
        return by_class

    def log_totals(self) -> FloatArray:
        """Return log Σ_x P(x | y) of each class, by messages that are not stored."""
        return np.concatenate([tree.messages.log_totals()[tree.states] for tree in self.trees])

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

    def expect(
        self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> HiddenSums:
        """Compute the posteriors of all hidden states of one tree, and their sums."""
        messages = self.trees[0].messages
        symbols = Symbols.of(data.examples.observed, messages.partition)
        tree = expect_messages(messages, data.examples.weights, symbols, log_prior, data.n_jobs)
        return HiddenSums(tree.log_likelihood, NO_POSTERIOR, tree.totals, tree)

    def expect_on(
        self, device: Any, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> HiddenSums | None:
        """Do the same on a device."""
        tree = expect_on_device(self.trees[0].messages, device, data, log_prior)
        return HiddenSums(tree.log_likelihood, NO_POSTERIOR, tree.totals, tree)

    def encode(self) -> Arrays:
        """Return the parameters as arrays for a file."""
        return {
            f"{number}.{name}": array
            for number, tree in enumerate(self.trees)
            for name, array in saved.encode(tree.messages, tree.states).items()
        }

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model from arrays of a file, after checking everything."""
        return cls([HiddenTree.make(*parts) for parts in saved.decode(arrays)])
