"""Checks that make arrays that were read safe to compute with.

The kernels trust their input: an index out of range would read foreign memory, a cycle in a tree
would never end. So nothing that was read reaches them unchecked.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.partitions import Partition
from exchangeable.storage.archive import ModelFileError

CLOSE = 1e-6
"""How far probabilities may be from adding up to one."""


def needed(arrays: Mapping[str, npt.NDArray[Any]], names: Sequence[str]) -> list[npt.NDArray[Any]]:
    """Return the named arrays of a model, refusing a file that lacks one."""
    for name in names:
        if name not in arrays:
            raise ModelFileError(f"the model lacks {name}")
    return [arrays[name] for name in names]


def stacked_labels(partitions: Sequence[Partition]) -> npt.NDArray[np.int32]:
    """Return the block of each variable, one row a partition."""
    return np.stack([partition.labels for partition in partitions])


def checked_partitions(labels: npt.NDArray[Any]) -> list[Partition]:
    """Return the partition of each class, having checked that each is one."""
    if labels.ndim != 2 or not labels.size or labels.dtype != np.int32:
        raise ModelFileError(f"labels are {labels.dtype} of shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= labels.shape[1]:
        raise ModelFileError("labels hold a block number that is out of range")
    partitions = [Partition.from_labels(row) for row in labels]
    if any((partition.sizes == 0).any() for partition in partitions):
        raise ModelFileError("labels leave a block without variables")
    return partitions


def numbers(
    array: npt.NDArray[Any], name: str, shape: tuple[int, ...], *, low: float, high: float
) -> FloatArray:
    """Return an array of float64 of the given shape, all between two bounds, none of them NaN."""
    if array.dtype != np.float64 or array.shape != shape:
        raise ModelFileError(f"{name} is {array.dtype} of shape {array.shape}, expected {shape}")
    if array.size and not (array.min() >= low and array.max() <= high):  # false for NaN too
        raise ModelFileError(f"{name} holds {array.min()}..{array.max()}, which cannot be")
    return array


def probabilities(log_values: FloatArray, name: str) -> None:
    """Check that log-probabilities add up to one."""
    total = float(np.exp(log_values).sum())
    if not abs(total - 1.0) < CLOSE:
        raise ModelFileError(f"{name} are probabilities that add up to {total}")


def check_counts(log_q: FloatArray, partitions: Sequence[Partition], name: str) -> None:
    """Check that each block's log-probabilities of counts add up to one."""
    begin = 0
    for partition in partitions:
        shares = np.exp(log_q[begin : begin + partition.table_size])
        totals = np.add.reduceat(shares, partition.starts)
        if not (np.abs(totals - 1.0) < CLOSE).all():
            raise ModelFileError(f"{name} hold probabilities that do not add up to one")
        begin += partition.table_size


def check_totals(log_totals: FloatArray, name: str) -> None:
    """Check that the probabilities of all rows add up to one in every class."""
    wrong = np.flatnonzero(~(np.abs(log_totals) < CLOSE))  # true for NaN too
    if wrong.size:
        raise ModelFileError(
            f"{name} hold probabilities that do not add up to one: those of class {wrong[0]} add "
            f"up to exp({log_totals[wrong[0]]:.6g})"
        )


def check_forest(parent: npt.NDArray[Any], n: int) -> None:
    """Check that following parents ends at a root from everywhere, by doubling the steps."""
    if not parent.size:
        return
    if parent.min() < 0 or parent.max() > n:
        raise ModelFileError("parent holds a variable that is out of range")
    above = np.concatenate([parent, np.full((1, parent.shape[1]), n)]).astype(np.int64)
    for _ in range(n.bit_length() + 1):
        above = np.take_along_axis(above, above, axis=0)
    if (above != n).any():
        raise ModelFileError("parent holds a cycle; a tree has none")
