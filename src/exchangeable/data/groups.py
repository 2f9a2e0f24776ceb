"""The rows of a class with their weights, and sums over them.

A group with many rows is divided into parts for several threads; the parts depend on the data
alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data import packed_kernels, row_kernels
from exchangeable.data.rows import Rows
from exchangeable.runtime.threads import row_ranges, run

GROUP_CHUNK = 1 << 16
NO_WEIGHTS = np.empty(0)


@dataclass(frozen=True)
class Group:
    """Some rows with their weights; no weights means that every row counts 1."""

    members: IntArray
    weights: FloatArray = field(default_factory=lambda: NO_WEIGHTS)

    @property
    def total(self) -> float:
        """The total weight of the rows."""
        return float(self.weights.sum() if self.weights.size else self.members.size)

    def parts(self) -> list["Group"]:
        """Divide a large group into several."""
        return [
            Group(self.members[start:stop], self.weights[start:stop])
            for start, stop in row_ranges(self.members.size, GROUP_CHUNK)
        ]


def sum_per_group(
    groups: Sequence[Group],
    sizes: Sequence[int],
    add: Callable[[int, Group, FloatArray], None],
    n_jobs: int | None,
) -> list[FloatArray]:
    """Sum ``add(number of the group, part of the group, output)`` over the parts of each group."""
    tasks = [(number, part) for number, group in enumerate(groups) for part in group.parts()]

    def one(task: tuple[int, Group]) -> FloatArray:
        number, part = task
        output = np.zeros(sizes[number])
        add(number, part, output)
        return output

    sums: list[FloatArray | None] = [None] * len(groups)
    for (number, _), result in zip(tasks, run(one, tasks, n_jobs), strict=True):
        known = sums[number]
        sums[number] = result if known is None else known + result
    return [np.zeros(size) if s is None else s for s, size in zip(sums, sizes, strict=True)]


def group_ones(rows: Rows, groups: Sequence[Group], n_jobs: int | None = None) -> list[FloatArray]:
    """Return, for each group, the weighted number of ones of every variable."""

    def add(number: int, part: Group, output: FloatArray) -> None:
        if rows.bytes_.size and not part.weights.size:
            row_kernels.sum_bytes(rows.bytes_, part.members, output)
        elif rows.bits.size and not part.weights.size:
            room = packed_kernels.room_for_sums(rows.bits)
            packed_kernels.sum_bits(rows.bits, part.members, room, output)
        else:
            row_kernels.sum_ones(rows.arrays, part.members, part.weights, output)

    return sum_per_group(groups, [rows.n_variables] * len(groups), add, n_jobs)
