"""Hidden trees in files."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.families.hidden_trees.model import HiddenModel, HiddenTree
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import (
    CLOSE,
    check_counts,
    check_forest,
    checked_partitions,
    numbers,
    stacked_labels,
)
from exchangeable.storage.values import Reader, Writer

ARRAYS = ("labels", "parent", "log_q", "edges", "states")


def encode_hidden(model: HiddenModel, writer: Writer, name: str) -> dict[str, Any]:
    """Return the parameters of hidden trees as JSON with references to arrays."""
    trees = []
    for number, tree in enumerate(model.trees):
        inner = tree.messages
        labels = stacked_labels([inner.partition])
        arrays: tuple[npt.NDArray[Any], ...] = (
            labels,
            inner.parent,
            inner.log_q,
            inner.edges,
            tree.states,
        )
        trees.append(
            {
                key: writer.store(array, f"{name}.{number}.{key}")
                for key, array in zip(ARRAYS, arrays, strict=True)
            }
        )
    return {"kind": "hidden trees", "trees": trees}


def decode_hidden(value: dict[str, Any], reader: Reader, name: str) -> HiddenModel:
    """Return the hidden trees whose parameters are given."""
    entries = value.get("trees")
    if not isinstance(entries, list) or not entries:
        raise ModelFileError(f"{name} has no trees")
    trees = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise ModelFileError(f"{name} holds a tree that is none")
        trees.append(_tree(*(reader.array(entry.get(key), key) for key in ARRAYS)))
    if len({tree.messages.partition.labels.size for tree in trees}) > 1:
        raise ModelFileError(f"{name} holds trees of different variables")
    return HiddenModel(trees)


def _tree(
    labels: npt.NDArray[Any],
    parent: npt.NDArray[Any],
    log_q: npt.NDArray[Any],
    edges: npt.NDArray[Any],
    states: npt.NDArray[Any],
) -> HiddenTree:
    partitions = checked_partitions(labels)
    partition = partitions[0]
    n_blocks = partition.n_blocks
    if len(partitions) != 1 or parent.dtype != np.int32 or parent.shape != (n_blocks,):
        raise ModelFileError(f"parent is {parent.dtype} of shape {parent.shape}")
    check_forest(parent[:, None], n_blocks)
    if np.count_nonzero(parent == n_blocks) != 1:
        raise ModelFileError("a hidden tree has one root")
    if log_q.ndim != 2 or not log_q.size:
        raise ModelFileError(f"log_q has shape {log_q.shape}")
    h = log_q.shape[1]
    log_q = numbers(log_q, "log_q", (partition.table_size, h), low=-np.inf, high=CLOSE)
    for column in log_q.T:
        check_counts(column, [partition], "log_q")
    edges = numbers(edges, "edges", (n_blocks, h, h), low=0.0, high=1.0 + CLOSE)
    if not (np.abs(edges.sum(axis=2) - 1.0) < CLOSE).all():
        raise ModelFileError("edges hold probabilities that do not add up to one")
    if states.dtype != np.int64 or states.ndim != 1 or not states.size:
        raise ModelFileError(f"states are {states.dtype} of shape {states.shape}")
    if states.min() < 0 or states.max() >= h or (np.diff(states) <= 0).any():
        raise ModelFileError("states must be different states of the root, in order")
    return HiddenTree.make(partition, parent, log_q, edges, states)
