"""The search for settings: where it begins, what it tries, what it finds, and when it ends."""

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest

from em_families import BY_EM
from exchangeable import Blocks, ExchangeableDensity
from exchangeable.families import REGISTRY
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.search import lanes as searching_lanes
from exchangeable.fitting.search import searching, trials
from exchangeable.fitting.search.climbs import Climb
from exchangeable.fitting.search.lanes import Lanes, Task, share
from exchangeable.fitting.search.portfolio import Portfolio
from exchangeable.fitting.search.searching import FIRST_MARK, Search
from exchangeable.fitting.search.trials import STATISTICS, Fitter, Settings
from exchangeable.runtime.clock import Clock, OutOfTime, Pace
from made_rows import bound_clusters, examples_of

RULE = StopRule(tol=0.0, max_iter=30, patience=30)
LATE = Clock(0.0, patient=True)


def usual(family, n_components=3, pooling=1.0):
    return Settings(family, n_components, pooling, REGISTRY[family].shrinkage or 0.0)


def _worth(fit, valid):
    return replace(fit, valid=valid)


def search_of(examples, valid, families, rule=None, **options):
    fitter = Fitter(examples, valid, rule=rule or StopRule())
    return Search(fitter, Lanes(fitter, 2), families, **options)


@pytest.fixture(scope="module")
def examples():
    return examples_of(bound_clusters(300))


@pytest.mark.parametrize("family", BY_EM)
def test_a_fit_is_cut_short_at_the_deadline(family, examples):
    fitter = Fitter(examples, examples, rule=RULE)
    whole = fitter.run(usual(family), 0, RULE)
    cut = fitter.run(usual(family), 0, RULE, False, Pace(LATE))
    assert cut.n_iter < whole.n_iter
    assert np.isfinite(cut.worth)
    assert isinstance(cut.best.model, REGISTRY[family].model)
    assert not fitter.fit(usual(family), clock=LATE).whole
    with pytest.raises(OutOfTime, match="no time for it"):
        fitter.fit(usual(family), clock=Clock(0.0))


def test_fits_that_differ_in_shrinkage_alone_share_the_family_before(examples):
    fitter = Fitter(examples, examples)
    alone = fitter.run(Settings("weighted tree", 3, 1.0, 50.0), 0, RULE)
    assert len(fitter._before) == 1
    fitter.run(Settings("weighted tree", 3, 1.0, 200.0), 0, RULE)
    assert len(fitter._before) == 1
    fitter.run(Settings("weighted tree", 2, 1.0, 200.0), 0, RULE)
    assert len(fitter._before) == 2
    again = fitter.run(Settings("weighted tree", 3, 1.0, 50.0), 0, RULE)
    assert again.history == alone.history


def test_settings_are_scaled_within_limits():
    start = Settings("tree", 30, 8.0, 32.0)
    assert start.scaled("n_components", 2.5, 100).n_components == 75
    assert start.scaled("n_components", 2.5, 50).n_components == 50
    assert start.scaled("n_components", 2.5, 30) is None
    assert start.scaled("pooling", 1e-4, 100) is None
    assert start.scaled("shrinkage", 0.25, 100).shrinkage == 8.0
    assert Settings("urns", 30, 8.0).scaled("shrinkage", 2.0, 100) is None
    network = Settings("neural tree", 64, 8.0).scaled("latent", 2.0, 64)
    assert network.own_settings.latent == 2 * REGISTRY["neural tree"].settings.latent
    assert network.parameters()["family"].latent == network.own_settings.latent
    assert network.row()["family"] == "neural tree"
    assert start.row() == dict(family="tree", n_components=30, pooling=8.0, shrinkage=32.0)
    parameters = start.parameters()
    assert parameters.pop("blocks").get_params() == Blocks(shrinkage=32.0).get_params()
    assert parameters == dict(family="tree", n_components=30, pooling=8.0)
    assert Settings("blocks", 3, 8.0, blocks="welch").parameters()["blocks"] == "welch"
    named = Settings("hidden tree", 3, 0.5, 1.0, STATISTICS).parameters([([0, 1], "runs")])
    assert (named["blocks"].method, named["blocks"].shrinkage) == ([([0, 1], "runs")], 1.0)
    slower = network.scaled("learning_rate", 0.4, 64)
    assert dict(slower.own) == {"latent": 48, "learning_rate": 0.0016}


