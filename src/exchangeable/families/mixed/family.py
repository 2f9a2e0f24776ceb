"""Mixed kinds: where EM starts, and how sums become the parameters of each part."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, is_sparse
from exchangeable.data.rows import CountRows, TypedRows
from exchangeable.data.schema import typed_rows
from exchangeable.families.contract import Family, Model
from exchangeable.families.family import QuickFit
from exchangeable.families.mixed.evidence import Merging, learn_blocks, some_rows
from exchangeable.families.mixed.levels import Levels
from exchangeable.families.mixed.model import MixedModel, MixedSums
from exchangeable.families.mixed.part import Part, Prior
from exchangeable.families.mixed.parts import TOGETHER, URNS, lay_out
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
    _known: Sequence[tuple[Any, float]] = ()
    together: ClassVar[Mapping[str, type[Part]]] = TOGETHER
    """The parts of blocks of several columns, by kind."""

    @cached_property
    def rows(self) -> TypedRows | CountRows:
        """The rows."""
        rows = self.problem.rows.rows
        if isinstance(rows, CountRows):
            return rows
        return typed_rows(self.problem.rows.observed)

    @cached_property
    def values(self) -> Any:
        """Their numbers, a sparse matrix where rows are sparse."""
        return self.rows.matrix if isinstance(self.rows, CountRows) else self.rows.values

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
        values = self.values
        if isinstance(self.rows, CountRows):
            return self._sparse_distance(row)
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

    @cached_property
    def _spread(self) -> FloatArray:
        """The variance of each column of sparse counts."""
        squares = self.values.multiply(self.values).mean(axis=0)
        spread = np.asarray(squares - self.values.mean(axis=0) ** 2, dtype=np.float64)
        return np.maximum(spread, 1e-12)

    def _sparse_distance(self, row: int) -> FloatArray:
        """Return the same of sparse counts: of those that are 0 it is the same for all rows."""
        matrix, spread = self.values, self._spread
        own = matrix[[row]].toarray()[0]

        def step(counts: Any, columns: Any) -> FloatArray:
            gap = 0.5 * (counts - own[columns]) ** 2 / spread[columns]
            return np.asarray(np.minimum(gap, FARTHEST))

        at = matrix.indices
        more = step(matrix.data, at) - step(0.0, at)
        number = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        far = np.bincount(number, more, minlength=matrix.shape[0])
        return np.asarray(far + float(step(0.0, np.arange(own.size)).sum()), dtype=np.float64)

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

    def own_blocks(self, data: Any, sums: Sums) -> Proposal | None:
        """Return blocks whose columns go together, where they are to be learned."""
        structure = self.problem.structure
        if isinstance(structure, list) or not structure.needs_moments:
            return None
        if isinstance(self.rows, CountRows):
            raise ValueError(
                f"blocks={structure.name!r} is not for sparse counts; give blocks='full', or lists"
            )
        mass = self.problem.rows.weights[:, None] * sums.posterior
        values, mass = some_rows(self.values, mass)
        merging = Merging(values, self.rows.types, mass, self.together, self.problem.alpha)
        return Proposal([learn_blocks(merging)] * mass.shape[1])

    def resume(self, data: Any, mixture: Mixture) -> None:
        """Find the priors of the parts of an earlier fit."""
        self._lay_out(mixture.model.partitions[0])
        parts: Any = getattr(mixture.model, "parts", ())
        if [type(part) for part in parts] != [part for part, _ in self.layout]:
            raise ValueError(
                "warm_start=True goes on from a fit of another family, whose blocks are made of "
                "other parts; set warm_start=False"
            )

    def _lay_out(self, partition: Partition) -> None:
        """Begin with some blocks: find their parts, and the priors of these."""
        self.layout = lay_out(partition.blocks, self.rows.types, self.together)
        self.priors = [self._prior(part, columns) for part, columns in self.layout]

    def _part(self, kind: type[Part], columns: IntArray, mass: FloatArray, prior: Prior) -> Part:
        types = tuple(self.rows.types[j] for j in columns)
        return kind.first(columns, types, self._columns(columns), mass, prior)

    def _columns(self, columns: IntArray) -> Any:
        """Return some columns of the rows."""
        if columns.size == self.rows.n_variables:
            return self.values
        own = self.values[:, columns]
        return own if is_sparse(own) else np.ascontiguousarray(own)

    def _prior(self, kind: type[Part], columns: IntArray) -> Prior:
        """Return the pseudo-rows of a part, distributed as the training set."""
        alpha, pooling = self.problem.alpha, self.problem.pooling
        key, kept = ("prior", kind.name, columns.tobytes(), alpha), self.problem.rows.derived
        if key not in kept:
            weights = self.problem.rows.weights[:, None]
            pooled = self._part(kind, columns, weights, Prior(alpha))
            sums = pooled.sums(self._columns(columns), weights)
            kept[key] = pooled, {name: each / weights.sum() for name, each in sums.items()}
        return Prior(alpha, pooling, *kept[key])

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
        return self._log_prior(after) - self._log_prior(before)

    def _log_prior(self, model: Any) -> float:
        """Return what the pseudo-rows score; of the last models it is known."""
        for known, found in self._known:
            if known is model:
                return found
        pairs = zip(model.parts, self.priors, strict=True)
        found = float(sum(part.log_prior(prior) for part, prior in pairs))
        self._known = [*self._known[-1:], (model, found)]
        return found

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
        layout = lay_out(partitions[0].blocks, self.rows.types, self.together)
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


class UrnsFamily(MixedFamily):
    """The same, with blocks whose columns are alike, or whose counts come in bursts."""

    together = URNS
