"""Weighted urns: weights and distributions of counts from sums."""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.families.common.count_prior import CountPrior
from exchangeable.families.common.log_linear.model import expect_rows
from exchangeable.families.common.log_linear.scores import LinearSums
from exchangeable.families.common.pool import chances
from exchangeable.families.common.pooled import PooledFamily, pooled_score, with_pool
from exchangeable.families.contract import Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.urns.model import UrnModel
from exchangeable.families.urns.polynomials import expected_ones
from exchangeable.partitions import Partition
from exchangeable.structure.proposals import Proposal

LARGEST_LOG_WEIGHT = 60.0
"""Bound of the logarithms of weights: beyond it the polynomials lose their digits."""
LOG_LEAST = -700.0
"""Smaller weights are replaced by this in the mean."""


class UrnFamily(PooledFamily):
    """Weighted urns, one for each block of each component.

    A step of EM takes the best q, and scales the weights once by observed over expected ones.
    """

    _prior: CountPrior | None = None

    def first(
        self,
        data: Any,
        sums: LinearSums,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return urns with the odds of naive Bayes as weights."""
        ones, totals = with_pool(self.problem.pool, sums)
        means = chances(ones, totals)
        odds = np.log(means) - np.log1p(-means)
        model = self._with_counts(data, blocks.partitions, odds, sums)
        return Mixture(model, self.log_shares(sums.totals))

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return new q, and weights scaled once by observed over expected ones."""
        prior = self.count_prior(model.partitions)
        counted: Sequence[FloatArray] | FloatArray = sums.blocks
        if sums.counts.size:
            counted = np.ascontiguousarray(sums.counts.T)
        ones, _ = with_pool(self.problem.pool, sums)
        mass = [h + known for h, known in zip(counted, prior.masses, strict=True)]
        expected = expected_ones(prior.partitions, model.polynomials, mass, data.n_jobs)
        with np.errstate(divide="ignore"):  # weights are bounded below
            scaled = model.log_weights + np.log(ones / np.maximum(expected, 1e-300))
        near = [polynomial.order for polynomial in model.polynomials]
        return [
            UrnModel.make(
                prior.partitions,
                centred(scaled),
                prior.log_q(counted),
                data.n_jobs,
                self.reach(prior.partitions),
                near,
            )
        ]

    def with_blocks(self, data: Any, model: Any, sums: Any, blocks: Proposal) -> Model | None:
        """Return the urns of new blocks, with the present weights of the variables."""
        pairs = list(zip(model.partitions, blocks.partitions, strict=True))
        if all(old.same_as(new) for old, new in pairs):
            return None
        partitions = [old if old.same_as(new) else new for old, new in pairs]
        return self._with_counts(data, partitions, model.log_weights, sums)

    def candidates(
        self, data: Any, model: Any, sums: Any, step: int, proposals: Sequence[Proposal]
    ) -> list[Model]:
        """Return the candidate models, or the one whose components have chosen separately."""
        models = super().candidates(data, model, sums, step, proposals)
        if self.problem.accept == "all":
            return models
        return [reduce(partial(self._best_of_each, data, sums), models)]

    def _best_of_each(self, data: Any, sums: Any, old: Model, new: Model) -> Model:
        """Return the model in which every component has the blocks that fit its share better.

        Given the posteriors the expected log-likelihood is a sum over components.
        """
        worth = [
            data.summed(partial(_expected, model=each, n_jobs=data.n_jobs), sums.shares)
            for each in (old, new)
        ]
        better = worth[1] > worth[0]
        if better.all() or not better.any():
            return new if better.all() else old
        chosen = [new if take else old for take in better]
        return type(old).stack([each.only(np.array([y])) for y, each in enumerate(chosen)])

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the expected score of the pseudo-rows; 0 if blocks differ."""
        if not _same(before.partitions, after.partitions):
            return 0.0
        pool, shares = self.problem.pool, self.count_prior(after.partitions).shares
        old, new = (pooled_score(pool, model.scores, shares) for model in (before, after))
        return pool.strength * (new - old)

    def distance(self, before: Any, after: Any) -> float:
        """Return how much a step has changed the weights."""
        return float(np.sqrt(np.mean((after.log_weights - before.log_weights) ** 2)))

    def reach(self, partitions: Sequence[Partition]) -> int | None:
        """Return the largest number of ones of a row that will be scored while fitting."""
        if any(partition.n_blocks > 1 for partition in partitions):
            return None
        return self.problem.largest_count

    def count_prior(self, partitions: Sequence[Partition]) -> CountPrior:
        """Return the prior of the counts in some blocks."""
        known = self._prior
        if known is None or not _same(known.partitions, partitions):
            known = self._prior = CountPrior.of(self.problem.pool, partitions)
        return known

    def _with_counts(
        self, data: Any, partitions: Sequence[Partition], log_weights: FloatArray, sums: Any
    ) -> UrnModel:
        """Return the urns of some blocks after one step with given posteriors.

        The sums so far lack the counts in these blocks, which are added up by a pass under any
        parameters.
        """
        flat = [np.log(np.maximum(q, 1e-300)) for q in self.count_prior(partitions).smooth_shares]
        model = UrnModel.make(partitions, log_weights, flat, data.n_jobs, self.reach(partitions))
        function = partial(_held, model=model, n_jobs=data.n_jobs)
        held = self.problem.source.summed(function, sums.shares)
        return self.following(data, model, held, 0)[0]  # type: ignore[return-value]


def centred(log_weights: FloatArray) -> FloatArray:
    """Return weights divided by their geometric mean: their scale does not matter.

    They are bounded: without a prior, the weight of a variable that is never on would decrease
    without end.
    """
    middle = np.maximum(log_weights, LOG_LEAST).mean(axis=0)
    bounded: FloatArray = np.clip(log_weights - middle, -LARGEST_LOG_WEIGHT, LARGEST_LOG_WEIGHT)
    return bounded


def _expected(
    examples: Examples, posterior: FloatArray, model: Model, n_jobs: int | None
) -> FloatArray:
    """Return the expected score of each component's share of the rows."""
    mass = examples.weights[:, None] * posterior
    return np.asarray((mass * model.score(examples.observed, n_jobs)).sum(axis=0))


def _held(
    examples: Examples, posterior: FloatArray, model: UrnModel, n_jobs: int | None
) -> LinearSums:
    """Return the sums of given posteriors of some rows."""
    return expect_rows(model, examples, np.zeros(posterior.shape[1]), n_jobs, posterior)


def _same(known: Sequence[Partition], partitions: Sequence[Partition]) -> bool:
    return all(one is other for one, other in zip(known, partitions, strict=True))
