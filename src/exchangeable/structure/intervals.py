"""Runs of neighbouring blocks, as sums over chunks count them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.partitions import Labels, Partition

ClassSums = tuple[float, FloatArray, float, float]
"""Of one class: weight, ones of each variable, sums of the rows' counts and of their squares."""


@dataclass(frozen=True)
class Runs:
    """Runs of neighbouring blocks of one class, each counted as if it were one block.

    Run i holds the blocks ``begins[i]..ends[i] - 1``, and its counts stand from ``starts[i]`` on.
    """

    labels: Labels
    n_blocks: int
    begins: IntArray
    ends: IntArray
    starts: IntArray
    table_size: int

    @classmethod
    def of(cls, partition: Partition, runs: Sequence[tuple[int, int]]) -> "Runs":
        """Return the runs given by their first blocks and the blocks behind their last."""
        begins, ends = np.array(runs, dtype=np.int64).reshape(-1, 2).T
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

    def split(self, histogram: FloatArray) -> list[FloatArray]:
        """Cut a histogram over all runs into theirs."""
        return np.split(histogram, self.starts[1:])
