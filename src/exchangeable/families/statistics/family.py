"""Blocks with statistics: parameters from values of T; other variables as in the paper."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.blocks.family import BlockFamily, held_sums
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.families.statistics.model import (
    FittedBlock,
    MixedBlocksModel,
    rest_data,
    rest_of,
)
from exchangeable.families.statistics.values import alike_histograms, histograms_of_all
from exchangeable.families.sums import Sums
from exchangeable.statistics import Statistic
from exchangeable.structure.proposals import Proposal, Proposer, proposers
from exchangeable.structure.statistic_blocks import log_evidence

EVIDENCE_PRIOR = 0.1
"""Dirichlet parameter of the evidence that chooses between statistics."""


class StatisticFamily(BlockFamily):
    """Blocks with statistics, the same in every component, and learned blocks of other variables.

    P(T = t) is the smoothed share of rows with that value, like q in the paper's blocks.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.others = problem.others
        self.inner: BlockFamily | None = None
        self._counted: dict[tuple[bytes, int], FloatArray] = {}
        if self.others.size:
            rows = None if problem.examples is None else rest_of(problem.examples, self.others)
            chunks = None if problem.chunks is None else problem.chunks.columns(self.others)
            self.inner = BlockFamily(replace(problem, examples=rows, chunks=chunks, valid=None))

    def block_data(self, data: Any) -> InMemory | Streamed:
        """Return the rows of the variables whose blocks are learned."""
        if self.inner is None:
            return data  # type: ignore[no-any-return]
        known = self.inner.problem.chunks
        return rest_data(data, self.others) if known is None else known

    def prepared(self, data: Any, sums: Sums) -> BlockModel | None:
        """Return parameters for drawing missing entries, before there are any others."""
        return self.inner.prepared(self.block_data(data), sums) if self.inner else None

    def held(self, data: Any, posterior: FloatArray) -> Sums:
        """Return sums of given posteriors."""
        return held_sums(self.block_data(data), posterior)

    def start(self, data: Any, init: str, rng: np.random.Generator) -> Sums:
        """Return the posteriors for estimating the first parameters."""
        return self.held(data, super().start(data, init, rng).shares)

    def learners(self, data: Any) -> list[Proposer]:
        """Return the learners that propose blocks of the other variables in EM."""
        if self.inner is None or not self.problem.relearns:
            return []
        structure, labelled = self.problem.structure, self.problem.labelled
        inner = proposers(self.block_data(data), structure, labelled)

        def of_rest(propose: Proposer) -> Proposer:
            return lambda model, sums: propose(model.rest, sums)  # type: ignore[union-attr]

        return [of_rest(propose) for propose in inner]

    def first(
        self,
        data: Any,
        sums: Any,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return parameters for given posteriors, after choosing between statistics."""
        named = self.problem.statistic_blocks
        readers = [(b.variables, each) for b in named for each in b.statistics]
        found = iter(data.summed(partial(alike_histograms, readers=readers), sums.shares))
        fitted = []
        for block in named:
            tried = [(statistic, next(found)) for statistic in block.statistics]
            worth = [self._log_evidence(*each) for each in tried]
            statistic, histograms = tried[int(np.argmax(worth))]
            fitted.append(self._fitted(block.variables, statistic, histograms))
        rest = None
        if self.inner is not None:
            rows = self.block_data(data)
            rest = self.inner.first(rows, sums, blocks, None, rng).model
        model = MixedBlocksModel(fitted, rest, self.others)  # type: ignore[arg-type]
        return Mixture(model, self.log_shares(sums.totals))

    def _log_evidence(self, statistic: Statistic, histograms: FloatArray) -> float:
        """Return the evidence of a statistic, class by class if classes are known.

        A mixture of distributions of T is a distribution of T, so all rows together determine the
        choice, whatever the initial components are: all starts choose the same.
        """
        own = histograms if self.problem.labelled else histograms.sum(axis=1, keepdims=True)
        return log_evidence(own, statistic.log_sizes(), EVIDENCE_PRIOR)

    def _fitted(
        self, variables: IntArray, statistic: Statistic, histograms: FloatArray
    ) -> FittedBlock:
        """Return a block with parameters computed from the prior and its histograms."""
        counts = histograms + self._pseudo_counts(variables, statistic)
        totals = counts.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_q = np.where(totals > 0, np.log(counts / totals), -np.log(statistic.n_values))
        return FittedBlock(variables, statistic, log_q)

    def _pseudo_counts(self, variables: IntArray, statistic: Statistic) -> FloatArray:
        """Return the prior's weight of each value: α, or rows distributed as the training set."""
        alpha, n_values = self.problem.alpha, statistic.n_values
        if self.problem.pooling is None:
            return np.full((n_values, 1), alpha)
        key = variables.tobytes(), id(statistic)
        if key not in self._counted:
            pool, readers = self.problem.source, [(variables, statistic)]
            (counts,) = pool.summed(partial(histograms_of_all, readers=readers))
            smooth = (counts + alpha) / (pool.total + alpha * n_values)
            self._counted[key] = np.asarray(self.problem.pooling * smooth)
        return self._counted[key]

    def candidates(
        self, data: Any, model: Any, sums: Any, step: int, proposals: Sequence[Proposal]
    ) -> list[Model]:
        """Return the candidate models: the old blocks with new parameters, and the new blocks."""
        fitted = [
            self._fitted(block.variables, block.statistic, histograms)
            for block, histograms in zip(model.blocks, sums.histograms, strict=True)
        ]
        rests: list[Any] = [None]
        if self.inner is not None:
            rows = self.block_data(data)
            inner = replace(sums.inner, recipe=sums.recipe)
            rests = list(self.inner.candidates(rows, model.rest, inner, step, proposals))
        return [MixedBlocksModel(fitted, rest, self.others) for rest in rests]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in Σ a·log q, where a are the prior's pseudo-counts."""
        gain = 0.0
        if self.problem.alpha > 0:
            for old, new in zip(before.blocks, after.blocks, strict=True):
                added = self._pseudo_counts(new.variables, new.statistic)
                gain += float((added * (new.log_q - old.log_q)).sum())
        if self.inner is not None:
            gain += self.inner.prior_gain(before.rest, after.rest)
        return gain
