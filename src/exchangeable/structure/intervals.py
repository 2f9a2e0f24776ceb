"""Runs of neighbouring blocks, as sums over chunks count them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data import packed_kernels
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.common.em_data import Labelled, Recipe
from exchangeable.partitions import Labels, Partition
from exchangeable.runtime.threads import run

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


def run_histograms(
    chunk: Chunk, recipe: Recipe, wanted: Sequence[Runs], n_jobs: int | None = None
) -> list[FloatArray]:
    """Return for each class the histograms of its runs of blocks."""
    rows = chunk.rows if isinstance(recipe, Labelled) else chunk.examples.rows
    groups = recipe.groups(chunk, n_jobs)

    def one(y: int) -> FloatArray:
        runs, group = wanted[y], groups[y]
        histogram = np.zeros(runs.table_size)
        if runs.begins.size:
            packed_kernels.add_intervals(
                *rows.arrays,
                group.members,
                group.weights,
                runs.labels,
                runs.n_blocks,
                runs.begins,
                runs.ends,
                runs.starts,
                histogram,
            )
        return histogram

    return run(one, range(len(wanted)), n_jobs)
