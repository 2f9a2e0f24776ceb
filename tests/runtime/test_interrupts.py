"""Ctrl-C: real signals to real processes, at a moment that the process announces."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from exchangeable import (
    Chosen,
    ExchangeableClassifier,
    ExchangeableDensity,
    ExchangeableImputer,
    ExchangeableMixture,
    Generative,
)
from exchangeable.fitting import em
from exchangeable.fitting.runs import Runs
from exchangeable.runtime.interrupts import (
    GivenUp,
    InterruptedFitWarning,
    flag_to_give_up,
    giving_up,
    interrupts,
)
from exchangeable.runtime.threads import run

DEADLINE = 60.0
"""Seconds after which a process that says nothing has failed; starting numba takes some."""
SOON = 10.0
"""Seconds in which an interrupted process must end, far less than its fits would take."""
ENDLESS = """
import os, signal, sys, warnings
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
from exchangeable import ExchangeableDensity, ExchangeableMixture
from exchangeable.fitting.runs import Runs
from exchangeable.runtime.interrupts import InterruptedFitWarning

X = (np.random.default_rng(0).random((3000, 30)) < 0.4).astype(np.uint8)
run, begun, after = Runs.run, [], int(sys.argv[1])


def announcing(self, number, state=None, report=lambda state: None, *arguments):
    def announce(state):
        report(state)
        if len(begun) == after and state.n_iter == 2:
            print("running", flush=True)

    begun.append(number)
    return run(self, number, state, announce, *arguments)


Runs.run = announcing
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        {work}
    except KeyboardInterrupt:
        print("KeyboardInterrupt", flush=True)
        os._exit(3)  # not to wait for what was left behind
