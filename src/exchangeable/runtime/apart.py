"""Work in separate threads, which is abandoned if it does not stop soon after Ctrl-C.

A compiler or a long pass over rows cannot be stopped from outside. So after Ctrl-C the main thread
waits a second for such work to stop by itself, and no longer. Any later result is ignored; the work
stops when it next checks for the interrupt.
"""

import atexit
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from exchangeable.runtime.interrupts import GivenUp, present_flag, watching

PATIENCE = 1.0
"""Seconds that work has to stop by itself after Ctrl-C."""
OFTEN = 0.05
"""Seconds between checks for the interrupt while waiting."""
Result = TypeVar("Result")
_at_work: set[threading.Thread] = set()


class LeftBehind(GivenUp):
    """Work did not stop soon after Ctrl-C, and nobody waits for it any more."""


def begin(work: Callable[[], Result]) -> "Future[Result]":
    """Start some work in a separate thread, and return the future of its result."""
    future: Future[Result] = Future()
    flag = present_flag()

    def do() -> None:
        try:
            with watching(flag):
                future.set_result(work())
        except BaseException as error:  # raised again by whoever asks for the result
            future.set_exception(error)
        finally:
            _at_work.discard(threading.current_thread())

    thread = threading.Thread(target=do, name="exchangeable apart", daemon=True)
    _at_work.add(thread)
    thread.start()
    return future


def wait_for(
    futures: Sequence["Future[Any]"],
    stop: threading.Event,
    enough: Callable[[], bool] = lambda: True,
) -> None:
    """Wait until all work has ended, or `PATIENCE` is over after `stop` was set.

    After that it waits until the results so far are `enough` or all work has ended.
    """
    waiting, end = set(futures), float("inf")
    while waiting and (time.monotonic() < end or not enough()):
        waiting = wait(waiting, OFTEN, FIRST_COMPLETED).not_done
        if stop.is_set() and end == float("inf"):
            end = time.monotonic() + PATIENCE


def do(
    work: Callable[[], Result],
    stop: threading.Event,
    may_leave: Callable[[], bool] = lambda: True,
) -> Result:
    """Return the result of some work.

    If it does not end soon after `stop` was set, and may be abandoned, it raises `LeftBehind`.
    """
    future = begin(work)
    wait_for([future], stop, may_leave)
    if not future.done():
        raise LeftBehind
    return future.result()


@atexit.register
def _wait_at_the_end() -> None:
    """Wait for running work: the process would abort if a compiler lost its memory.

    A program ended by Ctrl-C does not wait; the signal ends it, as it would anyway. A program that
    is interrupted here does not wait either.
    """
    left = [thread for thread in list(_at_work) if thread.is_alive()]
    if not left or threading.current_thread() is not threading.main_thread():
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if isinstance(getattr(sys, "last_value", None), KeyboardInterrupt) and not hasattr(sys, "ps1"):
        signal.raise_signal(signal.SIGINT)
    for thread in left:
        thread.join()
