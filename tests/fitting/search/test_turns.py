"""Families that share a lane: long fits of one do not keep another from its turn."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from exchangeable.fitting.em import StopRule
from exchangeable.fitting.search import trials
from exchangeable.fitting.search.costs import DEVICE_START_UP
from exchangeable.fitting.search.lanes import OVERRUN, Lanes, Task, overrun
from exchangeable.fitting.search.searching import Search
from exchangeable.fitting.search.trials import Fitter, Settings
from exchangeable.runtime.clock import Clock, OutOfTime
from made_rows import bound_clusters, examples_of

COMPILING = 10.0
SECONDS = {
    "hidden tree": 6.0,
    "neural tree": 100.0,
    "neural independent": 60.0,
    "neural urns": 120.0,
}
"""What fits take on a device that is busy with other work: more than families say."""
WORTH = {"hidden tree": -5.0, "neural tree": -5.2, "neural independent": -6.5, "neural urns": -6.6}


class Device:
    """A device on which fits take their time by a clock of its own, one after the other."""

    def __init__(self, examples):
        self.examples, self.seconds, self.compiled = examples, 0.0, set()
        self.fits = []
        self.usual = Fitter(examples, examples, rule=StopRule(max_iter=2))
        self.usual = self.usual.fit(Settings("urns", 2, 1.0))

    def fit(self, fitter, settings, number, clock, n_jobs):
        """Take time, and return a fit that is the better the nearer it is to its end."""
        began, shape = self.seconds, (settings.family, settings.n_components)
        compiled = began + COMPILING * (shape not in self.compiled)
        self.compiled.add(shape)
        takes = SECONDS[settings.family]
        self.seconds = max(compiled, min(compiled + takes, clock.deadline))
        done = (self.seconds - compiled) / takes
        self.fits.append((settings.family, began, self.seconds - began, done >= 1))
        if done < 0.02 and not clock.patient:
            raise OutOfTime("there was no time for it")
        noise = np.random.default_rng(len(self.fits)).normal(size=self.usual.each.size)
        each = WORTH[settings.family] - 1.5 * (1 - done) + 0.2 * noise
        valid = float(self.examples.weights @ each / self.examples.total)
        seconds = self.seconds - began
        return replace(self.usual, each=each, valid=valid, seconds=seconds, whole=done >= 1)


@pytest.fixture
def device(monkeypatch):
    device = Device(examples_of(bound_clusters(300)))
    monkeypatch.setattr(Fitter, "fit", lambda *arguments: device.fit(*arguments))
    monkeypatch.setattr(trials, "DEVICE_WORTH", 0.0)
    return device


def searched(device, budget):
    fitter = Fitter(device.examples, device.examples, accelerator=device)
    clock = Clock(budget, lambda: device.seconds, worked=lambda: device.seconds)
    search = Search(fitter, Lanes(fitter, 1), list(SECONDS), clock=clock)
    search.run()
    return search


def test_a_quick_family_has_its_turn_before_long_fits_of_others(device):
    """Hidden trees, cut short in the survey, used to wait until the last of the networks."""
    search = searched(device, 230.0)
    ended = next(n for n, (family, *_, whole) in enumerate(device.fits) if whole)
    assert device.fits[ended][0] == "hidden tree"
    assert device.fits[ended][1] < 115.0
    assert {family for family, *_ in device.fits} == set(SECONDS)
    assert max(seconds for *_, seconds, _ in device.fits[:ended]) < SECONDS["neural independent"]
    assert search.portfolio.best_of().settings.family == "hidden tree"
    assert search.portfolio.share_of("hidden tree") > 0.5


def test_a_device_compiles_before_the_part_of_time_that_a_fit_has(device):
    search = searched(device, 30.0)
    first = device.fits[0]
    assert first[0] == "hidden tree"
    assert first[2] > COMPILING
    assert search.portfolio.best_of().settings.family == "hidden tree"


def test_no_first_fit_on_a_device_takes_many_times_what_it_was_thought_to(device):
    """They are thought to take a second more than compiling: there are few rows."""
    searched(device, 230.0)
    network = next(fit for fit in device.fits if fit[0] == "neural independent")
    assert COMPILING < network[2] <= OVERRUN * (DEVICE_START_UP + 1.0)
    assert not network[3]


def test_the_processor_goes_on_while_a_device_is_not_done(monkeypatch):
    """The fit on the device ends after three more by the processor than were asked for."""
    examples = examples_of(bound_clusters(300))
    fitter = Fitter(examples, examples, rule=StopRule(max_iter=2), accelerator=object())
    search = Search(fitter, Lanes(fitter, 1), ["urns", "hidden tree"], clock=Clock(1e9))
    search._mark = 1e9
    quick, made, enough = Fitter(examples, examples, rule=fitter.rule), [], threading.Event()
    enough.set()
    monkeypatch.setattr(trials, "DEVICE_WORTH", 0.0)

    def fit(self, settings, number, clock, n_jobs):
        if settings.family == "hidden tree":
            assert enough.wait(timeout=20)
            return quick.fit(Settings("urns", 3, 1.0))
        made.append((settings, number))
        if len(made) > 4:
            enough.set()
        return really(quick, settings, number, Clock(), n_jobs)

    really = Fitter.fit
    quick.fit = lambda settings: really(quick, settings)
    monkeypatch.setattr(Fitter, "fit", fit)
    search.survey()
    assert len(made) == 1
    enough.clear()
    tasks = [Task(search.first("urns"), 1, 1e6), Task(search.first("hidden tree"), 1, 1.0)]
    search._make(tasks, Clock(1e9))
    assert len(made) == len(set(made)) >= 5
    assert search.n_made == len(made) + 2
    assert search.portfolio.groups[search.first("hidden tree")].n_made == 2


def test_a_fit_that_is_longer_than_thought_leaves_half_of_the_time_to_others():
    clock = Clock(100.0, lambda: 0.0)
    assert overrun(Task(Settings("urns", 8, 1.0), seconds=30.0), clock).left == 50.0
    assert overrun(Task(Settings("urns", 8, 1.0), seconds=70.0), clock).left == 70.0
    late = Task(Settings("tree", 8, 1.0), seconds=30.0, start_up=20.0)
    assert overrun(late, clock).left == 60.0


def test_a_network_that_is_longer_than_thought_leaves_a_fifth_of_the_time_to_others():
    clock = Clock(100.0, lambda: 0.0)
    assert overrun(Task(Settings("neural tree", 8, 1.0), seconds=30.0), clock).left == 80.0
    assert overrun(Task(Settings("neural tree", 8, 1.0), seconds=20.0), clock).left == 60.0


@pytest.mark.parametrize(
    ("families", "left", "seconds", "expected"),
    [
        (("tree", "urns"), 100.0, 4.0, OVERRUN * 4.0),
        (("neural tree", "neural urns"), 30.0, 25.0, 25.0),
    ],
)
def test_how_long_first_fits_of_a_survey_may_take(families, left, seconds, expected, monkeypatch):
    """Not many times what they were thought to; networks have all the time that they need."""
    examples, given = examples_of(bound_clusters(300)), []
    fitter = Fitter(examples, examples, rule=StopRule(max_iter=2))
    quick = fitter.fit(Settings("urns", 2, 1.0))
    monkeypatch.setattr(Fitter, "fit", lambda self, *task: given.append(task[2].left) or quick)
    tasks = [Task(Settings(name, 2, 1.0), seconds=seconds) for name in families]
    Lanes(fitter, 1).run(tasks, Clock(left, lambda: 0.0), fairly=True)
    assert given == [expected] * 2
