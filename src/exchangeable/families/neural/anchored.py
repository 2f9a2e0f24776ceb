"""EM that continues from components decoded by a network.

A mixture of thousands of components has about as many components as rows: fitted by sums over rows
alone, each would collapse to its few nearest rows. So each is anchored by pseudo-rows that are
distributed as the result of training. The objective is the log-likelihood minus `STRENGTH` times
the divergences of the components from there.
"""

from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.contract import Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.trees.family import TreeFamily
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.trees.moments import tree_moments
from exchangeable.families.trees.natural import Edges, natural_parameters
from exchangeable.families.urns.family import UrnFamily, centred
from exchangeable.families.urns.model import UrnModel
from exchangeable.families.urns.polynomials import expected_ones

STRENGTH = 100.0
"""Pseudo-rows of each component."""


class AnchoredTrees(TreeFamily):
    """Trees, possibly without edges, whose edges are fixed."""

    _means: FloatArray
    _pairs: FloatArray

    def resume(self, data: Any, mixture: Mixture) -> Mixture:
        """Set the components as anchors."""
        model: Any = (self.problem.anchor or mixture).model
        self._means, self._pairs = tree_moments(model)
        return mixture

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the trees of the probabilities of rows and pseudo-rows."""
        totals = sums.totals + STRENGTH
        means = (sums.ones + STRENGTH * self._means) / totals
        if not model.parent.size:
            odds = np.log(means) - np.log1p(-means)
            return [TreeModel.make(np.log1p(-means).sum(axis=0), odds)]
        both = (sums.pairs + STRENGTH * self._pairs) / totals
        base, slope, pair = natural_parameters(means, both, Edges.of(model.parent))
        return [TreeModel.make(base, slope, model.parent, pair)]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the expected score of the pseudo-rows."""
        gain = (after.base - before.base).sum()
        gain += (self._means * (after.slope - before.slope)).sum()
        gain += (self._pairs * (after.pair - before.pair)).sum()
        return float(STRENGTH * gain)


class AnchoredUrns(UrnFamily):
    """Urns of all variables."""

    _log_q: FloatArray
    _ones: FloatArray

    def resume(self, data: Any, mixture: Mixture) -> Mixture:
        """Set the components as anchors."""
        model: Any = (self.problem.anchor or mixture).model
        self._log_q = np.stack(model.log_q)
        shares = list(np.exp(self._log_q))
        self._ones = expected_ones(model.partitions, model.polynomials, shares, data.n_jobs)
        return mixture

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the counts of rows and pseudo-rows, and weights scaled once by their ones."""
        with np.errstate(divide="ignore"):  # counts that never occur
            log_mass = np.logaddexp(np.log(sums.counts.T), np.log(STRENGTH) + self._log_q)
        mass, ones = np.exp(log_mass), sums.ones + STRENGTH * self._ones
        expected = expected_ones(model.partitions, model.polynomials, list(mass), data.n_jobs)
        scaled = centred(model.log_weights + np.log(ones / expected))
        log_q = log_mass - np.log(mass.sum(axis=1, keepdims=True))
        near = [polynomial.order for polynomial in model.polynomials]
        return [UrnModel.make(model.partitions, scaled, list(log_q), data.n_jobs, near=near)]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the expected score of the pseudo-rows."""
        old, new = (self._expected(model.scores) for model in (before, after))
        return STRENGTH * (new - old)

    def _expected(self, scores: Any) -> float:
        shares, by_count = np.exp(self._log_q.T), scores.by_count
        seen = shares > 0
        return float((self._ones * scores.slope).sum() + shares[seen] @ by_count[seen])
