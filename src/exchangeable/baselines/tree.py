"""A forest over binary variables, some of which may be hidden: parameters, EM and sampling."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.baselines import kernels
from exchangeable.families.common import forest_kernels
from exchangeable.runtime.threads import row_ranges, run

Binary = npt.NDArray[np.uint8]
ROWS_PER_TASK = 2048


@dataclass(frozen=True)
class Table:
    """Distinct rows and their weights, stored by column.

    Attributes
    ----------
    columns : array of shape (n_variables, n_rows)
        Zeros and ones.
    weight : array of shape (n_rows,)
        Number (or total weight) of the data rows equal to each.
    """

    columns: Binary
    weight: FloatArray

    @classmethod
    def of(cls, X: Binary, weight: FloatArray | None = None) -> Self:
        """Return the distinct rows of X."""
        weight = np.ones(len(X)) if weight is None else weight
        packed = np.packbits(X, axis=1)
        keys = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        total: Any = np.bincount(member, weights=weight, minlength=first.size)
        return cls(np.ascontiguousarray(X[first].T), total)

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.weight.sum())

    def only(self, variables: IntArray) -> "Table":
        """Return the distinct rows of some of the variables."""
        return Table.of(np.ascontiguousarray(self.columns[variables].T), self.weight)

    def pair_counts(self, alpha: float = 0.0) -> tuple[float, FloatArray, FloatArray]:
        """Return the weight of all rows, of those with each variable on, and with each pair on.

        `alpha` is added to each of the four cells of a pair.
        """
        rows = self.columns.T.astype(np.float64)
        both = (rows * self.weight[:, None]).T @ rows
        ones = both.diagonal().copy()
        return self.total + 4 * alpha, ones + 2 * alpha, both + alpha


@dataclass(frozen=True)
class BinaryTree:
    """A forest whose nodes are ordered so that parents precede their children.

    Attributes
    ----------
    node : array of shape (n_nodes,)
        The node at each position of the order: a variable, or a hidden node (numbered after them).
    parent : array of shape (n_nodes,)
        The position of each node's parent, −1 for a root.
    p_on : array of shape (n_nodes, 2)
        P(on | parent off) and P(on | parent on); the same twice for a root.
    n_variables : int
        Number of variables that are seen.
    """

    node: IntArray
    parent: IntArray
    p_on: FloatArray
    n_variables: int

    @classmethod
    def of_parents(cls, parent: IntArray, n_variables: int) -> Self:
        """Return a tree from each node's parent (n_nodes for a root), all probabilities 1/2."""
        n = parent.size
        order, position = np.empty(n, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
        forest_kernels.order_nodes(parent.astype(np.int64), order, position)
        above = position[parent[order]]
        return cls(order, np.where(above == n, -1, above), np.full((n, 2), 0.5), n_variables)

    def with_parameters(self, p_on: FloatArray) -> "BinaryTree":
        """Return the same tree with other parameters."""
        return BinaryTree(self.node, self.parent, p_on, self.n_variables)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: one per root, two per node with a parent."""
        return int(2 * self.parent.size - (self.parent < 0).sum())

    @property
    def edges(self) -> IntArray:
        """One row (node, parent) per edge; hidden nodes are numbered after the variables."""
        child = np.flatnonzero(self.parent >= 0)
        return np.stack([self.node[child], self.node[self.parent[child]]], axis=1)

    @property
    def _arrays(self) -> kernels.TreeArrays:
        """The tree as kernels take it."""
        variable = np.where(self.node < self.n_variables, self.node, -1)
        return kernels.TreeArrays(self.parent, variable, self.p_on)

    def log_probabilities(self, columns: Binary, n_jobs: int | None = None) -> FloatArray:
        """Return the log-probability of every row, hidden nodes summed out."""
        out = np.empty(columns.shape[1])
        arrays = self._arrays

        def one(rows: tuple[int, int]) -> None:
            kernels.log_probabilities(arrays, columns, *rows, out)

        run(one, row_ranges(out.size, ROWS_PER_TASK), n_jobs)
        return out

    def expected_counts(self, table: Table, n_jobs: int | None = None) -> tuple[FloatArray, float]:
        """Return expected counts of the states of each node and its parent, and log-likelihood."""
        out = np.empty(table.weight.size)
        arrays = self._arrays

        def one(rows: tuple[int, int]) -> FloatArray:
            joint = np.zeros((self.parent.size, 2, 2))
            kernels.expected_counts(arrays, table.columns, table.weight, *rows, out, joint)
            return joint

        parts = run(one, row_ranges(out.size, ROWS_PER_TASK), n_jobs)
        return np.sum(parts, axis=0), float(out @ table.weight)

    def step(self, joint: FloatArray, alpha: float) -> "BinaryTree":
        """Return the tree with the parameters that maximise the expected log-likelihood."""
        root = self.parent < 0
        p_on = (joint[:, 1] + alpha) / (joint.sum(axis=1) + 2 * alpha)
        p_on[root, 1] = p_on[root, 0]
        return self.with_parameters(p_on)

    def em(
        self, table: Table, alpha: float, tol: float, max_iter: int, n_jobs: int | None = None
    ) -> tuple["BinaryTree", list[float]]:
        """Return the tree after EM, and the average log-likelihood before every step.

        EM ends when the average gains less than `tol`.
        """
        tree, history = self, list[float]()
        for _ in range(max_iter):
            joint, total = tree.expected_counts(table, n_jobs)
            history.append(total / table.total)
            if len(history) > 1 and history[-1] - history[-2] < tol:
                break
            tree = tree.step(joint, alpha)
        return tree, history

    def sample(self, n_samples: int, rng: np.random.Generator) -> Binary:
        """Draw rows."""
        states = np.empty((n_samples, self.parent.size), dtype=np.uint8)
        for v, (p, p_on) in enumerate(zip(self.parent, self.p_on, strict=True)):
            probability = p_on[0] if p < 0 else p_on[states[:, p]]
            states[:, v] = rng.random(n_samples) < probability
        rows = np.empty((n_samples, self.n_variables), dtype=np.uint8)
        seen = self.node < self.n_variables
        rows[:, self.node[seen]] = states[:, seen]
        return rows


def parents_of(neighbours: dict[int, set[int]], root: int | None = None) -> IntArray:
    """Return each node's parent after choosing a root in every tree of a forest.

    >>> parents_of({0: {2}, 1: {2}, 2: {0, 1}}).tolist()
    [3, 2, 0]
    """
    n = len(neighbours)
    parent: Any = np.full(n, -1, dtype=np.int64)
    for start in ([] if root is None else [root]) + list(range(n)):
        if parent[start] >= 0:
            continue
        parent[start] = n
        stack = [start]
        while stack:
            v = stack.pop()
            for w in sorted(neighbours[v]):
                if parent[w] < 0:
                    parent[w] = v
                    stack.append(w)
    return np.asarray(parent)
