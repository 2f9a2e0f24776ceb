"""A prior made of the data: pseudo-rows distributed as the whole training set."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.families.common import count_smoothing, log_linear
from exchangeable.families.common.tables import group_histograms
from exchangeable.partitions import Partition

WIDTHS = np.array([0.0, 0.06, 0.13, 0.3])
"""Widths of the kernels that smooth counts, on a logarithmic scale."""
ALL_COUNTS = 4096
"""Blocks of up to this many variables have a probability for every count."""


@dataclass(frozen=True)
class Pool:
    """What the whole training set is like, and how many rows of it each class is given.

    Attributes
    ----------
    strength : float
        Weight of the pseudo-rows of each class.
    alpha : float
        Laplace smoothing of the set's own frequencies, so that none is zero.
    examples : Examples
        The set.
    means : array of shape (n_variables,)
        How probable each variable is to be on.
    """

    strength: float
    alpha: float
    examples: Examples
    means: FloatArray

    @classmethod
    def of(cls, examples: Examples, strength: float, alpha: float) -> "Pool":
        """Return the pool of some examples."""
        everyone = Group(np.arange(examples.rows.n_rows), examples.weights)
        ones = group_ones(examples.rows, [everyone])[0]
        means = (ones + alpha) / (examples.total + 2 * alpha)
        return cls(strength, alpha, examples, means)

    def histograms(
        self, partitions: Sequence[Partition], n_jobs: int | None = None
    ) -> list[FloatArray]:
        """Return the share of the set's rows with each count in each block of each class."""
        everyone = Group(np.arange(self.examples.rows.n_rows), self.examples.weights)
        distinct: dict[bytes, FloatArray] = {}
        for partition in partitions:
            key = partition.labels.tobytes()
            if key not in distinct:
                counted = group_histograms(self.examples.rows, [everyone], [partition], n_jobs)[0]
                distinct[key] = counted / self.examples.total
        return [distinct[partition.labels.tobytes()] for partition in partitions]

    def pairs(self) -> FloatArray:
        """Return how probable each pair of variables is to be on, smoothed as `means` are."""
        everyone = np.arange(self.examples.rows.n_rows)
        both = log_linear.pair_sums(self.examples.rows, everyone, self.examples.weights)
        pairs: FloatArray = (both + self.alpha / 2) / (self.examples.total + 2 * self.alpha)
        np.fill_diagonal(pairs, self.means)
        return pairs

    def smooth(self, partition: Partition, shares: FloatArray) -> FloatArray:
        """Return the shares of each count, smoothed so that every possible count has some."""
        parts = []
        for share in np.split(shares, partition.starts[1:]):
            reach = share.size
            if reach > ALL_COUNTS:
                reach = min(reach, 2 * int(np.flatnonzero(share)[-1]) + 1024)
            rest = np.zeros(share.size)
            rest[:reach] = self.alpha / reach
            seen = share * self.examples.total
            known = count_smoothing.smoothed(seen[None], rest[None], WIDTHS)[0]
            known[reach:] = 0.0
            parts.append(known / known.sum())
        return np.concatenate(parts)
