"""Sums of count trees over rows; each function takes `Examples`, in memory or of a chunk."""

from collections.abc import Sequence

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group
from exchangeable.data.rows import Rows
from exchangeable.families.common.class_rows import ClassRows
from exchangeable.families.count_trees.forest import CountForest, edge_sums, pair_tables
from exchangeable.families.count_trees.model import CountTreeModel, CountTreeSums, expect_rows
from exchangeable.partitions import Partition

Wanted = dict[int, tuple[Partition, IntArray]]
"""The blocks of some classes, and the bins of their counts."""


def held(
    examples: Examples, posterior: FloatArray, model: CountTreeModel, n_jobs: int | None
) -> CountTreeSums:
    """Return the sums of given posteriors."""
    return expect_rows(model, examples, np.zeros(posterior.shape[1]), n_jobs, posterior)


def class_tables(by_class: Sequence[ClassRows], wanted: Wanted) -> dict[int, list[FloatArray]]:
    """Return the mass of all pairs of bins of some classes."""
    return {
        y: pair_tables(*blocks, [(by_class[y].rows, by_class[y].group)])
        for y, blocks in wanted.items()
    }


def class_edges(by_class: Sequence[ClassRows], forests: Sequence[CountForest]) -> list[FloatArray]:
    """Return the mass of each class by cell of its forest's edges."""
    pairs = zip(forests, by_class, strict=True)
    return [edge_sums(forest, found.rows, found.group) for forest, found in pairs]


def pseudo_rows(examples: Examples, scale: float) -> tuple[Rows, Group]:
    """Return the rows of the pooled prior, with their weights."""
    return examples.rows, Group(np.arange(examples.rows.n_rows), examples.weights * scale)


def pseudo_tables(examples: Examples, wanted: Wanted, scale: float) -> dict[int, list[FloatArray]]:
    """Return the prior's mass of all pairs of bins of some classes."""
    rows = pseudo_rows(examples, scale)
    return {y: pair_tables(*blocks, [rows]) for y, blocks in wanted.items()}


def pseudo_edges(
    examples: Examples, forests: Sequence[CountForest], scale: float
) -> list[FloatArray]:
    """Return the prior's mass by cell of each forest's edges."""
    rows = pseudo_rows(examples, scale)
    return [edge_sums(forest, *rows) for forest in forests]
