"""Trees as components: outputs are log-odds of each variable given its parent off, and on.

The components share a few trees, in turn; each tree has its own part of the network's last layer.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.devices.networks.head import FEW_POINTS, LARGEST, Head
from exchangeable.families.common.forests import best_tree
from exchangeable.families.contract import Model
from exchangeable.families.neural.components import Component, odds_of
from exchangeable.families.trees.model import TreeModel

PENALTY = 2.0
"""Minimum gain in log-likelihood of an edge."""
BATCH_WITH_HOLES = 64
"""Rows with missing entries need messages for every row, point and variable."""
ParentArray = npt.NDArray[np.int32]


class Trees(Component):
    """Trees in each component; see the module."""

    most_rows = BATCH_WITH_HOLES

    def __init__(
        self, parents: ParentArray, means: FloatArray, n_columns: int, holes: bool
    ) -> None:
        self.n_variables, k = parents.shape
        self.head = Head("conditional odds", n_columns, holes, groups=k)
        self.parents = parents
        self.bias = np.tile(odds_of(means, n_columns), (k, 2))
        above = parents.T
        wide = np.full((k, n_columns), n_columns, dtype=np.int32)
        wide[:, : self.n_variables] = np.where(above == self.n_variables, n_columns, above)
        self.constants = {
            "real": (np.arange(n_columns) < self.n_variables).astype(np.float32),
            "parent": wide,
            "levels": [levels(parent) for parent in wide] if holes else [],
        }

    def model(self, outputs: FloatArray) -> Model:
        """Return trees in natural parameters."""
        n, half = self.n_variables, outputs.shape[1] // 2
        off = np.clip(outputs[:, :n], -LARGEST, LARGEST)
        on = np.clip(outputs[:, half : half + n], -LARGEST, LARGEST)
        parent = np.resize(self.parents.T, (len(outputs), n))
        edge = parent < n
        pair = np.where(edge, on - off, 0.0)
        below = np.where(edge, np.logaddexp(0.0, off) - np.logaddexp(0.0, on), 0.0)
        slope = np.concatenate([off, np.zeros((len(off), 1))], axis=1)
        np.add.at(slope, (np.arange(len(slope))[:, None], parent), below)
        return TreeModel.make(
            -np.logaddexp(0.0, off).sum(axis=1),
            np.ascontiguousarray(slope[:, :n].T),
            np.ascontiguousarray(parent.T.astype(np.int32)),
            np.ascontiguousarray(pair.T),
        )


def n_trees(wanted: int, n_points: int, n_components: int) -> int:
    """Return the number of trees: as requested, if it divides points and components.

    >>> n_trees(4, 1024, 8192), n_trees(4, 9, 9), n_trees(4, 1024, 8191), n_trees(4, 3, 3)
    (4, 3, 1, 1)
    """
    common = math.gcd(n_points, n_components)
    if n_components < FEW_POINTS:  # points are padded
        return 1
    return max(count for count in range(1, wanted + 1) if common % count == 0)


def tree_of(gains: FloatArray) -> ParentArray:
    """Return each variable's parent in the tree with the largest gains, if they are large enough.

    >>> tree_of(np.array([[0, 9, 5], [9, 0, 1], [5, 1, 0.0]])).tolist()
    [3, 0, 0]
    """
    return best_tree(gains - PENALTY)


def levels(parent: npt.NDArray[Any]) -> list[npt.NDArray[np.int32]]:
    """Return the nodes of a forest by their distance from the root, the farthest first.

    >>> [level.tolist() for level in levels(np.array([3, 0, 0]))]
    [[1, 2], [0]]
    """
    n = parent.size
    depth, above = np.zeros(n, dtype=np.int64), np.append(parent, n).astype(np.int64)
    at = above[:n]
    while (at < n).any():
        depth += at < n
        at = above[at]
    return [np.flatnonzero(depth == d).astype(np.int32) for d in range(depth.max(), -1, -1)]
