"""All fits of a search: averages of fits, and their shares in a mixture of them all."""

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
"""Fraction of the initially available memory that stored fits may take."""
BYTES = 24.0
"""Approximate bytes per parameter, since models cache what they compute from it."""
SECONDS_PER_BYTE = 2e-9
"""A join copies parameters several times."""
BEHIND = 0.05
"""A family is expected to gain less by a factor of e for every such fraction by which its
log-likelihood is worse than the best."""
LEAST_WORTH = 1e-300
MORE_TO_WEIGH = 1.5
"""The next join has more groups than the latest."""
ENDLESS = Clock()


@dataclass
class Group:
    """Fits with the same settings: the average of the best few, as chosen on held-out rows.

    Attributes
    ----------
    settings : Settings
        The settings.
    begun : int
        The round of the search in which the first was started.
    fits : list of Fit
        The fits, best first; empty after they were dropped for lack of memory.
    first : Fit
        The first fit, without its mixture after fits were dropped.
    seconds : float
        Total duration of the fits.
    quickest : float
        Duration of the fastest fit.
    share : float
        Weight of the group in the join.
    n_made : int
        Number of fits that were made.
    n_used : int
        How many of them are averaged, best first.
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
        """Add a fit, and decide again how many are averaged."""
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
        """Return the group's row in a table."""
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


def relative(gain: float, worth: float) -> float:
    """Return a gain as a fraction of a log-likelihood, which is 0 where every row is certain.

    >>> relative(1.0, -4.0), relative(0.0, 0.0)
    (0.25, 0.0)
    """
    return gain / max(abs(worth), LEAST_WORTH)


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
    """All groups, and their join.

    Attributes
    ----------
    valid : Examples
        The held-out rows, to which shares are fitted.
    groups : dict
        The groups by their settings, in the order in which they were started.
    worth : float
        Cross-validated held-out log-likelihood: shares are fitted to the other held-out rows. All
        decisions are based on it.
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
        """The groups whose fits have not been dropped."""
        return [group for group in self.groups.values() if group.fits]

    def best_of(self, family: str | None = None) -> Group | None:
        """Return the group with the best first fit, of a family or of all."""
        some = [g for g in self.groups.values() if family in (None, g.settings.family)]
        return max(some, key=lambda group: group.first.valid) if some else None

    def chance_of(self, family: str | None) -> float:
        """Return 1 for the best family, less for others the worse they are; 1 if not fitted yet.

        This is what a family can be expected to gain that is not part of the join yet, in
        proportion.
        """
        best, mine = self.best_of(), self.best_of(family)
        if best is None or mine is None:
            return 1.0
        behind = relative(best.first.valid - mine.first.valid, best.first.valid)
        return float(np.exp(-behind / BEHIND))

    def share_of(self, family: str) -> float:
        """Return the total share of a family's groups."""
        return sum(g.share for g in self.groups.values() if g.settings.family == family)

    def add(self, settings: Settings, fit: Fit, begun: int) -> None:
        """Add a fit to the group of its settings, replacing a worse one that was cut short."""
        group = self.groups.get(settings)
        if group is None:
            self.groups[settings] = Group(settings, begun, [fit], fit, fit.seconds)
        elif group.first.whole or group.n_made > 1:
            group.add(fit, self.valid.weights)
        elif fit.whole or fit.valid > group.first.valid:
            self.groups[settings] = Group(settings, begun, [fit], fit, fit.seconds, group.share)

    def weigh(self, clock: Clock = ENDLESS) -> None:
        """Fit the shares of all groups, and evaluate the join.

        If time runs out, the shares are at least as good as the previous ones.
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
        """Approximate duration of fitting shares once more and building the final join."""
        taken = BYTES * sum(group.n_parameters for group in self.alive if group.share > 0)
        return MORE_TO_WEIGH * self._weighing + SECONDS_PER_BYTE * taken

    def _note_best(self, worth: float) -> None:
        """Record the join if its held-out likelihood is the highest so far; groups change later."""
        if worth > self._best_worth:
            kept = [group for group in self.alive if group.share > 0]
            self._best = [replace(group, fits=list(group.used)) for group in kept]
            self._best_worth = worth

    def join(self) -> tuple[Mixture, list[Group], float]:
        """Return the mixture of groups, these groups, and the held-out log-likelihood.

        It is the best join so far: additional fits never make it worse.
        """
        kept = self._best
        shares = np.array([group.share for group in kept])
        averages = [Mixture.average([fit.mixture for fit in group.used]) for group in kept]
        return Mixture.join(averages, shares), kept, self._best_worth

    def each_of(self, groups: Sequence[Group]) -> FloatArray:
        """Return log-probabilities of the held-out rows under each group, one per column."""
        return np.stack([group.each for group in groups], axis=1)

    def _forget(self) -> None:
        """Drop fits without a share, the worst first, if memory is short."""
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
