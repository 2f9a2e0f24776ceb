"""Tables with an entry for every class, block and count: their layout, histograms and scores.

The rows of a class, with their weights, are a `Group`. A group with many rows is divided into parts
for several threads; the parts depend on the data alone.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.groups import Group, sum_per_group
from exchangeable.data.rows import Rows
from exchangeable.families.common import table_kernels
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import row_ranges, run

SCORE_CHUNK = 1 << 11


def group_histograms(
    rows: Rows, groups: Sequence[Group], partitions: Sequence[Partition], n_jobs: int | None = None
) -> list[FloatArray]:
    """Return, for each group, the weight of its rows by count in each block of its partition.

    The result has the layout of `Partition`: block b's counts start at ``starts[b]``.
    """

    def add(number: int, part: Group, output: FloatArray) -> None:
        partition = partitions[number]
        table_kernels.add_histogram(
            rows.arrays,
            part.members,
            part.weights,
            partition.labels,
            partition.starts,
            _masks(rows, partition),
            np.zeros(partition.n_blocks, dtype=np.int64),
            np.empty(rows.n_variables, dtype=np.int32),
            output,
        )

    return sum_per_group(groups, [p.table_size for p in partitions], add, n_jobs)


def block_counts(rows: Rows, group: Group, partition: Partition) -> npt.NDArray[np.int32]:
    """Return the number of ones of each row of a group in each block, one line per block."""
    counts = np.zeros((partition.n_blocks, group.members.size), dtype=np.int32)
    masks, buffer = _masks(rows, partition), np.empty(rows.n_variables, dtype=np.int32)
    table_kernels.count_blocks(rows.arrays, group.members, partition.labels, masks, buffer, counts)
    return counts


def _masks(rows: Rows, partition: Partition) -> npt.NDArray[np.uint64]:
    """Return one bit-packed row per block, none if the ones of rows are listed instead."""
    few = table_kernels.MASK_WORDS // max(rows.bits.shape[1], 1)
    if rows.indptr.size or partition.n_blocks > max(table_kernels.MASK_COST, few):
        return np.empty((0, 0), dtype=np.uint64)
    members = np.zeros((partition.n_blocks, rows.bits.shape[1] * 64), dtype=bool)
    members[partition.labels, np.arange(rows.n_variables)] = True
    packed = np.packbits(members, axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)


def label_type(n_blocks: int) -> type[np.integer[Any]]:
    """Return the type in which kernels that score rows read the numbers of blocks."""
    return np.uint16 if n_blocks <= 1 << 16 else np.int32


class TableArrays(NamedTuple):
    """`Tables` in the form of the kernels."""

    labels: npt.NDArray[np.integer[Any]]
    first_block: IntArray
    starts: IntArray
    values: FloatArray


@dataclass(frozen=True)
class Tables:
    """The data for scoring: the block of each variable in each class, and a value for each count.

    Attributes
    ----------
    labels : array of shape (n_variables, n_classes)
        Number of the variable's block among the blocks of all classes.
    first_block : array of shape (n_classes + 1,)
        The blocks of class y are ``first_block[y]`` to ``first_block[y + 1] - 1``.
    starts : array
        The start of each block's entries in `values`.
    values : array
        The entries of all classes and blocks, one for each count.
    """

    labels: npt.NDArray[np.integer[Any]]
    first_block: IntArray
    starts: IntArray
    values: FloatArray

    @classmethod
    def layout(cls, partitions: Sequence[Partition], values: FloatArray | None = None) -> Self:
        """Return tables for some partitions, with values not yet set unless they are given."""
        n_blocks = [len(partition.sizes) for partition in partitions]
        every = np.concatenate([partition.labels for partition in partitions])
        lines = every.reshape(len(partitions), -1)
        first_block = np.cumsum([0, *n_blocks])
        first_entry = first_block + lines.shape[1] * np.arange(first_block.size)
        starts = np.concatenate([partition.starts for partition in partitions])
        starts += np.repeat(first_entry[:-1], n_blocks)
        labels = np.empty(lines.shape[::-1], dtype=label_type(first_block[-1]))
        np.add(lines.T, first_block[:-1], out=labels, casting="unsafe")
        end = first_entry[-1]
        return cls(labels, first_block, starts, np.empty(end) if values is None else values)

    @property
    def arrays(self) -> TableArrays:
        """The tables in the form of the kernels."""
        return TableArrays(self.labels, self.first_block, self.starts, self.values)

    def of_class(self, y: int) -> FloatArray:
        """Return the entries of one class, in the layout of its partition."""
        begin, last = self.starts[self.first_block[y]], self.first_block[y + 1]
        end = self.starts[last] if last < self.starts.size else self.values.size
        return self.values[begin:end]

    def split(self, values: FloatArray) -> list[FloatArray]:
        """Divide an array that is laid out as `values` into the parts of the classes."""
        cuts = [*self.starts[self.first_block[:-1]].tolist(), values.size]
        return [values[begin:end] for begin, end in itertools.pairwise(cuts)]


def score_tables(rows: Rows, tables: Tables, n_jobs: int | None = None) -> FloatArray:
    """Return Σ_b value[count of the row in b] for every row and class."""
    scores = np.empty((rows.n_rows, tables.labels.shape[1]))

    def one(span: tuple[int, int]) -> None:
        table_kernels.score_rows(rows.arrays, *span, tables.arrays, _score_room(tables), scores)

    run(one, row_ranges(rows.n_rows, SCORE_CHUNK), n_jobs)
    return scores


def _score_room(tables: Tables) -> table_kernels.ScoreRoom:
    """Return intermediate storage for scoring."""
    n_variables, n_classes = tables.labels.shape
    return table_kernels.ScoreRoom(
        np.zeros(tables.starts.size, dtype=np.int32),
        np.empty(n_variables, dtype=np.int32),
        np.empty(n_classes),
        np.empty(n_classes, dtype=np.int64),
        np.empty(n_classes, dtype=np.int64),
    )
