"""What a search may fit next, and what each fit promises to gain for its cost."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from exchangeable.fitting.search.lanes import Task
from exchangeable.fitting.search.portfolio import Group

if TYPE_CHECKING:
    from exchangeable.fitting.search.searching import Search

AVERAGING_GAIN = 2e-3
"""What an average of many fits gains over one, as a part of the log-likelihood, about."""
UNFINISHED_GAIN = 5e-3
"""What a first fit gains that was cut short, if it ends by itself and is all that counts."""
LEAST_PART = 0.02
"""A family whose first fit was cut short may come to count for this part, even if it does not."""
UNTRIED_GAIN, LESS = 1.2e-2, 0.25
"""What another family gains, and this part of it where it is trained and none of those that were
counts."""
TOLD, HOPELESS = 2, 0.05
"""After fewer iterations a fit has told nothing about its family, which counts as not tried, unless
its log-likelihood is worse than the best by such a part."""
FURTHER = 1.5
"""A fit that was cut short is made again, and cut short again, if it gets this much further."""
LONGER = 4.0
"""A first fit that was cut short takes at least about this many times longer to end by itself."""
BRIEFLY = 0.8
"""Part of the time that is left which another family may take."""
Promise = tuple[float, Task]
"""The gain that a fit promises for its cost, and the fit."""


def promises(search: "Search") -> list[Promise]:
    """Return all fits that a search may make next."""
    return [*untried(search), *unfinished(search), *neighbours(search), *again(search)]


def untried(search: "Search") -> list[Promise]:
    """Return first fits for which there was no time before, and what each promises.

    They may be cut short, too, if they lead to something; that is worth less by as much.
    """
    found, most = [], BRIEFLY * search.deciding.left
    trained = [group for group in search.portfolio.groups.values() if group.settings.trained]
    idle = bool(trained) and not any(group.share for group in trained)
    for settings in map(search.first, search.families):
        task = search.costs.first_task(settings, search.costs.seconds_of(settings))
        if not search.climbs[settings.family].tried and task.least < most:
            part = LESS if idle and settings.trained else 1.0
            gain = part * UNTRIED_GAIN * abs(search.portfolio.worth)
            brief = replace(task, seconds=min(task.seconds, most))
            found.append((gain / search.costs.cost(task), brief))
    return found


def unfinished(search: "Search") -> list[Promise]:
    """Return first fits that were cut short, to be made again, and what each promises."""
    found = []
    for group in search.portfolio.alive:
        if not group.first.whole and group.n_made == 1:
            again = search.costs.again(group)
            seconds = max(LONGER * again, search.costs.supposed(group.settings))
            task = search.costs.first_task(group.settings, seconds, FURTHER * again)
            counts = max(LEAST_PART, search.portfolio.share_of(group.settings.family))
            part = UNTRIED_GAIN if untold(search, group) else counts * UNFINISHED_GAIN
            gain = part * abs(search.portfolio.worth)
            found.append((gain / search.costs.cost(task), task))
    return found


def untold(search: "Search", group: Group) -> bool:
    """Return whether a fit was cut short so early that it tells nothing about its family."""
    best = search.portfolio.worth
    behind = best - group.first.valid
    return group.first.n_iter < TOLD and behind < HOPELESS * abs(best)


def neighbours(search: "Search") -> list[Promise]:
    """Return variations of settings, and what each promises for its cost."""
    best = [search.portfolio.best_of(name) for name in search.families]
    found = []
    for climb in search.climbs.values():
        first = search.portfolio.groups.get(search.first(climb.family))
        if first is not None and not first.first.whole and first.first.n_iter < TOLD:
            continue
        near = climb.neighbours([group for group in best if group is not None])
        for settings, part in near:
            task = Task(settings, 0, search.costs.seconds_of(settings))
            # What takes less than the best so far promises less, too.
            usual = Task(settings, 0, search.costs.seconds_of(climb.around or settings))
            cost = max(search.costs.cost(task), search.costs.cost(usual))
            found.append((climb.expected() * part / cost, task))
    return found


def again(search: "Search") -> list[Promise]:
    """Return fits from other starts of what counts, and what each promises for its cost.

    The loss of an average of m fits against one of very many is proportional to 1 / m.
    """
    found = []
    for group in search.portfolio.alive:
        have = group.n_made
        if group.share == 0 or not group.first.whole:
            continue
        gain = group.share * averaging_gain(search, group) / (2 * have**2)
        seconds = search.costs.further(group)
        for number in range(have, min(2 * have, search.n_init)):
            task = Task(group.settings, number, seconds)
            found.append((gain / search.costs.cost(task), task))
    return found


def averaging_gain(search: "Search", group: Group) -> float:
    """Return what an average of many fits gains over one, as far as it is known."""
    m = group.n_used
    if group.n_made < 2:
        return AVERAGING_GAIN * abs(search.portfolio.worth)
    if m < 2:
        return 0.0
    alone = float(np.mean([fit.valid for fit in group.used]))
    weights = search.fitter.valid.weights
    together = float(weights @ group.each) / float(weights.sum())
    return m / (m - 1) * max(0.0, together - alone)
