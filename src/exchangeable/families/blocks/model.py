"""Classes or components made of independent blocks: their parameters, fit and scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.observed import Observed
from exchangeable.data.rows import Rows
from exchangeable.families.blocks import holes
from exchangeable.families.common import table_kernels
from exchangeable.families.common.tables import Tables, group_histograms, score_tables
from exchangeable.partitions import Partition, log_factorials
from exchangeable.runtime.threads import run
from exchangeable.structure.learner import Structure

SMALL_TABLES = 1 << 18
"""Tables with fewer entries than this are not worth several threads."""


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

    @classmethod
    def of_known_entries(cls, examples: Examples, posterior: FloatArray, alpha: float) -> Self:
        """Return independent variables, each with its frequency among the rows that know it."""
        single = Partition.from_labels(np.arange(examples.rows.n_variables))
        totals = examples.weights @ posterior
        everyone = np.arange(examples.rows.n_rows)
        histograms = []
        for y, total in enumerate(totals):
            group = Group(everyone, examples.weights * posterior[:, y])
            on = group_ones(examples.rows, [group], 1)[0]
            hidden = group_ones(examples.holes, [group], 1)[0] if examples.holes else 0.0
            known = np.maximum(total - hidden, on)
            with np.errstate(invalid="ignore"):
                share = np.where(known > 0, on / known, 0.5)
            histograms.append((total * np.stack([1 - share, share], axis=1)).ravel())
        model = cls([single] * totals.size, histograms, totals)
        model.set_tables(alpha)
        return model

    def add(
        self, rows: Rows, groups: Sequence[Group], structure: Structure, n_jobs: int | None = None
    ) -> Self:
        """Return the model with a batch added; classes seen for the first time get their blocks."""
        partitions, histograms = list(self.partitions), list(self.histograms)
        needs_rows = not isinstance(structure, list) and structure.needs_moments
        new = [
            y
            for y, group in enumerate(groups)
            if self.totals[y] == 0 and (group.total > 0 or not needs_rows)
        ]
        if isinstance(structure, list):
            learned = [structure[y] for y in new]
        else:
            learned = learn_partitions(rows, [groups[y] for y in new], structure, n_jobs)
        for y, partition in zip(new, learned, strict=True):
            partitions[y] = partition
            histograms[y] = np.zeros(partition.table_size)
        batch = group_histograms(rows, groups, partitions, n_jobs)
        return type(self)(
            partitions,
            [before + added for before, added in zip(histograms, batch, strict=True)],
            self.totals + [group.total for group in groups],
        )

    def only(self, classes: IntArray, alpha: float) -> Self:
        """Return the model of some of the classes."""
        if classes.size == self.totals.size:
            return self
        part = type(self)(
            [self.partitions[y] for y in classes],
            [self.histograms[y] for y in classes],
            self.totals[classes],
        )
        part.set_tables(alpha)
        return part

    @classmethod
    def stack(cls, models: Sequence["BlockModel"], alpha: float) -> "BlockModel":
        """Return the model of all classes of several models."""
        stacked = cls(
            [partition for model in models for partition in model.partitions],
            [histogram for model in models for histogram in model.histograms],
            np.concatenate([model.totals for model in models]),
        )
        stacked.set_tables(alpha)
        return stacked

    def set_tables(
        self, alpha: float, n_jobs: int | None = None, like: Tables | None = None
    ) -> None:
        """Compute the tables from the histograms, with Laplace smoothing (Theorem 4.2).

        `like` are tables of the same partitions, where there are some.
        """
        log_factorial = log_factorials(self.partitions[0].labels.size)
        if like is None:
            tables = Tables.layout(self.partitions)
        else:
            tables = replace(like, values=np.empty(like.values.size))
        if tables.values.size < SMALL_TABLES:
            sizes = np.concatenate([partition.sizes for partition in self.partitions])
            table_kernels.fill_table(
                np.concatenate(self.histograms),
                tables.starts,
                sizes,
                alpha,
                np.repeat(self.totals, np.diff(tables.first_block)),
                log_factorial,
                tables.values,
            )
            self.tables = tables
            return

        def fill(y: int) -> None:
            partition = self.partitions[y]
            table_kernels.fill_table(
                self.histograms[y],
                partition.starts,
                partition.sizes,
                alpha,
                np.full(partition.n_blocks, self.totals[y]),
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
            parts = np.split(self.made_tables.of_class(y), partition.starts[1:])
            for m, entries in zip(partition.sizes, parts, strict=True):
                log_ways = log_factorial[m] - log_factorial[: m + 1] - log_factorial[: m + 1][::-1]
                blocks.append(np.exp(entries + log_ways))
            result.append(blocks)
        return result

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.partitions)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return self.partitions[0].labels.size

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y) for every row and class, e being what is known of the row."""
        if observed.holes is None:
            return score_tables(observed.ones, self.made_tables, n_jobs)
        return holes.score(observed, self.made_tables, n_jobs)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y) for every row and variable."""
        return holes.marginals(observed, self.partitions[y], self.made_tables.of_class(y))

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of every row in class y, and log P(x | y)."""
        return holes.complete(observed, self.partitions[y], self.made_tables.of_class(y))

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a random completion of every row in class y."""
        return holes.draw(observed, self.partitions[y], self.made_tables.of_class(y), rng)

    def expected_log_likelihood(self) -> FloatArray:
        """Return, for each class, Σ h·log(q / C) over its histogram: what its rows are worth."""
        worth = []
        for histogram, table in zip(
            self.histograms, self.made_tables.split(self.made_tables.values), strict=True
        ):
            seen = histogram > 0
            worth.append(float(histogram[seen] @ table[seen]))
        return np.array(worth)

    @property
    def made_tables(self) -> Tables:
        """The tables, which `set_tables` must have made."""
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
        sums = group_ones(rows, groups, n_jobs)
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
    histograms = group_histograms(rows, groups, partitions, n_jobs)
    model = BlockModel(partitions, histograms, np.array([group.total for group in groups]))
    model.set_tables(alpha, n_jobs)
    return model
