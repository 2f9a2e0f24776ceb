"""Hidden trees in files."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.hidden_trees.passes.messages import Messages
from exchangeable.partitions import Partition
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import (
    CLOSE,
    check_counts,
    check_forest,
    check_lines,
    checked_partitions,
    needed,
    numbers,
    stacked_labels,
)

ARRAYS = ("labels", "parent", "log_q", "edges", "states")


Parameters = tuple[Partition, npt.NDArray[np.int32], FloatArray, FloatArray, IntArray]
"""Partition, parents, log q, edges and states of one tree."""


def encode(messages: Messages, states: IntArray) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that a file keeps of one tree."""
    labels = stacked_labels([messages.partition])
    arrays = (labels, messages.parent, messages.log_q, messages.edges, states)
    return dict(zip(ARRAYS, arrays, strict=True))


def decode(arrays: Mapping[str, npt.NDArray[Any]]) -> list[Parameters]:
    """Return the parameters of each tree of arrays that were read, everything checked."""
    if not arrays or len(arrays) % len(ARRAYS):
        raise ModelFileError(f"hidden trees of {len(arrays)} arrays, expected {len(ARRAYS)} each")
    trees = [
        _tree(*needed(arrays, [f"{number}.{name}" for name in ARRAYS]))
        for number in range(len(arrays) // len(ARRAYS))
    ]
    if len({tree[0].labels.size for tree in trees}) > 1:
        raise ModelFileError("the model holds trees of different variables")
    return trees


def _tree(
    labels: npt.NDArray[Any],
    parent: npt.NDArray[Any],
    log_q: npt.NDArray[Any],
    edges: npt.NDArray[Any],
    states: npt.NDArray[Any],
) -> Parameters:
    partitions = checked_partitions(labels, len(log_q) if log_q.ndim else 0)
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
    check_lines(edges, "edges")
    if states.dtype != np.int64 or states.ndim != 1 or not states.size:
        raise ModelFileError(f"states are {states.dtype} of shape {states.shape}")
    if states.min() < 0 or states.max() >= h or (np.diff(states) <= 0).any():
        raise ModelFileError("states must be different states of the root, in order")
    return partition, parent, log_q, edges, states
