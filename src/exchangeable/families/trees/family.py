"""Families of trees over the variables: mixtures of Chow-Liu trees, and weighted trees."""

from dataclasses import replace
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.common import forest_kernels
from exchangeable.families.common.count_prior import CountPrior
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.forests import best_tree
from exchangeable.families.common.log_linear.scores import LinearSums
from exchangeable.families.common.pool import Pool
from exchangeable.families.common.pooled import (
    PooledFamily,
    pairs_by_class,
    parent_pairs,
    pooled_score,
    with_pool,
)
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.families.trees.kernels.gains import urn_pair_gains
from exchangeable.families.trees.model import ParentArray, TreeModel
from exchangeable.families.trees.natural import LEAST, Edges, natural_parameters
from exchangeable.families.trees.polynomials import (
    LARGEST_PAIR,
    LARGEST_SLOPE,
    Expected,
    expected_pairs,
)
from exchangeable.families.urns.family import UrnFamily, centred
from exchangeable.families.urns.model import UrnModel
from exchangeable.families.urns.polynomials import expected_ones
from exchangeable.runtime.threads import run
from exchangeable.structure.proposals import Proposal

PENALTY, WEIGHTED_PENALTY = 2.0, 1.0
"""Minimum gain in log-likelihood of an edge, in plain and in weighted trees."""
DAMPING = 0.5
LARGEST_STEP = 2.0
"""Maximum change of a natural parameter of a weighted tree, before damping."""
LEARNING_STEPS = (1, 2, 4, 8, 16, 32, 64)
"""Steps of EM at which plain trees are chosen again."""
Data = InMemory | Streamed