def test_what_helps_is_tried_together_and_nothing_twice(examples):
    portfolio, fitter = Portfolio(examples), Fitter(examples, examples, rule=StopRule(max_iter=3))
    climb = Climb("tree", portfolio, most=50)
    assert climb.neighbours([]) == []
    start = usual("tree", 4, 8.0)

    def add(settings, valid):
        fit = fitter.fit(settings)
        portfolio.add(settings, _worth(fit, valid), 0)
        climb.tried.add(settings)

    add(start, -5.0)
    first = dict(climb.neighbours([]))
    assert len(first) == 6
    assert sum(first.values()) == pytest.approx(1.0)
    assert max(first, key=first.get) == Settings("tree", 10, 8.0, 32.0)  # more components
    for settings in first:
        up = settings.n_components > 4 or settings.pooling < 8.0
        add(settings, -4.0 if settings.n_components > 4 else -4.5 if up else -6.0)
    second = [settings for settings, _ in climb.neighbours([])]
    assert second[0] == Settings("tree", 10, 2.0, 32.0)
    assert not set(second) & set(first)
    for settings in second:
        add(settings, -9.0)
    finer = [settings for settings, _ in climb.neighbours([])]
    assert climb.step == 1
    assert Settings("tree", 15, 8.0, 32.0) in finer
    for settings in finer:
        add(settings, -9.0)
    assert climb.neighbours([]) == []


def test_sizes_that_are_best_for_another_family_are_tried(examples):
    search = search_of(examples, examples, ["urns", "tree"], StopRule(max_iter=3))
    search.survey()
    fit = search.portfolio.groups[search.first("urns")].first
    search.portfolio.add(Settings("urns", 7, 5.0), _worth(fit, 0.0), 0)
    near = search.climbs["tree"].neighbours([search.portfolio.best_of("urns")])
    assert (7, 5.0) in [(settings.n_components, settings.pooling) for settings, _ in near]


def test_every_family_is_tried_first_and_the_cheap_ones_before(examples, monkeypatch):
    begun = []
    fit = Fitter.fit

    def noting(self, settings, *arguments):
        begun.append(settings.family)
        return fit(self, settings, *arguments)

    monkeypatch.setattr(Fitter, "fit", noting)
    families = ["hidden tree", "tree", "urns", "weighted tree"]
    search = search_of(examples, examples, families, StopRule(max_iter=2))
    search.lanes.n_jobs = 1
    search.survey()
    assert begun[:2] == ["urns", "tree"]
    assert sorted(begun) == sorted(families)
    assert {group.settings.family for group in search.portfolio.alive} == set(families)


def test_a_family_that_fails_is_noted_and_the_others_go_on(examples, monkeypatch):
    fit = Fitter.fit

    def failing(self, settings, *arguments):
        if settings.family == "tree":
            raise MemoryError("too large")
        return fit(self, settings, *arguments)

    monkeypatch.setattr(Fitter, "fit", failing)
    search = search_of(examples, examples, ["tree", "urns"], StopRule(max_iter=2), n_init=2)
    search.run()
    assert search.notes == {"tree": "too large"}
    assert {group.settings.family for group in search.portfolio.alive} == {"urns"}
    alone = search_of(examples, examples, ["tree"])
    with pytest.raises(RuntimeError, match="no family could be fitted: tree: too large"):
        alone.run()


