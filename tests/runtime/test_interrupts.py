"""Ctrl-C: real signals to real processes, at a moment that the process announces."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exchangeable.runtime.interrupts import InterruptedFitWarning, interrupts

DEADLINE = 60.0
"""Seconds after which a process that says nothing has failed; starting numba takes some."""
SOON = 10.0
"""Seconds in which an interrupted process must end, far less than its fits would take."""
ENDLESS = """
import signal, sys, warnings
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
        sys.exit(3)
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
        "import signal as s; kind = Runs._begin; "
        "Runs.run = lambda self, *a: (s.raise_signal(s.SIGINT), s.raise_signal(s.SIGINT)); "
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
