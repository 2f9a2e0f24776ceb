"""The sample of rows and the sums from which blocks and trees are learned again, for batches.

Sums are exact. Rows are sampled, or all kept as long as they are few: each row draws a random key
that grows with its weight, and each class keeps the rows with the largest keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import listed
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.observed import Observed
from exchangeable.data.rows import CountRows, Rows, TypedRows
from exchangeable.data.stacking import nowhere, stack_observed

MOST_ROWS = 4096
"""Number of rows kept per class."""
GROWTH = 1.05
"""Blocks of a class are learned again when its weight has grown by this factor."""


@dataclass(frozen=True)
class Sketch:
    """A sample of the rows of each class, and sums over all of them.

    Attributes
    ----------
    rows : Rows
        The sample, bits as lists of ones.
    label, weights, keys : arrays of shape (n_rows,)
        The class, the weight and the key of each row.
    ones : array of shape (n_classes, n_variables)
        Weight of all rows of a class with a variable on.
    totals, learned : arrays of shape (n_classes,)
        Weight of all rows of a class, now and when its blocks were last learned.
    n_seen : int
        Number of rows so far.
    holes : Rows, optional
        The missing entries of the sample; None if there are none.
    """

    rows: Rows
    label: IntArray
    weights: FloatArray
    keys: FloatArray
    ones: FloatArray
    totals: FloatArray
    learned: FloatArray
    n_seen: int
    holes: Rows | None = None

    @classmethod
    def empty(cls, n_variables: int, n_classes: int) -> "Sketch":
        """Return an empty sketch."""
        nothing, no_rows = np.empty(0), nowhere(0, n_variables)
        zeros = np.zeros(n_classes)
        label = np.empty(0, dtype=np.int64)
        ones = np.zeros((n_classes, n_variables))
        return cls(no_rows, label, nothing, nothing, ones, zeros, zeros, 0)

    def add(
        self,
        rows: Rows,
        groups: Sequence[Group],
        n_jobs: int | None = None,
        holes: Rows | None = None,
    ) -> "Sketch":
        """Return the sketch with a batch added, given the rows of each class and their holes."""
        rng = np.random.default_rng(self.n_seen)
        members = np.concatenate([group.members for group in groups]).astype(np.int64)
        label = np.repeat(np.arange(len(groups)), [group.members.size for group in groups])
        weights = np.concatenate([_weights(group) for group in groups])
        with np.errstate(divide="ignore"):
            keys = np.log(rng.random(members.size)) / weights
        every = Observed(rows, holes).take(members)
        if self.rows.n_rows:
            every = stack_observed([self.observed, every])
        label = np.concatenate([self.label, label])
        weights, keys = np.append(self.weights, weights), np.append(self.keys, keys)
        kept = _largest(keys, label, len(groups))
        sample = every.take(kept)
        # Columns of other kinds have no ones.
        counted = isinstance(sample.ones, TypedRows | CountRows)
        ones = 0.0 if counted else np.stack(group_ones(rows, groups, n_jobs))
        return Sketch(
            sample.ones if counted else listed(sample.ones),
            label[kept],
            weights[kept],
            keys[kept],
            self.ones + ones,
            self.totals + [group.total for group in groups],
            self.learned,
            self.n_seen + members.size,
            sample.holes,
        )

    @property
    def observed(self) -> Observed:
        """The sample with missing entries."""
        return Observed(self.rows, self.holes)

    @property
    def sample_weights(self) -> FloatArray:
        """The weight of each row of the sample, which represents all rows seen."""
        weights = np.empty(self.rows.n_rows)
        for y in range(self.totals.size):
            group = self.group(y)
            weights[group.members] = group.weights
        return weights

    def outgrown(self) -> IntArray:
        """Return the classes whose blocks are to be learned again."""
        return np.flatnonzero(self.totals > np.maximum(GROWTH * self.learned, 0.0))

    def group(self, y: int) -> Group:
        """Return the sampled rows of a class, which represent all rows seen."""
        members = np.flatnonzero(self.label == y)
        weights = self.weights[members]
        if members.size == MOST_ROWS:  # a sample drawn by weight: all have equal weight
            weights = np.full(members.size, self.totals[y] / members.size)
        return Group(members, weights)


def _weights(group: Group) -> FloatArray:
    return group.weights if group.weights.size else np.ones(group.members.size)


def _largest(keys: FloatArray, label: IntArray, n_classes: int) -> IntArray:
    """Return, in order, the rows with the largest keys of each class, up to the limit."""
    kept = []
    for y in range(n_classes):
        members = np.flatnonzero(label == y)
        if members.size > MOST_ROWS:
            members = members[np.argpartition(-keys[members], MOST_ROWS)[:MOST_ROWS]]
        kept.append(members)
    return np.sort(np.concatenate(kept))
