"""Smaller mixtures that are nearly as good: fewer components, with other weights and parameters.

Nothing is fitted to the rows by which the loss is judged. Components that are alike are merged,
where a family can (`FamilySpec.merge`), those of all its fits together. Of other families the
components are kept that rows drawn from the mixture need most; where a family is fitted by EM, so
are those that are left, to rows drawn from all its components: they take over what the others have
stood for. Weights are fitted to rows drawn from the whole, and by such rows one of several ways to
share out the parameters among the families is chosen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families import family_named, with_statistics
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import FamilySpec, Model, Trainer
from exchangeable.families.joined import JoinedModel
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.fitting.search.trials import NO_BLOCKS, NamedBlocks
from exchangeable.runtime.threads import run

CELLS = 1 << 26
"""Scores of drawn rows by components that are held at once."""
FEWEST_ROWS, MOST_ROWS, ROWS_PER_COMPONENT = 10_000, 40_000, 16
"""Rows that are drawn."""
WEIGHT_STEPS = 30
"""Of the EM that fits weights."""
NO_WEIGHT = 1e-9
SHORTER = 0.95
REFIT = StopRule(tol=1e-3, max_iter=20, patience=2)
POOLING, SHRINKAGE = 0.5, 1.0
"""Pseudo-rows of components that are fitted again; rows are drawn as many as are wanted."""
RATIOS = (1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64)
"""How many times smaller a mixture is tried to be, where a loss is given."""


@dataclass(frozen=True)
class Compressed:
    """A smaller mixture.

    Attributes
    ----------
    mixture : Mixture
        What is left.
    parts : list of int
        The parts of the mixture of which something is left.
    before, after : float
        Average log-likelihood of the rows that judge, under both mixtures.
    """

    mixture: Mixture
    parts: list[int]
    before: float
    after: float

    @property
    def loss(self) -> float:
        """What was lost, as a part of the log-likelihood."""
        return (self.before - self.after) / abs(self.before)


@dataclass(frozen=True)
class Compressor:
    """Makes a mixture smaller.

    Attributes
    ----------
    mixture : Mixture
        The mixture.
    families : sequence of str
        The family of each of its parts.
    judges : Examples
        Rows by which the loss is judged, which were not fitted.
    seed : int
        Seed of all draws.
    n_jobs : int, optional
        Number of threads.
    named : NamedBlocks
        The blocks with statistics, which some parts may have.
    report : callable
        Is told how it goes, in a line.
    stop : Event
        Ends it, when set, with what was found so far.
    """

    mixture: Mixture
    families: Sequence[str]
    judges: Examples
    seed: int = 0
    n_jobs: int | None = None
    named: NamedBlocks = NO_BLOCKS
    report: Callable[[str], None] = lambda text: None
    stop: Event = field(default_factory=Event)

    def to_loss(self, loss: float) -> Compressed:
        """Return the smallest mixture that is found which loses at most so much of the likelihood.

        It is the mixture itself if even the largest smaller one that is tried loses more.
        """
        found = self._judged(self.mixture, list(range(len(self.families))))
        low, high = 0, len(RATIOS)
        while low < high and not self.stop.is_set():
            middle = (low + high) // 2
            tried = self.to_size(int(self.mixture.n_parameters / RATIOS[middle]))
            if tried.loss <= loss:
                found, low = tried, middle + 1
            else:
                high = middle
            self.report(
                f"{RATIOS[middle]:g} times smaller loses {tried.loss:.3%}; best so far: "
                f"{found.mixture.n_parameters:,} parameters, loss {found.loss:.3%}"
            )
        return found

    def to_size(self, n_parameters: int) -> Compressed:
        """Return the best mixture that is found with at most this many parameters."""
        rng = np.random.default_rng([self.seed, n_parameters])
        ways = [self._pruned]
        if any(spec.merge is not None for spec in map(family_named, self.families)):
            ways += [self._merged_evenly, self._merged_beside_others, self._merged_alone]
        candidates = list[tuple[Mixture, list[int]]]()
        for number, (way, own) in enumerate(zip(ways, rng.spawn(len(ways)), strict=True)):
            if candidates and self.stop.is_set():
                break
            self.report(f"{n_parameters:,} parameters: {number + 1} of {len(ways)} ways")
            candidates += [each for each in way(n_parameters, own) if _fits(each, n_parameters)]
        best = max(candidates, key=lambda each: each[0].log_likelihood(self._fresh, self.n_jobs))
        return self._judged(*best)

    @cached_property
    def _fresh(self) -> Examples:
        """Rows drawn from the mixture, by which candidates are compared."""
        drawn = self._drawn(self.mixture, FEWEST_ROWS, np.random.default_rng([self.seed, 0]))
        return merge_equal_rows(drawn, np.ones(drawn.n_rows))[0]

    @cached_property
    def _to_share(self) -> Observed:
        """Rows drawn from the mixture, to which shares of families are fitted."""
        return self._drawn(self.mixture, FEWEST_ROWS, np.random.default_rng([self.seed, 1]))

    @cached_property
    def _pools(self) -> "list[Pool]":
        """The parts, those of a family whose components can be merged as one."""
        pools, begin = dict[Any, list[tuple[int, Mixture, float]]](), 0
        for number, (part, family) in enumerate(
            zip(parts_of(self.mixture.model), self.families, strict=True)
        ):
            prior = self.mixture.log_prior[begin : begin + part.n_classes]
            begin += part.n_classes
            mass = float(np.logaddexp.reduce(prior))
            key = number if family_named(family).merge is None else family
            own = (number, Mixture(part, prior - mass), float(np.exp(mass)))
            pools.setdefault(key, []).append(own)
        return [Pool.of(self.families[each[0][0]], each) for each in pools.values()]

    def _merged_evenly(
        self, n_parameters: int, rng: np.random.Generator
    ) -> list[tuple[Mixture, list[int]]]:
        """Return what is left if all families give up the same part of their parameters."""
        part = n_parameters / self.mixture.n_parameters
        return self._made({n: part * pool.size for n, pool in enumerate(self._pools)}, rng)

    def _merged_beside_others(
        self, n_parameters: int, rng: np.random.Generator
    ) -> list[tuple[Mixture, list[int]]]:
        """Return what is left if only families give up some whose components can be merged."""
        others = {n: pool.size for n, pool in enumerate(self._pools) if not pool.spec.merge}
        left = n_parameters - sum(others.values())
        if left <= 0 or not others:
            return []
        return self._made(others | self._of_merging(left), rng)

    def _merged_alone(
        self, n_parameters: int, rng: np.random.Generator
    ) -> list[tuple[Mixture, list[int]]]:
        """Return what is left of the families whose components can be merged, without others."""
        if all(pool.spec.merge for pool in self._pools):
            return []
        return self._made(self._of_merging(n_parameters), rng)

    def _of_merging(self, n_parameters: float) -> dict[int, float]:
        """Share out parameters among the families whose components can be merged."""
        sizes = {n: pool.size for n, pool in enumerate(self._pools) if pool.spec.merge}
        return {n: n_parameters * size / sum(sizes.values()) for n, size in sizes.items()}

    def _made(
        self, budgets: dict[int, float], rng: np.random.Generator
    ) -> list[tuple[Mixture, list[int]]]:
        """Return what is left of each family within its parameters, with shares that suit it."""
        found = list[tuple[Mixture, int, float]]()
        for number, budget in budgets.items():
            pool = self._pools[number]
            few = self._fewer(pool, int(budget), rng)
            if few is not None and few.n_parameters <= budget:
                found.append((few, pool.number, pool.share))
        if not found:
            return []
        mixtures, numbers, begin = zip(*found, strict=True)
        shares = fit_shares(mixtures, np.array(begin), self._to_share, self.n_jobs)
        order = sorted(np.flatnonzero(shares > NO_WEIGHT), key=lambda n: numbers[n])
        joined = Mixture.join([mixtures[n] for n in order], shares[order] / shares[order].sum())
        return [(joined, [numbers[n] for n in order])]

    def _fewer(self, pool: "Pool", budget: int, rng: np.random.Generator) -> Mixture | None:
        """Return fewer components of a family, None if there are too few parameters for any."""
        whole = pool.mixture
        if pool.size <= budget:
            return whole
        if pool.spec.merge is not None:
            count = budget * whole.log_prior.size // whole.n_parameters
            return pool.spec.merge(whole, count, rng) if count else None
        weights = np.exp(whole.log_prior)
        kept = most_useful(whole, weights, budget)
        few = Mixture(whole.model.only(kept), np.log(weights[kept] / weights[kept].sum()))
        spec = em_family(pool.spec.name)
        if spec is None or few.model.units()[-1] + 1 < kept.size:
            return few
        fitted = self._fitted(spec, few, whole, rng)
        return fitted if fitted.n_parameters <= budget else few

    def _pruned(
        self, n_parameters: int, rng: np.random.Generator
    ) -> list[tuple[Mixture, list[int]]]:
        """Return the components that drawn rows need most, as they are and fitted again."""
        model, n_classes = self.mixture.model, self.mixture.log_prior.size
        wanted = n_parameters * n_classes / self.mixture.n_parameters
        n_rows = int(np.clip(ROWS_PER_COMPONENT * wanted, FEWEST_ROWS, MOST_ROWS))
        rows = self._drawn(self.mixture, n_rows, rng)
        some = thinned(np.exp(self.mixture.log_prior), max(1, CELLS // n_rows), rng)
        weights = np.zeros(n_classes)
        weights[some] = fit_weights(self.mixture.only(some), rows, self.n_jobs)
        kept = most_useful(self.mixture, weights, n_parameters)
        parts = sorted(set(part_numbers(model)[kept].tolist()))
        pruned = Mixture(model.only(kept), np.log(weights[kept] / weights[kept].sum()))
        candidates = [self._weighed(pruned, parts, rows)]
        refitted = self._refitted(kept, weights, rng)
        if refitted.n_parameters <= n_parameters:
            candidates.append(self._weighed(refitted, parts, rows))
        return candidates

    def _judged(self, mixture: Mixture, parts: list[int]) -> Compressed:
        total = self.judges.total
        before, after = (
            each.log_likelihood(self.judges, self.n_jobs) / total
            for each in (self.mixture, mixture)
        )
        return Compressed(mixture, parts, before, after)

    def _drawn(self, mixture: Mixture, n_rows: int, rng: np.random.Generator) -> Observed:
        """Return rows drawn from a mixture."""
        shares, n = np.exp(mixture.log_prior), mixture.model.n_variables
        classes = rng.choice(shares.size, size=n_rows, p=shares / shares.sum())
        nothing = Observed.from_symbols(np.full((n_rows, n), UNASSIGNED, dtype=np.int8))
        rows = np.empty((n_rows, n), dtype=np.uint8)

        def one(task: tuple[int, np.random.Generator]) -> None:
            members = np.flatnonzero(classes == task[0])
            rows[members] = mixture.model.draw(nothing.take(members), *task)

        drawn = [int(y) for y in np.unique(classes)]
        run(one, zip(drawn, rng.spawn(len(drawn)), strict=True), self.n_jobs)
        return as_observed(rows, None)

    def _weighed(
        self, mixture: Mixture, parts: list[int], rows: Observed
    ) -> tuple[Mixture, list[int]]:
        """Return a mixture with weights that suit rows, and the parts that have some."""
        weights = fit_weights(mixture, rows, self.n_jobs)
        alive = np.flatnonzero(weights > NO_WEIGHT)
        model = mixture.model if alive.size == weights.size else mixture.model.only(alive)
        left = sorted(set(part_numbers(mixture.model)[alive].tolist()))
        log_prior = np.log(weights[alive] / weights[alive].sum())
        return Mixture(model, log_prior), [parts[number] for number in left]

    def _refitted(self, kept: IntArray, weights: FloatArray, rng: np.random.Generator) -> Mixture:
        """Return some components, those of each part fitted to rows drawn from the whole part."""
        parts = parts_of(self.mixture.model)
        found, shares, begin = list[Mixture](), list[float](), 0
        for part, family in zip(parts, self.families, strict=True):
            end = begin + part.n_classes
            mine = kept[(kept >= begin) & (kept < end)]
            if mine.size:
                own = np.log(weights[mine] / weights[mine].sum())
                few = Mixture(part.only(mine - begin), own)
                prior = self.mixture.log_prior[begin:end]
                many = Mixture(part, prior - np.logaddexp.reduce(prior))
                merges = family_named(family).merge is not None
                spec = None if merges else em_family(family)
                if spec is not None and few.model.units()[-1] + 1 == mine.size:
                    few = self._fitted(spec, few, many, rng)
                found.append(few)
                shares.append(float(weights[mine].sum()))
            begin = end
        return Mixture.join(found, np.array(shares) / sum(shares))

    def _fitted(
        self, spec: FamilySpec, few: Mixture, many: Mixture, rng: np.random.Generator
    ) -> Mixture:
        """Return components fitted by EM to rows drawn from others, beginning where they are."""
        k = few.log_prior.size
        n_rows = int(np.clip(ROWS_PER_COMPONENT * k, FEWEST_ROWS, MOST_ROWS))
        examples, valid = (
            merge_equal_rows(self._drawn(many, count, rng), np.ones(count))[0]
            for count in (n_rows, FEWEST_ROWS)
        )
        named = NO_BLOCKS
        if self.named.blocks and few.model.reads(self.named.blocks):
            spec, named = with_statistics(spec), self.named
        problem = Problem(
            k,
            list(few.model.learned_partitions),
            statistic_blocks=tuple(named.blocks),
            others=named.others,
            examples=examples,
            valid=valid,
            pooling=POOLING,
            shrinkage=0.0 if spec.shrinkage is None else SHRINKAGE,
        )
        runs = Runs(spec, problem, InMemory(examples), REFIT, "rows", [rng], warm=few)
        try:
            return runs.run(0, threads=self.n_jobs).best
        except MemoryError:
            return few


@dataclass(frozen=True)
class Pool:
    """All components of a family that are made fewer together.

    Attributes
    ----------
    spec : FamilySpec
        The family.
    number : int
        The first of the parts that they are from.
    mixture : Mixture
        They.
    share : float
        What they count for.
    """

    spec: FamilySpec
    number: int
    mixture: Mixture
    share: float

    @classmethod
    def of(cls, family: str, parts: Sequence[tuple[int, Mixture, float]]) -> "Pool":
        """Return the pool of some parts: their numbers, what they are, and their shares."""
        numbers, mixtures, shares = zip(*parts, strict=True)
        mass = sum(shares)
        whole = mixtures[0]
        if len(mixtures) > 1:
            model = type(whole.model).stack([each.model for each in mixtures])
            priors = [m.log_prior + np.log(s / mass) for m, s in zip(mixtures, shares, strict=True)]
            whole = Mixture(model, np.concatenate(priors))
        return cls(family_named(family), numbers[0], whole, mass)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.mixture.n_parameters + 1


def _fits(candidate: tuple[Mixture, list[int]], n_parameters: int) -> bool:
    """Whether a mixture has no more parameters, or is a single unit that cannot be smaller."""
    mixture = candidate[0]
    return mixture.n_parameters <= n_parameters or mixture.model.units()[-1] == 0


def fit_shares(
    mixtures: Sequence[Mixture], shares: FloatArray, rows: Observed, n_jobs: int | None = None
) -> FloatArray:
    """Return how much each of some mixtures counts where they are joined, as suits rows."""
    scores = np.stack([each.log_evidence(rows, n_jobs) for each in mixtures], axis=1)
    likelihoods = np.exp(scores - scores.max(axis=1, keepdims=True))
    for _ in range(WEIGHT_STEPS):
        mass = likelihoods * shares
        shares = (mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)).mean(axis=0)
    return np.asarray(shares / shares.sum())


def parts_of(model: Model) -> list[Model]:
    """Return the parts of a model, which may be the only one."""
    return model.parts if isinstance(model, JoinedModel) else [model]


def part_numbers(model: Model) -> IntArray:
    """Return the number of the part of each component."""
    sizes = [part.n_classes for part in parts_of(model)]
    return np.repeat(np.arange(len(sizes)), sizes)


def em_family(family: str) -> FamilySpec | None:
    """Return the family by which components are fitted again, None where there is none."""
    spec = family_named(family)
    if issubclass(spec.family, Trainer):
        spec = family_named(spec.refits) if spec.refits is not None else spec
    return None if issubclass(spec.family, Trainer) else spec


def fit_weights(mixture: Mixture, rows: Observed, n_jobs: int | None = None) -> FloatArray:
    """Return weights of components that suit rows, by steps of EM from those they have."""
    scores = mixture.model.score(rows, n_jobs)
    scores -= scores.max(axis=1, keepdims=True)
    likelihoods = np.exp(scores, dtype=np.float32)
    weights: Any = np.exp(mixture.log_prior).astype(np.float32)
    for _ in range(WEIGHT_STEPS):
        evidence = np.maximum(likelihoods @ weights, np.float32(1e-30))
        weights = weights * ((1 / evidence) @ likelihoods) / np.float32(rows.n_rows)
    exact = weights.astype(np.float64)
    return np.asarray(exact / exact.sum())


def thinned(weights: FloatArray, most: int, rng: np.random.Generator) -> IntArray:
    """Return at most this many components, spread evenly over the weights.

    >>> thinned(np.full(8, 0.125), 4, np.random.default_rng(0)).size
    4
    """
    if weights.size <= most:
        return np.arange(weights.size)
    heights = np.cumsum(weights) / weights.sum()
    marks = (np.arange(most) + rng.random()) / most
    return np.unique(np.searchsorted(heights, marks).clip(max=weights.size - 1))


def most_useful(mixture: Mixture, weights: FloatArray, n_parameters: int) -> IntArray:
    """Return the components that weigh most for their parameters, with at most this many of these.

    Components that share parameters stay together; at least one is kept.
    """
    model = mixture.model
    units = model.units()
    mass, sizes = np.bincount(units, weights), unit_sizes(model)
    order = np.argsort(-mass / sizes, kind="stable")
    order = order[mass[order] > NO_WEIGHT]
    count = int(np.searchsorted(np.cumsum(sizes[order]), n_parameters, "right"))
    while True:
        count = max(1, count)
        kept = np.flatnonzero(np.isin(units, order[:count]) & (weights > 0))
        if count == 1 or model.only(kept).n_parameters + kept.size - 1 <= n_parameters:
            return kept
        count = int(SHORTER * count)


def unit_sizes(model: Model) -> FloatArray:
    """Return about how many parameters each set of components has that share them."""
    sizes = []
    for part in parts_of(model):
        units = part.units()
        n_units = int(units[-1]) + 1
        sizes.append(part.n_parameters / n_units + np.bincount(units))
    return np.concatenate(sizes)
