"""Trees over counts in model files."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.families.count_trees.forest import MOST_BINS, MOST_BINS_IN_ALL, CountForest
from exchangeable.partitions import Partition
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import (
    CLOSE,
    check_counts,
    check_forest,
    check_sums,
    checked_partitions,
    needed,
    numbers,
    stacked_labels,
)

ARRAYS = ("labels", "bins", "parent", "log_q", "log_ratio")


def encode(
    forests: Sequence[CountForest], log_q: Sequence[FloatArray], log_ratio: Sequence[FloatArray]
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays for a file."""
    return {
        "labels": stacked_labels([forest.partition for forest in forests]),
        "bins": np.concatenate([forest.bins for forest in forests]),
        "parent": np.concatenate([forest.parent for forest in forests]),
        "log_q": np.concatenate(log_q),
        "log_ratio": np.concatenate(log_ratio),
    }


def decode(
    read: Mapping[str, npt.NDArray[Any]],
) -> tuple[list[CountForest], list[FloatArray], list[FloatArray]]:
    """Return the parameters from arrays of a file, after checking everything."""
    arrays = dict(zip(ARRAYS, needed(read, ARRAYS), strict=True))
    partitions = checked_partitions(arrays["labels"], arrays["log_q"].size)
    sizes = [partition.table_size for partition in partitions]
    n_blocks = [partition.n_blocks for partition in partitions]
    for name, size in (("bins", sum(sizes)), ("parent", sum(n_blocks))):
        if arrays[name].dtype != np.int64 or arrays[name].shape != (size,):
            raise ModelFileError(f"{name} is {arrays[name].dtype} of shape {arrays[name].shape}")
    log_q = numbers(arrays["log_q"], "log_q", (sum(sizes),), low=-np.inf, high=CLOSE)
    check_counts(log_q, partitions, "log_q")
    by_count = np.cumsum(sizes)[:-1]
    forests = []
    for partition, bins, parent in zip(
        partitions,
        np.split(arrays["bins"], by_count),
        np.split(arrays["parent"], np.cumsum(n_blocks)[:-1]),
        strict=True,
    ):
        _check_bins(bins, partition)
        check_forest(parent[:, None], partition.n_blocks)
        forests.append(CountForest.of(partition, bins, parent))
    cells = [forest.n_cells for forest in forests]
    log_ratio = numbers(arrays["log_ratio"], "log_ratio", (sum(cells),), low=-700, high=700)
    by_class = np.split(log_q, by_count)
    ratios = np.split(log_ratio, np.cumsum(cells)[:-1])
    for forest, known, ratio in zip(forests, by_class, ratios, strict=True):
        margins = forest.bin_masses(np.exp(known))
        for child, _ in forest.edges():
            check_sums(np.exp(forest.table(ratio, child)) @ margins[child], "log_ratio")
    return forests, by_class, ratios


def _check_bins(bins: npt.NDArray[Any], partition: Partition) -> None:
    """Check that each block's bins are ranges of counts, numbered from 0."""
    steps = np.diff(bins)
    steps[partition.starts[1:] - 1] = 0
    if (bins[partition.starts] != 0).any() or ((steps != 0) & (steps != 1)).any():
        raise ModelFileError("bins are not stretches of counts numbered from 0")
    n_bins = np.maximum.reduceat(bins, partition.starts) + 1
    if n_bins.max() > MOST_BINS or n_bins.sum() > MOST_BINS_IN_ALL:
        raise ModelFileError(
            f"a block has at most {MOST_BINS} bins and a class {MOST_BINS_IN_ALL:,}, this has "
            f"{n_bins.max():,} and {n_bins.sum():,}"
        )
