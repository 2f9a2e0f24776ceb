"""What a search has fitted: averages of fits, and the share of each in a mixture of them all."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.data.examples import Examples
from exchangeable.families.mixture import Mixture
from exchangeable.families.shares import cross_fitted, fit_shares, mixed
from exchangeable.fitting.search.trials import Fit, Settings
from exchangeable.runtime.clock import Clock
from exchangeable.runtime.memory import available

MEMORY_SHARE = 0.3
"""Part of the memory, as it was at first, that kept fits may take."""
BYTES = 24.0
"""About what a parameter takes: models keep what they compute of it."""
SECONDS_PER_BYTE = 2e-9
"""A join copies parameters several times."""
MORE_TO_WEIGH = 1.5
"""The next join has more groups than the latest."""
ENDLESS = Clock()


@dataclass
class Group:
    """Fits of the same settings: the average of as many of the best as suits held-out rows.

    Attributes
    ----------
    settings : Settings
        What was fitted.
    begun : int
        The round of the search in which that was.
    fits : list of Fit
        What came of it, the best first; empty once they are forgotten for lack of memory.
    first : Fit
        The first of them, without its mixture once forgotten.
    seconds : float
        How long all of them took.
    quickest : float
        How long the quickest took.
    share : float
        How much the group counts in the join.
    n_made : int
        Number of fits that were made.
    n_used : int
        How many of them are averaged, from the best one on.
    """

    settings: Settings
    begun: int
    fits: list[Fit]
    first: Fit
    seconds: float
    share: float = 0.0
    n_made: int = 1
    n_used: int = 1
    quickest: float = np.inf

    def __post_init__(self) -> None:
        self.quickest = self.first.seconds

    @property
    def further(self) -> float | None:
        """How long a fit to be averaged took, on average; None if there is only the first."""
        return (self.seconds - self.first.seconds) / (self.n_made - 1) if self.n_made > 1 else None

    @property
    def used(self) -> list[Fit]:
        """The fits that are averaged."""
        return self.fits[: self.n_used]

    @property
    def each(self) -> FloatArray:
        """Log-probabilities of the held-out rows under the average."""
        return np.asarray(_running_average(self.used)[-1])

    def add(self, fit: Fit, weights: FloatArray) -> None:
        """Add a fit, and decide anew how many are averaged."""
        self.fits = sorted([*self.fits, fit], key=lambda fit: -fit.valid)
        self.n_used = 1 + int(np.argmax(_running_average(self.fits) @ weights))
        self.seconds += fit.seconds
        self.quickest = min(self.quickest, fit.seconds)
        self.n_made += 1

    @property
    def n_parameters(self) -> int:
        """Number of parameters of all fits."""
        return sum(fit.mixture.n_parameters for fit in self.fits)

    def row(self) -> dict[str, Any]:
        """Return one row of a table about it."""
        return {
            **self.settings.row(),
            "round": self.begun,
            "valid": self.first.valid,
            "train": self.first.train,
            "n_iter": self.first.n_iter,
            "n_parameters": self.first.mixture.n_parameters,
            "n_fits": self.n_made,
            "share": self.share,
            "seconds": self.seconds,
        }


def _running_average(fits: list[Fit]) -> FloatArray:
    """Return log-probabilities of rows under the average of the first, the first two, … fits."""
    each = np.stack([fit.each for fit in fits])
    highest = each.max(axis=0)
    safe = np.where(np.isfinite(highest), highest, 0.0)
    numbers = np.arange(1, len(fits) + 1)[:, None]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.cumsum(np.exp(each - safe), axis=0) / numbers) + safe)


@dataclass
class Portfolio:
    """All groups, and how they are joined.

    Attributes
    ----------
    valid : Examples
        The held-out rows, which the shares suit.
    groups : dict
        The groups by their settings, in the order in which they were begun.
    worth : float
        Average log-likelihood of held-out rows under shares that were fitted to the others of them:
        what decisions are made by.
    """

    valid: Examples
    groups: dict[Settings, Group] = field(default_factory=dict)
    worth: float = -np.inf
    _room: float = field(default_factory=lambda: MEMORY_SHARE * available())
    _weighing: float = 0.0
    _best: list[Group] = field(default_factory=list)
    _best_worth: float = -np.inf

    @property
    def alive(self) -> list[Group]:
        """The groups that have their fits."""
        return [group for group in self.groups.values() if group.fits]

    def best_of(self, family: str | None = None) -> Group | None:
        """Return the group whose first fit is best, of a family or of all."""
        some = [g for g in self.groups.values() if family in (None, g.settings.family)]
        return max(some, key=lambda group: group.first.valid) if some else None

    def share_of(self, family: str) -> float:
        """Return how much all groups of a family count."""
        return sum(g.share for g in self.groups.values() if g.settings.family == family)

    def add(self, settings: Settings, fit: Fit, begun: int) -> None:
        """Add a fit to the group of its settings, in place of a worse one that was cut short."""
        group = self.groups.get(settings)
        if group is None:
            self.groups[settings] = Group(settings, begun, [fit], fit, fit.seconds)
        elif group.first.whole or group.n_made > 1:
            group.add(fit, self.valid.weights)
        elif fit.whole or fit.valid > group.first.valid:
            self.groups[settings] = Group(settings, begun, [fit], fit, fit.seconds, group.share)

    def weigh(self, clock: Clock = ENDLESS) -> None:
        """Find the share of every group, and what the join is worth.

        Where time runs short, shares are at least as good as those before.
        """
        alive, began = self.alive, clock.now()
        each, weights = self.each_of(alive), self.valid.weights
        shares = fit_shares(each, weights, clock)
        before = np.array([group.share for group in alive])
        if before.any() and mixed(each, weights, before) > mixed(each, weights, shares):
            shares = before
        for group, share in zip(alive, shares, strict=True):
            group.share = float(share)
        self._note_best(mixed(each, weights, shares))
        if self.worth == -np.inf or not clock.over:
            self.worth = cross_fitted(each, weights, clock)
        self._forget()
        self._weighing = clock.now() - began

    @property
    def seconds_to_end(self) -> float:
        """About how long it takes to find shares once more, and to join what counts."""
        taken = BYTES * sum(group.n_parameters for group in self.alive if group.share > 0)
        return MORE_TO_WEIGH * self._weighing + SECONDS_PER_BYTE * taken

    def _note_best(self, worth: float) -> None:
        """Note what counts, if held-out rows were never likelier: groups change later on."""
        if worth > self._best_worth:
            kept = [group for group in self.alive if group.share > 0]
            self._best = [replace(group, fits=list(group.used)) for group in kept]
            self._best_worth = worth

    def join(self) -> tuple[Mixture, list[Group], float]:
        """Return one mixture of groups, those, and the held-out log-likelihood.

        It is the best join that there was: more fits never make it worse.
        """
        kept = self._best
        shares = np.array([group.share for group in kept])
        averages = [Mixture.average([fit.mixture for fit in group.used]) for group in kept]
        return Mixture.join(averages, shares), kept, self._best_worth

    def each_of(self, groups: Sequence[Group]) -> FloatArray:
        """Return log-probabilities of the held-out rows under each group, one per column."""
        return np.stack([group.each for group in groups], axis=1)

    def _forget(self) -> None:
        """Forget fits that do not count, the worst first, as far as memory is short."""
        taken = BYTES * sum(group.n_parameters for group in self.alive)
        if taken <= self._room:
            return
        best = {id(self.best_of(group.settings.family)) for group in self.alive}
        idle = [g for g in self.alive if g.share == 0 and id(g) not in best]
        for group in sorted(idle, key=lambda group: group.first.valid):
            taken -= BYTES * group.n_parameters
            group.fits = []
            if taken <= self._room:
                return