def test_networks_wait_for_what_others_give_if_there_are_any(examples, monkeypatch):
    begun, fit = [], Fitter(examples, examples, rule=StopRule(max_iter=2)).fit(usual("urns"))
    monkeypatch.setattr(
        Fitter, "fit", lambda self, settings, *rest: begun.append(settings.family) or fit
    )
    for families, first in ((["neural tree", "urns"], "urns"), (["neural tree"], "neural tree")):
        search = search_of(examples, examples, families, StopRule(max_iter=2), clock=Clock(1e9))
        search.survey()
        assert begun[-1] == first
        assert ("neural tree" in search.notes) is (first == "urns")
    assert "neural tree" not in begun[:-1]


def test_compiling_is_not_part_of_a_share_of_the_time(examples):
    clock = Clock(100.0, lambda: 40.0)
    search = search_of(examples, examples, ["neural tree", "urns"])
    trained, others = search._first_tasks()[::-1]
    start_up = trained.settings.space.start_up
    assert trained.start_up == start_up > others.start_up == 0.0
    assert share(others, clock, 0.25).left == pytest.approx(15.0)
    assert share(trained, clock, 0.25).left == pytest.approx(start_up + 0.25 * (60.0 - start_up))
    assert share(trained, clock, 1.0).left == pytest.approx(60.0)
    assert share(trained, Clock(41.0, lambda: 40.0), 0.25).left == pytest.approx(1.0)


def test_a_first_fit_that_was_cut_short_is_made_again(examples):
    search = search_of(examples, examples, ["urns"], RULE, clock=Clock(1e9))
    settings = search.first("urns")
    search._make([Task(settings)], LATE, fairly=True)
    (group,) = search.portfolio.alive
    assert not group.first.whole
    assert [task.settings for task in search.step(1e9)] == [settings]
    search._make(search.step(1e9), Clock())
    (again,) = search.portfolio.alive
    assert again.first.whole
    assert again.first.valid > group.first.valid
    assert settings not in [task.settings for task in search.step(1e-9) if task.number == 0]


def test_time_that_is_left_goes_to_first_fits_that_are_cut_short(examples):
    """Made again where they get further than before; others are begun if they lead to something."""
    seconds = [0.0]
    clock = Clock(100.0, lambda: seconds[0], worked=lambda: seconds[0])
    search = search_of(examples, examples, ["urns"], RULE, clock=clock)
    search._mark = 100.0
    settings = search.first("urns")
    search._make([Task(settings)], LATE, fairly=True)
    (group,) = search.portfolio.alive
    group.quickest = 60.0  # four times that is more than there is
    (task,) = search.step(1e9)
    assert (task.settings, task.number) == (settings, 0)
    assert task.seconds < 100.0
    group.quickest = 70.0
    assert search.step(1e9) == []


def test_on_a_busy_machine_families_that_were_not_tried_take_longer(examples):
    seconds, worked = [0.0], [0.0]
    clock = Clock(1e4, lambda: seconds[0], worked=lambda: worked[0])
    search = search_of(examples, examples, ["urns", "neural tree"], RULE, clock=clock)
    search._mark = 1e4
    settings = search.first("neural tree")
    free = search.costs.seconds_of(settings)
    seconds[0], worked[0] = 40.0, 10.0
    assert search.costs.slowness == 4.0
    assert search.costs.seconds_of(settings) == pytest.approx(4 * free)
    search._make([Task(search.first("urns"))], LATE, fairly=True)
    (task,) = [task for task in search.step(1e9) if task.settings == settings]
    assert task.least > 4 * settings.space.start_up
    search.fitter.accelerator = object()
    assert search.costs.slowness == 1.0


