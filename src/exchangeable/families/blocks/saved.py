"""Models of blocks in files."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition, log_factorials
from exchangeable.storage.checks import (
    CLOSE,
    check_counts,
    checked_partitions,
    needed,
    numbers,
    stacked_labels,
)

ARRAYS = ("labels", "histograms", "totals", "tables")


def encode(
    partitions: list[Partition], histograms: list[FloatArray], totals: FloatArray, tables: Tables
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that a file keeps."""
    return {
        "labels": stacked_labels(partitions),
        "histograms": np.concatenate(histograms),
        "totals": totals,
        "tables": tables.values,
    }


def decode(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[list[Partition], list[FloatArray], FloatArray, Tables]:
    """Return the parameters of arrays that were read, everything checked."""
    labels, histograms, totals, values = needed(arrays, ARRAYS)
    partitions = checked_partitions(labels)
    size = sum(partition.table_size for partition in partitions)
    highest = np.finfo(np.float64).max
    histograms = numbers(histograms, "histograms", (size,), low=0, high=highest)
    totals = numbers(totals, "totals", (len(partitions),), low=0, high=highest)
    values = numbers(values, "tables", (size,), low=-np.inf, high=CLOSE)
    log_factorial = log_factorials(partitions[0].labels.size)
    ends = np.cumsum([partition.table_size for partition in partitions])[:-1]
    for partition, own in zip(partitions, np.split(values, ends), strict=True):
        rows = np.concatenate([log_factorial[m] - log_factorial[: m + 1] for m in partition.sizes])
        rows -= np.concatenate([log_factorial[m::-1] for m in partition.sizes])
        check_counts(np.add(rows, own, out=rows), [partition], "tables")
    tables = Tables.layout(partitions)
    tables.values[:] = values
    return partitions, np.split(histograms, ends), totals, tables
