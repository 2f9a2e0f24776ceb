"""Work in threads apart, which Ctrl-C leaves behind if they do not end soon.

Nothing can end a compiler or a pass over many rows from outside. So whoever has pressed Ctrl-C
waits a second for such work to end by itself, and no longer. What it finds later is ignored; it
ends where it next looks for the interrupt.
"""

import atexit
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from exchangeable.runtime.interrupts import present_flag, watching

PATIENCE = 1.0
"""Seconds that work has after Ctrl-C to end by itself."""
OFTEN = 0.05
"""Seconds after which whoever waits looks for the interrupt again."""
Result = TypeVar("Result")
_at_work: set[threading.Thread] = set()


def begin(work: Callable[[], Result]) -> "Future[Result]":
    """Begin some work in a thread apart, and return where its result will be."""
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


def wait_for(futures: Sequence["Future[Any]"], stop: threading.Event) -> bool:
    """Wait until some work has ended, or `PATIENCE` is over after `stop` was set.

    Returns whether all has ended.
    """
    end = float("inf")
    while time.monotonic() < end:
        if not wait(futures, OFTEN).not_done:
            return True
        if stop.is_set():
            end = min(end, time.monotonic() + PATIENCE)
    return False


@atexit.register
def _wait_at_the_end() -> None:
    """Wait for what is at work: to take a compiler down in the middle of its work aborts it.

    A program that Ctrl-C ends does not wait; it ends by the signal, as it would anyway.
    """
    left = [thread for thread in list(_at_work) if thread.is_alive()]
    if not left:
        return
    if isinstance(getattr(sys, "last_value", None), KeyboardInterrupt) and not hasattr(sys, "ps1"):
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    for thread in left:
        thread.join()