def test_a_fit_cut_short_gives_way_to_a_better_one_alone(examples):
    portfolio, fitter = Portfolio(examples), Fitter(examples, examples, rule=RULE)
    cut = replace(fitter.fit(usual("urns"), clock=LATE), valid=-5.0)
    for valid, whole, kept in [(-5.0, False, -5.0), (-6.0, False, -5.0), (-4.0, False, -4.0)]:
        portfolio.add(usual("urns"), replace(cut, valid=valid, whole=whole), 0)
        assert portfolio.groups[usual("urns")].first.valid == kept
    portfolio.weigh()
    portfolio.add(usual("urns"), replace(cut, valid=-4.5, whole=True), 1)
    (group,) = portfolio.alive
    assert (group.first.valid, group.share, group.n_made) == (-4.5, 1.0, 1)


def test_what_came_to_nothing_is_not_tried_again_and_the_others_go_on(examples, monkeypatch):
    fit = Fitter.fit
    begun = []

    def failing(self, settings, number=0, *arguments):
        begun.append((settings, number))
        if number == 1:
            raise MemoryError("too large")
        return fit(self, settings, number, *arguments)

    monkeypatch.setattr(Fitter, "fit", failing)
    search = search_of(examples, examples, ["tree", "urns"], StopRule(max_iter=2), n_init=4)
    search.run()
    assert len(begun) == len(set(begun))
    failed = [position for position, (_, number) in enumerate(begun) if number == 1]
    assert failed
    assert failed[0] < len(begun) - 1
    assert search.notes["tree"] == "too large"


def test_fits_cut_short_are_not_averaged(examples):
    search = search_of(examples, examples, ["urns"], StopRule(max_iter=3))
    search.survey()
    settings = search.first("urns")
    search._make([Task(settings, 1)], LATE)
    assert len(search.portfolio.groups[settings].fits) == 1
    search._make([Task(settings, 1)], Clock())
    assert len(search.portfolio.groups[settings].fits) == 2


def test_time_is_kept_for_shares_and_the_join(examples):
    """What weighing took the last time is reserved for the next, and more where more is joined."""
    seconds = [0.0]
    clock = Clock(1e6, lambda: seconds[0])
    search = search_of(examples, examples, ["urns"], StopRule(max_iter=2), clock=clock)
    each = Portfolio.each_of

    def slowly(portfolio, groups):
        seconds[0] += 8.0
        return each(portfolio, groups)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Portfolio, "each_of", slowly)
        search.survey()
    assert search.fitting.deadline < clock.deadline - 8.0
    before = search.portfolio.seconds_to_end
    (group,) = search.portfolio.alive
    group.fits *= 1000
    assert search.portfolio.seconds_to_end > before


def test_fits_of_a_group_count_equally_and_groups_by_their_shares(examples):
    search = search_of(examples, examples, ["urns", "tree"], StopRule(max_iter=4), n_init=4)
    search.run()
    mixture, kept, valid = search.portfolio.join()
    each = mixture.model.log_likelihoods(mixture.log_prior, examples)
    assert examples.weights @ each / examples.total == pytest.approx(valid)
    expected = np.log(
        sum(g.share * np.mean([np.exp(f.each) for f in g.used], axis=0) for g in kept)
    )
    np.testing.assert_allclose(each, expected, rtol=1e-9)
    assert valid >= max(group.first.valid for group in kept) - 1e-9


def test_a_round_that_gains_little_is_the_last(examples, monkeypatch):
    options = dict(rule=StopRule(max_iter=5), n_init=4)
    patient = search_of(examples, examples, ["urns"], **options)
    monkeypatch.setattr(searching, "LEAST_GAIN", 0.0)
    patient.run()
    worth = [done["valid"] for done in patient.rounds]
    monkeypatch.setattr(searching, "LEAST_GAIN", 10.0)
    hasty = search_of(examples, examples, ["urns"], **options)
    hasty.run()
    assert len(hasty.rounds) == 2 < len(patient.rounds)
    assert [done["valid"] for done in hasty.rounds] == worth[:2]


