"""Estimated durations of fits, from the families' own estimates and from earlier fits."""

from dataclasses import dataclass, field

import numpy as np

from exchangeable.fitting.search.lanes import Lanes, Task
from exchangeable.fitting.search.portfolio import Group, Portfolio
from exchangeable.fitting.search.trials import Settings
from exchangeable.runtime.clock import Clock
from exchangeable.runtime.threads import n_threads

FEW_SECONDS, SLOWEST = 3.0, 10.0
"""The slowness of a machine is estimated only after this many seconds, and limited to this
factor."""
FASTER_ON_DEVICE = 8.0
"""Training on a device of its own is about this many times faster."""
DEVICE_START_UP = 8.0
"""Approximate compile time of a device program in seconds."""
FINER = 2.0
"""A fit to be averaged takes this many times longer than a first one if it converges further."""
SLOWER = 1.25
"""The time grows with the number of components by this power of the family's own estimate."""


@dataclass
class Costs:
    """Estimates the costs of fits.

    Attributes
    ----------
    lanes : Lanes
        Where fits run.
    portfolio : Portfolio
        All fits so far.
    clock : Clock
        When the search has to end.
    """

    lanes: Lanes
    portfolio: Portfolio
    clock: Clock
    _began: float = field(init=False)
    _worked: float = field(init=False)

    def __post_init__(self) -> None:
        self._began, self._worked = self.clock.now(), self.clock.worked()

    def first_task(self, settings: Settings, seconds: float, further: float = 0.0) -> Task:
        """Return the task of a first fit, which may need compilation."""
        in_vain = self.lanes.fitter.in_vain.get(settings.family, 0.0)
        start_up = max(self.start_up(settings), in_vain)
        return Task(settings, 0, seconds, start_up, further, self.has_turn(settings))

    def has_turn(self, settings: Settings) -> bool:
        """Whether a device family's fits had less time than the best fit, and none finished.

        CPU kernels are compiled before the search, so there the first fits of all families suffice.
        """
        if not self.lanes.fitter.uses_accelerator(settings):
            return False
        groups, best = self.portfolio.groups.values(), self.portfolio.best_of()
        mine = [group for group in groups if group.settings.family == settings.family]
        had = max(map(self.again, mine), default=0.0)
        ended = any(group.first.whole for group in mine)
        return not ended and (best is None or had < self.again(best))

    def start_up(self, settings: Settings) -> float:
        """Return the approximate compile time of a fit."""
        device = DEVICE_START_UP if self.lanes.fitter.uses_accelerator(settings) else 0.0
        return max(self.times_longer(settings) * settings.space.start_up, device)

    @property
    def slowness(self) -> float:
        """How many times longer work takes than on an idle machine, approximately.

        Always 1 if networks have a device of their own, since waiting for it does not count.
        """
        elapsed, worked = self.clock.now() - self._began, self.clock.worked() - self._worked
        if not self.clock.limited or self.lanes.side_by_side or elapsed < FEW_SECONDS:
            return 1.0
        return float(np.clip(elapsed / max(worked, 1e-3), 1.0, SLOWEST))

    def times_longer(self, settings: Settings) -> float:
        """Return how many times longer a fit takes than its family says.

        For networks this is what others took, if there is a time limit.
        """
        if not (settings.trained and self.clock.limited):
            return self.slowness
        whole = [g for g in self.portfolio.groups.values() if g.settings.trained and g.first.whole]
        took = [np.log(g.first.seconds / self._nominal(g.settings)) for g in whole]
        return float(np.exp(np.mean(took))) if took else self.slowness

    def seconds_of(self, settings: Settings) -> float:
        """Return the approximate duration of a fit; with a time limit, from a similar fit.

        The first trained fit whose settings have another shape needs compilation.
        """
        space = settings.space
        known = [g for g in self.portfolio.groups.values() if g.settings.family == settings.family]
        if not known or not self.clock.limited:
            return self.supposed(settings)
        compiled = settings.shape in {g.settings.shape for g in known}
        start_up = 0.0 if compiled else self.times_longer(settings) * space.start_up
        k = settings.n_components
        near = min(reversed(known), key=lambda g: abs(np.log(k / g.settings.n_components)))
        again = self.again(near) if near.n_made == 1 else near.quickest
        if not near.first.whole:
            again = max(again, self.supposed(near.settings))
        return float(start_up + again * (k / near.settings.n_components) ** (SLOWER * space.growth))

    def supposed(self, settings: Settings) -> float:
        """Return about how long a fit takes by what its family says."""
        return self.times_longer(settings) * self._nominal(settings)

    def _nominal(self, settings: Settings) -> float:
        """Return the duration of a fit on an idle machine like those where fits were measured."""
        rows, space = self.lanes.fitter.examples.rows, settings.space
        seconds = space.seconds(rows.n_rows, rows.n_variables, settings.n_components)
        if self.clock.limited and self.lanes.fitter.uses_accelerator(settings):
            start_up = max(space.start_up, DEVICE_START_UP)
            return start_up + (seconds - space.start_up) / FASTER_ON_DEVICE
        return seconds

    def further(self, group: Group) -> float:
        """Return how long one more fit of a group takes that is to be averaged."""
        known = group.further
        if known is None or not self.clock.limited:
            finer = FINER if group.settings.converges else 1.0
            return finer * self.seconds_of(group.settings)
        return known

    def again(self, group: Group) -> float:
        """Return how long the first fit of a group would take again, now that it is compiled."""
        return max(group.quickest / 4, group.quickest - self.start_up(group.settings))

    def cost(self, task: Task) -> float:
        """Return the effort of a fit; if time is limited, fits by EM share the cores."""
        alone = self.lanes.alone(task.settings)
        cores = 1 if alone or not self.clock.limited else n_threads(self.lanes.n_jobs)
        return max(1e-9, task.seconds / cores)
