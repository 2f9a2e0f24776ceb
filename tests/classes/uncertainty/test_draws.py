"""Draws of a bootstrap: in order, with progress, and stopped by an interrupt."""

import io
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest

from exchangeable.classes.uncertainty import draws
from exchangeable.fitting import progress
from exchangeable.runtime.interrupts import InterruptedFitWarning, Interrupts


def first_number(rng):
    return float(rng.random())


def test_draws_do_not_depend_on_threads():
    found = [
        draws.run_draws(first_number, np.random.default_rng(0), 20, n_jobs, "draws")
        for n_jobs in (1, 2)
    ]
    assert found[0] == found[1]
    assert len(set(found[0])) == 20
    with pytest.raises(ValueError, match="n_draws"):
        draws.run_draws(first_number, np.random.default_rng(0), 0, 1, "draws")


def test_an_interrupt_keeps_the_draws_made_so_far(monkeypatch):
    stop = threading.Event()

    @contextmanager
    def interrupted():
        yield Interrupts(stop, True)

    monkeypatch.setattr(draws, "interrupts", interrupted)
    made = []

    def one(rng):
        made.append(first_number(rng))
        if len(made) == 3:
            stop.set()
        return made[-1]

    with pytest.warns(InterruptedFitWarning, match="the bootstrap was interrupted"):
        assert draws.run_draws(one, np.random.default_rng(0), 20, 1, "draws") == made
    assert len(made) == 3
    with pytest.raises(KeyboardInterrupt):
        draws.run_draws(one, np.random.default_rng(0), 20, 1, "draws")


class Terminal(io.StringIO):
    """What looks like a terminal."""

    def isatty(self):
        return True


def test_a_terminal_is_told_how_many_draws_are_done_and_the_time_left(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with progress.DrawProgress("3 against 2 classes", 5) as bar:
            for _ in range(3):
                bar.advance()
            bar._bar.refresh()
    assert "3 against 2 classes" in shown.getvalue()
    assert "3 of 5" in shown.getvalue()
    assert "left" in shown.getvalue()