told = [str(w.message) for w in caught if w.category is InterruptedFitWarning]
print(len(told), told[0], "begun", len(begun), "left", {left}, flush=True)
"""
SELECT = (
    "found = ExchangeableMixture.select(X, n_components=[2, 3, 4, 5, 6], tol=0.0, "
    "max_iter={max_iter}, random_state=0, n_jobs=1)"
)
SEARCH = (
    "found = ExchangeableDensity(['urns', 'tree'], n_init=8, max_components=40, tol={tol}, "
    "max_iter={max_iter}, random_state=0, n_jobs={n_jobs}).fit(X)"
)


class Watched:
    """A process whose lines can be waited for."""

    def __init__(self, *command: str, cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env=os.environ | {"NUMBA_NUM_THREADS": "2"},
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put("ended")

    def wait_for(self, marker: str) -> None:
        end = time.monotonic() + DEADLINE
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                line = "ended"
            if line == "ended":
                self.process.kill()
                pytest.fail(f"no {marker!r}; {self.end()[1]}")
            if line == marker:
                return

    def interrupt(self) -> tuple[int, str, str]:
        """Send SIGINT; return the status, the last line of output, and what stderr holds."""
        self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(SOON)
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail(f"still running {SOON} s after Ctrl-C: {self.end()}")
        return status, *self.end()

    def end(self) -> tuple[str, str]:
        """Return the last line of output, and what stderr holds, of a process that has ended."""
        with self.process:
            assert self.process.stderr is not None
            errors = self.process.stderr.read()
            self.reader.join()
        listed = [line for line in self.lines.queue if line != "ended"]
        return (listed or [""])[-1], errors


def interrupted(work: str, left: str, after: int = 1) -> tuple[int, str]:
    script = ENDLESS.replace("{work}", work).replace("{left}", left)
    watched = Watched("-c", script, str(after))
    watched.wait_for("running")
    status, last, errors = watched.interrupt()
    assert "Traceback" not in errors, errors
    return status, last


def test_a_selection_stops_at_once_and_keeps_the_best() -> None:
    endless = SELECT.format(max_iter=10_000_000)
    status, said = interrupted(endless, "found.best.n_components, len(found.table)")
    assert status == 0, said
    kept = "1 the selection was interrupted: the model is the best found so far"
    assert said == f"{kept} begun 1 left 2 1"
    later = SELECT.format(max_iter=30)
    status, said = interrupted(later, "len(found.table), np.isfinite(found.best.score(X))", 2)
    assert status == 0, said
    assert said.startswith(kept)
    assert said.endswith("True")
    assert int(said.split()[-2]) <= 3  # of five


def test_a_search_stops_at_once_and_keeps_the_best_trial() -> None:
    endless = SEARCH.format(tol=0.0, max_iter=10_000_000, n_jobs=1)
    # Held-out rows end a trial by themselves; what is announced is the first, of about thirty.
    status, said = interrupted(
        endless, "found.n_fits_ < 4, len(found.table_) < 4, found.score(X) < 0"
    )
    assert status == 0, said
    assert said.startswith("1 the search was interrupted: the model is the best found so far")
    assert said.endswith("left True True True")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_stops_while_it_fits_what_is_to_be_averaged(n_jobs: int) -> None:
    # One family, no variations: the second run is already one to be averaged.
    work = (
        "import exchangeable.fitting.search.climbs as c; c.Climb.neighbours = lambda *a: []; "
        "found = ExchangeableDensity(['tree'], n_init=500, max_components=3, max_iter=20, "
        f"random_state=0, n_jobs={n_jobs}).fit(X)"
    )
    status, said = interrupted(work, "found.n_fits_ < 100, found.score(X) < 0", after=4)
    assert status == 0, said
    assert said.startswith("1 the search was interrupted")
    assert said.endswith("left True True")


@pytest.mark.parametrize("work", [SELECT, SEARCH], ids=["selection", "search"])
def test_an_interrupt_before_anything_was_found_is_raised(work: str) -> None:
    early = (
        "import signal as s, time; "
        "Runs.run = lambda self, *a: (s.raise_signal(s.SIGINT), time.sleep(600)); "
    )
    text = work.format(max_iter=10, tol=0.0, n_jobs=1)
    script = ENDLESS.replace("{work}", early + text).replace("{left}", "0")
    done = subprocess.run(
        [sys.executable, "-c", script, "1"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.stdout.strip() == "KeyboardInterrupt", done.stderr
    assert done.returncode == 3


def test_the_flag_is_shared_by_work_within_work_and_gone_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts() as outer:
        with interrupts() as inner:
            signal.raise_signal(signal.SIGINT)
            assert inner.stop is outer.stop
            assert (outer.outermost, inner.outermost) == (True, False)
            inner.warn("the fit", 1)  # says nothing
        assert outer.stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.warns(InterruptedFitWarning, match="the work was interrupted"):
            outer.warn("the work", 1)
    assert signal.getsignal(signal.SIGINT) is before
    with interrupts() as again:
        assert not again.stop.is_set()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_step_is_given_up_between_two_of_its_parts(n_jobs: int) -> None:
    done: list[int] = []
    with interrupts() as interrupt:

        def part(number: int) -> int:
            done.append(number)
            if number == 2:
                interrupt.stop.set()
            return number

        with giving_up(), pytest.raises(GivenUp):
            run(part, range(1000), n_jobs)
        assert 3 <= len(done) <= 4  # another thread may have begun one meanwhile
        assert run(part, range(5), n_jobs) == list(range(5))
        with giving_up(), giving_up(False):
            assert run(part, range(5), n_jobs) == list(range(5))
    with giving_up():
        assert flag_to_give_up() is None


ROWS = (np.random.default_rng(0).random((600, 6)) < 0.4).astype(float)


def interrupting(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: int) -> list[int]:
    """Let Ctrl-C be pressed as a function is called for the n-th time; return its calls."""
    function, calls = getattr(owner, name), list[int]()

    def pressed(*arguments: Any, **options: Any) -> Any:
        calls.append(len(calls))
        if len(calls) == after:
            flag = flag_to_give_up()
            assert flag is not None
            flag.set()
        return function(*arguments, **options)

    monkeypatch.setattr(owner, name, pressed)
    return calls


@pytest.mark.parametrize("family", ["blocks", "urns", "hidden tree"])
def test_an_iteration_is_given_up_and_the_one_before_is_kept(
    monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    options: dict[str, Any] = {"family": family, "tol": 0.0, "random_state": 0}
    calls = interrupting(monkeypatch, em, "_step", 3)
    with pytest.warns(InterruptedFitWarning, match="the best found so far"):
        model = ExchangeableMixture(3, **options).fit(ROWS)
    assert (model.n_iter_, len(calls)) == (2, 3)
    monkeypatch.undo()
    with pytest.warns(match="did not converge"):
        short = ExchangeableMixture(3, max_iter=2, **options).fit(ROWS)
    np.testing.assert_array_equal(model.score_samples(ROWS), short.score_samples(ROWS))


def test_an_interrupt_during_the_start_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupting(monkeypatch, Runs, "_begin", 1)
    with pytest.raises(KeyboardInterrupt):
        ExchangeableMixture(3, random_state=0).fit(ROWS)


def test_a_search_gives_up_a_start_and_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = interrupting(monkeypatch, Runs, "_begin", 3)
    density = ExchangeableDensity(["urns"], n_init=4, max_components=8, random_state=0, n_jobs=1)
    with pytest.warns(InterruptedFitWarning, match="the search was interrupted"):
        density.fit(ROWS)
    assert (density.n_fits_, len(calls)) == (1, 3)  # a fit begins with blocks, then urns


def fit_classes() -> None:
    ExchangeableClassifier(training=Generative(2, n_init=1)).fit(ROWS, np.arange(600) % 5)


def add_classes() -> None:
    model = ExchangeableClassifier("hidden tree", max_iter=3)
    model.partial_fit(ROWS, np.arange(600) % 5, classes=range(5))


def choose_settings() -> None:
    settings = [{"training": Generative(k, n_init=1)} for k in (2, 3, 4)]
    ExchangeableClassifier(training=Chosen(settings)).fit(ROWS, np.arange(600) % 5)


def choose_imputer() -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 4)))
    ExchangeableImputer(random_state=0).fit(table)


@pytest.mark.parametrize("work", [fit_classes, add_classes, choose_settings, choose_imputer])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_work_of_several_fits_stops_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], None]
) -> None:
    calls = interrupting(monkeypatch, em, "_step", 2)
    with pytest.raises(KeyboardInterrupt):
        work()
    assert len(calls) == 2


def test_handlers_of_the_program_and_other_threads_are_left_alone() -> None:
    seen: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with interrupts() as interrupt:
            signal.raise_signal(signal.SIGINT)
        assert seen == [signal.SIGINT]
        assert not interrupt.stop.is_set()
    finally:
        signal.signal(signal.SIGINT, before)

    def elsewhere() -> None:
        with interrupts() as interrupt:
            seen.append(interrupt.outermost)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen[-1] is True


COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from exchangeable.cli import main
from exchangeable.fitting.em import StopRule
from exchangeable.fitting import runs, progress

import exchangeable.cli.commands.fit
from exchangeable.cli import estimators

fit = sys.modules["exchangeable.cli.commands.fit"]
{prepare}
main(sys.argv[1:])
"""
ENDLESS_MIXTURE = """
kind = estimators.ExchangeableMixture
endless = {"tol": 0.0, "max_iter": 10_000_000}
estimators.ExchangeableMixture = lambda k, **options: kind(k, **endless, **options)
update = progress.FitProgress.update


def updating(self, number, state):
    update(self, number, state)
    if state.n_iter == 2:
        print("running", flush=True)


progress.FitProgress.update = updating
"""
ENDLESS_READING = """
import time


def reading(*arguments):
    print("running", flush=True)
    while True:
        time.sleep(0.01)


fit.read_table = reading
"""


