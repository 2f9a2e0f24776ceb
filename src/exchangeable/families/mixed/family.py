"""The family of mixed kinds: the start of EM, and the parameters of each part from sums."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.columns.schema import typed_rows
from exchangeable.data.examples import Examples
from exchangeable.data.rows import ColumnType, CountRows
from exchangeable.families.contract import Family, Model
from exchangeable.families.family import QuickFit
from exchangeable.families.mixed.evidence import Merging, learn_blocks, some_rows
from exchangeable.families.mixed.model import MixedModel, MixedSums
from exchangeable.families.mixed.parts.base import Part
from exchangeable.families.mixed.parts.choice import TOGETHER, URNS, lay_out
from exchangeable.families.mixed.parts.levels import Levels
from exchangeable.families.mixed.quick import QuickLevels
from exchangeable.families.mixed.rows.sums import (
    Near,
    answers,
    begin_parts,
    count_moments,
    held_sums,
    pooled_priors,
    spread_of,
    types_of,
)
from exchangeable.families.mixture import Mixture
from exchangeable.families.sums import Sums
from exchangeable.partitions import Partition
from exchangeable.structure.proposals import Proposal


class MixedFamily(Family):
    """Products of parts, each over columns of one kind."""

    remembers = True
    _known: Sequence[tuple[Any, float]] = ()
    together: ClassVar[Mapping[str, type[Part]]] = TOGETHER
    """The parts used for blocks of several columns, by kind."""

    @cached_property
    def types(self) -> tuple[ColumnType, ...]:
        """What the columns are."""
        chunks = self.problem.chunks
        return types_of(self.problem.rows.rows) if chunks is None else chunks.types

    @property
    def closed_form(self) -> bool:  # type: ignore[override]
        """Whether one step is enough for complete, labelled rows."""
        return not any(part.latent for part, _ in getattr(self, "layout", ()))

    def start(self, data: Any, init: str, rng: np.random.Generator) -> Sums:
        """Return initial posteriors: at random, or by the distance of rows from some of them."""
        weights, k = data.weights, self.problem.n_components
        if init == "random":
            return self.held(data, rng.dirichlet(np.ones(k), size=weights.size))
        share = weights / weights.sum()
        few = k <= np.count_nonzero(share)
        chosen = rng.choice(share.size, size=k, replace=not few, p=share)
        own = typed_rows(data.at(chosen)[0]).values
        near = Near(own, spread_of(data.summed(count_moments), self.types))
        sums: Sums = data.summed(near.sums)
        return sums if sums.posterior.size else replace(sums, recipe=near)

    def held(self, data: Any, posterior: Any) -> Sums:
        """Return given posteriors; sums of parts depend on their parameters."""
        sums: Sums = data.summed(held_sums, posterior)
        return sums

    def first(
        self,
        data: Any,
        sums: Sums,
        blocks: Proposal,
        before: Mixture | None,
        rng: np.random.Generator | None,
    ) -> Mixture:
        """Return parameters for given posteriors."""
        partition = blocks.partitions[0]
        self._lay_out(data, partition)
        asked = self.layout, self.types, self.priors
        parts = begin_parts(data, *asked, sums.totals.size, sums.shares)
        labels = partition.labels.astype(np.int64)
        return Mixture(MixedModel(self.types, parts, labels), self.log_shares(sums.totals))

    def own_blocks(self, data: Any, sums: Sums) -> Proposal | None:
        """Return blocks of dependent columns, if they are to be learned."""
        structure = self.problem.structure
        if isinstance(structure, list) or not structure.needs_moments:
            return None
        chosen = some_rows(data.weights.size)
        rows, posterior = data.at(chosen, sums.shares)
        if isinstance(rows.ones, CountRows):
            raise ValueError(
                f"blocks={structure.name!r} is not for sparse counts; give blocks='full', or lists"
            )
        mass, values = data.weights[chosen, None] * posterior, typed_rows(rows).values
        merging = Merging(values, self.types, mass, self.together, self.problem.alpha)
        return Proposal([learn_blocks(merging)] * mass.shape[1])

    def resume(self, data: Any, mixture: Mixture) -> Mixture:
        """Compute the priors of the parts of an earlier fit, and enlarge them for larger counts."""
        self._lay_out(data, mixture.model.partitions[0])
        parts: Any = getattr(mixture.model, "parts", ())
        if [type(part) for part in parts] != [part for part, _ in self.layout]:
            raise ValueError(
                "warm_start=True goes on from a fit of another family, whose blocks are made of "
                "other parts; set warm_start=False"
            )
        return Mixture(self._with_room(mixture.model), mixture.log_prior)

    def _with_room(self, model: Any, reach: Sequence[Any] | None = None) -> MixedModel:
        """Return a model whose parts have the reach of the prior, which is attached to them."""
        parts = list[Part]()
        for number, (part, prior) in enumerate(zip(model.parts, self.priors, strict=True)):
            wide = part.widened(prior.pooled.reach)
            wide = wide if reach is None else wide.widened(reach[number].numbers)
            pooled = prior.pooled.widened(wide.reach)
            row = prior.pooled.carried(prior.row, pooled)
            self.priors[number] = replace(prior, pooled=pooled, row=row)
            parts.append(wide)
        return MixedModel(model.types, parts, model.labels)

    def widened(self, mixture: Mixture, sums: Any, rows: Examples) -> tuple[Mixture, Any]:
        """Return a mixture, and sums under it, enlarged for larger counts."""
        model: Any = mixture.model
        reach = answers(rows, asked=[(part.columns, part.reached) for part in model.parts])
        wide = self._with_room(model, reach)
        return Mixture(wide, mixture.log_prior), self.carried(model, sums, wide)

    def carried(self, before: Any, sums: Any, after: Any) -> Any:
        """Return sums of each part in the terms of other parameters."""
        parts = zip(before.parts, sums.parts, after.parts, strict=True)
        return replace(sums, parts=[part.carried(own, new) for part, own, new in parts])

    def _lay_out(self, data: Any, partition: Partition) -> None:
        """Start with given blocks: create their parts, and the priors of these."""
        self.layout = lay_out(partition.blocks, self.types, self.together)
        strengths = self.problem.alpha, self.problem.pooling
        self.priors = pooled_priors(data, self.layout, self.types, *strengths)

    def following(self, data: Any, model: Any, sums: Any, step: int) -> list[Model]:
        """Return the parameters after one step of every part."""
        assert isinstance(sums, MixedSums)
        parts = [
            part.following(own, prior, careful=step == 0)
            for part, own, prior in zip(model.parts, sums.parts, self.priors, strict=True)
        ]
        return [MixedModel(model.types, parts, model.labels)]

    def prior_gain(self, before: Any, after: Any) -> float:
        """Return the gain in the score of the pseudo-rows."""
        return self._log_prior(after) - self._log_prior(before)

    def _log_prior(self, model: Any) -> float:
        """Return the score of the pseudo-rows, cached for the last models."""
        for known, found in self._known:
            if known is model:
                return found
        pairs = zip(model.parts, self.priors, strict=True)
        found = float(sum(part.log_prior(prior) for part, prior in pairs))
        self._known = [*self._known[-1:], (model, found)]
        return found

    def distance(self, before: Any, after: Any) -> float:
        """Return how much a step has changed the parameters of parts that take several steps."""
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
        """Fit in compiled loops, if all columns are independent and have levels."""
        partitions = self.problem.known_partitions(len(self.types))
        if partitions is None or self.problem.rows.clamp.size:
            return None
        layout = lay_out(partitions[0].blocks, self.types, self.together)
        if [kind for kind, _ in layout] != [Levels]:
            return None
        strengths = self.problem.alpha, self.problem.pooling
        (prior,) = pooled_priors(data, layout, self.types, *strengths)
        assert isinstance(prior.pooled, Levels)
        quick = QuickLevels(prior.pooled, prior, data.examples)
        parameters, likelihood, converged = quick.fit(
            self.problem.n_components, start, restarts, rng, tol, max_iter
        )
        labels = partitions[0].labels.astype(np.int64)
        model = MixedModel(self.types, [quick.part(parameters)], labels)
        with np.errstate(divide="ignore"):
            return QuickFit(Mixture(model, np.log(parameters.prior)), likelihood, converged)


class UrnsFamily(MixedFamily):
    """The same, with blocks of exchangeable columns, or of bursty counts."""

    together = URNS