def test_fits_without_a_share_are_forgotten_where_memory_is_short(examples):
    search = search_of(examples, examples, ["urns", "tree"], StopRule(max_iter=3))
    search.survey()
    portfolio = search.portfolio
    poor = _worth(portfolio.alive[0].first, -1e3)
    poor = type(poor)(poor.mixture, poor.each - 50.0, -1e3, -1e3, 1, 0.1, True)
    portfolio.add(Settings("urns", 2, 1.0), poor, 0)
    portfolio.weigh()
    assert len(portfolio.alive) == 3
    portfolio._room = 0.0
    portfolio.weigh()
    assert {group.settings.n_components for group in portfolio.alive} != {2}
    assert len(portfolio.alive) == 2
    assert len(portfolio.groups) == 3


def test_a_search_is_as_good_as_the_right_number_of_components():
    """Four well separated kinds of rows, found from thirty components; one would be far worse."""
    rng = np.random.default_rng(0)
    rates = np.where(rng.random((4, 30)) < 0.5, 0.05, 0.95)
    X = (rng.random((1200, 30)) < rates[rng.integers(0, 4, 1200)]).astype(np.uint8)
    search = search_of(examples_of(X[:900]), examples_of(X[900:]), ["urns"], n_init=2)
    search.run()
    right = search.fitter.fit(Settings("urns", 4, 2.0))
    assert search.portfolio.worth > right.valid - 0.02
    assert right.valid > search.fitter.fit(Settings("urns", 1, 2.0)).valid + 1.0


@pytest.mark.parametrize("family", ["neural tree", "hidden tree"])
def test_networks_are_trained_beside_other_fits_where_they_have_a_device(
    family, examples, monkeypatch
):
    """All fits wait for one another: only if both lanes go on at once does any of them end."""
    together, lanes = threading.Barrier(2, timeout=20), set()

    def fit(self, settings, *arguments):
        lanes.add(threading.get_ident())
        together.wait()
        return settings

    monkeypatch.setattr(Fitter, "fit", fit)
    monkeypatch.setattr(trials, "DEVICE_WORTH", 0.0)
    fitter = Fitter(examples, examples, accelerator=object())
    tasks = [Task(Settings("urns", 2, 1.0)), Task(Settings(family, 8, 1.0))]
    results = Lanes(fitter, 1).run(tasks, Clock())
    assert results == [task.settings for task in tasks]
    assert len(lanes) == 2

    def failing(self, settings, *arguments):
        if settings.family == family:
            raise KeyError("not expected")
        return settings

    monkeypatch.setattr(Fitter, "fit", failing)
    with pytest.raises(KeyError, match="not expected"):
        Lanes(fitter, 1).run(tasks, Clock())


def test_hidden_trees_make_their_passes_where_networks_are_trained(examples, monkeypatch):
    """The processor stands for the device: its sums are in single precision."""
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(trials, "DEVICE_WORTH", 0.0)
    here = Fitter(examples, examples, rule=StopRule(max_iter=4))
    there = replace(here, accelerator=jax.devices("cpu")[0])
    hidden, tree = usual("hidden tree"), usual("tree")
    assert there.passes_device(hidden) is there.accelerator
    assert there.passes_device(tree) is None
    one, other = (fitter.fit(hidden) for fitter in (here, there))
    assert 0 < abs(one.valid - other.valid) < 1e-4
    assert Search(here, Lanes(here), ["hidden tree"]).climbs["hidden tree"].most <= 128


def test_hidden_trees_leave_a_device_to_others_where_they_are_quick(examples, monkeypatch):
    """There a program for every number of states would take longer to compile."""
    fitter = Fitter(examples, examples, accelerator=object())
    search = Search(fitter, Lanes(fitter), ["hidden tree"])
    rows, few = examples.rows, REGISTRY["hidden tree"].search.first_components
    more = min(64, search._most("hidden tree"))
    assert few < more
    for part, used in ((1.01, False), (0.99, True)):
        many = replace(usual("hidden tree"), n_components=more)
        seconds = many.space.seconds(rows.n_rows, rows.n_variables, more)
        monkeypatch.setattr(trials, "DEVICE_WORTH", part * seconds)
        assert (fitter.passes_device(many) is fitter.accelerator) is used
        assert fitter.passes_device(replace(many, n_components=few)) is None
        assert search.first("hidden tree").n_components == (more if used else few)


