"""A tree of hidden states: the data for sending messages along it, for any kind of leaves."""

import threading
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common import forest_kernels
from exchangeable.families.hidden_trees.passes import kernels
from exchangeable.families.hidden_trees.passes.kernels import StateTree, TileMessages

TILE_BYTES = 1 << 24
"""Messages of a tile of rows take about this much memory."""
SMALLEST_TILE, LARGEST_TILE = 16, 128
_memory = threading.local()


class TreeOfStates:
    """A tree whose nodes have hidden states.

    Attributes
    ----------
    parent : array of shape (n_nodes,)
        Each node's parent, n_nodes for the root.
    edges : array of shape (n_nodes, n_states, n_states)
        P(z_v = t | z_parent = s).
    """

    parent: npt.NDArray[np.int32]
    edges: FloatArray

    @cached_property
    def order(self) -> IntArray:
        """The nodes, parents before children."""
        n = self.parent.size
        order, rank = np.empty(n, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
        forest_kernels.order_nodes(self.parent.astype(np.int64), order, rank)
        return order

    @cached_property
    def tree(self) -> StateTree:
        """The tree as kernels read it."""
        return StateTree(self.order, self.parent, self.edges)

    @property
    def n_states(self) -> int:
        """Number of states of each node."""
        return int(self.edges.shape[1])

    @property
    def tile(self) -> int:
        """Number of rows whose messages are sent together."""
        fitting = TILE_BYTES // (16 * self.parent.size * self.n_states)
        return int(np.clip(fitting, SMALLEST_TILE, LARGEST_TILE))

    def room(self, n_rows: int | None = None) -> TileMessages:
        """Return room for messages of some rows, by default of a tile.

        It is this thread's own and used again, unless it is very large.
        """
        shape = (self.parent.size, self.tile if n_rows is None else n_rows, self.n_states)
        found: TileMessages | None = getattr(_memory, "messages", None)
        if found is None or found.up.shape != shape:
            up, message = np.empty(shape), np.empty(shape)
            found = TileMessages(up, message, np.empty(shape[1:]), np.empty(shape[1]))
            _memory.messages = found if up.nbytes <= TILE_BYTES else None
        return found

    def scores(self, codes: npt.NDArray[np.int32], log_evidence: FloatArray) -> FloatArray:
        """Return log P(evidence | the root's state), shape (n_rows, n_states)."""
        evidence, top = scaled(log_evidence)
        out = np.empty((len(codes), self.n_states))
        kernels.score_tree(codes, evidence, self.tree, self.room(), out)
        out += top[codes].sum(axis=1)[:, None]
        return out

    def posterior(self, codes: Any, evidence: FloatArray, state: int) -> FloatArray:
        """Return P(z_v | evidence, the root's state), shape (n_nodes, n_rows, n_states).

        `evidence` is the result of `scaled`.
        """
        out = np.empty((self.parent.size, len(codes), self.n_states))
        kernels.posterior_tree(codes, evidence, self.tree, state, out)
        return out


def scaled(log_evidence: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P(symbol | z), scaled to a maximum of 1 per symbol, and the log of the scales."""
    top = log_evidence.max(axis=1)
    top[top == -np.inf] = 0.0
    return np.exp(log_evidence - top[:, None]), top
