"""The pooled prior of count distributions: the frequency of each count in the training set."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.common.count_smoothing import smoothed
from exchangeable.families.common.pool import WIDTHS, Pool
from exchangeable.partitions import Partition


@dataclass(frozen=True)
class CountPrior:
    """The pooled prior of the counts in given blocks.

    Attributes
    ----------
    pool : Pool
        The prior.
    partitions : sequence of Partition
        The blocks of each component.
    shares : sequence of arrays
        The share of the training set with each count in each of them.
    smooth_shares : sequence of arrays
        The same, smoothed.
    """

    pool: Pool
    partitions: Sequence[Partition]
    shares: Sequence[FloatArray]
    smooth_shares: Sequence[FloatArray]

    @classmethod
    def of(cls, pool: Pool, partitions: Sequence[Partition]) -> "CountPrior":
        """Return the prior of given blocks."""
        shares = pool.histograms(partitions)
        smooth: dict[int, FloatArray] = {}
        for partition, share in zip(partitions, shares, strict=True):
            if id(share) not in smooth:
                smooth[id(share)] = pool.smooth(partition, share)
        return cls(pool, partitions, shares, [smooth[id(share)] for share in shares])

    @cached_property
    def masses(self) -> list[FloatArray]:
        """The prior's mass of each count in each block of each class."""
        return [self.pool.strength * share for share in self.shares]

    @cached_property
    def smooth_masses(self) -> list[FloatArray]:
        """The same, smoothed."""
        return [self.pool.strength * share for share in self.smooth_shares]

    def log_q(self, histograms: Sequence[FloatArray] | FloatArray) -> list[FloatArray]:
        """Return log q of the counts in the blocks of every class, given the mass of each."""
        if all(partition.n_blocks == 1 for partition in self.partitions):
            return list(_log_q(np.asarray(histograms), np.asarray(self.smooth_masses)))
        by_class = []
        for seen, prior, partition in zip(
            histograms, self.smooth_masses, self.partitions, strict=True
        ):
            blocks = (np.split(line[None], partition.starts[1:], axis=1) for line in (seen, prior))
            parts = [_log_q(*block)[0] for block in zip(*blocks, strict=True)]
            by_class.append(np.concatenate(parts))
        return by_class


def _log_q(seen: FloatArray, prior: FloatArray) -> FloatArray:
    """Return log q of some blocks' counts, one block per line, given the mass of each."""
    mass = smoothed(seen, prior, WIDTHS) if seen.shape[1] > 3 else seen + prior
    mass[prior == 0] = 0.0
    mass /= mass.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mass, out=mass))
