"""The paper's blocks: parameters from histograms, and structural EM (Algorithm 1)."""

import operator
from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import flags
from exchangeable.families.blocks import chunk_sums
from exchangeable.families.blocks.model import BlockModel, known_sums
from exchangeable.families.blocks.new_blocks import histograms_in
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.moments import sum_moments
from exchangeable.families.common.streaming.of_chunks import rows_at
from exchangeable.families.common.streaming.recipes import Dealt, PosteriorRecipe, Scored
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.common.tables import Tables
from exchangeable.families.contract import Family, Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run
from exchangeable.structure.proposals import Proposal

OWN_SHARE = 0.25
"""How close a component's initial means are to its row."""
FIRST_STEPS = 5
"""Iterations of naive Bayes for starts from rows."""
FIRST_ALPHA = 0.1
EveryData = InMemory | Streamed


class BlockFamily(Family):
    """Blocks of exchangeable variables, independent of each other in a component.

    q(l) of a block is the smoothed share of rows with l ones, by Laplace smoothing or under a
    pooled prior with pseudo-rows distributed as the training set. Both are modes of a Dirichlet
    posterior, so a step with unchanged blocks never lowers the penalised likelihood.
    """

    closed_form = True
    learns_by_class = True
    remembers = False

    def start(self, data: Any, init: str, rng: np.random.Generator) -> Sums:
        """Return the posteriors for estimating the first parameters.

        ``"random"`` assigns the rows to components at random, in equal numbers, as in the paper.
        With ``"rows"`` the means of each component are the overall means moved towards one row,
        followed by a few iterations of naive Bayes.
        """
        if isinstance(data, Streamed):
            return _start_streamed(data, init, self.problem.n_components, rng)
        return _start_in_memory(data, init, self.problem.n_components, rng)

    def first(
        self,
        data: Any,
        sums: Any,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return the parameters of the first blocks, given some posteriors."""
        layout = Tables.layout(blocks.partitions)
        every = np.arange(sums.totals.size)
        histograms = histograms_in(data, sums, blocks, layout, every)
        model = BlockModel(blocks.partitions, histograms, sums.totals)
        self.tabulate(model, data.n_jobs, layout)
        return Mixture(model, self.log_shares(sums.totals))

    def held(self, data: Any, posterior: FloatArray) -> Sums:
        """Return sums of given posteriors."""
        return held_sums(data, posterior)

    def prepared(self, data: Any, sums: Sums) -> BlockModel | None:
        """Return parameters for drawing missing entries, before there are any others."""
        if not data.has_holes:
            return None
        known = data.summed(known_sums, sums.shares)
        return BlockModel.of_known_sums(known, self.problem.alpha)

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the old blocks with new parameters."""
        return self.candidates(data, model, sums, step, ())

    def candidates(
        self, data: Any, model: Any, sums: Any, step: int, proposals: Sequence[Proposal]
    ) -> list[Model]:
        """Return the candidate models: the old blocks with new parameters, and the new blocks."""
        models = [BlockModel(model.partitions, sums.histograms, sums.totals)]
        layouts = [model.tables]
        for proposal in proposals:
            pairs = zip(model.partitions, proposal.partitions, strict=True)
            partitions = [old if old.same_as(new) else new for old, new in pairs]
            changed = [y for y, old in enumerate(model.partitions) if partitions[y] is not old]
            if not changed:
                continue
            layout, histograms = Tables.layout(partitions), list(sums.histograms)
            kept = replace(proposal, partitions=partitions)
            counted = histograms_in(data, sums, kept, layout, np.array(changed))
            for y, histogram in zip(changed, counted, strict=True):
                histograms[y] = histogram
            models.append(BlockModel(partitions, histograms, sums.totals))
            layouts.append(layout)
        if self.problem.pooling is not None:  # one count for all models, before threads ask
            self.problem.pool.histograms([p for model in models for p in model.partitions])
        run(
            lambda number: self.tabulate(models[number], data.n_jobs, layouts[number]),
            range(len(models)),
            data.n_jobs,
        )
        if self.problem.accept == "all":
            return list(models)
        return [reduce(partial(self._best_of_each, n_jobs=data.n_jobs), models)]

    def _best_of_each(
        self, old: BlockModel, new: BlockModel, n_jobs: int | None = None
    ) -> BlockModel:
        """Return the model in which every class has the blocks that fit its share better.

        Given the posteriors, the expected log-likelihood is a sum over classes, so each can choose.
        """
        better = new.expected_log_likelihood() > old.expected_log_likelihood()
        if better.all():
            return new
        if not better.any():
            return old
        choose = [new if take else old for take in better]
        mixed = BlockModel(
            [source.partitions[y] for y, source in enumerate(choose)],
            [source.histograms[y] for y, source in enumerate(choose)],
            old.totals,
        )
        self.tabulate(mixed, n_jobs)
        return mixed

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in Σ a·log q, where a are the prior's pseudo-counts.

        Different blocks have different priors, which cannot be compared: then it is 0.
        """
        same = map(operator.is_, before.partitions, after.partitions)
        if self.problem.alpha == 0 or not all(same):
            return 0.0
        change = after.made_tables.values - before.made_tables.values
        if self.problem.pooling is None:
            return float(self.problem.alpha * change.sum())
        return self.problem.pooling * float(np.concatenate(self._pooled(after)) @ change)

    def log_shares(self, totals: FloatArray) -> FloatArray:
        """Return the log-probability of each class, unless the problem fixes it."""
        if self.problem.log_prior is not None:
            return self.problem.log_prior
        shares: FloatArray = totals / totals.sum()
        if shares.all():
            return np.log(shares)
        with np.errstate(divide="ignore"):
            return np.log(shares)

    def tabulate(self, model: BlockModel, n_jobs: int | None, like: Tables | None = None) -> None:
        """Compute the tables of a model under the prior."""
        if self.problem.pooling is None:
            model.set_tables(self.problem.alpha, n_jobs, like)
        else:
            model.set_pooled_tables(self._pooled(model), self.problem.pooling, like)

    def _pooled(self, model: BlockModel) -> list[FloatArray]:
        """Return, for each class, the training set's smoothed share of each count of its blocks."""
        pool, alpha = self.problem.pool, self.problem.alpha
        smooth: dict[int, FloatArray] = {}
        shares = pool.histograms(model.partitions)
        for partition, share in zip(model.partitions, shares, strict=True):
            if id(share) not in smooth:
                mass = pool.total + alpha * np.repeat(partition.sizes + 1, partition.sizes + 1)
                smooth[id(share)] = (share * pool.total + alpha) / mass
        return [smooth[id(share)] for share in shares]


def _start_in_memory(
    data: InMemory, init: str, n_components: int, rng: np.random.Generator
) -> Sums:
    examples, member, row_weight = data.examples, data.member, data.row_weight
    if member is None or row_weight is None:
        member, row_weight = np.arange(examples.rows.n_rows), examples.weights
    if init == "random":
        dealt = rng.permutation(member.size) % n_components
        share = np.zeros((examples.weights.size, n_components))
        np.add.at(share, (member, dealt), row_weight)
        posterior = np.asarray(share / share.sum(axis=1, keepdims=True))
    else:
        chosen = rng.choice(member, size=n_components, replace=False)
        known = BlockModel.of_known_entries(
            examples, np.ones((examples.rows.n_rows, 1)), FIRST_ALPHA
        )
        average = known.histograms[0][1::2] / examples.total
        rows = examples.observed.take(chosen)
        own = np.where(rows.hole_flags(), average, flags(rows.ones))
        posterior = _settle(InMemory(examples, n_jobs=1), average, own)[0].posterior
    return held_sums(data, posterior, dealt=init == "random")


def held_sums(data: EveryData, posterior: Any, dealt: bool = False) -> Sums:
    """Return given posteriors with the sums for learning blocks.

    If rows were `dealt` out, each to one component, a posterior is the share of equal rows that a
    component got, and the sum of the squares of single rows' posteriors is the same.
    """
    if isinstance(data, Streamed):
        function = partial(chunk_sums.posterior_sums, n_jobs=data.n_jobs)
        streamed: Sums = data.summed(function, posterior)
        return streamed
    totals = data.examples.weights @ posterior
    if data.examples.holes is not None:
        return Sums(-np.inf, posterior, totals)
    moments = sum_moments(data.examples, posterior, n_jobs=data.n_jobs)
    if dealt:
        moments[1] = moments[0]
    return Sums(-np.inf, posterior, totals, moments=moments)


def _settle(data: EveryData, average: FloatArray, own: FloatArray) -> tuple[Any, Mixture]:
    """Run a few iterations of naive Bayes EM from components whose means are close to `own`.

    Returns the sums of the last pass, and the mixture under which they were computed.
    """
    n_components, n_variables = own.shape
    means = (1 - OWN_SHARE) * average + OWN_SHARE * own
    singles = [Partition.from_labels(np.arange(n_variables))] * n_components
    totals = np.full(n_components, data.total / n_components)
    histograms = [
        np.stack([totals[y] * (1 - p), totals[y] * p], axis=1).ravel() for y, p in enumerate(means)
    ]
    model = BlockModel(singles, histograms, totals)
    for _ in range(FIRST_STEPS):
        model.set_tables(FIRST_ALPHA, 1)
        log_prior = np.log(np.maximum(model.totals, 1e-300) / model.totals.sum())
        mixture = Mixture(model, log_prior)
        sums: Any = data.expect(mixture)
        model = BlockModel(singles, sums.histograms, sums.totals)
    return sums, mixture


def _start_streamed(data: Streamed, init: str, n_components: int, rng: np.random.Generator) -> Sums:
    """Do the same by passes over chunks."""
    recipe: PosteriorRecipe
    if init == "random":
        kind = np.uint8 if n_components <= 256 else np.uint32
        order = rng.permutation(data.n_rows)
        order %= n_components
        recipe = Dealt(order.astype(kind), n_components)
        if data.has_holes:  # of equal rows, which are completed alike, each has its share
            return held_sums(data, data.shares_of_equals(recipe))
    else:
        chosen = rng.choice(data.n_rows, size=n_components, replace=False)
        own = data.passes.total(partial(rows_at, chosen=chosen)).astype(np.float64)
        average = data.average
        if data.has_holes:
            known = data.summed(_known_of_all)
            average = BlockModel.of_known_sums(known, FIRST_ALPHA).histograms[0][1::2] / data.total
            hidden = data.passes.total(partial(rows_at, chosen=chosen, holes=True)) > 0
            own = np.where(hidden, average, own)
        recipe = Scored(_settle(data, average, own)[1])
    return held_sums(data, recipe)


def _known_of_all(examples: Examples) -> list[Any]:
    """Return the known sums of all rows as one class."""
    return known_sums(examples, np.ones((examples.rows.n_rows, 1)))
