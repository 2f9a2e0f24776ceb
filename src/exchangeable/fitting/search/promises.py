"""The fits that a search may run next, with the expected gain of each per cost."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from exchangeable.fitting.search.lanes import Task
from exchangeable.fitting.search.portfolio import Group

if TYPE_CHECKING:
    from exchangeable.fitting.search.searching import Search

AVERAGING_GAIN = 2e-3
"""Expected gain of averaging many fits, relative to the log-likelihood."""
UNFINISHED_GAIN = 5e-3
"""Expected gain of finishing a first fit that was cut short, if it makes up the whole join."""
LEAST_PART = 0.02
"""Minimum share assumed for a family whose first fit was cut short."""
UNTRIED_GAIN, SURE = 1.2e-2, 0.5
"""Expected gain of another family before any has joined since the survey, and how many such
families it counts as in an average with what they gained."""
TOLD, HOPELESS = 2, 0.05
"""A fit with fewer iterations says nothing about its family, which is treated as not tried, unless
its log-likelihood is worse than the best by this fraction."""
FURTHER = 1.5
"""A fit that was cut short is repeated, perhaps cut short again, if it gets this many times
further."""
LONGER = 4.0
"""A first fit by EM that was cut short needs at least about this many times longer to finish."""
BRIEFLY = 0.8
"""Fraction of the remaining time that another family may take."""
Promise = tuple[float, Task]
"""The expected gain of a fit per cost, and the fit."""


def promises(search: "Search") -> list[Promise]:
    """Return all fits that the search may run next."""
    return [*untried(search), *unfinished(search), *neighbours(search), *again(search)]


def last_chance(search: "Search", wanted: Sequence[Promise], effort: float) -> Task | None:
    """Return a long fit for which there is no more time after a given effort.

    In order of gain per cost it would never be made. It is worth its time if the other fits that
    there would be time for instead promise less in all.
    """
    most, later = BRIEFLY * search.deciding.left, BRIEFLY * (search.deciding.left - effort)
    for promise, task in wanted:
        cost = search.costs.cost(task)
        if max(effort, later) < task.seconds <= most:
            others = [one for one in wanted if one[1] is not task]
            if promise * cost > _promised(search, others, cost):
                return task
    return None


def _promised(search: "Search", wanted: Sequence[Promise], effort: float) -> float:
    """Return what the first of some fits, with a given effort in all, are expected to gain."""
    gain = 0.0
    for promise, task in wanted:
        part = min(effort, search.costs.cost(task))
        gain, effort = gain + part * promise, effort - part
    return gain


def untried(search: "Search") -> list[Promise]:
    """Return first fits for which there was no time before, each with its promise.

    They may be cut short, as long as they have a useful result; the gain is then smaller in
    proportion.
    """
    found, most = [], BRIEFLY * search.deciding.left
    for settings in map(search.first, search.families):
        task = search.costs.first_task(settings, search.costs.seconds_of(settings))
        if not search.climbs[settings.family].tried and task.least < most:
            like = settings.space.like
            part = gain_of_another(search) * search.portfolio.chance_of(like)
            gain = part * abs(search.portfolio.worth)
            brief = replace(task, seconds=min(task.seconds, most))
            found.append((gain / search.costs.cost(task), brief))
    return found


def gain_of_another(search: "Search") -> float:
    """Return what another family is expected to gain, relative to the log-likelihood."""
    gains = search.gains.values()
    return (SURE * UNTRIED_GAIN + sum(gains)) / (SURE + len(gains))


def unfinished(search: "Search") -> list[Promise]:
    """Return first fits that were cut short, to be repeated, each with its promise."""
    found = []
    for group in search.portfolio.alive:
        if not group.first.whole and group.n_made == 1:
            again = search.costs.again(group)
            longer = FURTHER if group.settings.trained else LONGER
            seconds = max(longer * again, search.costs.supposed(group.settings))
            task = search.costs.first_task(group.settings, seconds, FURTHER * again)
            counts = max(LEAST_PART, search.portfolio.share_of(group.settings.family))
            new = untold(search, group)
            part = gain_of_another(search) if new else counts * UNFINISHED_GAIN
            gain = part * abs(search.portfolio.worth)
            found.append((gain / search.costs.cost(task), task))
    return found


def untold(search: "Search", group: Group) -> bool:
    """Return whether a fit was cut short so early that it tells nothing about its family."""
    best = search.portfolio.worth
    behind = best - group.first.valid
    return group.first.n_iter < TOLD and behind < HOPELESS * abs(best)


def neighbours(search: "Search") -> list[Promise]:
    """Return variations of settings, each with its promise."""
    best = [search.portfolio.best_of(name) for name in search.families]
    found = []
    for climb in search.climbs.values():
        first = search.portfolio.groups.get(search.first(climb.family))
        if first is not None and not first.first.whole and first.first.n_iter < TOLD:
            continue
        near = climb.neighbours([group for group in best if group is not None])
        for settings, part in near:
            task = Task(settings, 0, search.costs.seconds_of(settings))
            # A fit that takes less time than the best so far also promises less.
            usual = Task(settings, 0, search.costs.seconds_of(climb.around or settings))
            cost = max(search.costs.cost(task), search.costs.cost(usual))
            gain = max(climb.expected() * part, climb.extrapolated(settings))
            found.append((gain / cost, task))
    return found


def again(search: "Search") -> list[Promise]:
    """Return fits from other starts of settings with a share, each with its promise.

    The loss of an average of m fits relative to one of very many is proportional to 1 / m.
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
    """Return the gain of averaging many fits, estimated from the fits so far."""
    m = group.n_used
    if group.n_made < 2:
        return AVERAGING_GAIN * abs(search.portfolio.worth)
    if m < 2:
        return 0.0
    alone = float(np.mean([fit.valid for fit in group.used]))
    weights = search.fitter.valid.weights
    together = float(weights @ group.each) / float(weights.sum())
    return m / (m - 1) * max(0.0, together - alone)
