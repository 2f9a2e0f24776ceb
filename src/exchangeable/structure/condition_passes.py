"""The further conditions of Proposition 3.3 for rows in chunks.

Condition (2) needs nothing beyond means. Condition (3) needs sums of products within blocks, which
add up over chunks: one pass for the covariance of each variable with the rest of its block, and one
or more, by the size of the tables, for those of all pairs.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.groups import Group
from exchangeable.data.rows import Rows
from exchangeable.partitions import Partition
from exchangeable.structure.conditions import (
    BlockProducts,
    block_products,
    split_by_variance,
    split_from_products,
)
from exchangeable.structure.intervals import Pass
from exchangeable.structure.learner import BlockLearner
from exchangeable.structure.pairs import compared_blocks, pairs_within, split_from_pairs

MOST_ENTRIES = 1 << 21
"""Maximum number of entries, per class, of the tables of pairs that a pass sums."""


def split_in_passes(
    learner: BlockLearner,
    partitions: list[Partition],
    ones: Sequence[FloatArray],
    totals: Sequence[float] | FloatArray,
    over: Pass,
) -> list[Partition]:
    """Split the blocks of each class by the requested further conditions."""
    significance = learner.settings.significance
    if 2 in learner.settings.conditions:
        partitions = [
            split_by_variance(partition, class_ones, float(total), significance)
            if total > 1
            else partition
            for partition, class_ones, total in zip(partitions, ones, totals, strict=True)
        ]
    if 3 not in learner.settings.conditions:
        return partitions
    products = over(partial(_class_products, partitions=partitions))
    partitions = [
        split_from_products(partition, found, class_ones, significance)
        if found.total > 1
        else partition
        for partition, found, class_ones in zip(partitions, products, ones, strict=True)
    ]
    return _split_by_pairs(partitions, [found.total for found in products], significance, over)


def _split_by_pairs(
    partitions: Sequence[Partition], totals: Sequence[float], significance: float, over: Pass
) -> list[Partition]:
    """Split the blocks of each class by all pairs of variables, many blocks in a pass."""
    waiting = [compared_blocks(partition) for partition in partitions]
    found: list[list[FloatArray]] = [[] for _ in partitions]
    while any(waiting):
        now = [_first_few(blocks, MOST_ENTRIES) for blocks in waiting]
        waiting = [blocks[len(few) :] for blocks, few in zip(waiting, now, strict=True)]
        for tables, more in zip(found, over(partial(_class_pairs, blocks=now)), strict=True):
            tables.extend(more)
    return [
        split_from_pairs(partition, tables, total, significance) if total > 1 else partition
        for partition, tables, total in zip(partitions, found, totals, strict=True)
    ]


def _first_few(blocks: Sequence[IntArray], most: int) -> list[IntArray]:
    """Return the first blocks whose tables of pairs are small enough together, at least one."""
    entries = np.cumsum([block.size**2 for block in blocks])
    return list(blocks[: max(1, int(np.searchsorted(entries, most, side="right")))])


def _class_products(
    rows: Rows, group: Group, y: int, partitions: Sequence[Partition]
) -> BlockProducts:
    return block_products(partitions[y], rows, group)


def _class_pairs(
    rows: Rows, group: Group, y: int, blocks: Sequence[Sequence[IntArray]]
) -> list[FloatArray]:
    return [pairs_within(rows, group, block) for block in blocks[y]]
