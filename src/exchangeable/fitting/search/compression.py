"""Compression of a mixture: fewer components with new weights and parameters, nearly as good.

There are two approaches. In the first, components are merged and their parameters factorised at low
rank if the family supports it (`FamilySpec.compact`), and other families keep their heaviest
components. In the second, the components of all families that drawn rows need most are kept and
refitted by EM to rows drawn from all components of their family, which they replace. No parameters
or weights are fitted to the rows by which the loss is judged: these only choose between such
alternatives, the sizes of the families, and the rank of the factors.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed, as_observed
from exchangeable.families import family_named, with_statistics
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import FamilySpec
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.runs import Runs
from exchangeable.fitting.search.parts import (
    NO_WEIGHT,
    Part,
    em_family,
    fit_shares,
    fit_weights,
    most_useful,
    part_numbers,
    parts_of,
    thinned,
)
from exchangeable.fitting.search.trials import NO_BLOCKS, NamedBlocks
from exchangeable.runtime import apart
from exchangeable.runtime.interrupts import GivenUp, giving_up
from exchangeable.runtime.threads import run

CELLS = 1 << 26
"""Number of scores (drawn rows by components) held at a time."""
FEWEST_ROWS, MOST_ROWS, ROWS_PER_COMPONENT = 10_000, 40_000, 16
"""Minimum and maximum number of drawn rows, and their number per component."""
REFIT = StopRule(tol=1e-3, max_iter=20, patience=2)
POOLING, SHRINKAGE = 0.5, 1.0
"""Pseudo-rows of components that are refitted; rows can be drawn in any number."""
RATIOS = (1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64)
"""Reduction factors that are tried if a loss is given."""
RANKS = (3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, None)
"""Ranks of the factors; None means that parameters are not factorised."""
FIRST_RANK = 5
"""Index of the rank that is tried first."""
PARTS_LEFT = (0.0, 0.25, 0.5, 1.0)
"""Fractions of the families without `compact` that are tried."""


@dataclass(frozen=True)
class Compressed:
    """A smaller mixture.

    Attributes
    ----------
    mixture : Mixture
        The smaller mixture.
    parts : list of int
        The parts of the original mixture that are not dropped completely.
    before, after : float
        Average log-likelihood of the validation rows under both mixtures.
    """

    mixture: Mixture
    parts: list[int]
    before: float
    after: float

    @property
    def loss(self) -> float:
        """The relative loss of log-likelihood."""
        return (self.before - self.after) / abs(self.before)


@dataclass(frozen=True)
class Compressor:
    """Compresses a mixture.

    Attributes
    ----------
    mixture : Mixture
        The mixture.
    families : sequence of str
        The family of each of its parts.
    judges : Examples
        Validation rows, by which the loss is judged.
    seed : int
        Seed of all draws.
    n_jobs : int, optional
        Number of threads.
    named : NamedBlocks
        The blocks with statistics that some parts may have.
    report : callable
        Receives the progress, in one line.
    stop : Event
        Ends it, when set, with what was found so far.
    found : list of Compressed
        The best so far, if there is one: whoever does not wait for the end takes that.
    """

    mixture: Mixture
    families: Sequence[str]
    judges: Examples
    seed: int = 0
    n_jobs: int | None = None
    named: NamedBlocks = NO_BLOCKS
    report: Callable[[str], None] = lambda text: None
    stop: Event = field(default_factory=Event)
    found: list[Compressed] = field(default_factory=list, init=False)

    def to_loss(self, loss: float) -> Compressed:
        """Return the smallest mixture found that loses at most this share of log-likelihood.

        It is the mixture itself if even the largest compressed one loses more.
        """
        smallest = self._judged(self.mixture, list(range(len(self.families))))
        self.found[:] = [smallest]
        low, high = 0, len(RATIOS)
        while low < high and not self.stop.is_set():
            middle = (low + high) // 2
            ways = self._ways(int(self.mixture.n_parameters / RATIOS[middle]))
            tried = max(ways, key=lambda way: way.after)
            if tried.loss <= loss:
                smallest, low = tried, middle + 1
                self.found[:] = [smallest]
            else:
                high = middle
            self.report(
                f"{RATIOS[middle]:g} times smaller loses {tried.loss:.3%}; best so far: "
                f"{smallest.mixture.n_parameters:,} parameters, loss {smallest.loss:.3%}"
            )
        return smallest

    def to_size(self, n_parameters: int) -> Compressed:
        """Return the best mixture that is found with at most this many parameters."""
        self.found.clear()
        for way in self._ways(n_parameters):
            if not self.found or way.after > self.found[0].after:
                self.found[:] = [way]
        return self.found[0]

    def _ways(self, n_parameters: int) -> Iterator[Compressed]:
        """Yield mixtures with at most this many parameters, made in different ways."""
        rng = np.random.default_rng([self.seed, n_parameters])
        for pruned in self._pruned(n_parameters, rng):
            yield self._judged(*pruned)
        self.report(f"{n_parameters:,} parameters: components left out")
        compact = None if self.stop.is_set() else self._compact(n_parameters)
        if compact is not None:
            yield self._judged(*compact)

    def _compact(self, n_parameters: int) -> tuple[Mixture, list[int]] | None:
        """Return the best mixture with compact families, None if there are none.

        Beginning with one rank, and one fraction of the other families, it moves to neighbouring
        ones as long as that helps.
        """
        if not any(part.spec.compact for part in self._parts):
            return None
        tried = dict[tuple[int, int], float]()
        best, chosen = -np.inf, None
        ahead = list(self._begin)
        while ahead and not (chosen is not None and self.stop.is_set()):
            option = ahead.pop()
            candidate = self._candidate(n_parameters, RANKS[option[0]], PARTS_LEFT[option[1]])
            tried[option] = -np.inf if candidate is None else self._worth(candidate[0])
            if candidate is not None and tried[option] > best:
                best, chosen = tried[option], candidate
                self.report(f"{n_parameters:,} parameters: {len(tried)} ways tried")
            if not ahead:
                ahead = _next_to(max(tried, key=lambda each: tried[each]), tried)
        if chosen is not None:
            self._begin[:] = [max(tried, key=lambda each: tried[each])]
        return chosen

    def _candidate(
        self, n_parameters: int, rank: int | None, left: float
    ) -> tuple[Mixture, list[int]] | None:
        """Return a mixture with compact families at some rank, and part of the other families."""
        rng = np.random.default_rng([self.seed, n_parameters, rank or 0])
        others = [part for part in self._parts if not part.spec.compact]
        made = [part.thinned(left) for part in others if left] if left < 1 else others
        free = n_parameters - sum(part.size for part in made)
        dense = [part for part in self._parts if part.spec.compact]
        sizes = [
            part.mixture.n_parameters if rank is None else part.mixture.log_prior.size
            for part in dense
        ]
        for part, size in zip(dense, sizes, strict=True):
            few = part.compacted(int(free * size / sum(sizes)) - 1, rank, rng)
            if few is None:
                return None
            made.append(few)
        made.sort(key=lambda part: part.number)
        mixtures = [part.mixture for part in made]
        begin = np.array([part.share for part in made])
        shares = fit_shares(mixtures, begin / begin.sum(), self._to_share, self.n_jobs)
        kept = np.flatnonzero(shares > NO_WEIGHT)
        joined = Mixture.join([mixtures[n] for n in kept], shares[kept] / shares[kept].sum())
        if joined.n_parameters > n_parameters:
            return None
        return joined, [made[n].number for n in kept]

    def _worth(self, mixture: Mixture) -> float:
        """Return the average log-likelihood of the validation rows."""
        return mixture.log_likelihood(self.judges, self.n_jobs) / self.judges.total

    @cached_property
    def _begin(self) -> list[tuple[int, int]]:
        """The rank and the fraction to try first, by index: the latest best, once known."""
        return [(FIRST_RANK, number) for number in range(len(PARTS_LEFT))]

    @cached_property
    def _before(self) -> float:
        return self._worth(self.mixture)

    @cached_property
    def _to_share(self) -> Observed:
        """Rows drawn from the mixture, to which shares of families are fitted."""
        return self._drawn(self.mixture, FEWEST_ROWS, np.random.default_rng([self.seed, 1]))

    @cached_property
    def _parts(self) -> list[Part]:
        """The parts of the mixture."""
        parts, begin = list[Part](), 0
        for number, (model, family) in enumerate(
            zip(parts_of(self.mixture.model), self.families, strict=True)
        ):
            prior = self.mixture.log_prior[begin : begin + model.n_classes]
            begin += model.n_classes
            mass = float(np.logaddexp.reduce(prior))
            own = Mixture(model, prior - mass)
            parts.append(Part(family_named(family), number, own, float(np.exp(mass))))
        return parts

    def _pruned(
        self, n_parameters: int, rng: np.random.Generator
    ) -> Iterator[tuple[Mixture, list[int]]]:
        """Yield the components that drawn rows need most, as they are and fitted again."""
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
        yield self._weighed(pruned, parts, rows)
        refitted = self._refitted(kept, weights, rng)
        if refitted.n_parameters <= n_parameters:
            yield self._weighed(refitted, parts, rows)

    def _judged(self, mixture: Mixture, parts: list[int]) -> Compressed:
        return Compressed(mixture, parts, self._before, self._worth(mixture))

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
        """Return a mixture with weights fitted to rows, and the parts with positive weight."""
        weights = fit_weights(mixture, rows, self.n_jobs)
        alive = np.flatnonzero(weights > NO_WEIGHT)
        model = mixture.model if alive.size == weights.size else mixture.model.only(alive)
        left = sorted(set(part_numbers(mixture.model)[alive].tolist()))
        log_prior = np.log(weights[alive] / weights[alive].sum())
        return Mixture(model, log_prior), [parts[number] for number in left]

    def _refitted(self, kept: IntArray, weights: FloatArray, rng: np.random.Generator) -> Mixture:
        """Return some components, those of each part refitted to rows drawn from the whole part."""
        parts = parts_of(self.mixture.model)
        refitted, shares, begin = list[Mixture](), list[float](), 0
        for part, family in zip(parts, self.families, strict=True):
            end = begin + part.n_classes
            mine = kept[(kept >= begin) & (kept < end)]
            if mine.size:
                own = np.log(weights[mine] / weights[mine].sum())
                few = Mixture(part.only(mine - begin), own)
                prior = self.mixture.log_prior[begin:end]
                many = Mixture(part, prior - np.logaddexp.reduce(prior))
                spec = em_family(family)
                if spec is not None and few.model.units()[-1] + 1 == mine.size:
                    few = self._fitted(spec, few, many, rng)
                refitted.append(few)
                shares.append(float(weights[mine].sum()))
            begin = end
        return Mixture.join(refitted, np.array(shares) / sum(shares))

    def _fitted(
        self, spec: FamilySpec, few: Mixture, many: Mixture, rng: np.random.Generator
    ) -> Mixture:
        """Return components fitted by EM to rows drawn from others, starting from themselves."""
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


def found_by(compressor: Compressor, n_parameters: int | None, loss: float | None) -> Compressed:
    """Return what is found; what does not end soon after Ctrl-C is left behind for the best so far.

    One of `n_parameters` and `loss` is given. Where there is nothing yet, the interrupt is raised.
    """

    def work() -> Compressed:
        with giving_up():
            if loss is not None:
                return compressor.to_loss(loss)
            return compressor.to_size(n_parameters or 1)

    try:
        return apart.do(work, compressor.stop)
    except GivenUp:
        if not compressor.found:
            raise KeyboardInterrupt from None
        return compressor.found[0]


def _next_to(option: tuple[int, int], tried: Container[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the untried neighbours of an option: ranks, and fractions of other families."""
    rank, left = option
    beside = [(rank - 1, left), (rank + 1, left), (rank, left - 1), (rank, left + 1)]
    return [
        (rank, left)
        for rank, left in beside
        if 0 <= rank < len(RANKS) and 0 <= left < len(PARTS_LEFT) and (rank, left) not in tried
    ]
