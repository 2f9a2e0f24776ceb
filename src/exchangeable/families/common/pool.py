"""The pooled prior: pseudo-rows distributed as the whole training set."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.families.common import count_smoothing
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.log_linear import scores as log_linear
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.common.tables import group_histograms
from exchangeable.partitions import Partition

WIDTHS = np.array([0.0, 0.06, 0.13, 0.3])
"""Widths of the smoothing kernels for counts, on a logarithmic scale."""
ALL_COUNTS = 4096
"""Blocks of up to this many variables have a probability for every count."""
MOST_KNOWN = 1000
"""Maximum number of cached histograms."""
LEAST_CHANCE = 1e-15
"""No variable is on, or off, with a smaller probability."""


@dataclass(frozen=True)
class Pool:
    """The distribution of the whole training set, and the weight of the pseudo-rows.

    Attributes
    ----------
    strength : float
        Weight of the pseudo-rows of each class.
    alpha : float
        Laplace smoothing of the set's own frequencies, so that none is zero.
    rows : InMemory or Streamed
        The set, without missing entries.
    means : array of shape (n_variables,)
        The probability of each variable being on; none is certain.
    known : dict
        The cached histograms, by the blocks.
    """

    strength: float
    alpha: float
    rows: InMemory | Streamed
    means: FloatArray
    known: dict[bytes, FloatArray] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, rows: InMemory | Streamed, strength: float, alpha: float) -> "Pool":
        """Return the pool of some rows."""
        means = chances(rows.summed(_ones) + alpha, rows.total + 2 * alpha)
        return cls(strength, alpha, rows, means)

    @property
    def total(self) -> float:
        """The total weight of the set's rows."""
        return self.rows.total

    def histograms(
        self, partitions: Sequence[Partition], n_jobs: int | None = None
    ) -> list[FloatArray]:
        """Return the share of the set's rows with each count in each block of each class."""
        keys = [partition.labels.tobytes() for partition in partitions]
        found = [(key, self.known.get(key)) for key in keys]
        shares = {key: share for key, share in found if share is not None}
        new = {key: p for key, p in zip(keys, partitions, strict=True) if key not in shares}
        if new:
            function = partial(_histograms, partitions=list(new.values()), n_jobs=n_jobs)
            counted = zip(new, self.rows.summed(function), strict=True)
            shares.update({key: histogram / self.total for key, histogram in counted})
            if len(self.known) + len(new) > MOST_KNOWN:
                self.known.clear()
            self.known.update(shares)
        return [shares[key] for key in keys]

    def pairs(self) -> FloatArray:
        """Return the probability of each pair of variables being on, smoothed as `means` are."""
        both = self.rows.summed(all_pairs)
        pairs: FloatArray = (both + self.alpha / 2) / (self.total + 2 * self.alpha)
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
            seen = share * self.total
            known = count_smoothing.smoothed(seen[None], rest[None], WIDTHS)[0]
            known[reach:] = 0.0
            parts.append(known / known.sum())
        return np.concatenate(parts)


def chances(ones: FloatArray, totals: FloatArray | float) -> FloatArray:
    """Return the probability of variables being on, none of them certain.

    With little smoothing a share is 0 or 1 to the last digit, and ones that are added in another
    order than all rows may even exceed them.

    >>> bool(chances(np.array([60.000000000000014]), 60.0) < 1)
    True
    """
    return np.clip(ones / totals, LEAST_CHANCE, 1 - LEAST_CHANCE)


def everyone(examples: Examples) -> Group:
    """Return all rows as one group."""
    return Group(np.arange(examples.rows.n_rows), examples.weights)


def _ones(examples: Examples) -> FloatArray:
    """Return the weight of the rows with each variable on."""
    return group_ones(examples.rows, [everyone(examples)])[0]


def _histograms(
    examples: Examples, partitions: Sequence[Partition], n_jobs: int | None = None
) -> list[FloatArray]:
    """Return the weight of the rows with each count in each block of several partitions."""
    group = everyone(examples)
    return [group_histograms(examples.rows, [group], [p], n_jobs)[0] for p in partitions]


def all_pairs(examples: Examples) -> FloatArray:
    """Return the weight of the rows with both of two variables on."""
    members = np.arange(examples.rows.n_rows)
    return log_linear.pair_sums(examples.rows, members, examples.weights)
