"""The family of trees over blocks' counts: bins, trees and parameters from posteriors."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common.class_rows import class_rows
from exchangeable.families.common.count_prior import CountPrior
from exchangeable.families.common.pooled import ACTIVE, PooledFamily
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Model
from exchangeable.families.count_trees.forest import (
    MOST_BINS,
    MOST_BINS_IN_ALL,
    CountForest,
    best_forest,
    cut_counts,
    edge_sums,
    pair_tables,
)
from exchangeable.families.count_trees.model import CountTreeModel, CountTreeSums
from exchangeable.families.count_trees.row_sums import (
    Wanted,
    class_edges,
    class_tables,
    held,
    pseudo_edges,
    pseudo_rows,
    pseudo_tables,
)
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.families.sums import Sums
from exchangeable.runtime.threads import run
from exchangeable.structure.proposals import Proposal

PENALTY = 1.0
"""Minimum gain in log-likelihood of an edge, for each of its parameters."""
ROWS_A_CELL = 20.0
"""Minimum average number of rows per pair of bins; otherwise there are fewer bins."""
LEAST_ROWS = 5.0
"""Minimum weight of the rows in a bin, if there is a choice."""
LEARNING_STEPS = (2, 8)
"""Steps of EM at which bins and trees are chosen again, and accepted if they are better."""
MOST_CELLS = 1 << 26
"""Maximum number of masses of pairs of bins that a pass over chunks sums at once."""
RAKINGS = 200
CLOSE = 1e-12


class CountTreeFamily(PooledFamily):
    """Trees over the counts of blocks that were found by the paper's structural EM."""

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
        """Return trees for given posteriors."""
        partitions = blocks.partitions if before is None else before.model.partitions
        self._prior = CountPrior.of(self.problem.pool, partitions)
        alone = [
            CountForest.of(p, np.zeros(p.table_size), np.full(p.n_blocks, p.n_blocks))
            for p in partitions
        ]
        nothing = [np.empty(0)] * len(alone)
        with np.errstate(divide="ignore"):
            model = CountTreeModel(alone, [np.log(q) for q in self._prior.smooth_shares], nothing)
        given = data.summed(partial(held, model=model, n_jobs=data.n_jobs), sums.shares)
        model = self._fitted(alone, given.blocks, nothing)
        model = self._learn(data, given, model)
        return Mixture(model, self.log_shares(sums.totals))

    def resume(self, data: Any, mixture: Mixture) -> Mixture:
        """Compute the prior of the blocks that the trees connect."""
        self._prior = CountPrior.of(self.problem.pool, mixture.model.partitions)
        return mixture

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the expected score of the pseudo-rows; 0 if trees differ."""
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

    def _pooled_edges(self, forest: CountForest) -> FloatArray:
        """Return the pseudo-rows' mass in each cell of a forest's edges."""
        if forest not in self._pooled:
            self._count_pooled([forest])
        return self._pooled[forest]

    def _count_pooled(self, forests: Sequence[CountForest]) -> None:
        """Find the pseudo-rows' mass in each cell of some forests' edges."""
        pool = self.problem.pool
        function = partial(pseudo_edges, forests=forests, scale=pool.strength / pool.total)
        self._pooled.update(zip(forests, pool.rows.summed(function), strict=True))

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return new parameters, and in some steps candidates with new trees."""
        old = self._fitted(model.forests, sums.blocks, sums.edges)
        if step not in LEARNING_STEPS:
            return [old]
        return [old, self._learn(data, sums, model)]

    def _learn(self, data: Any, sums: CountTreeSums, model: CountTreeModel) -> CountTreeModel:
        """Return the model with bins and trees chosen for the posteriors."""
        partitions = self._prior.partitions
        masses = zip(sums.blocks, self._prior.masses, partitions, strict=True)
        wanted = {
            y: (partition, choose_bins(np.split(seen + prior, partition.starts[1:])))
            for y, (seen, prior, partition) in enumerate(masses)
        }
        learn = self._learn_by_passes if isinstance(data, Streamed) else self._learn_in_memory
        forests, edges = learn(data, sums, model, wanted)
        return self._fitted(forests, sums.blocks, edges)

    def _learn_in_memory(
        self, data: Any, sums: CountTreeSums, model: CountTreeModel, wanted: Wanted
    ) -> tuple[list[CountForest], list[FloatArray]]:
        """Return the forest of each class and the mass of its edges' cells, class by class."""
        pool = self.problem.pool
        pseudo = pseudo_rows(self.problem.filled, pool.strength / pool.total)

        def one(y: int) -> tuple[CountForest, FloatArray]:
            found = class_rows(data.examples, sums.posterior, y, model, ACTIVE)
            seen = found.rows, found.group
            forest = best_forest(*wanted[y], pair_tables(*wanted[y], [seen, pseudo]), PENALTY)
            self._pooled_edges(forest)
            return forest, edge_sums(forest, *seen)

        forests, edges = zip(*run(one, list(wanted), data.n_jobs), strict=True)
        return list(forests), list(edges)

    def _learn_by_passes(
        self, data: Any, sums: CountTreeSums, model: CountTreeModel, wanted: Wanted
    ) -> tuple[list[CountForest], list[FloatArray]]:
        """Return the same by passes over chunks, each for as many classes as fit into memory."""
        pool, forests = self.problem.pool, list[CountForest]()
        scale = pool.strength / pool.total
        drawn = data.completion(model, sums.shares, ACTIVE) if data.has_holes else None

        def by_class(function: Any) -> Any:
            if drawn is not None:
                return data.completed(function, drawn)
            return data.by_class(function, sums.shares, None, ACTIVE)

        for some in _batches(wanted):
            seen = by_class(partial(class_tables, wanted=some))
            pseudo = pool.rows.summed(partial(pseudo_tables, wanted=some, scale=scale))
            for y in some:
                tables = [one + other for one, other in zip(seen[y], pseudo[y], strict=True)]
                forests.append(best_forest(*some[y], tables, PENALTY))
        self._count_pooled(forests)
        edges: list[FloatArray] = by_class(partial(class_edges, forests=forests))
        return forests, edges

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
        """Return the log-ratios of joint probabilities of bins to the product of their margins."""
        margins, log_ratio = forest.bin_masses(q), np.empty(forest.n_cells)
        for child, above in forest.edges():
            apart = np.outer(margins[above], margins[child])
            pseudo = self.problem.shrinkage * (margins[above].size - 1) * (margins[child].size - 1)
            both = rake(forest.table(mass, child) + pseudo * apart, margins[above], margins[child])
            forest.table(log_ratio, child)[:] = np.log(both) - np.log(apart)
        return log_ratio


