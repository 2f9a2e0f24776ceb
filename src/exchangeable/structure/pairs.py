"""Condition (3) of Proposition 3.3 for all pairs of a block: equal covariances."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.columns.selection import take_columns
from exchangeable.data.groups import Group
from exchangeable.data.rows import Rows
from exchangeable.families.common.log_linear.scores import pair_sums
from exchangeable.partitions import Partition

MOST_VARIABLES = 512
"""In blocks with more variables, only the covariance of each with the rest is compared."""


class Covariances(NamedTuple):
    """Covariances of all pairs of variables, and the variances of these estimates."""

    covariance: FloatArray
    spread: FloatArray


def pair_covariances(both: FloatArray, total: float) -> Covariances:
    """Return the covariances of 0/1 variables.

    Parameters
    ----------
    both : array of shape (n_variables, n_variables)
        Weight of the rows with both of two variables on; on the diagonal, with one on.
    total : float
        Weight of all rows.
    """
    p11 = both / total
    mean = np.diag(p11)
    p10, p01 = mean[:, None] - p11, mean[None, :] - p11
    p00 = 1 - p11 - p10 - p01
    covariance = p11 - np.outer(mean, mean)
    a, b = mean[:, None], mean[None, :]
    square = (
        p11 * ((1 - a) * (1 - b)) ** 2
        + p10 * ((1 - a) * b) ** 2
        + p01 * (a * (1 - b)) ** 2
        + p00 * (a * b) ** 2
    )
    return Covariances(covariance, np.maximum(square - covariance**2, 0.0) / max(total - 1, 1.0))


def split_by_pairs(
    partition: Partition, rows: Rows, group: Group, significance: float
) -> Partition:
    """Split blocks in which some pairs of variables covary more than others.

    Two variables of an exchangeable block have the same covariance with every third one. They are
    separated if their covariances with one of the others differ, or if their own is below the lower
    bound for exchangeable variables of that number and variance. The level applies to all
    comparisons in a block together (Bonferroni), so that an exchangeable block is split with at
    most that probability.
    """
    tables = [pairs_within(rows, group, block) for block in compared_blocks(partition)]
    return split_from_pairs(partition, tables, group.total, significance)


def compared_blocks(partition: Partition) -> list[IntArray]:
    """Return the blocks whose pairs are compared, each in order."""
    return [np.sort(block) for block in partition.blocks if 3 <= block.size <= MOST_VARIABLES]


def pairs_within(rows: Rows, group: Group, block: IntArray) -> FloatArray:
    """Return the weight of the rows with both of two variables of a block on; it adds up."""
    weights = group.weights if group.weights.size else np.ones(group.members.size)
    return pair_sums(take_columns(rows, block), group.members, weights)


def split_from_pairs(
    partition: Partition, tables: Sequence[FloatArray], total: float, significance: float
) -> Partition:
    """Split blocks by the weights of all pairs of variables of those that are compared."""
    labels = partition.labels.astype(np.int64) * partition.labels.size
    for block, both in zip(compared_blocks(partition), tables, strict=True):
        apart = differences(pair_covariances(both, total))
        labels[block] += groups_within(apart, threshold(block.size, significance))
    return Partition.from_labels(np.unique(labels, return_inverse=True)[1])


def threshold(n_variables: int, significance: float) -> float:
    """Return the number of standard errors of a significant difference, among all comparisons."""
    comparisons = n_variables * (n_variables - 1) * (n_variables - 1) / 2
    return float(-ndtri(significance / (2 * comparisons)))


def differences(pairs: Covariances) -> FloatArray:
    """Return how different each two variables are, in standard errors: the largest of any third."""
    covariance, spread = pairs
    m = len(covariance)
    apart = np.zeros((m, m))
    for third in range(m):
        column, error = covariance[third], spread[third]
        gap = np.abs(column[:, None] - column[None, :])
        scale = np.sqrt(np.maximum(error[:, None] + error[None, :], 1e-300))
        score = np.where(gap > 0, gap / scale, 0.0)
        score[third] = score[:, third] = 0.0
        np.maximum(apart, score, out=apart)
    np.maximum(apart, below_bound(pairs), out=apart)
    np.fill_diagonal(apart, 0.0)
    return apart


def below_bound(pairs: Covariances) -> FloatArray:
    """Return by how many standard errors covariances are below −variance / (m − 1)."""
    covariance, spread = pairs
    m = len(covariance)
    bound = -np.diag(covariance).mean() / (m - 1)
    return np.asarray(np.maximum((bound - covariance) / np.sqrt(np.maximum(spread, 1e-300)), 0.0))


def groups_within(apart: FloatArray, limit: float) -> IntArray:
    """Return groups of variables no two of which are further apart than the limit."""
    if apart.max() <= limit:
        return np.zeros(len(apart), dtype=np.int64)
    from scipy.cluster.hierarchy import fcluster, linkage  # seldom needed, and slow to import
    from scipy.spatial.distance import squareform

    tree = linkage(squareform(np.minimum(apart, 1e300), checks=False), method="complete")
    return np.asarray(fcluster(tree, limit, criterion="distance") - 1, dtype=np.int64)
