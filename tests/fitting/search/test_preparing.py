"""Kernels are compiled before the time of a search is shared out."""

from dataclasses import replace

import numpy as np
import pytest

from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import as_observed
from exchangeable.fitting.search import preparing
from exchangeable.fitting.search.preparing import prepare, some
from exchangeable.fitting.search.trials import Fitter, Settings
from exchangeable.runtime.clock import Clock, OutOfTime

FIRST = [Settings("urns", 30, 8.0), Settings("neural tree", 2048, 8.0), Settings("tree", 2, 8.0)]


@pytest.fixture
def fitter():
    rows = np.random.default_rng(0).integers(0, 2, (900, 12)).astype(np.uint8)
    examples = merge_equal_rows(as_observed(rows, None), np.ones(900))[0]
    return Fitter(examples, examples)


def test_small_fits_of_what_has_kernels_are_made_in_order(fitter, monkeypatch):
    made, run = [], Fitter.run

    def noting(self, settings, *arguments, **options):
        made.append((settings.family, settings.n_components, self.examples.rows.n_rows))
        return run(self, settings, *arguments, **options)

    monkeypatch.setattr(Fitter, "run", noting)
    prepare(fitter, FIRST, Clock(1e9), 1)
    n = some(fitter.examples).rows.n_rows
    assert 500 < n <= preparing.N_ROWS < fitter.examples.rows.n_rows
    assert made == [("urns", preparing.N_COMPONENTS, n), ("tree", 2, n)]


def test_it_takes_a_part_of_the_time_and_ends_when_it_is_interrupted(fitter, monkeypatch):
    made, seconds = [], [0.0]

    def slowly(self, settings, *arguments, **options):
        made.append(settings.family)
        seconds[0] += 30.0
        raise OutOfTime

    monkeypatch.setattr(Fitter, "run", slowly)
    clock = Clock(100.0, lambda: seconds[0])
    prepare(fitter, [FIRST[0]] * 5, clock, 1)
    assert made == ["urns"] * 2  # after sixty seconds more than its part is gone
    fitter.stop.set()
    prepare(fitter, FIRST, replace(clock, deadline=1e9), 1)
    assert len(made) == 2