SLOW_IMPORT = """
import sys


class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "numba":
            print("running", flush=True)
            while True:
                pass


sys.meta_path.insert(0, Slow())
sys.argv = ["exchangeable", *sys.argv[1:]]
from exchangeable.__main__ import main
main()
"""


def test_an_interrupt_while_modules_are_imported(tmp_path: Path) -> None:
    watched = Watched("-c", SLOW_IMPORT, "fit", "rows.csv", "--output", "m.exch", cwd=tmp_path)
    watched.wait_for("running")
    status, _, errors = watched.interrupt()
    assert status == 130
    assert errors == "Interrupted: the command has not finished\n"


def test_nothing_is_imported_before_an_interrupt_has_a_meaning(tmp_path: Path) -> None:
    script = (
        "import sys; before = {*sys.modules, *sys.builtin_module_names}; "
        "import exchangeable.__main__; print(*sorted({*sys.modules} - before))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert run.stdout.split() == ["exchangeable", "exchangeable.__main__"]


def test_a_command_that_is_not_about_tables_ends_so_too(tmp_path: Path) -> None:
    prepare = "import time; print('running', flush=True); time.sleep(60)"
    script = (
        "import sys; from exchangeable.cli import groups; from exchangeable.__main__ import main; "
        "import exchangeable.cli.commands.datasets as d; "
        f"d.list_command.callback = lambda: exec({prepare!r}); main()"
    )
    watched = Watched("-c", script, "datasets", cwd=tmp_path)
    watched.wait_for("running")
    status, _, errors = watched.interrupt()
    assert status == 130
    assert errors == "Interrupted: the command has not finished\n"


@pytest.mark.parametrize("saves", [True, False])
def test_the_command_says_in_one_line_what_it_has_saved(tmp_path: Path, saves: bool) -> None:
    rows = (np.random.default_rng(0).random((400, 6)) < 0.4).astype(int)
    np.savetxt(tmp_path / "rows.csv", rows, "%d", ",", header="a,b,c,d,e,f", comments="")
    prepare = ENDLESS_MIXTURE if saves else ENDLESS_READING
    command = ("fit", "rows.csv", "--components", "3", "--seed", "0", "--output", "m.exch")
    watched = Watched("-c", COMMAND.replace("{prepare}", prepare), *command, cwd=tmp_path)
    watched.wait_for("running")
    status, _, errors = watched.interrupt()
    assert status == 130
    said = "m.exch holds the best model found so far" if saves else "the command has not finished"
    assert errors == f"Interrupted: {said}\n"
    assert (tmp_path / "m.exch").exists() == saves
