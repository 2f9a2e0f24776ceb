"""What fits of a search promise for their cost, and which are begun where time is short."""

from dataclasses import replace

import numpy as np
import pytest

from exchangeable.fitting.em import StopRule
from exchangeable.fitting.search.climbs import Climb
from exchangeable.fitting.search.costs import FINER, Costs
from exchangeable.fitting.search.lanes import COMPILED, Lanes, Task
from exchangeable.fitting.search.portfolio import BEHIND
from exchangeable.fitting.search.promises import (
    FURTHER,
    LEAST_PART,
    SURE,
    UNFINISHED_GAIN,
    UNTRIED_GAIN,
    gain_of_another,
    last_chance,
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


def add_a_fit(search, family, behind):
    """Add a finished fit of another family, worse by so much, and return its settings."""
    settings = search.first(family)
    fit = next(iter(search.portfolio.groups.values())).first
    fit = replace(fit, each=fit.each - behind, valid=fit.valid - behind, whole=True)
    search.portfolio.add(settings, fit, 0)
    search.climbs[family].tried.add(settings)
    search.portfolio.weigh()
    return settings


def test_a_network_promises_less_if_its_family_by_em_is_behind(search):
    """However often the best was varied; other families promise as much as before."""
    search.families.append("tree")
    search.climbs["tree"] = Climb("tree", search.portfolio, 100)
    before = {task.settings.family: promise for promise, task in untried(search)}
    add_a_fit(search, "tree", 0.5)
    best = search.portfolio.best_of().first.valid
    after = {task.settings.family: promise for promise, task in untried(search)}
    expected = np.exp(-0.5 / abs(best) / BEHIND)
    assert after["neural tree"] == pytest.approx(expected * before["neural tree"])
    assert search.portfolio.chance_of("hidden tree") == 1.0


def test_variations_of_families_far_behind_promise_less(search):
    """Where they have no share; they used to be varied as often as others without one."""
    search.families.append("tree")
    search.climbs["tree"] = Climb("tree", search.portfolio, 100)
    worth = abs(search.portfolio.best_of().first.valid)
    promised = []
    for behind in (0.0, 0.3):
        search.portfolio.groups.pop(search.first("tree"), None)
        add_a_fit(search, "tree", behind * worth)
        search.portfolio.groups[search.first("tree")].share = 0.0
        promised.append(search.climbs["tree"].expected() / abs(search.portfolio.worth))
    assert promised[1] == pytest.approx(np.exp(-0.3 / BEHIND) * promised[0])


def test_families_promise_what_others_gained_after_the_survey(search, monkeypatch):
    assert search.gains == {}
    expected = UNTRIED_GAIN
    settings = search.first("neural tree")
    for rounds, gained in ((0, {}), (1, {"neural tree": 0.0})):
        search.rounds = [None] * rounds
        search.climbs["neural tree"].tried.clear()
        fit = next(iter(search.portfolio.groups.values())).first
        worse = replace(fit, each=fit.each - 50.0, valid=fit.valid - 50.0)
        search._note([(Task(settings), worse)], fairly=False)
        assert search.gains == gained
        expected = SURE * UNTRIED_GAIN / (SURE + len(gained))
        assert gain_of_another(search) == pytest.approx(expected)
    search.gains["blocks"] = 0.03
    assert gain_of_another(search) == pytest.approx((SURE * UNTRIED_GAIN + 0.03) / (SURE + 2))


def test_more_components_promise_half_of_what_as_many_gained(search):
    climb, first = search.climbs["urns"], search.first("urns")
    fit = search.portfolio.groups.pop(first).first
    for n_components, behind in ((2, 0.6), (8, 0.2)):
        worse = replace(fit, each=fit.each - behind, valid=fit.valid - behind, whole=True)
        settings = replace(first, n_components=n_components)
        assert climb.extrapolated(replace(first, n_components=16)) == 0.0
        search.portfolio.add(settings, worse, 0)
        search.portfolio.weigh()
    assert search.portfolio.share_of("urns") == pytest.approx(1.0)
    # Four times as many gained 0.4, so twice as many are thought to gain half of 0.2.
    assert climb.extrapolated(replace(first, n_components=16)) == pytest.approx(0.1)
    assert climb.extrapolated(replace(first, n_components=16, pooling=17.0)) == 0.0
    assert climb.extrapolated(replace(first, n_components=4)) == 0.0


def test_more_components_are_not_kept_waiting_where_they_gained_before(search):
    climb, first = search.climbs["urns"], replace(search.first("urns"), n_components=8)
    fit = replace(search.portfolio.groups.pop(search.first("urns")).first, whole=True)
    worse = replace(fit, each=fit.each - 1.0, valid=fit.valid - 1.0)
    search.portfolio.add(first, fit, 0)
    search.portfolio.add(replace(first, n_components=4), worse, 0)
    search.portfolio.weigh()
    climb.gain = 0.0
    promised = {task.settings: promise for promise, task in neighbours(search)}
    more = max(promised, key=lambda settings: settings.n_components)
    assert more.n_components > 8
    assert promised[more] > 0.0
    assert all(promise == 0.0 for settings, promise in promised.items() if settings != more)


@pytest.mark.parametrize(("overfitted", "more_first"), [(0.0, True), (0.5, False)])
def test_fewer_components_are_tried_first_by_fits_that_are_better_in_training(
    search, overfitted, more_first
):
    climb, first = search.climbs["urns"], replace(search.first("urns"), n_components=8)
    fit = search.portfolio.groups.pop(search.first("urns")).first
    best = replace(fit, train=fit.train + overfitted)
    search.portfolio.add(first, best, 0)
    poor = replace(fit, each=fit.each - 1.0, valid=fit.valid - 1.0, train=fit.train - 1.0)
    search.portfolio.add(replace(first, family="tree"), poor, 0)
    search.portfolio.weigh()
    near = dict(climb.neighbours([]))
    parts = {settings.n_components: part for settings, part in near.items()}
    fewer, more = min(parts), max(parts)
    assert fewer < 8 < more
    assert (parts[more] > parts[fewer]) is more_first


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
    """So do networks, however quick, unless they have a device of their own."""
    takes = {"tree": 20.0, "blocks": 50.0}
    for family in takes:
        search.families.append(family)
        search.climbs[family] = Climb(family, search.portfolio, 100)
    monkeypatch.setattr(Costs, "seconds_of", lambda self, one: takes.get(one.family, 1.0))
    begun = []
    monkeypatch.setattr(Search, "_make", lambda self, tasks, *rest, **more: begun.extend(tasks))
    for device, expected in ((None, ["tree"]), (object(), [*NETWORKS, "tree"])):
        search.fitter.accelerator = device
        search._mark = 50.0
        search._pass_mark()
        assert [task.settings.family for task in begun] == expected
        begun.clear()


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


def promised(search, seconds, gain, others):
    """Return promises of a network that takes so long, and of ten other fits of a second each."""
    network = Task(search.first("neural tree"), seconds=seconds)
    quick = [Task(search.first("urns"), number, 1.0) for number in range(10)]
    wanted = [*((others / 10, task) for task in quick), (gain / seconds, network)]
    return network, sorted(wanted, key=lambda one: -one[0])


@pytest.mark.parametrize(
    ("takes", "others", "taken"),
    [(75.0, 5.0, True), (75.0, 20.0, False), (50.0, 5.0, False), (85.0, 5.0, False)],
)
def test_a_long_fit_is_made_while_there_is_time_if_others_promise_less(
    search, takes, others, taken
):
    """Not while there is time for it later, nor when there is none."""
    network, wanted = promised(search, takes, 15.0, others)
    assert search.deciding.left > 99.0
    assert last_chance(search, wanted, 10.0) == (network if taken else None)


def test_a_long_fit_that_has_its_last_chance_is_made_by_itself(search, monkeypatch):
    network, wanted = promised(search, 75.0, 15.0, 5.0)
    monkeypatch.setattr(Search, "_in_time", lambda self, seconds: wanted)
    assert search.step(10.0) == [network]
    assert len(search.step(0.5)) == 1
    assert network not in search.step(0.5)


def test_networks_are_thought_to_take_as_many_times_longer_as_others_did(search):
    costs, tree = search.costs, search.first("neural tree")
    supposed, start_up = costs.supposed(tree), costs.start_up(tree)
    settings = search.first("neural independent")
    took = 3.0 * costs.supposed(settings)
    group = search.portfolio.groups[add_a_fit(search, settings.family, 1.0)]
    for whole, times in ((False, 1.0), (True, 3.0)):
        group.first = replace(group.first, seconds=took, whole=whole)
        assert costs.supposed(tree) == pytest.approx(times * supposed)
        assert costs.start_up(tree) == pytest.approx(times * start_up)
    assert costs.times_longer(search.first("urns")) == 1.0


def test_a_network_that_was_cut_short_is_thought_to_need_what_networks_need(search):
    group = add_cut_short(search, "neural tree", 30, 0.01)
    group.quickest = 1.0
    ((_, task),) = [one for one in unfinished(search) if one[1].settings == group.settings]
    assert task.seconds == pytest.approx(search.costs.supposed(group.settings))
    group.quickest = 100.0
    ((_, task),) = [one for one in unfinished(search) if one[1].settings == group.settings]
    assert task.seconds == pytest.approx(FURTHER * search.costs.again(group))


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


@pytest.mark.parametrize("family", ["hidden tree", "neural tree"])
def test_a_fit_to_be_averaged_takes_no_longer_if_passes_are_counted(search, family):
    group = add_cut_short(search, family, 20, 0.01)
    assert search.costs.further(group) == search.costs.seconds_of(group.settings)
