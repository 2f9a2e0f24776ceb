"""Varying the settings of a family around its best ones, by factors, coarse ones first."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from exchangeable.fitting.search.portfolio import Group, Portfolio
from exchangeable.fitting.search.trials import Settings

FIRST_GAIN, MOST_GAIN = 4e-3, 2e-2
"""Expected gain from varying the settings of a family, relative to its log-likelihood: initially,
and at most, if variations have gained much before."""
LEAST_WEIGHT = 0.02
"""Families that are not part of the join yet are treated as if they had this share, or less if they
are far behind."""
UP, DOWN, AHEAD = 8.0, 0.5, 2.0
"""Expected gains of more components, of fewer, and of all past improvements combined, relative to
other variations.

Searches begin with few components, which are fast to fit.
"""
OVERFITTED = 0.01
"""Fewer components are expected to gain what more otherwise would, if the log-likelihood of the
training rows exceeds that of held-out rows by this fraction more than for any other fit."""
NEXT_GAIN = 0.5
"""The next components gain this fraction of what as many gained before, relative to a fit with
fewer, if numbers are compared by their logarithms."""
NAMES = ("n_components", "pooling", "shrinkage", "own")


@dataclass
class Climb:
    """The progress of varying the settings of one family.

    Attributes
    ----------
    family : str
        The family.
    portfolio : Portfolio
        All fits so far.
    most : int
        Maximum number of components.
    step : int
        Index of the factors by which settings are currently varied.
    around : Settings, optional
        The settings that were last varied.
    gain : float
        Expected gain of varying all settings, relative to the log-likelihood.
    tried : set of Settings
        Settings that were fitted, or could not be.
    """

    family: str
    portfolio: Portfolio
    most: int
    step: int = 0
    around: Settings | None = None
    gain: float = FIRST_GAIN
    tried: set[Settings] = field(default_factory=set)
    _ahead: list[Settings] = field(default_factory=list)

    def neighbours(self, others: Sequence[Group]) -> list[tuple[Settings, float]]:
        """Return the settings to try next, around the best so far, each with its expected gain.

        The gain is a fraction of that expected from all of them.

        Parameters
        ----------
        others : sequence of Group
            The best fits of other families, whose sizes are tried too.
        """
        best = self.portfolio.best_of(self.family)
        if best is None:
            return []
        at, space = best.settings, best.settings.space
        self._follow(best)
        last = max(map(len, space.steps.values()), default=0)
        while self.step < last:
            near: dict[Settings | None, float] = dict.fromkeys(self._ahead, AHEAD)
            near |= dict.fromkeys(_like_others(at, others), 1.0)
            for name, factors in space.steps.items():
                factor = factors[min(self.step, len(factors) - 1)]
                up, down = self._more_or_fewer(best) if name == "n_components" else (1.0, 1.0)
                near.setdefault(at.scaled(name, factor, self.most), up)
                near.setdefault(at.scaled(name, 1 / factor, self.most), down)
            fresh = {s: part for s, part in near.items() if s and s not in self.tried}
            if fresh:
                whole = sum(fresh.values())
                return [(settings, part / whole) for settings, part in fresh.items()]
            self.step += 1
            self.gain /= 2
        return []

    def expected(self) -> float:
        """Return the gain for the join that is expected from all neighbours together."""
        return self._weight * self.gain * abs(self.portfolio.worth)

    def extrapolated(self, settings: Settings) -> float:
        """Return the expected gain for the join of more components, from what fewer have gained.

        It is 0 where nothing is known, or where fewer components were not worse.
        """
        best = self.portfolio.best_of(self.family)
        if best is None or not best.first.whole:
            return 0.0
        at = best.settings
        others = [
            group
            for group in self.portfolio.groups.values()
            if group.first.whole
            and group.settings.n_components < at.n_components
            and replace(group.settings, n_components=at.n_components) == at
        ]
        if not others or replace(settings, n_components=at.n_components) != at:
            return 0.0
        fewer = max(others, key=lambda group: group.settings.n_components)
        gained = best.first.valid - fewer.first.valid
        slope = gained / np.log(at.n_components / fewer.settings.n_components)
        more = np.log(settings.n_components / at.n_components)
        return float(max(0.0, self._weight * NEXT_GAIN * slope * more))

    @property
    def _weight(self) -> float:
        """The share of the family, at least a small one."""
        least = LEAST_WEIGHT * self.portfolio.chance_of(self.family)
        return max(self.portfolio.share_of(self.family), least)

    def _more_or_fewer(self, best: Group) -> tuple[float, float]:
        """Return the relative expected gains of more and of fewer components."""
        fits = [group.first for group in self.portfolio.groups.values()]
        least = min(fit.train - fit.valid for fit in fits)
        beyond = best.first.train - best.first.valid - least
        return (DOWN, UP) if beyond > OVERFITTED * abs(best.first.valid) else (UP, DOWN)

    def _follow(self, best: Group) -> None:
        """If a variation was better than the last settings, try all improvements at once."""
        before, self.around = self.around, best.settings
        if before is None or before == best.settings:
            return
        start = self.portfolio.groups[before].first.valid
        self.gain = min(MOST_GAIN, (best.first.valid - start) / abs(start))
        mine = [g for g in self.portfolio.groups.values() if g.settings.family == self.family]
        together = best.settings
        for group in sorted(mine, key=lambda group: group.first.valid):
            changed = [n for n in NAMES if getattr(group.settings, n) != getattr(before, n)]
            if group.first.valid > start and len(changed) == 1:
                name = changed[0]
                together = replace(together, **{name: getattr(group.settings, name)})
        self._ahead = [together]


def _like_others(at: Settings, others: Sequence[Group]) -> list[Settings]:
    """Return a family's settings with the sizes that are best for other families."""
    if at.space.alone:
        return []
    return [
        replace(at, n_components=group.settings.n_components, pooling=group.settings.pooling)
        for group in others
        if group.settings.family != at.family and not group.settings.space.alone
    ]
