"""Ctrl-C as a flag: long work checks it, stops after its current step and keeps its results.

A step may be a pass over millions of rows. It is `given_up` between two of its parts if the
previous result is sufficient.
"""

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any


class InterruptedFitWarning(RuntimeWarning):
    """A fit or a search was interrupted from the keyboard, and kept the best result so far."""


class GivenUp(KeyboardInterrupt):
    """A step was given up because of Ctrl-C."""


class InterruptedAnalysis(KeyboardInterrupt):
    """An analysis was interrupted from the keyboard before it was complete.

    Parameters
    ----------
    model : estimator
        The best model found so far.
    """

    def __init__(self, model: Any) -> None:
        super().__init__("the analysis was interrupted")
        self.model = model


class Flag(threading.Event):
    """The flag set by Ctrl-C.

    Attributes
    ----------
    kept : bool
        Whether there is already a model that will be kept, so that remaining work need not produce
        one.
    """

    kept: bool = False


@dataclass(frozen=True)
class Interrupts:
    """How an interrupt from the keyboard affects some work.

    Attributes
    ----------
    stop : Flag
        Set by an interrupt; shared by nested work.
    outermost : bool
        Whether this work is not nested, and so gives the warning.
    """

    stop: Flag
    outermost: bool

    def warn(self, what: str, stacklevel: int) -> None:
        """Warn that the work was interrupted, unless the enclosing work will."""
        if self.outermost:
            warnings.warn(
                f"{what} was interrupted: the model is the best found so far",
                InterruptedFitWarning,
                stacklevel=stacklevel + 1,
            )


_current: Flag | None = None
_thread = threading.local()


def present_flag() -> Flag | None:
    """Return the flag set by Ctrl-C, None if there is none.

    A separate thread has that of the work which started it, whatever the main thread does now.
    """
    own: Flag | None = getattr(_thread, "flag", None)
    return _current if own is None else own


@contextmanager
def watching(flag: Flag | None) -> Iterator[None]:
    """Set the flag of this thread."""
    before = getattr(_thread, "flag", None)
    _thread.flag = flag
    try:
        yield
    finally:
        _thread.flag = before


def interrupted() -> bool:
    """Whether Ctrl-C was pressed while `interrupts` catches it."""
    flag = present_flag()
    return flag is not None and flag.is_set()


def check_interrupt() -> None:
    """Raise ``KeyboardInterrupt`` if Ctrl-C was pressed while `interrupts` catches it."""
    if interrupted():
        raise KeyboardInterrupt


@contextmanager
def giving_up(may: bool = True) -> Iterator[None]:
    """Allow steps of this thread to be given up after Ctrl-C, or forbid it."""
    before = getattr(_thread, "may", False)
    _thread.may = may
    try:
        yield
    finally:
        _thread.may = before


def flag_to_give_up() -> Flag | None:
    """Return the flag that ends the present step of this thread, None if it must be finished."""
    return present_flag() if getattr(_thread, "may", False) else None


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Let the first Ctrl-C set a flag, which the work must check; a second one raises.

    Outside the main thread, which no interrupt reaches, and if the program has its own handler for
    interrupts, the flag is never set from here.
    """
    global _current
    flag = present_flag()
    if flag is not None:
        yield Interrupts(flag, False)
        return
    stop = Flag()
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield Interrupts(stop, True)
        return

    def pressed(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    _current = stop
    signal.signal(signal.SIGINT, pressed)
    try:
        yield Interrupts(stop, True)
    finally:
        _current = None
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def stopping() -> Iterator[None]:
    """Let Ctrl-C end several fits together, which are only useful together."""
    with interrupts() as interrupt:
        try:
            with giving_up():
                yield
        except GivenUp:
            raise KeyboardInterrupt from None
        if interrupt.stop.is_set():
            raise KeyboardInterrupt
