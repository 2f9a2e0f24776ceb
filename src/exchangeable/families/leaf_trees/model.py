"""Trees whose blocks have hidden states, with models of other families as leaves.

Every block b has a hidden state z_b with h values. The states form a tree, P(z_root) and P(z_b |
z_parent), and P(x_b | z_b) is a model of the block's variables with h classes: values of a
statistic, or columns of any kind. The classes of other models are the states of the root here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType
from exchangeable.data.stream.passes import add
from exchangeable.families.contract import Arrays, Normal, Normals
from exchangeable.families.hidden_trees.passes import kernels
from exchangeable.families.hidden_trees.passes.kernels import PosteriorSums
from exchangeable.families.hidden_trees.passes.states import scaled
from exchangeable.families.hidden_trees.rooted import RootedTrees
from exchangeable.families.leaf_trees import saved
from exchangeable.families.leaf_trees.leaves import Shown, jacobians, shown_chunks
from exchangeable.families.leaf_trees.on_device import expect_on_device
from exchangeable.families.leaf_trees.tree import LeafTree, partition_of
from exchangeable.families.page import OnPage
from exchangeable.families.sums import NO_POSTERIOR, RowsInMemory, Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run
from exchangeable.structure.statistic_blocks import StatisticBlock


@dataclass(frozen=True)
class LeafSums(Sums):
    """The sums of a pass over the examples for one tree; `posterior` is empty.

    Attributes
    ----------
    pairs : array of shape (n_leaves, n_states, n_states)
        Posterior weight of each state of a block's parent and of the block; zero at the root.
    masses : array of shape (n_leaves, n_states)
        That of each state.
    leaves : list of Sums
        The sums of the model of each leaf over its rows and their states.
    """

    pairs: FloatArray
    masses: FloatArray
    leaves: list[Any]


@dataclass(frozen=True)
class LeafModel(RootedTrees):
    """One or more hidden trees with leaves, with the states of their roots as classes.

    Attributes
    ----------
    trees : list of LeafTree
        The trees, with their classes in sequence.
    """

    kind: ClassVar[str] = "hidden trees with leaves"
    trees: list[LeafTree]

    @property
    def types(self) -> tuple[ColumnType, ...]:
        """What the values of each variable stand for."""
        return self.trees[0].types

    @property
    def learned_partitions(self) -> list[Partition]:
        """The blocks of each class among the variables that no statistic reads."""
        found = []
        for tree in self.trees:
            blocks = [leaf.variables for leaf in tree.leaves if not leaf.of_bits]
            every = Partition.from_labels(np.zeros(self.n_variables, dtype=np.int32))
            if blocks:
                number = np.argsort(np.argsort(np.concatenate(blocks)))
                ends = np.cumsum([block.size for block in blocks])[:-1]
                every = partition_of(np.split(number, ends))
            found += [every] * tree.states.size
        return found

    def reads(self, blocks: Sequence[StatisticBlock]) -> bool:
        """Whether the model has exactly these blocks with statistics."""
        own = [leaf for leaf in self.trees[0].leaves if leaf.of_bits]
        asked = {tuple(block.variables.tolist()): block for block in blocks}
        return len(own) == len(blocks) and all(
            tuple(leaf.variables.tolist()) in asked
            and leaf.model.reads([_own_block(asked[tuple(leaf.variables.tolist())])])
            for leaf in own
        )

    def on_page(self) -> OnPage | None:
        """Return, for each tree, its edges and the page data of its leaves, if all have some."""
        trees, steps = [], 0.0
        for tree in self.trees:
            models = [leaf.model.on_page() for leaf in tree.leaves]
            if any(model is None for model in models):
                return None
            h = tree.hidden.n_states
            leaves = [
                {"variables": leaf.variables, "levels": leaf.levels, "model": model}
                for leaf, model in zip(tree.leaves, models, strict=True)
            ]
            own = {"parent": tree.hidden.parent, "edges": tree.hidden.edges, "states": tree.states}
            trees.append({"h": h, "leaves": leaves, **own})
            steps += tree.hidden.edges.size * tree.states.size / 8
            steps += sum(4 * model.steps for model in models if model is not None)
        most = max(tree.hidden.n_states for tree in self.trees)
        data = {"trees": trees}
        return OnPage("leaf trees", "exchangeable.families.leaf_trees", data, steps, most)

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return the probabilities of the values of each block's model, for every class."""
        by_class: list[list[FloatArray]] = []
        for tree in self.trees:
            chances = tree.state_probabilities()
            tables = [_padded(leaf.model.count_probabilities()) for leaf in tree.leaves]
            by_class += [
                [chances[b, s] @ table for b, table in enumerate(tables)]
                for s in range(tree.states.size)
            ]
        return by_class

    def predictive(
        self, observed: Observed, variable: int, y: int
    ) -> FloatArray | Normal | Normals:
        """Return the distribution of a variable in class y given the other known entries."""
        tree, state = self._class(y)
        answer: FloatArray | Normal | Normals = tree.predictive(observed, variable, state)
        return answer

    def score_examples(self, examples: Examples, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y) of examples, for which the codes of leaves are cached."""
        shift = jacobians(examples.observed)[:, None]
        scores = [_scores(tree, examples, n_jobs)[:, tree.states] for tree in self.trees]
        return np.asarray(np.concatenate(scores, axis=1) + shift)

    def log_likelihoods(
        self, log_prior: FloatArray, examples: Examples, n_jobs: int | None = None
    ) -> FloatArray:
        """Return the log-probability of each row."""
        joint = self.score_examples(examples, n_jobs) + log_prior
        return np.asarray(np.logaddexp.reduce(joint, axis=1))

    def expect(self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False) -> LeafSums:
        """Compute the posteriors of all hidden states of one tree, and the sums for the leaves."""
        tree, examples = self.trees[0], data.examples
        shift = jacobians(examples.observed)

        def one(chunk: tuple[slice, Shown]) -> LeafSums:
            span, shown = chunk
            return _expect(tree, shown, examples.weights[span], shift[span], log_prior)

        chunks = shown_chunks(tree.leaves, tree.hidden.n_states, examples)
        return reduce(add, run(one, chunks, data.n_jobs))

    def expect_on(
        self, device: Any, data: RowsInMemory, log_prior: FloatArray, moments: bool = False
    ) -> LeafSums | None:
        """Do the same on a device; leaves are computed on the CPU."""
        tree, examples = self.trees[0], data.examples
        shift = jacobians(examples.observed)
        found = []
        for span, shown in shown_chunks(tree.leaves, tree.hidden.n_states, examples):
            weights = examples.weights[span]
            given = shown.log_evidence(tree.leaves), weights, log_prior
            there = expect_on_device(tree.hidden, shown, *given, device, data, span.start)
            log_likelihood = there.log_likelihood + float(weights @ shift[span])
            found.append(_shared_out(tree, shown, log_likelihood, there.sums))
        return reduce(add, found)

    def log_totals(self) -> FloatArray:
        """Return, for each class, the log-total of a leaf in a state that is farthest from 0.

        Rows of edges sum to one; if the leaves do in every state, so does the tree.
        """
        found = []
        for tree in self.trees:
            totals = np.concatenate([leaf.model.log_totals() for leaf in tree.leaves])
            found.append(np.full(tree.states.size, totals[np.abs(totals).argmax()]))
        return np.concatenate(found)

    @property
    def n_steps(self) -> float:
        """Approximate nanoseconds of the first score, which is limited for files."""
        return sum(
            leaf.model.n_steps + 10.0 * tree.hidden.n_states**2
            for tree in self.trees
            for leaf in tree.leaves
        )

    def encode(self) -> Arrays:
        """Return the parameters as arrays for a file."""
        return saved.encode(self.trees)

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model from arrays of a file, after checking everything."""
        return cls(saved.decode(arrays))


