"""Compression of a mixture: fewer components with new weights and parameters, nearly as good.

Each part of the mixture has smaller versions: components are merged and their parameters factorised
at low rank if the family supports it (`FamilySpec.compact`), and other families keep their heaviest
components, or none (`options`). Combinations of these versions make a path of mixtures of
decreasing size. A mixture on the path is judged as it is and with components refitted by EM to rows
drawn from the whole mixture, so that they replace those that were left out (`refitting`). Nothing
is fitted to the rows by which the loss is judged: these only tell how far to go, and whether to
refit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event

import numpy as np

from exchangeable.arrays import UNASSIGNED
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed, as_observed
from exchangeable.data.rows import CountRows, TypedRows
from exchangeable.data.stacking import stack_observed
from exchangeable.families import family_named
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.search.options import Combination, Maker, path_of
from exchangeable.fitting.search.parts import NO_WEIGHT, Part, parts_of
from exchangeable.fitting.search.refitting import can_refit, refitted
from exchangeable.fitting.search.trials import NO_BLOCKS, NamedBlocks
from exchangeable.runtime import apart
from exchangeable.runtime.interrupts import GivenUp, giving_up
from exchangeable.runtime.threads import run

CHOOSING_ROWS = 10_000
"""Number of drawn rows by which versions are compared, and by which refitting is stopped."""
MOST_LISTED = 16
"""Rows of up to this many variables are not drawn, but all possible ones listed."""
DRAWN_ROWS, MOST_DRAWN, MOST_DISTINCT = 100_000, 400_000, 40_000
"""Number of rows drawn at a time for refitting, their maximum number, and the number of distinct
rows that is enough."""
LISTED_WEIGHT = 1e6
"""Total weight of listed rows."""
ENTRIES = 1 << 26
"""Maximum number of entries (rows by variables) drawn at a time for refitting; no more are drawn if
distinct rows have as many."""
SCORES, WORK = 1 << 24, 1 << 31
"""Maximum number of scores (rows by components), and of these times variables, of a step of
refitting: mixtures for which a step would take more are not refitted."""


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
        low, high = 1, len(self._path)
        while low < high and not self.stop.is_set():
            middle = (low + high) // 2
            for tried in self._ways(self._path[middle]):
                enough = tried.loss <= loss
                if enough:
                    break
            if enough:
                smallest, low = tried, middle + 1
                self.found[:] = [smallest]
            else:
                high = middle
            self.report(
                f"{tried.mixture.n_parameters:,} parameters lose {tried.loss:.3%}; best so far: "
                f"{smallest.mixture.n_parameters:,} parameters, loss {smallest.loss:.3%}"
            )
        return smallest

    def to_size(self, n_parameters: int) -> Compressed:
        """Return the best mixture that is found with at most this many parameters.

        If even the smallest one has more, it is that.
        """
        self.found.clear()
        small = [each for each in self._path if each.size <= n_parameters]
        for way in self._ways((small or self._path[-1:])[0]):
            if not self.found or way.after > self.found[0].after:
                self.found[:] = [way]
        return self.found[0]

    def _ways(self, combination: Combination) -> Iterator[Compressed]:
        """Yield a mixture of given versions of its parts, as they are and refitted."""
        parts = combination.made()
        yield self._joined(parts)
        n_fitted = sum(part.mixture.log_prior.size for part in parts if can_refit(part))
        if not n_fitted or self.stop.is_set():
            return
        self.report(f"{combination.size:,} parameters are refitted")
        rows, held = self._to_fit
        n_scores = n_fitted * rows.weights.size
        if n_scores <= SCORES and n_scores * self.mixture.model.n_variables <= WORK:
            new = refitted(parts, rows, held, self.named, self.n_jobs, self.stop)
            yield self._joined(new)

    def _joined(self, parts: Sequence[Part]) -> Compressed:
        """Return the join of some parts, judged."""
        parts = [part for part in parts if part.share > NO_WEIGHT]
        shares = np.array([part.share for part in parts])
        joined = Mixture.join([part.mixture for part in parts], shares / shares.sum())
        return self._judged(joined, [part.number for part in parts])

    def _worth(self, mixture: Mixture) -> float:
        """Return the average log-likelihood of the validation rows."""
        return mixture.log_likelihood(self.judges, self.n_jobs) / self.judges.total

    @property
    def _binary(self) -> bool:
        """Whether rows are bits, not numbers of any kind."""
        return not isinstance(self.judges.rows, TypedRows | CountRows)

    @cached_property
    def _before(self) -> float:
        return self._worth(self.mixture)

    @cached_property
    def _path(self) -> list[Combination]:
        """Combinations of versions of the parts, of decreasing size; the first is the mixture."""
        rng = np.random.default_rng([self.seed, 1])
        rows = self._drawn(self.mixture, CHOOSING_ROWS, rng)
        reference = self.mixture.log_evidence(rows, self.n_jobs)
        maker = Maker(rows, reference, self.seed, self.n_jobs, self.stop)
        options = []
        for part in self._parts:
            self.report(f"smaller versions of {part.spec.name}")
            options.append(maker.options(part))
        shares = np.array([part.share for part in self._parts])
        return path_of(options, shares)

    @cached_property
    def _to_fit(self) -> tuple[Examples, Examples]:
        """The rows for refitting, and those that tell when to stop."""
        n = self.mixture.model.n_variables
        if n <= MOST_LISTED and self._binary:
            states = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
            listed = as_observed(states.astype(np.uint8), None)
            weights = np.exp(self.mixture.log_evidence(listed, self.n_jobs))
            examples = merge_equal_rows(listed, LISTED_WEIGHT * weights)[0]
            return examples, examples
        rng = np.random.default_rng([self.seed, 2])
        held = self._drawn(self.mixture, CHOOSING_ROWS, rng)
        found, weights = list[Observed](), np.empty(0)
        at_once, enough = min(DRAWN_ROWS, 1 + ENTRIES // n), min(MOST_DISTINCT, 1 + ENTRIES // n)
        while weights.size < enough and weights.sum() < MOST_DRAWN:
            found.append(self._drawn(self.mixture, at_once, rng))
            weights = np.concatenate([weights, np.ones(at_once)])
            examples = merge_equal_rows(stack_observed(found), weights)[0]
            found, weights = [examples.observed], examples.weights
        return examples, merge_equal_rows(held, np.ones(CHOOSING_ROWS))[0]

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

    def _judged(self, mixture: Mixture, parts: list[int]) -> Compressed:
        return Compressed(mixture, parts, self._before, self._worth(mixture))

    def _drawn(self, mixture: Mixture, n_rows: int, rng: np.random.Generator) -> Observed:
        """Return rows drawn from a mixture, those of a class one after the other if not binary."""
        shares, n = np.exp(mixture.log_prior), mixture.model.n_variables
        classes = rng.choice(shares.size, size=n_rows, p=shares / shares.sum())
        drawn = [int(y) for y in np.unique(classes)]
        tasks = zip(drawn, rng.spawn(len(drawn)), strict=True)
        if not self._binary:
            counts = np.bincount(classes).tolist()

            def some(task: tuple[int, np.random.Generator]) -> Observed:
                return mixture.model.imagined(counts[task[0]], *task)

            return stack_observed(run(some, tasks, self.n_jobs))
        nothing = Observed.from_symbols(np.full((n_rows, n), UNASSIGNED, dtype=np.int8))
        rows = np.empty((n_rows, n), dtype=np.uint8)

        def one(task: tuple[int, np.random.Generator]) -> None:
            members = np.flatnonzero(classes == task[0])
            rows[members] = mixture.model.draw(nothing.take(members), *task)

        run(one, tasks, self.n_jobs)
        return as_observed(rows, None)


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
