"""Models of blocks in model files."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import Partition, log_factorials
from exchangeable.storage.checks import (
    CLOSE,
    check_sums,
    checked_partitions,
    needed,
    numbers,
    stacked_labels,
    stretches,
)

ARRAYS = ("labels", "histograms", "totals", "tables")


def encode(
    partitions: list[Partition], histograms: list[FloatArray], totals: FloatArray, tables: Tables
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays for a file."""
    return {
        "labels": stacked_labels(partitions),
        "histograms": np.concatenate(histograms),
        "totals": totals,
        "tables": tables.values,
    }


def decode(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[list[Partition], list[FloatArray], FloatArray, Tables]:
    """Return the parameters from arrays of a file, after checking everything."""
    labels, histograms, totals, values = needed(arrays, ARRAYS)
    partitions = checked_partitions(labels, values.size)
    size = sum(partition.table_size for partition in partitions)
    highest = np.finfo(np.float64).max
    histograms = numbers(histograms, "histograms", (size,), low=0, high=highest)
    totals = numbers(totals, "totals", (len(partitions),), low=0, high=highest)
    values = numbers(values, "tables", (size,), low=-np.inf, high=CLOSE)
    ends = np.cumsum([partition.table_size for partition in partitions])[:-1]
    for partition, table in zip(partitions, np.split(values, ends), strict=True):
        for log_totals in block_totals(partition, table):
            check_sums(np.exp(log_totals), "tables")
    return partitions, np.split(histograms, ends), totals, Tables.layout(partitions, values)


def block_totals(partition: Partition, table: FloatArray) -> Iterator[FloatArray]:
    """Yield log Σ_x P(x) of blocks, some at a time; the table says log P(x) for every count."""
    log_factorial = log_factorials(partition.labels.size)
    for blocks, counts in stretches(partition):
        lengths, starts = partition.sizes[blocks] + 1, partition.starts[blocks] - counts.start
        ones = np.arange(counts.stop - counts.start) - np.repeat(starts, lengths)
        size = np.repeat(partition.sizes[blocks], lengths)
        shares = log_factorial[size] - log_factorial[ones] - log_factorial[size - ones]
        shares = np.exp(shares + table[counts])
        with np.errstate(divide="ignore"):
            yield np.log(np.add.reduceat(shares, starts))
