"""Weighted urns with given log-linear scores: the closed form of conditional training."""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.mixture import Mixture, weighed
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition


def normalise(scores: LogLinear, n_jobs: int | None = None) -> tuple[Mixture, float] | None:
    """Return weighted urns with log P(x, y) = score − log Z, and log Z.

    With θ = exp(slope) and look-ups t, a block has Z = Σ_l exp(t(l))·e_l(θ) and q(l) =
    exp(t(l))·e_l(θ) / Z, all in logarithms. Weights are centred in each block, which the look-ups
    compensate.
    """
    if scores.pair.size:
        return None
    partitions, look_ups = _blocks(scores)
    log_weights = scores.slope.copy()
    for y, partition in enumerate(partitions):
        middle = np.bincount(partition.labels, log_weights[:, y]) / partition.sizes
        log_weights[:, y] -= middle[partition.labels]
        look_ups[y] = look_ups[y] + np.repeat(middle, partition.sizes + 1) * _counts(partition)
    flat = [np.zeros(partition.table_size) for partition in partitions]
    polynomials = UrnModel.make(partitions, log_weights, flat, n_jobs).polynomials
    log_q, log_totals = [], scores.base.copy()
    for y, partition in enumerate(partitions):
        mass = look_ups[y] + polynomials[y].log_e
        totals = np.logaddexp.reduceat(mass, partition.starts)
        log_q.append(mass - np.repeat(totals, partition.sizes + 1))
        log_totals[y] += totals.sum()
    return weighed(UrnModel.make(partitions, log_weights, log_q, n_jobs), log_totals)


def _blocks(scores: LogLinear) -> tuple[list[Partition], list[FloatArray]]:
    """Return the blocks of each class and the look-ups by the counts in them."""
    n, k = scores.slope.shape
    if scores.tables.values.size:
        first = scores.tables.first_block
        labels = [scores.tables.labels[:, y].astype(np.int64) - first[y] for y in range(k)]
        partitions = [Partition.from_labels(each) for each in labels]
        return partitions, [scores.tables.of_class(y).copy() for y in range(k)]
    everything = Partition.whole(n)
    by_count = scores.by_count if scores.by_count.size else np.zeros((n + 1, k))
    return [everything] * k, [column.copy() for column in by_count.T]


def _counts(partition: Partition) -> FloatArray:
    """Return the count of each entry of a table over the blocks."""
    starts = np.repeat(partition.starts, partition.sizes + 1)
    return (np.arange(partition.table_size) - starts).astype(np.float64)
