"""Smaller versions of the parts of a mixture, and which of them to take for which size.

All versions of a part are scored on the same drawn rows, so that the likelihoods of any combination
are sums over the parts. The path begins with the whole parts. Then one part at a time is replaced
by a smaller version of it, or by nothing: the one that loses the least log-likelihood per parameter
saved. Larger versions that lose less come before it. For each combination the shares of the parts
are fitted to the rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.observed import Observed
from exchangeable.fitting.search.parts import NO_WEIGHT, Part, fit_shares

REDUCTIONS = (1, 1.4, 2, 2.8, 4, 8, 16, 32, 64)
"""Reduction factors of parts, by fewer components."""
RANKS = (6, 8, 12, 16, 24, 32, 48, None)
"""Ranks of the factors; None means that parameters are not factorised."""
STEP = 0.95
"""A point of the path has at most this share of the parameters of the point before."""
LEAST = 1e-30
"""A smaller likelihood has no logarithm in single precision."""


@dataclass(frozen=True)
class Option:
    """A version of a part. It is made again when needed, so that not all are in memory at once.

    Attributes
    ----------
    make : callable
        Returns the version; None if nothing is left.
    size : int
        Its number of parameters, including its share; 0 if nothing is left.
    likelihoods : array of shape (n_rows,)
        The likelihoods of the drawn rows, relative to those under the whole mixture.
    """

    make: Callable[[], Part] | None
    size: int
    likelihoods: FloatArray


@dataclass(frozen=True)
class Combination:
    """One version of every part.

    Attributes
    ----------
    options : sequence of Option
        The versions.
    shares : array of shape (n_parts,)
        Their shares, 0 for parts that are left out.
    """

    options: Sequence[Option]
    shares: FloatArray

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(option.size for option, share in self._kept) - 1

    @property
    def _kept(self) -> list[tuple[Option, float]]:
        pairs = zip(self.options, self.shares, strict=True)
        return [(option, float(share)) for option, share in pairs if share > 0]

    def made(self) -> list[Part]:
        """Return the versions that are not left out, with their shares."""
        return [replace(option.make(), share=share) for option, share in self._kept if option.make]


@dataclass(frozen=True)
class Maker:
    """Makes the versions of parts.

    Attributes
    ----------
    rows : Observed
        The drawn rows.
    reference : array of shape (n_rows,)
        Their log-likelihoods under the whole mixture.
    seed : int
        Seed of the merging of components.
    n_jobs : int, optional
        Number of threads.
    stop : Event
        Ends it, when set, with the versions made so far.
    """

    rows: Observed
    reference: FloatArray
    seed: int
    n_jobs: int | None
    stop: Event

    def options(self, part: Part) -> list[Option]:
        """Return the versions of a part: the whole first, nothing last."""
        found = [self._option(part, lambda: part)]
        for make in self._compact(part) if part.spec.compact else self._pruned(part):
            if self.stop.is_set():
                break
            version = make()
            if version is not None and version.size < found[0].size:
                found.append(self._option(version, make))
        return [*found, Option(None, 0, np.zeros(self.rows.n_rows, dtype=np.float32))]

    def _option(self, version: Part, make: Callable[[], Any]) -> Option:
        scores = version.mixture.log_evidence(self.rows, self.n_jobs) - self.reference
        return Option(make, version.size, np.exp(scores).astype(np.float32))

    def _compact(self, part: Part) -> Iterator[Callable[[], Part | None]]:
        """Yield functions that make versions with merged components, at each rank."""
        for rank in RANKS:
            largest = self._compacted(part, part.size - 1, rank)
            for size in _sizes(part.size - 1 if largest is None else largest.size, part):
                yield partial(self._compacted, part, size, rank)

    def _compacted(self, part: Part, size: int, rank: int | None) -> Part | None:
        return part.compacted(size - 1, rank, np.random.default_rng(self.seed))

    def _pruned(self, part: Part) -> Iterator[Callable[[], Part]]:
        """Yield functions that make versions with fewer components, the heaviest."""
        weights = np.exp(part.mixture.log_prior)
        for size in _sizes(part.size - 1, part):
            yield partial(part.pruned, size - 1, weights)


def _sizes(largest: int, part: Part) -> list[int]:
    """Return decreasing numbers of parameters, down to about those of one component."""
    least = max(2.0, part.size / part.mixture.log_prior.size)
    found = [int(largest / reduction) for reduction in REDUCTIONS]
    return [size for size in found if size >= least]


def path_of(options: Sequence[Sequence[Option]], shares: FloatArray) -> list[Combination]:
    """Return combinations of decreasing size, beginning with the first version of every part.

    Parameters
    ----------
    options : sequence of sequences of Option
        The versions of every part.
    shares : array of shape (n_parts,)
        The shares of the whole parts.
    """
    chosen = [versions[0] for versions in options]
    path = [Combination(tuple(chosen), shares)]
    while (best := _cheapest(options, chosen, shares)) is not None:
        number, versions = best
        for option in versions:
            chosen[number] = option
            begin = shares if option.size else np.where(np.arange(shares.size) == number, 0, shares)
            likelihoods = np.stack([each.likelihoods for each in chosen], axis=1)
            fitted = fit_shares(likelihoods, begin / begin.sum())
            fitted = np.where(fitted > NO_WEIGHT, fitted, 0.0)
            made = Combination(tuple(chosen), fitted / fitted.sum())
            if made.size <= STEP * path[-1].size:
                path.append(made)
        shares = made.shares
    return [*path, *_alone(options, path[-1].size)]


def _alone(options: Sequence[Sequence[Option]], size: int) -> Iterator[Combination]:
    """Yield smaller and smaller versions of one part without the others, the best of that size."""
    nothing = [versions[-1] for versions in options]
    worth = [
        (_log_mean(option.likelihoods), number, place)
        for number, versions in enumerate(options)
        for place, option in enumerate(versions[:-1])
    ]
    for _, number, place in sorted(worth, reverse=True):
        option = options[number][place]
        if option.size - 1 <= STEP * size:
            size = option.size - 1
            chosen = [*nothing[:number], option, *nothing[number + 1 :]]
            yield Combination(chosen, np.eye(len(options))[number])


def _cheapest(
    options: Sequence[Sequence[Option]], chosen: Sequence[Option], shares: FloatArray
) -> tuple[int, list[Option]] | None:
    """Return the part whose replacement loses the least per parameter, and its next versions.

    The last version is the replacement. The others are larger and lose less. It is None if no part
    can be replaced.
    """
    mixed = sum(
        share * option.likelihoods for share, option in zip(shares, chosen, strict=True) if share
    )
    best, found, begin = np.inf, None, _log_mean(mixed)
    for number, (share, present) in enumerate(zip(shares, chosen, strict=True)):
        others = mixed - np.float32(share) * present.likelihoods
        smaller = [each for each in options[number] if each.size < present.size]
        if not share or share > 1 - NO_WEIGHT:
            smaller = [each for each in smaller if share and each.size]
        losses = []
        for option in smaller:
            after = others + np.float32(share) * option.likelihoods
            total = 1.0 if option.size else 1.0 - share
            losses.append(begin - _log_mean(after) + float(np.log(total)))
        rates = [
            loss / (present.size - option.size)
            for loss, option in zip(losses, smaller, strict=True)
        ]
        if rates and min(rates) < best:
            best, place = min(rates), int(np.argmin(rates))
            found = number, _until(smaller, losses, place)
    return found


def _until(options: Sequence[Option], losses: Sequence[float], last: int) -> list[Option]:
    """Return versions of decreasing size and increasing loss, up to a given one."""
    kept, most = [options[last]], losses[last]
    for place in sorted(range(len(options)), key=lambda place: options[place].size):
        if options[place].size > options[last].size and losses[place] < most:
            kept.append(options[place])
            most = losses[place]
    return kept[::-1]


def _log_mean(likelihoods: FloatArray) -> float:
    """Return the average logarithm of likelihoods."""
    return float(np.log(np.maximum(likelihoods, LEAST)).mean())
