"""Work in threads apart, which Ctrl-C leaves behind if it does not end soon.

Nothing can end a compiler or a long pass over rows from outside. So whoever has pressed Ctrl-C
waits a second for such work to end by itself, and no longer. What it leads to later is ignored; it
ends where it next looks for the interrupt.
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
"""Seconds that work has after Ctrl-C to end by itself."""
OFTEN = 0.05
"""Seconds after which whoever waits looks for the interrupt again."""
Result = TypeVar("Result")
_at_work: set[threading.Thread] = set()


class LeftBehind(GivenUp):
    """Work did not end soon after Ctrl-C, and nobody waits for it any more."""


def begin(work: Callable[[], Result]) -> "Future[Result]":
    """Begin some work in a thread apart, and return the future of its result."""
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

    Afterwards it waits on, until what there is by then is `enough` or all work has ended.
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
    """Return what some work leads to.

    If it does not end soon after `stop` was set, and others may leave it, it raises `LeftBehind`.
    """
    future = begin(work)
    wait_for([future], stop, may_leave)
    if not future.done():
        raise LeftBehind
    return future.result()


@atexit.register
def _wait_at_the_end() -> None:
    """Wait for what is at work: the process would abort if a compiler lost its memory.

    A program that Ctrl-C ends does not wait; the signal ends it, as it would anyway. Nor does one
    wait that is interrupted here.
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
