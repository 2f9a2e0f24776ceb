"""The family of trees over blocks' counts: how posteriors become bins, trees and parameters."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group
from exchangeable.data.rows import Rows, as_rows
from exchangeable.families.common.count_prior import CountPrior
from exchangeable.families.common.pooled import ACTIVE, PooledFamily
from exchangeable.families.contract import Model
from exchangeable.families.count_trees.forest import (
    CountForest,
    cut_counts,
    edge_sums,
    learn_forest,
)
from exchangeable.families.count_trees.model import CountTreeModel, CountTreeSums, expect_rows
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.families.sums import Sums
from exchangeable.runtime.threads import run
from exchangeable.structure.proposals import Proposal

PENALTY = 1.0
"""What an edge must gain in log-likelihood, for each of its parameters, to be there."""
MOST_BINS = 8
"""The counts of a block fall into at most this many bins."""
ROWS_A_CELL = 20.0
"""A pair of bins has this many rows on average, or the bins are fewer."""
LEAST_ROWS = 5.0
"""Weight of the rows in a bin, where there is a choice."""
MOST_BINS_IN_ALL = 8_000
"""A tree looks at all pairs of bins of a class, whose number must stay bearable."""
LEARNING_STEPS = (2, 8)
"""Steps of EM at which bins and trees are chosen anew, and kept if they are better."""
RAKINGS = 200
CLOSE = 1e-12


class CountTreeFamily(PooledFamily):
    """Trees over the counts of the blocks that the paper's structural EM, run before, has found."""

    closed_form = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._pooled: dict[CountForest, FloatArray] = {}

    def first(
        self,
        data: Any,
        sums: Sums,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return trees that fit given posteriors."""
        partitions = blocks.partitions if before is None else before.model.partitions
        self._prior = CountPrior.of(self.problem.pool, partitions)
        alone = [
            CountForest.of(p, np.zeros(p.table_size), np.full(p.n_blocks, p.n_blocks))
            for p in partitions
        ]
        nothing = [np.empty(0)] * len(alone)
        with np.errstate(divide="ignore"):
            model = CountTreeModel(alone, [np.log(q) for q in self._prior.smooth_shares], nothing)
        held = expect_rows(model, data.examples, sums.totals, data.n_jobs, sums.posterior)
        model = self._fitted(alone, held.blocks, nothing)
        model = self._learn(data.examples, held, model, data.n_jobs)
        return Mixture(model, self.log_shares(sums.totals))

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in what the pseudo-rows are expected to score; 0 where trees differ."""
        if any(old is not new for old, new in zip(before.forests, after.forests, strict=True)):
            return 0.0
        gain = 0.0
        for y, forest in enumerate(after.forests):
            change = after.log_q[y] - before.log_q[y]
            seen = self._prior.masses[y] > 0
            gain += float(self._prior.masses[y][seen] @ change[seen])
            if after.log_ratio[y].size:
                change = after.log_ratio[y] - before.log_ratio[y]
                gain += float(self._pooled_edges(forest) @ change)
        return gain

    @cached_property
    def _pseudo_rows(self) -> tuple[Rows, Group]:
        """The rows of the pooled prior, with their weights."""
        examples, strength = self.problem.pool.examples, self.problem.pool.strength
        weights = examples.weights * (strength / examples.total)
        return examples.rows, Group(np.arange(examples.rows.n_rows), weights)

    def _pooled_edges(self, forest: CountForest) -> FloatArray:
        """Return the pseudo-rows' mass in each cell of a forest's edges."""
        if forest not in self._pooled:
            self._pooled[forest] = edge_sums(forest, *self._pseudo_rows)
        return self._pooled[forest]

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return new parameters, and now and then new trees to choose from."""
        old = self._fitted(model.forests, sums.blocks, sums.edges)
        if step not in LEARNING_STEPS:
            return [old]
        return [old, self._learn(data.examples, sums, model, data.n_jobs)]

    def _learn(
        self, examples: Examples, sums: CountTreeSums, model: CountTreeModel, n_jobs: int | None
    ) -> CountTreeModel:
        """Return the model with bins and trees that suit the posteriors."""

        def one(y: int) -> tuple[CountForest, FloatArray]:
            partition = self._prior.partitions[y]
            bins = choose_bins(
                np.split(sums.blocks[y] + self._prior.masses[y], partition.starts[1:])
            )
            seen = class_rows(examples, sums.posterior, y, model)
            forest = learn_forest(partition, bins, [seen, self._pseudo_rows], PENALTY)
            self._pooled_edges(forest)
            return forest, edge_sums(forest, *seen)

        forests, edges = zip(*run(one, range(len(self._prior.partitions)), n_jobs), strict=True)
        return self._fitted(forests, sums.blocks, edges)

    def _fitted(
        self,
        forests: Sequence[CountForest],
        blocks: Sequence[FloatArray],
        edges: Sequence[FloatArray],
    ) -> CountTreeModel:
        """Return the parameters, given the mass of each count and of each cell of the edges."""
        log_q = self._prior.log_q(blocks)
        log_ratio = []
        for forest, known, seen in zip(forests, log_q, edges, strict=True):
            mass = seen + self._pooled_edges(forest) if seen.size else seen
            log_ratio.append(self._log_ratio(forest, np.exp(known), mass))
        return CountTreeModel(list(forests), log_q, log_ratio)

    def _log_ratio(self, forest: CountForest, q: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the logs of joint probabilities of bins over the product of their margins."""
        margins, log_ratio = forest.bin_masses(q), np.empty(forest.n_cells)
        for child, above in forest.edges():
            apart = np.outer(margins[above], margins[child])
            pseudo = self.problem.shrinkage * (margins[above].size - 1) * (margins[child].size - 1)
            both = rake(forest.table(mass, child) + pseudo * apart, margins[above], margins[child])
            forest.table(log_ratio, child)[:] = np.log(both) - np.log(apart)
        return log_ratio


def choose_bins(masses: Sequence[FloatArray]) -> IntArray:
    """Return the bin of each count of each block, the fewer the rows the coarser."""
    total = masses[0].sum()
    most = int(np.clip(np.sqrt(total / ROWS_A_CELL), 2, MOST_BINS))
    bins = [cut_counts(mass, most, LEAST_ROWS) for mass in masses]
    in_all = sum(max(2, int(each[-1]) + 1) for each in bins)
    if in_all > MOST_BINS_IN_ALL:
        raise ValueError(
            f"family='count tree' compares all pairs of bins of counts; the limit is "
            f"{MOST_BINS_IN_ALL:,}, the {len(bins):,} blocks have {in_all:,}: give larger blocks, "
            "such as blocks='welch'"
        )
    return np.concatenate(bins)


def class_rows(
    examples: Examples, posterior: FloatArray, y: int, model: CountTreeModel
) -> tuple[Rows, Group]:
    """Return the rows of a class, entries that are not known drawn once from the model."""
    members = np.flatnonzero(posterior[:, y] > ACTIVE)
    mass = examples.weights[members] * posterior[members, y]
    if examples.holes is None:
        return examples.rows, Group(members, mass)
    drawn = model.draw(examples.observed.take(members), y, np.random.default_rng(y))
    return as_rows(drawn, None), Group(np.arange(members.size), mass)


def rake(table: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return a table scaled line by line to have given margins, those of rows exact.

    >>> both = rake(np.array([[4.0, 1.0], [1.0, 4.0]]), np.array([0.5, 0.5]), np.array([0.2, 0.8]))
    >>> both.sum(axis=0).round(9).tolist(), both.sum(axis=1).round(9).tolist()
    ([0.2, 0.8], [0.5, 0.5])
    """
    for _ in range(RAKINGS):
        table = table * (columns / table.sum(axis=0))
        found = table.sum(axis=1)
        table = table * (rows / found)[:, None]
        if np.abs(found / rows - 1).max() < CLOSE:
            break
    return table
