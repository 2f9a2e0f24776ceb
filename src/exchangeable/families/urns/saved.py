"""Weighted urns in model files."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.partitions import Partition
from exchangeable.storage.checks import (
    CLOSE,
    check_counts,
    checked_partitions,
    needed,
    numbers,
    stacked_labels,
)

ARRAYS = ("labels", "log_weights", "log_q")


def encode(
    partitions: Sequence[Partition], log_weights: FloatArray, log_q: Sequence[FloatArray]
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays for a file."""
    return {
        "labels": stacked_labels(partitions),
        "log_weights": log_weights,
        "log_q": np.concatenate(log_q),
    }


def decode(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[list[Partition], FloatArray, list[FloatArray]]:
    """Return the parameters from arrays of a file, after checking everything."""
    labels, log_weights, log_q = needed(arrays, ARRAYS)
    partitions = checked_partitions(labels, log_q.size)
    shape = (partitions[0].labels.size, len(partitions))
    log_weights = numbers(log_weights, "log_weights", shape, low=-700, high=700)
    size = sum(partition.table_size for partition in partitions)
    log_q = numbers(log_q, "log_q", (size,), low=-np.inf, high=CLOSE)
    check_counts(log_q, partitions, "log_q")
    ends = np.cumsum([partition.table_size for partition in partitions])[:-1]
    return partitions, log_weights, np.split(log_q, ends)