def choose_bins(masses: Sequence[FloatArray]) -> IntArray:
    """Return the bin of each count of each block; fewer rows give coarser bins."""
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


def _batches(wanted: Wanted) -> list[Wanted]:
    """Return the classes in parts, whose tables fit into memory together."""
    batches, cells = list[Wanted](), np.inf
    for y, (partition, bins) in wanted.items():
        own = int((np.maximum.reduceat(bins, partition.starts) + 1).sum()) ** 2 / 2
        if cells + own > MOST_CELLS:
            batches.append({})
            cells = 0.0
        batches[-1][y] = partition, bins
        cells += own
    return batches


def rake(table: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return a table scaled to given margins by iterations, those of rows exactly.

    >>> both = rake(np.array([[4.0, 1.0], [1.0, 4.0]]), np.array([0.5, 0.5]), np.array([0.2, 0.8]))
    >>> both.sum(axis=0).round(9).tolist(), both.sum(axis=1).round(9).tolist()
    ([0.2, 0.8], [0.5, 0.5])
    """
    for _ in range(RAKINGS):
        table = table * (columns / table.sum(axis=0))
        totals = table.sum(axis=1)
        table = table * (rows / totals)[:, None]
        if np.abs(totals / rows - 1).max() < CLOSE:
            break
    return table
