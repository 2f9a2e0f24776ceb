"""What fits of a search promise for their cost, and which are begun where time is short."""

from dataclasses import replace

import pytest

from exchangeable.fitting.em import StopRule
from exchangeable.fitting.search.climbs import Climb
from exchangeable.fitting.search.costs import FINER, Costs
from exchangeable.fitting.search.lanes import COMPILED, Lanes, Task
from exchangeable.fitting.search.promises import (
    LEAST_PART,
    LESS,
    UNFINISHED_GAIN,
    UNTRIED_GAIN,
    neighbours,
    unfinished,
    untried,
)
from exchangeable.fitting.search.searching import Search
from exchangeable.fitting.search.trials import Fitter
from exchangeable.runtime.clock import Clock, OutOfTime
from made_rows import bound_clusters, examples_of

NETWORKS = ["neural independent", "neural tree"]


@pytest.fixture(scope="module")
def examples():
    return examples_of(bound_clusters(300))


@pytest.fixture
def seconds():
    return [0.0]


@pytest.fixture
def search(examples, seconds):
    """A search in which urns are fitted, and networks are not."""
    fitter = Fitter(examples, examples, rule=StopRule(max_iter=2))
    clock = Clock(100.0, lambda: seconds[0], worked=lambda: seconds[0])
    search = Search(fitter, Lanes(fitter, 1), ["urns", *NETWORKS], clock=clock)
    search._mark = 100.0
    search._make([Task(search.first("urns"))], Clock(0.0, patient=True), fairly=True)
    return search


def test_a_family_that_would_be_cut_short_promises_less_by_as_much(search, seconds):
    """Not as much as if it took no longer than it may."""
    gain = UNTRIED_GAIN * abs(search.portfolio.worth)
    whole = {task.settings: task.seconds for _, task in untried(search)}
    seconds[0] = 87.0
    brief = untried(search)
    assert {task.settings for _, task in brief} == set(whole)
    for promise, task in brief:
        assert promise == pytest.approx(gain / whole[task.settings])


def test_networks_promise_less_where_another_one_does_not_count(search):
    before = {task.settings.family: promise for promise, task in untried(search)}
    settings = search.first(NETWORKS[0])
    poor = replace(next(iter(search.portfolio.groups.values())).first)
    poor = replace(poor, each=poor.each - 50.0, valid=poor.valid - 50.0)
    search.portfolio.add(settings, poor, 0)
    search.climbs[settings.family].tried.add(settings)
    search.portfolio.weigh()
    ((promise, task),) = untried(search)
    assert task.settings.family == NETWORKS[1]
    assert promise == pytest.approx(LESS * before[NETWORKS[1]])
    search.portfolio.groups[settings].share = 0.1
    ((promise, _),) = untried(search)
    assert promise == pytest.approx(before[NETWORKS[1]])


def test_a_family_that_came_to_nothing_is_not_begun_again_without_more_time(
    search, seconds, monkeypatch
):
    def late(self, *arguments):
        seconds[0] += 20.0
        raise OutOfTime("there was time for 0 iterations")

    monkeypatch.setattr(Fitter, "run", late)
    settings = search.first(NETWORKS[0])
    with pytest.raises(OutOfTime):
        search.fitter.fit(settings, 0, search.clock)
    task = search.costs.first_task(settings, 21.0)
    assert task.least >= COMPILED * 20.0
    seconds[0] = 75.0
    assert [task.settings.family for _, task in untried(search)] == [NETWORKS[1]]


def test_families_that_take_long_wait_for_what_they_promise_after_a_mark(search, monkeypatch):
    """They used to have most of the time until the next mark, whatever they promise."""
    takes = dict(zip(NETWORKS, (20.0, 50.0), strict=True))
    monkeypatch.setattr(Costs, "seconds_of", lambda self, one: takes.get(one.family, 1.0))
    begun = []
    monkeypatch.setattr(Search, "_make", lambda self, tasks, *rest, **more: begun.extend(tasks))
    search._mark = 50.0
    search._pass_mark()
    assert [task.settings.family for task in begun] == [NETWORKS[0]]


def test_a_step_does_not_go_on_for_longer_than_there_is_time(search, seconds, monkeypatch):
    """Each of its fits would be in time, all of them one after the other would not."""
    settings = search.first("urns")
    fit = replace(search.portfolio.groups[settings].first, whole=True, seconds=2.0)
    search.portfolio.groups.clear()
    for number in range(8):
        search.portfolio.add(settings, fit, number)
    search.portfolio.weigh()
    monkeypatch.setattr(Costs, "seconds_of", lambda self, one: 2.0)
    several = [task for task in search.step(1e9) if task.settings == settings]
    assert len(several) == 8
    seconds[0] = 95.0
    assert len(search.step(1e9)) == 2


def add_cut_short(search, family, n_iter, behind):
    """Add a fit that was cut short, and return its group."""
    fit = next(iter(search.portfolio.groups.values())).first
    worse = {"each": fit.each - behind, "valid": fit.valid - behind}
    settings = search.first(family)
    cut = replace(fit, n_iter=n_iter, whole=False, seconds=1.0, **worse)
    search.portfolio.add(settings, cut, 0)
    search.climbs[family] = Climb(family, search.portfolio, 100, tried={settings})
    search.portfolio.weigh()
    return search.portfolio.groups[settings]


@pytest.mark.parametrize(
    ("n_iter", "behind", "untold"), [(0, 0.01, True), (2, 0.01, False), (0, 5.0, False)]
)
def test_a_fit_cut_short_at_once_counts_as_not_tried(search, n_iter, behind, untold):
    """Unless it went on for some iterations, or is far behind the best."""
    group = add_cut_short(search, "tree", n_iter, behind)
    ((promise, task),) = [one for one in unfinished(search) if one[1].settings == group.settings]
    part = UNTRIED_GAIN if untold else max(LEAST_PART, group.share) * UNFINISHED_GAIN
    assert promise == pytest.approx(part * abs(search.portfolio.worth) / task.seconds)


def test_a_fit_cut_short_may_be_varied_once_it_has_told_something(search):
    for n_iter, varied in ((0, False), (5, True)):
        search.portfolio.groups.pop(search.first("tree"), None)
        add_cut_short(search, "tree", n_iter, 0.01)
        assert ("tree" in {task.settings.family for _, task in neighbours(search)}) is varied


def test_a_fit_to_be_averaged_is_thought_to_take_as_long_as_others_did(search):
    (group,) = search.portfolio.groups.values()
    group.first = replace(group.first, seconds=1.0)
    group.seconds = group.quickest = 1.0
    assert search.costs.further(group) == pytest.approx(
        FINER * search.costs.seconds_of(group.settings)
    )
    for seconds in (4.0, 6.0):
        group.add(replace(group.first, seconds=seconds), search.fitter.valid.weights)
    assert search.costs.further(group) == pytest.approx(5.0)