def _expect(
    tree: LeafTree, shown: Shown, weights: FloatArray, shift: FloatArray, log_prior: FloatArray
) -> LeafSums:
    """Return the sums of some rows."""
    hidden, n_leaves = tree.hidden, len(tree.leaves)
    h = hidden.n_states
    log_evidence = shown.log_evidence(tree.leaves)
    evidence, top = scaled(log_evidence)
    offsets = top[shown.codes].sum(axis=1) + shift
    sums = PosteriorSums(np.zeros(evidence.shape), np.zeros((n_leaves, h, h)), np.zeros(h))
    log_likelihood = kernels.expect_tree(
        shown.codes, weights, offsets, evidence, hidden.tree, log_prior, hidden.room(), sums
    )
    return _shared_out(tree, shown, log_likelihood, sums)


def _shared_out(
    tree: LeafTree, shown: Shown, log_likelihood: float, sums: PosteriorSums
) -> LeafSums:
    """Return the sums of some rows; leaves are summed by the mass of each state."""
    by_leaf = shown.by_leaf(sums.by_symbol)
    leaves = [
        leaf.model.shared_out(rows, mass)
        for leaf, rows, mass in zip(tree.leaves, shown.rows, by_leaf, strict=True)
    ]
    masses = np.stack([mass.sum(axis=0) for mass in by_leaf])
    pairs = sums.pairs * tree.hidden.edges
    return LeafSums(log_likelihood, NO_POSTERIOR, sums.totals, pairs, masses, leaves)


def _scores(tree: LeafTree, examples: Examples, n_jobs: int | None) -> FloatArray:
    """Return log P(e | the root's state) of examples, without their Jacobians."""
    out = np.empty((examples.rows.n_rows, tree.hidden.n_states))

    def one(chunk: tuple[slice, Shown]) -> None:
        span, shown = chunk
        out[span] = tree.hidden.scores(shown.codes, shown.log_evidence(tree.leaves))

    run(one, shown_chunks(tree.leaves, tree.hidden.n_states, examples), n_jobs)
    return out


def _own_block(block: StatisticBlock) -> StatisticBlock:
    """Return a block as its leaf numbers its variables."""
    return StatisticBlock(np.arange(block.variables.size), block.statistics)


def _padded(by_state: Sequence[Sequence[FloatArray]]) -> FloatArray:
    """Return the probabilities of a leaf's one block, a line per state."""
    tables = [own[0] for own in by_state]
    result = np.zeros((len(tables), max(table.size for table in tables)))
    for z, table in enumerate(tables):
        result[z, : table.size] = table
    return result
