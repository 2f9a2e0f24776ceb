"""What is kept of rows that come in batches, so that blocks and trees can be learned again.

Sums are exact. Of the rows themselves a sample is kept, all of them as long as there are few: each
row draws a key that grows with its weight, and a class keeps the rows with the largest keys.
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
"""Rows that are kept of a class."""
GROWTH = 1.05
"""Blocks of a class are learned again when it has become this many times heavier."""


@dataclass(frozen=True)
class Sketch:
    """A sample of the rows of each class, and sums over all of them.

    Attributes
    ----------
    rows : Rows
        The sample, bits as lists of ones.
    label, weights, keys : arrays of shape (n_rows,)
        The class of each, how much it counts, and what it was chosen by.
    ones : array of shape (n_classes, n_variables)
        Weight of all rows of a class with a variable on.
    totals, learned : arrays of shape (n_classes,)
        Weight of all rows of a class, now and when its blocks were last learned.
    n_seen : int
        Number of rows so far.
    holes : Rows, optional
        The entries of the sample that are not known; None where every entry is.
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
        """Return the sketch of no rows."""
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
        """The sample with its holes."""
        return Observed(self.rows, self.holes)

    @property
    def sample_weights(self) -> FloatArray:
        """How much each row of the sample counts, standing for all that were seen."""
        weights = np.empty(self.rows.n_rows)
        for y in range(self.totals.size):
            group = self.group(y)
            weights[group.members] = group.weights
        return weights

    def outgrown(self) -> IntArray:
        """Return the classes whose blocks are to be learned again."""
        return np.flatnonzero(self.totals > np.maximum(GROWTH * self.learned, 0.0))

    def group(self, y: int) -> Group:
        """Return the rows of a class, which stand for all that were seen."""
        members = np.flatnonzero(self.label == y)
        weights = self.weights[members]
        if members.size == MOST_ROWS:  # a sample drawn by weight: all count alike
            weights = np.full(members.size, self.totals[y] / members.size)
        return Group(members, weights)


def _weights(group: Group) -> FloatArray:
    return group.weights if group.weights.size else np.ones(group.members.size)


def _largest(keys: FloatArray, label: IntArray, n_classes: int) -> IntArray:
    """Return, in order, the rows with the largest keys of each class, as many as are kept."""
    kept = []
    for y in range(n_classes):
        members = np.flatnonzero(label == y)
        if members.size > MOST_ROWS:
            members = members[np.argpartition(-keys[members], MOST_ROWS)[:MOST_ROWS]]
        kept.append(members)
    return np.sort(np.concatenate(kept))
