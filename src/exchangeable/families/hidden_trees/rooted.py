"""Trees with a hidden state at every node, whose classes are the states of the root.

The common part of trees of counts and trees with leaves of any kind.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Completions, Model
from exchangeable.families.hidden_trees.passes.states import TreeOfStates
from exchangeable.families.hidden_trees.search import MOST_BRANCHES
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import row_ranges

SHORT_SEARCH = 128
"""Branches per row that are explored before a local search."""


class RootedTree(ABC):
    """One tree; its classes are some or all states of its root.

    Attributes
    ----------
    states : array of shape (n_classes,)
        The state of the root that each class represents.
    """

    states: IntArray

    @property
    @abstractmethod
    def hidden(self) -> TreeOfStates:
        """The hidden states."""

    @property
    @abstractmethod
    def partition(self) -> Partition:
        """The blocks of variables, each a node of the tree."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Number of free parameters, without the root's probabilities."""

    @abstractmethod
    def blank(self, observed: Observed) -> Any:
        """Return rows in the form of completions."""

    @abstractmethod
    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | the root's state), shape (n_rows, n_states)."""

    @abstractmethod
    def marginals(self, observed: Observed, state: int) -> FloatArray:
        """Return P(x_j = 1 | e, the root's state); known entries stay as they are."""

    @abstractmethod
    def draw(self, observed: Observed, state: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, the root's state)."""

    @abstractmethod
    def complete(self, observed: Observed, state: int) -> tuple[SymbolArray, FloatArray]:
        """Return a locally optimal completion of each row (by block), and its log P."""

    @abstractmethod
    def searched(
        self,
        observed: Observed,
        log_prior: FloatArray,
        classes: IntArray,
        most: int = MOST_BRANCHES,
        at_least: FloatArray | None = None,
    ) -> Completions:
        """Return the result of branch and bound; see `Search.run` for the last two arguments."""

    def most_probable(
        self, observed: Observed, log_prior: FloatArray, classes: IntArray
    ) -> Completions:
        """Return the best completion over some classes, and an upper bound.

        A short search solves most rows. For the others, a local search in every class finds good
        completions, and a longer search looks for better ones.
        """
        found = self.searched(observed, log_prior, classes, SHORT_SEARCH)
        loose = np.flatnonzero(found.bound > found.log_prob)
        if loose.size:
            part = observed.take(loose)
            best = found.take(loose)
            for y in classes:
                rows, scores = self.complete(part, int(self.states[y]))
                log_prob = scores + log_prior[y]
                best.take_better(Completions(rows, np.full(loose.size, y), log_prob, log_prob))
            more = self.searched(part, log_prior, classes, at_least=best.log_prob)
            best.take_better(more)
            for whole, piece in zip(found, best._replace(bound=more.bound), strict=True):
                whole[loose] = piece
        return found

    def state_probabilities(self) -> FloatArray:
        """Return P(z_b | z_root), shape (n_blocks, n_classes, n_states)."""
        tree, h = self.hidden, self.hidden.n_states
        chances = np.empty((tree.parent.size, self.states.size, h))
        for b in tree.order:
            above = tree.parent[b]
            root = above == tree.parent.size
            chances[b] = np.eye(h)[self.states] if root else chances[above] @ tree.edges[b]
        return chances

    def edges(self) -> IntArray:
        """Return the (block, parent) of each edge."""
        parent = self.hidden.parent.astype(np.int64)
        child = np.flatnonzero(parent < parent.size)
        return np.stack([child, parent[child]], axis=1)

    def tiles(self, observed: Observed) -> Iterator[tuple[slice, Observed]]:
        """Yield the rows in parts whose messages take little memory."""
        for begin, end in row_ranges(observed.n_rows, self.hidden.tile):
            yield slice(begin, end), observed.take(np.arange(begin, end))


@dataclass(frozen=True)
class RootedTrees(Model):
    """One or more trees with hidden states, with the states of their roots as classes.

    Attributes
    ----------
    trees : list of RootedTree
        The trees, whose classes follow one another.
    """

    trees: list[Any]

    @property
    def n_classes(self) -> int:
        """Number of classes: the states of all roots."""
        return sum(tree.states.size for tree in self.trees)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.trees[0].partition.labels.size)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, without the probabilities of the classes."""
        return sum(tree.n_parameters for tree in self.trees)

    @property
    def partitions(self) -> list[Partition]:
        """The blocks of each class: those of its tree."""
        return [tree.partition for tree in self.trees for _ in tree.states]

    @classmethod
    def stack(cls, models: Sequence["RootedTrees"]) -> Self:
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
                kept.append(replace(tree, states=tree.states[np.sort(mine)]))
        return type(self)(kept)

    def edges(self) -> list[IntArray]:
        """Return, for each class, the (block, parent) of each edge of its tree."""
        return [edges for tree in self.trees for edges in [tree.edges()] * tree.states.size]

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries."""
        scores = [tree.score(observed, n_jobs)[:, tree.states] for tree in self.trees]
        return np.concatenate(scores, axis=1)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""
        tree, state = self._class(y)
        out = np.empty((observed.n_rows, self.n_variables))
        for span, part in tree.tiles(observed):
            out[span] = tree.marginals(part, state)
        return out

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return a probable completion x of each row, and log P(x | y).

        The one that is most probable together with all hidden states, and from there on the best
        change of one block at a time, until none gains: no sum over hidden states has a maximum
        that is easy to find.
        """
        tree, state = self._class(y)
        rows, log_prob = tree.blank(observed), np.empty(observed.n_rows)
        for span, part in tree.tiles(observed):
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
            for span, part in tree.tiles(observed):
                some = tree.most_probable(part, log_prior[begin:end], mine)
                for whole, piece in zip(found, some, strict=True):
                    whole[span] = piece
            best.take_better(found._replace(classes=found.classes + begin))
        return best

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        tree, state = self._class(y)
        rows: SymbolArray = tree.blank(observed)
        for span, part in tree.tiles(observed):
            rows[span] = tree.draw(part, state, rng)
        return rows

    def _placed(self) -> Iterator[tuple[Any, int]]:
        """Yield the trees, each with the number of its first class."""
        begin = 0
        for tree in self.trees:
            yield tree, begin
            begin += tree.states.size

    def _class(self, y: int) -> tuple[Any, int]:
        """Return the tree of a class, and the state of the root that it is."""
        for tree, begin in self._placed():
            if y < begin + tree.states.size:
                return tree, int(tree.states[y - begin])
        raise IndexError(f"class {y} of {self.n_classes}")
