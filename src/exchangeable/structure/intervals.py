"""Intervals of neighbouring blocks, each counted as if it were one block.

Evidence merging only considers intervals of the blocks of one fine sweep; their histograms add up
over chunks of rows.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.row_kernels import ones_of
from exchangeable.data.rows import Rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.common.streaming.recipes import Labelled, Recipe
from exchangeable.families.common.tables import block_counts
from exchangeable.partitions import Labels, Partition
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill
from exchangeable.runtime.threads import run

EachClass = Callable[[Rows, Group, int], Any]
"""A function of rows, of those that belong to a class, and of the number of the class."""
Pass = Callable[[EachClass], list[Any]]
"""A pass over all rows: for every class the sum of such a function over the chunks."""
ClassSums = tuple[float, FloatArray, float, float]
"""For one class: weight, ones of each variable, sums of the rows' counts and of their squares."""


class Intervals(NamedTuple):
    """Intervals of neighbouring blocks of one class.

    Attributes
    ----------
    labels : array of shape (n_variables,)
        The block of each variable.
    n_blocks : int
        Number of blocks.
    begins, ends : arrays of shape (n_intervals,)
        Interval i holds the blocks ``begins[i]..ends[i] - 1``.
    starts : array of shape (n_intervals,)
        The entry of count l of interval i is ``starts[i] + l``.
    table_size : int
        Number of entries of all intervals.
    """

    labels: Labels
    n_blocks: int
    begins: IntArray
    ends: IntArray
    starts: IntArray
    table_size: int

    @classmethod
    def of(cls, partition: Partition, intervals: Sequence[tuple[int, int]]) -> Self:
        """Return intervals given by their first blocks and the blocks after their last."""
        begins, ends = np.array(intervals, dtype=np.int64).reshape(-1, 2).T
        before = np.concatenate([[0], np.cumsum(partition.sizes)])
        lengths = before[ends] - before[begins] + 1
        stops = np.cumsum(lengths)
        return cls(
            partition.labels,
            partition.n_blocks,
            np.ascontiguousarray(begins),
            np.ascontiguousarray(ends),
            stops - lengths,
            int(stops[-1]) if stops.size else 0,
        )

    def histogram(self, rows: Rows, group: Group) -> FloatArray:
        """Return the weight of a group's rows by count in each interval."""
        histogram = np.zeros(self.table_size)
        if self.begins.size:
            _add_intervals(rows.arrays, group.members, group.weights, self, histogram)
        return histogram

    def split(self, histogram: FloatArray) -> list[FloatArray]:
        """Divide a histogram over all intervals into one histogram per interval."""
        return np.split(histogram, self.starts[1:])


@compiled()
def _add_intervals(rows, members, weights, intervals, histogram):  # type: ignore[no-untyped-def]
    """Add the member rows' weights to the histograms of all intervals.

    Weights are empty where all are 1.
    """
    labels, n_blocks = intervals.labels, intervals.n_blocks
    begins, ends, starts = intervals.begins, intervals.ends, intervals.starts
    before = np.empty(n_blocks + 1, dtype=np.int64)
    buffer = np.empty(labels.size, dtype=np.int32)
    for i in range(members.size):
        w = weights[i] if weights.size else 1.0
        ones = ones_of(rows, members[i], buffer)
        fill(before, 0)
        for k in range(ones.size):
            before[labels[ones[k]] + 1] += 1
        for b in range(n_blocks):
            before[b + 1] += before[b]
        for interval in range(begins.size):
            count = before[ends[interval]] - before[begins[interval]]
            histogram[starts[interval] + count] += w


def group_sums(rows: Rows, groups: Sequence[Group], n_jobs: int | None = None) -> list[ClassSums]:
    """Return the sums of each group of rows."""
    one_block = Partition.whole(rows.n_variables)
    sums: list[ClassSums] = []
    for group, ones in zip(groups, group_ones(rows, groups, n_jobs), strict=True):
        count = block_counts(rows, group, one_block)[0].astype(np.float64)
        weighted = count * group.weights if group.weights.size else count
        sums.append((group.total, ones, float(weighted.sum()), float(weighted @ count)))
    return sums


def recipe_sums(chunk: Chunk, recipe: Recipe, n_jobs: int | None = None) -> list[ClassSums]:
    """Return the sums of each class."""
    return group_sums(_rows_of(chunk, recipe), recipe.groups(chunk, n_jobs), n_jobs)


def _rows_of(chunk: Chunk, recipe: Recipe) -> Rows:
    """Return the rows of the groups that a recipe numbers."""
    return chunk.rows if isinstance(recipe, Labelled) else chunk.examples.rows


def of_every_class(
    chunk: Chunk, recipe: Recipe, function: EachClass, n_jobs: int | None = None
) -> list[Any]:
    """Return a function of the rows of every class of a chunk."""
    rows = _rows_of(chunk, recipe)
    groups = recipe.groups(chunk, n_jobs)
    return run(lambda y: function(rows, groups[y], y), range(len(groups)), n_jobs)


def interval_histogram(rows: Rows, group: Group, y: int, wanted: Sequence[Intervals]) -> FloatArray:
    """Return the histograms of a class's intervals of blocks."""
    return wanted[y].histogram(rows, group)