@pytest.mark.parametrize(("share", "together"), [(10.0, 2), (1.5, 1), (0.5, 1)])
def test_fits_for_which_there_is_no_memory_wait_for_others(examples, monkeypatch, share, together):
    """A fit that waits for another one ends alone where there is no memory for both."""
    tasks = [Task(Settings("urns", 4, 1.0), number) for number in range(2)]
    lanes = Lanes(Fitter(examples, examples), 2)
    need = lanes._needs(tasks[0])
    monkeypatch.setattr(searching_lanes, "available", lambda: share * need / 0.8)
    at_work, most, both = set(), [], threading.Barrier(2)

    def fit(self, settings, number, *arguments):
        at_work.add(number)
        if together > 1:
            both.wait(timeout=20)
        most.append(len(at_work))
        at_work.discard(number)
        return settings

    monkeypatch.setattr(Fitter, "fit", fit)
    assert lanes.run(tasks, Clock()) == [task.settings for task in tasks]
    assert max(most) == together


def in_time(examples, budget, monkeypatch):
    """Return what a search begins and what it is worth, where every fit takes some seconds."""
    seconds, begun, fit = [0.0], [], Fitter.fit

    def slowly(self, settings, number, clock, n_jobs):
        begun.append((settings, number))
        found = fit(self, settings, number, Clock(), n_jobs)
        takes = 1.0 + 0.2 * settings.n_components
        whole = seconds[0] + takes <= clock.deadline
        seconds[0] = min(seconds[0] + takes, clock.deadline)
        return replace(found, whole=whole, seconds=takes)

    with monkeypatch.context() as patched:
        patched.setattr(Fitter, "fit", slowly)
        clock = Clock(budget, lambda: seconds[0], worked=lambda: seconds[0])
        rule = StopRule(max_iter=2)
        search = search_of(examples, examples, ["urns", "tree"], rule, n_init=4, clock=clock)
        search.lanes.n_jobs = 1
        search.run()
    return begun, search.portfolio.join()[2]


def test_a_search_with_more_time_begins_as_one_with_less(examples, monkeypatch):
    budgets = 30.0, FIRST_MARK, 2 * FIRST_MARK, 8 * FIRST_MARK
    runs = [in_time(examples, budget, monkeypatch) for budget in budgets]
    for (less, worth), (more, later) in itertools.pairwise(runs):
        assert len(less) < len(more)
        assert later >= worth
    for (less, _), (more, _) in itertools.pairwise(runs[1:]):
        assert more[: len(less) - 1] == less[:-1]  # the last one was perhaps the longest to fit in


@pytest.mark.parametrize("budget", [None, 2.0])
def test_rows_that_are_certain_are_fitted_too(budget):
    """Their log-likelihood is exactly 0, of which nothing is a fraction."""
    density = ExchangeableDensity(
        ["urns", "tree"], alpha=1e-15, time_budget=budget, random_state=0, max_components=4
    )
    assert density.fit(np.zeros((200, 2), dtype=np.uint8)).valid_score_ == 0.0


def test_the_join_is_the_best_that_there_was(examples):
    search = search_of(examples, examples, ["urns"], StopRule(max_iter=3))
    search.survey()
    portfolio = search.portfolio
    worth = portfolio.join()[2]
    (group,) = portfolio.alive
    worse = replace(group.first, each=group.first.each - 1.0, valid=group.first.valid - 1.0)
    portfolio.groups[group.settings].fits[:] = [worse]
    portfolio.weigh()
    mixture, _, valid = portfolio.join()
    assert valid == worth
    each = mixture.model.log_likelihoods(mixture.log_prior, examples)
    assert examples.weights @ each / examples.total == pytest.approx(worth)
