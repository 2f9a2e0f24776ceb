"""Checks that make arrays from files safe to compute with.

The kernels trust their input: an index out of range would read foreign memory, a cycle in a tree
would never end. So nothing from a file reaches them unchecked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.partitions import Partition
from exchangeable.storage.archive import ModelFileError

CLOSE = 1e-6
"""Tolerance for sums of probabilities."""
AT_ONCE = 1 << 13
"""Number of entries that are checked at a time, so that checking takes little memory."""


def needed(arrays: Mapping[str, npt.NDArray[Any]], names: Sequence[str]) -> list[npt.NDArray[Any]]:
    """Return the named arrays of a model, rejecting a file that lacks one."""
    for name in names:
        if name not in arrays:
            raise ModelFileError(f"the model lacks {name}")
    return [arrays[name] for name in names]


def stacked_labels(partitions: Sequence[Partition]) -> npt.NDArray[np.int32]:
    """Return the block of each variable, one row per partition."""
    return np.stack([partition.labels for partition in partitions])


def checked_partitions(labels: npt.NDArray[Any], n_counts: int) -> list[Partition]:
    """Return the partition of each class, after checking that each is one.

    `n_counts` is the total number of entries of the tables of all classes: labels of blocks without
    entries would take more memory than their file.
    """
    if labels.ndim != 2 or not labels.size or labels.dtype != np.int32:
        raise ModelFileError(f"labels are {labels.dtype} of shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= labels.shape[1]:
        raise ModelFileError("labels hold a block number that is out of range")
    if labels.size + len(labels) + int(labels.max(axis=1).sum(dtype=np.int64)) != n_counts:
        raise ModelFileError(f"labels do not go with tables of {n_counts:,} entries")
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
    """Check that log-probabilities sum to one."""
    total = float(np.exp(log_values).sum())
    if not abs(total - 1.0) < CLOSE:
        raise ModelFileError(f"{name} are probabilities that add up to {total}")


def check_sums(totals: FloatArray, name: str) -> None:
    """Check that sums of probabilities are all one."""
    if not (np.abs(totals - 1.0) < CLOSE).all():
        raise ModelFileError(f"{name} hold probabilities that do not add up to one")


def check_counts(log_q: FloatArray, partitions: Sequence[Partition], name: str) -> None:
    """Check that each block's log-probabilities of counts sum to one."""
    begin = 0
    for partition in partitions:
        for blocks, counts in stretches(partition):
            shares = np.exp(log_q[begin + counts.start : begin + counts.stop])
            check_sums(np.add.reduceat(shares, partition.starts[blocks] - counts.start), name)
        begin += partition.table_size


def stretches(partition: Partition) -> Iterator[tuple[slice, slice]]:
    """Yield blocks that follow each other, and their entries in a table, some at a time."""
    first = 0
    while first < partition.n_blocks:
        begin = int(partition.starts[first])
        end = max(int(np.searchsorted(partition.starts, begin + AT_ONCE)), first + 1)
        last = end == partition.n_blocks
        stop = partition.table_size if last else int(partition.starts[end])
        yield slice(first, end), slice(begin, stop)
        first = end


def check_columns(log_shares: FloatArray, starts: IntArray, name: str) -> None:
    """Check that, in each column, the probabilities from each start to the next sum to one."""
    for column in log_shares.T:
        check_sums(np.add.reduceat(np.exp(column), starts), name)


def check_lines(tables: FloatArray, name: str) -> None:
    """Check that the probabilities in each line of each table sum to one."""
    at_once = max(AT_ONCE // tables[0].size, 1)
    for begin in range(0, len(tables), at_once):
        check_sums(tables[begin : begin + at_once].sum(axis=2), name)


def check_totals(log_totals: FloatArray, name: str) -> None:
    """Check that the probabilities of all rows sum to one in every class."""
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
    for column in parent.T:
        above = np.append(column, n).astype(np.int32)
        for _ in range(n.bit_length() + 1):
            farther = np.empty_like(above)
            for begin in range(0, n + 1, AT_ONCE):
                farther[begin : begin + AT_ONCE] = above[above[begin : begin + AT_ONCE]]
            above = farther
        if above.min() < n:
            raise ModelFileError("parent holds a cycle; a tree has none")
