"""Hidden trees with leaves in files: each leaf's arrays, under its number."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.leaf_trees.leaves import MODELS, Leaf
from exchangeable.families.leaf_trees.tree import LeafTree, States
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import CLOSE, check_forest, check_lines, needed, numbers

ARRAYS = ("parent", "edges", "states", "models", "sizes", "variables")
KINDS = tuple(MODELS)


def encode(trees: Sequence[LeafTree]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays for a file."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for number, tree in enumerate(trees):
        leaves = tree.leaves
        found: tuple[npt.NDArray[Any], ...] = (
            tree.hidden.parent,
            tree.hidden.edges,
            tree.states,
            np.array([KINDS.index(leaf.model.kind) for leaf in leaves], dtype=np.int64),
            np.array([leaf.variables.size for leaf in leaves], dtype=np.int64),
            np.concatenate([leaf.variables for leaf in leaves]),
        )
        arrays |= {f"{number}.{name}": array for name, array in zip(ARRAYS, found, strict=True)}
        for b, leaf in enumerate(leaves):
            own = leaf.model.encode()
            arrays |= {f"{number}.leaf{b}.{name}": array for name, array in own.items()}
    return arrays


def decode(arrays: Mapping[str, npt.NDArray[Any]]) -> list[LeafTree]:
    """Return the trees from arrays of a file, after checking everything."""
    trees: list[LeafTree] = []
    while f"{len(trees)}.parent" in arrays:
        prefix = f"{len(trees)}."
        trees.append(_tree(_under(arrays, prefix)))
    if not trees:
        raise ModelFileError("hidden trees with leaves, of which there is none")
    if any(tree.types != trees[0].types for tree in trees):
        raise ModelFileError("the model holds trees of different variables")
    return trees


def _under(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _tree(arrays: Mapping[str, npt.NDArray[Any]]) -> LeafTree:
    parent, edges, states, models, sizes, variables = needed(arrays, ARRAYS)
    n_leaves = models.size
    for name, array in (("models", models), ("sizes", sizes), ("variables", variables)):
        if array.dtype != np.int64 or array.ndim != 1 or not array.size:
            raise ModelFileError(f"{name} are {array.dtype} of shape {array.shape}")
    if sizes.size != n_leaves or sizes.min() < 1 or sizes.sum() != variables.size:
        raise ModelFileError("sizes are not those of the leaves")
    if not np.array_equal(np.sort(variables), np.arange(variables.size)):
        raise ModelFileError("the leaves do not hold every variable once")
    if models.min() < 0 or models.max() >= len(KINDS):
        raise ModelFileError("models holds a model that is unknown")
    hidden = _states(parent, edges, n_leaves)
    h = hidden.n_states
    if states.dtype != np.int64 or states.ndim != 1 or not states.size:
        raise ModelFileError(f"states are {states.dtype} of shape {states.shape}")
    if states.min() < 0 or states.max() >= h or (np.diff(states) <= 0).any():
        raise ModelFileError("states must be different states of the root, in order")
    blocks = np.split(variables, np.cumsum(sizes)[:-1])
    leaves = [
        _leaf(b, block, int(kind), h, arrays)
        for b, (block, kind) in enumerate(zip(blocks, models, strict=True))
    ]
    return LeafTree(hidden, leaves, states)


def _states(parent: npt.NDArray[Any], edges: npt.NDArray[Any], n_leaves: int) -> States:
    if parent.dtype != np.int32 or parent.shape != (n_leaves,):
        raise ModelFileError(f"parent is {parent.dtype} of shape {parent.shape}")
    check_forest(parent[:, None], n_leaves)
    if np.count_nonzero(parent == n_leaves) != 1:
        raise ModelFileError("a hidden tree has one root")
    h = edges.shape[-1] if edges.ndim else 0
    checked: FloatArray = numbers(edges, "edges", (n_leaves, h, h), low=0.0, high=1.0 + CLOSE)
    if not h:
        raise ModelFileError("edges are of no state")
    check_lines(checked, "edges")
    return States(parent, checked)


def _leaf(
    b: int, variables: IntArray, kind: int, h: int, arrays: Mapping[str, npt.NDArray[Any]]
) -> Leaf:
    model = MODELS[KINDS[kind]].decode(_under(arrays, f"leaf{b}."))
    if (model.n_classes, model.n_variables) != (h, variables.size):
        raise ModelFileError(
            f"leaf {b} has {model.n_classes} states and {model.n_variables} variables, expected "
            f"{h} and {variables.size}"
        )
    return Leaf(variables, model)
