"""Trees of the baselines in files."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.baselines.tree import BinaryTree
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import needed, numbers

ARRAYS = ("node", "parent", "p_on", "n_variables")
MOST_NODES = 1 << 24
"""A file may not name more; each takes a few dozen bytes and nanoseconds."""


def encode(tree: BinaryTree) -> dict[str, npt.NDArray[Any]]:
    """Return a tree as the arrays that a file keeps."""
    return {
        "node": tree.node,
        "parent": tree.parent,
        "p_on": tree.p_on,
        "n_variables": np.array([tree.n_variables]),
    }


def decode(arrays: Mapping[str, npt.NDArray[Any]]) -> BinaryTree:
    """Return the tree of arrays that were read, refusing what the kernels cannot trust."""
    node, parent, p_on, n_variables = needed(arrays, ARRAYS)
    n = node.size
    for name, array, shape in (
        ("node", node, (n,)),
        ("parent", parent, (n,)),
        ("n_variables", n_variables, (1,)),
    ):
        if array.dtype != np.int64 or array.shape != shape or not 0 < n <= MOST_NODES:
            raise ModelFileError(f"{name} is {array.dtype} of shape {array.shape}")
    if not (np.sort(node) == np.arange(n)).all():
        raise ModelFileError("node does not hold every node once")
    if not ((parent >= -1) & (parent < np.arange(n))).all():
        raise ModelFileError("parent does not precede its children")
    if not 0 < n_variables[0] <= n:
        raise ModelFileError(f"a tree of {n} nodes has {n_variables[0]} variables")
    p_on = numbers(p_on, "p_on", (n, 2), low=0.0, high=1.0)
    if (p_on[parent < 0, 0] != p_on[parent < 0, 1]).any():
        raise ModelFileError("p_on of a root depends on a parent")
    return BinaryTree(node, parent, p_on, int(n_variables[0]))
