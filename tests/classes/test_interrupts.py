"""Ctrl-C in the middle of a latent class analysis: nothing goes on, and the best is kept."""

import signal

import numpy as np
import pandas as pd
import pytest

from exchangeable import ExchangeableMixture
from exchangeable.classes import analyse, analysis, choice
from exchangeable.families.mixed import quick
from exchangeable.families.mixed.em_kernels import LevelParameters
from exchangeable.runtime.interrupts import (
    InterruptedAnalysis,
    InterruptedFitWarning,
    interrupts,
)
from made_classes import answers

OPTIONS = {"blocks": "independent", "n_init": 2, "random_state": 0, "tol": 1e-3}


@pytest.fixture(scope="module")
def rows():
    return answers(300, seed=1)[0]


def interrupting(function, made):
    def first(*arguments, **options):
        made.append(arguments)
        signal.raise_signal(signal.SIGINT)
        return function(*arguments, **options)

    return first


def test_no_test_is_begun_after_the_one_that_was_interrupted(rows, monkeypatch):
    made = []
    inner = interrupting(choice.likelihood_ratio_test, made)
    monkeypatch.setattr(choice, "likelihood_ratio_test", inner)
    with pytest.warns(InterruptedFitWarning, match="the selection was interrupted"):
        found = ExchangeableMixture.select(rows, n_components=[1, 2, 3], bootstrap=20, **OPTIONS)
    assert len(made) == 1
    assert len(found.models) == 3
    assert not found.tests
    assert found.best in found.models


def test_an_interrupted_analysis_ends_with_the_model_that_it_has(rows, monkeypatch):
    made = []
    monkeypatch.setattr(analysis, "standard_errors", interrupting(analysis.standard_errors, made))
    with pytest.raises(InterruptedAnalysis) as caught:
        analyse(ExchangeableMixture, rows, n_components=[1, 2], n_draws=50, **OPTIONS)
    assert len(made) == 1
    assert np.isfinite(caught.value.model.score(rows))


def test_no_standard_errors_after_an_interrupted_selection(rows, monkeypatch):
    begun = []
    monkeypatch.setattr(
        choice, "likelihood_ratio_test", interrupting(choice.likelihood_ratio_test, [])
    )
    monkeypatch.setattr(analysis, "standard_errors", lambda *a, **o: begun.append(a))
    with pytest.raises(InterruptedAnalysis):
        analyse(ExchangeableMixture, rows, n_components=[1, 2], bootstrap=9, **OPTIONS)
    assert not begun


def test_compiled_fits_are_the_same_in_pieces_and_look_for_an_interrupt(rows, monkeypatch):
    frame = pd.DataFrame(rows).astype("category")
    model = ExchangeableMixture(2, **OPTIONS).fit(frame)
    begun, run = [], quick.QuickLevels.run

    def keeping(self, parameters, tol, max_iter):
        begun.append((self, [array.copy() for array in parameters], tol, max_iter))
        return run(self, parameters, tol, max_iter)

    with monkeypatch.context() as patch:
        patch.setattr(quick.QuickLevels, "run", keeping)
        large = ExchangeableMixture(3, **OPTIONS).fit(frame)
        choice.likelihood_ratio_test(model, large, frame, n_draws=2, random_state=0, n_jobs=1)
    steps = []
    for levels, parameters, tol, max_iter in begun:
        found = []
        for entries in (1e12, 1.0):
            monkeypatch.setattr(quick, "ENTRIES", entries)
            own = LevelParameters(*(array.copy() for array in parameters))
            found.append((levels.run(own, tol, max_iter), own))
        assert found[0][0] == found[1][0]
        for ours, theirs in zip(found[0][1], found[1][1], strict=True):
            np.testing.assert_array_equal(ours, theirs)
        steps.append(found[0][0][1])
    assert max(steps) > 2 * quick.ROUND
    with interrupts() as interrupt:
        interrupt.stop.set()
        with pytest.raises(KeyboardInterrupt):
            levels.run(LevelParameters(*parameters), tol, max_iter)
