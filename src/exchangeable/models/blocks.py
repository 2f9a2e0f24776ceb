"""Classes or components made of independent blocks: their parameters, fit and scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.engines import cpu, kernels
from exchangeable.engines.cpu import Group, Tables
from exchangeable.engines.rows import Rows
from exchangeable.engines.threads import run
from exchangeable.partitions import Partition, log_factorials
from exchangeable.structure.learner import Structure


@dataclass
class BlockModel:
    """For each class its blocks and the weight of the rows seen, by count in each block.

    The histograms are the sufficient statistics: they add up over batches. `tables` are the
    parameters made of them, log q(l | y) − log C(m, l) for every block and count.
    """

    partitions: list[Partition]
    histograms: list[FloatArray]
    totals: FloatArray
    tables: Tables | None = None

    @classmethod
    def blank(cls, n_variables: int, n_classes: int) -> Self:
        """Return a model that has seen no rows; its one block a class only keeps the place."""
        partition = Partition.from_labels(np.zeros(n_variables, dtype=np.int32))
        histograms = [np.zeros(partition.table_size) for _ in range(n_classes)]
        return cls([partition] * n_classes, histograms, np.zeros(n_classes))

    def add(
        self, rows: Rows, groups: Sequence[Group], structure: Structure, n_jobs: int | None = None
    ) -> Self:
        """Return the model with a batch added; classes seen for the first time get their blocks."""
        partitions, histograms = list(self.partitions), list(self.histograms)
        new = [y for y, group in enumerate(groups) if self.totals[y] == 0 and group.total > 0]
        if isinstance(structure, list):
            learned = [structure[y] for y in new]
        else:
            learned = learn_partitions(rows, [groups[y] for y in new], structure, n_jobs)
        for y, partition in zip(new, learned, strict=True):
            partitions[y] = partition
            histograms[y] = np.zeros(partition.table_size)
        batch = cpu.histograms(rows, groups, partitions, n_jobs)
        return type(self)(
            partitions,
            [before + added for before, added in zip(histograms, batch, strict=True)],
            self.totals + [group.total for group in groups],
        )

    def set_tables(self, alpha: float, n_jobs: int | None = None) -> None:
        """Compute the tables from the histograms, with Laplace smoothing (Theorem 4.2)."""
        log_factorial = log_factorials(self.partitions[0].labels.size)

        tables = Tables.layout(self.partitions)

        def fill(y: int) -> None:
            partition = self.partitions[y]
            kernels.fill_table(
                self.histograms[y],
                partition.starts,
                partition.sizes,
                alpha,
                self.totals[y],
                log_factorial,
                tables.of_class(y),
            )

        run(fill, range(len(self.partitions)), n_jobs)
        self.tables = tables

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) for every class, block and count l."""
        log_factorial = log_factorials(self.partitions[0].labels.size)
        result = []
        for y, partition in enumerate(self.partitions):
            blocks = []
            parts = np.split(self._tables().of_class(y), partition.starts[1:])
            for m, entries in zip(partition.sizes, parts, strict=True):
                log_ways = log_factorial[m] - log_factorial[: m + 1] - log_factorial[: m + 1][::-1]
                blocks.append(np.exp(entries + log_ways))
            result.append(blocks)
        return result

    def score(self, rows: Rows, n_jobs: int | None = None) -> FloatArray:
        """Return log P(x | y) for every row and class."""
        return cpu.score(rows, self._tables(), n_jobs)

    def _tables(self) -> Tables:
        if self.tables is None:
            raise RuntimeError("set_tables has not been called")
        return self.tables


def learn_partitions(
    rows: Rows, groups: Sequence[Group], structure: Structure, n_jobs: int | None = None
) -> list[Partition]:
    """Return the blocks of each group of rows, as given or learned."""
    if isinstance(structure, list):
        return structure
    if structure.needs_moments:
        sums = cpu.moments(rows, groups, n_jobs)
    else:
        sums = [np.empty(0)] * len(groups)

    def learn(y: int) -> Partition:
        return structure.learn(rows, groups[y], sums[y])

    return run(learn, range(len(groups)), n_jobs)


def fit_blocks(
    rows: Rows,
    groups: Sequence[Group],
    partitions: list[Partition],
    alpha: float,
    n_jobs: int | None = None,
) -> BlockModel:
    """Return the model of given blocks whose parameters fit each group of rows."""
    histograms = cpu.histograms(rows, groups, partitions, n_jobs)
    model = BlockModel(partitions, histograms, np.array([group.total for group in groups]))
    model.set_tables(alpha, n_jobs)
    return model
