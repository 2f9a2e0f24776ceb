"""Work that Ctrl-C leaves behind: toy work that never ends, in processes that get real signals."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from exchangeable.fitting.checkpoint import Checkpoint
from exchangeable.fitting.progress import FitProgress, OnTheWay
from exchangeable.runtime import apart
from exchangeable.runtime.interrupts import Flag, interrupts, present_flag

DEADLINE = 120.0
"""Seconds after which a process has failed; what it must not wait for never ends."""


def test_work_apart_gives_its_result_or_its_error() -> None:
    stop = threading.Event()
    assert apart.do(lambda: 3, stop) == 3
    with pytest.raises(ZeroDivisionError):
        apart.do(lambda: 1 // 0, stop)


def test_work_has_the_flag_of_whoever_began_it_even_later() -> None:
    seen, go_on = list[Flag | None](), threading.Event()

    def work() -> None:
        go_on.wait(DEADLINE)
        seen.append(present_flag())

    with interrupts() as interrupt:
        future = apart.begin(work)
    go_on.set()
    future.result(DEADLINE)
    assert seen == [interrupt.stop]
    assert present_flag() is None


@contextmanager
def endless() -> Iterator[threading.Event]:
    """Yield an event that work may wait for, which is set in the end."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


def test_work_that_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "PATIENCE", 0.01)
    stop, looked = threading.Event(), list[bool]()
    stop.set()

    def may_leave() -> bool:
        looked.append(len(looked) >= 3)
        return looked[-1]

    with endless() as event, pytest.raises(apart.LeftBehind):
        apart.do(event.wait, stop, may_leave)
    assert looked == [False, False, False, True]


def test_what_comes_late_is_neither_written_nor_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "checkpoint"
    with Checkpoint(path, 1, {}) as kept:
        pass
    kept.update(0, None)  # type: ignore[arg-type]
    assert not path.exists()
    monkeypatch.setattr("exchangeable.fitting.progress._watched", lambda: True)
    monkeypatch.setattr("exchangeable.fitting.progress.PATIENCE", 0.0)
    with FitProgress(1, 10) as progress:
        pass
    progress.update(0, OnTheWay(1, False, "late"))
    assert progress._bar is None


BLOCKING = """
import signal, threading, warnings
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)
from exchangeable import ExchangeableDensity, ExchangeableMixture
from exchangeable.families import REGISTRY
from exchangeable.runtime import apart

released = threading.Event()
X = (np.random.default_rng(0).random((600, 8)) < 0.4).astype(np.uint8)


def blocking(owner, name):
    "Let a method announce itself, and then never return."
    def method(self, *arguments, **options):
        print("running", flush=True)
        released.wait()
        raise RuntimeError

    setattr(owner, name, method)


def kept(model):
    print("kept", np.isfinite(model.score(X)), len(apart._at_work), flush=True)
    released.set()  # the interpreter waits for what was left behind


warnings.simplefilter("always")
"""
SEARCH = """
blocking(REGISTRY[{family!r}].family, "first")
kept(ExchangeableDensity(["urns", {family!r}], n_init=2, max_components=4, max_iter=5,
                         random_state=0, n_jobs=1).fit(X))
"""
SELECTION = """
fit = ExchangeableMixture.fit
def fitting(self, *arguments, **options):
    if self.n_components == 3:
        from exchangeable.fitting import em
        blocking(em, "_step")
    return fit(self, *arguments, **options)
ExchangeableMixture.fit = fitting
kept(ExchangeableMixture.select(X, n_components=[2, 3], random_state=0, n_jobs=1).best)
"""
COMPRESSION = """
from exchangeable.fitting.search import compression
density = ExchangeableDensity(["tree"], n_init=1, max_components=4, max_iter=5, random_state=0)
density.fit(X)
blocking(compression, {blocked!r})
kept(density.compress(X, {asked}))
"""
NETWORK = """
blocking(REGISTRY["neural independent"].family, "train")
ExchangeableMixture(4, family="neural independent", random_state=0).fit(X)
"""
COMPILING = """
import jax, jax.numpy as jnp
def slow(x):
    for number in range(6000):
        x = jnp.sin(x) @ x + number
    return x
def work():
    print("running", flush=True)
    return jax.jit(slow)(jnp.ones((3, 3)))
from exchangeable.runtime.interrupts import interrupts
with interrupts() as interrupt:
    try:
        apart.do(work, interrupt.stop)
    except apart.LeftBehind:
        raise KeyboardInterrupt from None
"""


def interrupted(script: str) -> tuple[int, str, str]:
    """Run a script, press Ctrl-C when it says so, and return its status and output."""
    process = subprocess.Popen(
        [sys.executable, "-c", BLOCKING + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NUMBA_NUM_THREADS": "2"},
    )
    killer = threading.Timer(DEADLINE, process.kill)
    killer.start()
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate()
    killer.cancel()
    return process.returncode, out, errors


@pytest.mark.parametrize("family", ["count tree", "weighted tree"])
def test_a_search_leaves_the_beginning_of_a_family_behind(family: str) -> None:
    status, out, errors = interrupted(SEARCH.format(family=family))
    assert (status, out) == (0, "kept True 1\n"), errors
    assert "the search was interrupted: the model is the best found so far" in errors


def test_a_selection_leaves_a_fit_behind_and_keeps_those_before() -> None:
    status, out, errors = interrupted(SELECTION)
    assert (status, out) == (0, "kept True 1\n"), errors
    assert "the selection was interrupted: the model is the best found so far" in errors


def test_a_compression_is_left_behind_for_the_best_so_far() -> None:
    asked = "n_parameters=20"
    status, out, errors = interrupted(COMPRESSION.format(blocked="refitted", asked=asked))
    assert (status, out) == (0, "kept True 1\n"), errors
    assert "the compression was interrupted: the model is the best found so far" in errors
    status, _, errors = interrupted(COMPRESSION.format(blocked="path_of", asked=asked))
    assert status == -signal.SIGINT, errors


@pytest.mark.parametrize("script", [NETWORK, COMPILING], ids=["before", "while compiling"])
def test_a_network_is_left_behind_before_its_first_iteration(script: str) -> None:
    pytest.importorskip("jax")
    status, _, errors = interrupted(script)
    assert status == -signal.SIGINT, errors
    assert errors.rstrip().endswith("KeyboardInterrupt"), errors