class TreeFamily(PooledFamily):
    """Trees over the variables, one per component: the Chow-Liu tree of its share of the rows."""

    closed_form = True

    @property
    def pool(self) -> Pool:
        """The prior."""
        return self.problem.pool

    def first(
        self,
        data: Any,
        sums: LinearSums,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return the Chow-Liu trees of the posteriors."""
        model = self._learn(self.problem.source, sums, None, data.n_jobs)
        return Mixture(model, self.log_shares(sums.totals))

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return new parameters, and in some steps new trees."""
        if step in LEARNING_STEPS:
            return [self._learn(data, sums, model, data.n_jobs)]
        return [self._fitted(sums, model.parent)]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the expected score of the pseudo-rows."""
        pairs = self.problem.pairs
        old, new = (pooled_score(self.pool, model.scores, pairs=pairs) for model in (before, after))
        return self.pool.strength * (new - old)

    def _learn(
        self, data: Data, sums: LinearSums, model: TreeModel | None, n_jobs: int | None
    ) -> TreeModel:
        totals = sums.totals + self.pool.strength
        n, pairs_of = data.n_variables, pairs_by_class(data, sums, model)

        def one(y: int) -> tuple[ParentArray, FloatArray, FloatArray]:
            seen = pairs_of(y)
            both = seen + self.pool.strength * self.problem.pairs
            gains = np.empty_like(both)
            forest_kernels.pair_gains(totals[y], np.diag(both).copy(), both, PENALTY, gains)
            parent = best_tree(gains)
            wide = np.concatenate([seen, np.zeros((n, 1))], axis=1)
            return parent, np.diag(seen), wide[np.arange(n), parent]

        parents, ones, pairs = zip(*run(one, range(totals.size), n_jobs), strict=True)
        learned = replace(sums, ones=np.stack(ones, axis=1), pairs=np.stack(pairs, axis=1))
        return self._fitted(learned, np.stack(parents, axis=1))

    def _fitted(self, sums: LinearSums, parent: ParentArray) -> TreeModel:
        ones, totals = with_pool(self.pool, sums)
        means = ones / totals
        both = (sums.pairs + pool_pairs(self.problem, parent)) / totals
        above = np.take_along_axis(
            np.concatenate([means, np.zeros((1, totals.size))]), parent.astype(np.int64), axis=0
        )
        share = totals / (totals + self.problem.shrinkage)
        both = share * both + (1 - share) * means * above
        base, slope, pair = natural_parameters(means, both, Edges.of(parent))
        return TreeModel.make(base, slope, parent, pair)


def pool_pairs(problem: Problem, parent: ParentArray) -> FloatArray:
    """Return the weight of the prior's rows with a variable and its parent on."""
    return np.asarray(problem.pool.strength * parent_pairs(problem.pairs, parent))


class WeightedTreeFamily(PooledFamily):
    """Weighted trees: trees for the dependence that previously fitted urns leave unexplained.

    The trees are chosen once, by the divergence of observed from expected pairs. Then natural
    parameters move towards those whose expectations are the observed ones, half-way in each step.
    """

    _alone: tuple[FloatArray, FloatArray]
    _pooled: FloatArray
    _prior: CountPrior

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.urns = UrnFamily(problem)

    def first(
        self,
        data: Any,
        sums: LinearSums,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return the urns with trees whose edges have no effect yet."""
        urns: Any = before.model if before is not None else None
        parent = self._learn(data, sums, urns, data.n_jobs)
        slope = np.clip(urns.log_weights, -LARGEST_SLOPE, LARGEST_SLOPE)
        self._prior = self.urns.count_prior(urns.partitions)
        model = TreeModel.make(
            np.zeros(slope.shape[1]),
            slope,
            parent,
            np.zeros(slope.shape),
            np.stack(urns.log_q, axis=1),
            data.n_jobs,
            self.problem.largest_count,
        )
        mixture = Mixture(model, self.log_shares(sums.totals))
        self._pooled = pool_pairs(self.problem, parent)
        self._remember_urns(data, mixture)
        return mixture

    def resume(self, data: Any, mixture: Mixture) -> Mixture:
        """Use the expectations of the trees without edges in place of previously fitted urns."""
        model: Any = mixture.model
        self._prior = self.urns.count_prior(model.partitions)
        self._pooled = pool_pairs(self.problem, model.parent)
        self._remember_urns(data, Mixture(model.without_edges(), mixture.log_prior))
        return mixture

    def _remember_urns(self, data: Any, mixture: Mixture) -> None:
        """Store the urns' expectations of pairs, towards which edges are shrunk."""
        model: Any = mixture.model
        sums: Any = data.expect(mixture)
        _, totals = with_pool(self.problem.pool, sums)
        alone = expected_pairs(
            model.slope, model.parent, model.pair, self._masses(sums), n_jobs=data.n_jobs
        )
        self._alone = (alone[0] / totals, alone[1] / totals)

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters after a damped step, and new q."""
        pool, parent, n_jobs = self.problem.pool, model.parent, data.n_jobs
        ones, totals = with_pool(pool, sums)
        tilts = model.counts[1]
        expected = expected_pairs(
            model.slope, parent, model.pair, self._masses(sums), tilts, n_jobs
        )
        share = totals / (totals + self.problem.shrinkage)
        wanted = share * (sums.pairs + self._pooled)
        wanted += (1 - share) * totals * _scaled(self._alone, ones / totals, parent)
        by_slope, by_pair = _move(ones / totals, wanted / totals, expected, totals, parent)
        slope, pair = centred(model.slope + by_slope), model.pair + by_pair
        slope = np.clip(slope, -LARGEST_SLOPE, LARGEST_SLOPE)
        pair = np.clip(pair, -LARGEST_PAIR, LARGEST_PAIR)
        log_q = np.stack(self._prior.log_q(sums.counts.T), axis=1)
        reach = self.problem.largest_count
        return [TreeModel.make(model.base, slope, parent, pair, log_q, n_jobs, reach)]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the expected score of the pseudo-rows."""
        pool, pairs, shares = self.problem.pool, self.problem.pairs, self._prior.shares
        old, new = (pooled_score(pool, model.scores, shares, pairs) for model in (before, after))
        return pool.strength * (new - old)

    def distance(self, before: Any, after: Any) -> float:
        """Return how much a step has changed the natural parameters of the variables."""
        return float(np.sqrt(np.mean((after.slope - before.slope) ** 2)))

    def _masses(self, sums: LinearSums) -> FloatArray:
        """Return the mass of each count in each class, under the prior."""
        strength = self.problem.pool.strength
        return np.asarray(sums.counts + strength * np.stack(self._prior.shares, axis=1))

    def _learn(
        self, data: Data, sums: LinearSums, urns: UrnModel, n_jobs: int | None
    ) -> ParentArray:
        """Return the parents of the trees that best explain what the urns leave unexplained."""
        pool, weights = self.problem.pool, np.exp(urns.log_weights)
        totals = with_pool(pool, sums)[1]
        prior = self.urns.count_prior(urns.partitions)
        mass = [h + known for h, known in zip(sums.counts.T, prior.masses, strict=True)]
        expected = expected_ones(urns.partitions, urns.polynomials, mass, n_jobs)
        pairs_of = pairs_by_class(data, sums, urns)

        def one(y: int) -> ParentArray:
            ranked, rank = np.argsort(weights[:, y]), np.empty(len(weights), dtype=np.int64)
            rank[ranked] = np.arange(rank.size)
            both = pairs_of(y) + pool.strength * self.problem.pairs
            gains = np.empty_like(both)
            urn_pair_gains(
                totals[y],
                np.diag(both).copy(),
                both,
                weights[:, y].copy(),
                ranked,
                rank,
                expected[:, y].copy(),
                WEIGHTED_PENALTY,
                gains,
            )
            return best_tree(gains)

        return np.stack(run(one, range(totals.size), n_jobs), axis=1)


def _scaled(
    alone: tuple[FloatArray, FloatArray], ones: FloatArray, parent: ParentArray
) -> FloatArray:
    """Return the probabilities of pairs, scaled from the expected to the observed ones."""
    ratio = np.concatenate([ones / np.maximum(alone[0], 1e-300), np.ones((1, ones.shape[1]))])
    above = np.take_along_axis(ratio, parent.astype(np.int64), axis=0)
    wide = np.concatenate([ones, np.full((1, ones.shape[1]), np.inf)])
    most = np.minimum(ones, np.take_along_axis(wide, parent.astype(np.int64), axis=0))
    return np.asarray(np.minimum(alone[1] * ratio[:-1] * above, most))


def _move(
    means: FloatArray,
    both: FloatArray,
    expected: Expected,
    totals: FloatArray,
    parent: ParentArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the damped changes of slopes and pairs in one step."""
    edges = Edges.of(parent)
    target = natural_parameters(means, both, edges)
    present = natural_parameters(
        np.clip(expected.ones / totals, LEAST, 1 - LEAST), expected.pairs / totals, edges
    )
    slope, pair = (
        DAMPING * np.clip(after - before, -LARGEST_STEP, LARGEST_STEP)
        for after, before in zip(target[1:], present[1:], strict=True)
    )
    return slope, pair
