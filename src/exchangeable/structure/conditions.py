"""Splitting blocks by the further necessary conditions of Proposition 3.3.

The sweep over means tests condition (1). Conditions (2), equal variances, and (3), equal
covariances, are the same sweep over other quantities of each variable: its squared deviation from
its mean, and the product of its deviation with that of the rest of its block. `pairs` compares the
covariances of all pairs.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from exchangeable.arrays import FloatArray
from exchangeable.data.groups import Group
from exchangeable.data.row_kernels import ones_of
from exchangeable.data.rows import Rows
from exchangeable.partitions import Partition
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.structure.sweep import sweep


def equal_means_p_value(
    ones: FloatArray, row_counts: npt.NDArray[Any], weights: FloatArray
) -> float:
    """Return Cochran's p-value of the hypothesis that exchangeable variables have equal means.

    Unlike tests of two variables at a time, this one accounts for their correlation, and for the
    number of variables being compared.

    Parameters
    ----------
    ones : array of shape (n_variables,)
        Weight of the rows that have each variable on.
    row_counts : array of shape (n_rows,)
        Number of variables that are on in each row.
    weights : array of shape (n_rows,) or (0,)
        Weight of each row; empty if all are 1.
    """
    count = row_counts.astype(np.float64)
    weighted = weights * count if weights.size else count
    return equal_means_from_sums(ones, float(weighted.sum()), float(weighted @ count))


def equal_means_from_sums(ones: FloatArray, counts: float, squares: float) -> float:
    """Return the same, given the sums of the rows' counts and of their squares, by weight."""
    m = ones.size
    unit = (m * counts - squares) / max(m * (m - 1), 1)  # Σ w·s·(m − s) over the rows' counts s
    scatter = float(((ones - ones.mean()) ** 2).sum())
    return float(chdtrc(m - 1, scatter / unit)) if unit > 0 and m > 1 else 1.0


def split_by_variance(
    partition: Partition, ones: FloatArray, total: float, significance: float
) -> Partition:
    """Split blocks in which the variances of 0/1 variables differ (condition 2)."""
    mean = ones / total
    variance = mean * (1 - mean)
    spread = variance * (1 - 4 * variance) * total / (total - 1)
    return _split(partition, variance, np.maximum(spread, 0.0), total, significance)


def split_by_covariance(
    partition: Partition,
    rows: Rows,
    group: Group,
    ones: FloatArray,
    significance: float,
) -> Partition:
    """Split blocks in which the variables' covariances with the rest of their block differ (3)."""
    products = block_products(partition, rows, group)
    return split_from_products(partition, products, ones, significance)


@dataclass(frozen=True)
class BlockProducts:
    """Sums over rows from which covariances with the rest of a block are computed; they add up.

    Attributes
    ----------
    total : float
        The weight of the rows.
    with_count, with_square : arrays of shape (n_variables,)
        The counts of each variable's block, and their squares, over the rows that have it on.
    block_sum, block_square : arrays of shape (n_blocks,)
        The same of each block, over all rows.
    """

    total: float
    with_count: FloatArray
    with_square: FloatArray
    block_sum: FloatArray
    block_square: FloatArray


def block_products(partition: Partition, rows: Rows, group: Group) -> BlockProducts:
    """Return the sums over some rows."""
    with_count, with_square = np.zeros((2, rows.n_variables))
    block_sum, block_square = np.zeros((2, partition.n_blocks))
    sums = _BlockSums(with_count, with_square, block_sum, block_square)
    _sum_block_products(rows.arrays, group.members, group.weights, partition.labels, sums)
    return BlockProducts(group.total, *sums)


def split_from_products(
    partition: Partition, products: BlockProducts, ones: FloatArray, significance: float
) -> Partition:
    """Split blocks in which covariances differ, according to these sums."""
    n, with_count, with_square = products.total, products.with_count, products.with_square
    # Per row z = (x − mean)·(rest − mean of rest), with rest = count − x; its sum and sum of
    # squares split into the rows where x = 1 and those where x = 0.
    mean = ones / n
    total = products.block_sum[partition.labels]
    square = products.block_square[partition.labels]
    rest = total / n - mean
    on = with_count - ones * (1 + rest)
    off = (total - with_count) - (n - ones) * rest
    on_square = with_square - 2 * (1 + rest) * with_count + ones * (1 + rest) ** 2
    off_square = (square - with_square) - 2 * rest * (total - with_count) + (n - ones) * rest**2
    covariance = ((1 - mean) * on - mean * off) / n
    z_square = (1 - mean) ** 2 * on_square + mean**2 * off_square
    spread = np.maximum(z_square - n * covariance**2, 0.0) / (n - 1)
    return _split(partition, covariance, spread, n, significance)


def _split(
    partition: Partition, value: FloatArray, spread: FloatArray, n: float, significance: float
) -> Partition:
    """Cut each block of two or more variables where a sweep over `value` separates them."""
    labels = partition.labels.astype(np.int64) * partition.labels.size
    for block in partition.blocks:
        if block.size > 1:
            labels[block] += sweep(value[block], spread[block], n, significance)
    return Partition.from_labels(np.unique(labels, return_inverse=True)[1])


class _BlockSums(NamedTuple):
    """Sums over rows of their counts in blocks, and of the squares of these.

    Attributes
    ----------
    with_count, with_square : arrays of shape (n_variables,)
        Of each variable's block, over the rows that have the variable on.
    block_sum, block_square : arrays of shape (n_blocks,)
        Of each block, over all rows.
    """

    with_count: FloatArray
    with_square: FloatArray
    block_sum: FloatArray
    block_square: FloatArray


@compiled()
def _sum_block_products(rows, members, weights, labels, sums):  # type: ignore[no-untyped-def]
    """Sum the count of a variable's block, and its square, over all rows and those with it on."""
    with_count, with_square, block_sum, block_square = sums
    counts = np.zeros(block_sum.size)
    buffer = np.empty(labels.size, dtype=np.int32)
    for i in range(members.size):
        w = weights[i] if weights.size else 1.0
        ones = ones_of(rows, members[i], buffer)
        for k in range(ones.size):
            counts[labels[ones[k]]] += 1.0
        for k in range(ones.size):
            count = counts[labels[ones[k]]]
            with_count[ones[k]] += w * count
            with_square[ones[k]] += w * count * count
        for k in range(ones.size):
            b = labels[ones[k]]
            block_sum[b] += w * counts[b]
            block_square[b] += w * counts[b] * counts[b]
            counts[b] = 0.0
