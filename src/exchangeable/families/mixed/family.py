"""Mixed kinds: where EM starts, and how sums become the parameters of each part."""

from functools import cached_property
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import TypedRows
from exchangeable.data.schema import typed_rows
from exchangeable.families.contract import Family, Model
from exchangeable.families.family import QuickFit
from exchangeable.families.mixed.levels import Levels
from exchangeable.families.mixed.model import MixedModel, MixedSums
from exchangeable.families.mixed.part import Part, Prior
from exchangeable.families.mixed.parts import lay_out
from exchangeable.families.mixed.quick import QuickLevels
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import Sums
from exchangeable.partitions import Partition
from exchangeable.structure.proposals import Proposal

FARTHEST = 4.0
"""Squared distances of measurements from a row, halved, count for no more than this."""


class MixedFamily(Family):
    """Products of parts, each over columns of one kind."""

    remembers = True

    @cached_property
    def rows(self) -> TypedRows:
        """The rows."""
        return typed_rows(self.problem.rows.observed)

    @property
    def closed_form(self) -> bool:  # type: ignore[override]
        """Whether one step is all that complete rows with labels need."""
        return not any(part.latent for part, _ in getattr(self, "layout", ()))

    def start(self, data: Any, init: str, rng: np.random.Generator) -> Sums:
        """Return posteriors to begin with: at random, or by how far rows are from some of them."""
        examples, k = self.problem.rows, self.problem.n_components
        n_rows = examples.rows.n_rows
        if init == "random":
            return self.held(data, rng.dirichlet(np.ones(k), size=n_rows))
        share = examples.weights / examples.total
        few = k <= np.count_nonzero(share)
        chosen = rng.choice(n_rows, size=k, replace=not few, p=share)
        distance = np.stack([self._distance(int(row)) for row in chosen], axis=1)
        nearness = np.exp(distance.min(axis=1, keepdims=True) - distance)
        return self.held(data, nearness / nearness.sum(axis=1, keepdims=True))

    def _distance(self, row: int) -> FloatArray:
        """Return how far all rows are from one, in the columns that both know."""
        values = self.rows.values
        total = np.zeros(len(values))
        for j, kind in enumerate(self.rows.types):
            here, own = values[:, j], values[row, j]
            both = ~np.isnan(here) & ~np.isnan(own)
            if kind.kind in ("count", "continuous"):
                spread = np.nanvar(here) if kind.kind == "count" else 1.0
                step = np.minimum(0.5 * (here - own) ** 2 / max(spread, 1e-12), FARTHEST)
            else:
                step = 1.0 * (here != own)
            total += np.where(both, step, 0.0)
        return total

    def held(self, data: Any, posterior: FloatArray) -> Sums:
        """Return given posteriors; what parts sum depends on their parameters."""
        return Sums(0.0, posterior, self.problem.rows.weights @ posterior)

    def first(
        self,
        data: Any,
        sums: Sums,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return parameters that fit given posteriors."""
        partition = blocks.partitions[0]
        self._lay_out(partition)
        weights = self.problem.rows.weights
        mass = weights[:, None] * sums.posterior
        parts = [
            self._part(part, columns, mass, prior)
            for (part, columns), prior in zip(self.layout, self.priors, strict=True)
        ]
        labels = partition.labels.astype(np.int64)
        return Mixture(MixedModel(self.rows.types, parts, labels), self.log_shares(sums.totals))

    def resume(self, data: Any, mixture: Mixture) -> None:
        """Find the priors of the parts of an earlier fit."""
        self._lay_out(mixture.model.partitions[0])

    def _lay_out(self, partition: Partition) -> None:
        """Begin with some blocks: find their parts, and the priors of these."""
        self.layout = lay_out(partition.blocks, self.rows.types)
        self.priors = [self._prior(part, columns) for part, columns in self.layout]

    def _part(self, kind: type[Part], columns: IntArray, mass: FloatArray, prior: Prior) -> Part:
        types = tuple(self.rows.types[j] for j in columns)
        values = np.ascontiguousarray(self.rows.values[:, columns])
        return kind.first(columns, types, values, mass, prior)

    def _prior(self, kind: type[Part], columns: IntArray) -> Prior:
        """Return the pseudo-rows of a part, distributed as the training set."""
        alpha, pooling = self.problem.alpha, self.problem.pooling
        weights = self.problem.rows.weights[:, None]
        pooled = self._part(kind, columns, weights, Prior(alpha))
        return Prior(alpha, pooling, pooled)

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters after one step of every part."""
        assert isinstance(sums, MixedSums)
        parts = [
            part.following(own, prior, careful=step == 0)
            for part, own, prior in zip(model.parts, sums.parts, self.priors, strict=True)
        ]
        return [MixedModel(model.types, parts, model.labels)]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in what the pseudo-rows score."""
        pairs = zip(before.parts, after.parts, self.priors, strict=True)
        return float(sum(new.log_prior(p) - old.log_prior(p) for old, new, p in pairs))

    def distance(self, before: Any, after: Any) -> float:
        """Return how far a step has moved the parameters of parts that take several."""
        pairs = zip(before.parts, after.parts, strict=True)
        return max(float(old.distance(new)) for old, new in pairs)

    def quick_fit(
        self,
        data: Any,
        start: FloatArray | None,
        restarts: int,
        rng: np.random.Generator,
        tol: float,
        max_iter: int,
    ) -> QuickFit | None:
        """Fit in compiled loops, where all columns are independent and have levels."""
        partitions = self.problem.known_partitions(self.rows.n_variables)
        if partitions is None or self.problem.rows.clamp.size:
            return None
        layout = lay_out(partitions[0].blocks, self.rows.types)
        if [kind for kind, _ in layout] != [Levels]:
            return None
        columns = layout[0][1]
        prior = self._prior(Levels, columns)
        assert isinstance(prior.pooled, Levels)
        quick = QuickLevels(prior.pooled, prior, data.examples)
        parameters, likelihood, converged = quick.fit(
            self.problem.n_components, start, restarts, rng, tol, max_iter
        )
        labels = partitions[0].labels.astype(np.int64)
        model = MixedModel(self.rows.types, [quick.part(parameters)], labels)
        with np.errstate(divide="ignore"):
            return QuickFit(Mixture(model, np.log(parameters.prior)), likelihood, converged)
