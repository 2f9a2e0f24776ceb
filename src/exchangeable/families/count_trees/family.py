"""The family of trees over blocks' counts: how posteriors become bins, trees and parameters."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group
from exchangeable.data.rows import Rows, as_rows
from exchangeable.families.common.expectation import ACTIVE, expect, log_likelihood
from exchangeable.families.common.log_linear import Sums
from exchangeable.families.count_trees.forest import (
    CountForest,
    CountSums,
    cut_counts,
    edge_sums,
    learn_forest,
)
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.urns.family import DensityModel, UrnFamily
from exchangeable.fitting.density_em import log_shares
from exchangeable.runtime.threads import run

MOST_BINS = 8
"""The counts of a block fall into at most so many bins."""
ROWS_A_CELL = 20.0
"""A pair of bins has so many rows on average, or the bins are fewer."""
LEAST_ROWS = 5.0
"""Weight of the rows in a bin, where there is a choice."""
MOST_BINS_IN_ALL = 8_000
"""A tree looks at all pairs of bins of a class, whose number must stay bearable."""
LEARNING_STEPS = (2, 8)
"""Steps of EM at which bins and trees are chosen anew, and kept if they are better."""
RAKINGS = 200
CLOSE = 1e-12


@dataclass(frozen=True)
class CountTreeFamily:
    """Trees over the counts of given blocks, one a component.

    Attributes
    ----------
    urns : UrnFamily
        The blocks and their prior.
    shrinkage : float
        For each free parameter of an edge so many pseudo-rows in which its ends are independent.
    penalty : float
        What an edge must gain in log-likelihood for each of its free parameters to be there.
    """

    urns: UrnFamily
    shrinkage: float
    penalty: float
    _pooled: dict[CountForest, FloatArray] = field(default_factory=dict)

    def first(self, examples: Examples, sums: Sums, n_jobs: int | None = None) -> CountTreeModel:
        """Return trees that fit given posteriors."""
        alone = [
            CountForest.of(p, np.zeros(p.table_size), np.full(p.n_blocks, p.n_blocks))
            for p in self.urns.partitions
        ]
        nothing = [np.empty(0)] * len(alone)
        with np.errstate(divide="ignore"):
            model = CountTreeModel(alone, [np.log(q) for q in self.urns.smooth_shares], nothing)
        held = expect(model, examples, sums.totals, n_jobs, given=sums.posterior)
        model = self._fitted(alone, held.blocks, nothing)
        return self._learn(examples, held, model, n_jobs)

    def following(
        self,
        examples: Examples,
        model: DensityModel,
        sums: Sums,
        step: int,
        n_jobs: int | None = None,
    ) -> CountTreeModel:
        """Return new parameters, and now and then new trees, if these are better."""
        if not isinstance(model, CountTreeModel) or not isinstance(sums, CountSums):
            raise TypeError(f"expected trees over counts, got {type(model).__name__}")
        old = self._fitted(model.forests, sums.blocks, sums.edges)
        if step not in LEARNING_STEPS:
            return old
        new = self._learn(examples, sums, model, n_jobs)
        log_prior = log_shares(sums.totals)
        worth = [log_likelihood(each, examples, log_prior, n_jobs) for each in (old, new)]
        return new if worth[1] > worth[0] else old

    def _learn(
        self, examples: Examples, sums: Sums, model: CountTreeModel, n_jobs: int | None
    ) -> CountTreeModel:
        """Return the model with bins and trees that suit the posteriors."""
        pool = self.urns.pool
        share = pool.strength / pool.examples.total
        everyone = Group(np.arange(pool.examples.rows.n_rows), pool.examples.weights * share)

        def one(y: int) -> tuple[CountForest, FloatArray, FloatArray]:
            partition = self.urns.partitions[y]
            counted = sums.blocks[y] + pool.strength * self.urns.shares[y]
            bins = choose_bins(np.split(counted, partition.starts[1:]))
            seen = class_rows(examples, sums.posterior, y, model)
            everything = [seen, (pool.examples.rows, everyone)]
            forest = learn_forest(partition, bins, everything, self.penalty)
            return forest, edge_sums(forest, *seen), edge_sums(forest, *everything[1])

        found = run(one, range(len(self.urns.partitions)), n_jobs)
        forests, edges, pooled = zip(*found, strict=True)
        self._pooled.update(zip(forests, pooled, strict=True))
        return self._fitted(forests, sums.blocks, edges)

    def _fitted(
        self,
        forests: Sequence[CountForest],
        blocks: Sequence[FloatArray],
        edges: Sequence[FloatArray],
    ) -> CountTreeModel:
        """Return the parameters, given the mass of each count and of each cell of the edges."""
        log_q = self.urns.log_q(blocks)
        log_ratio = []
        for forest, known, seen in zip(forests, log_q, edges, strict=True):
            mass = seen + self._pooled[forest] if seen.size else seen
            log_ratio.append(self._log_ratio(forest, np.exp(known), mass))
        return CountTreeModel(list(forests), log_q, log_ratio)

    def _log_ratio(self, forest: CountForest, q: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the logs of joint probabilities of bins over the product of their margins."""
        margins, log_ratio = forest.bin_masses(q), np.empty(forest.n_cells)
        for child, above in forest.edges():
            apart = np.outer(margins[above], margins[child])
            pseudo = self.shrinkage * (margins[above].size - 1) * (margins[child].size - 1)
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
            f"dependence='tree' looks at all pairs of blocks, of which {len(bins)} have too many; "
            "give larger blocks, such as structure='welch'"
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
