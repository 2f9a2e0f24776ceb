"""Ctrl-C as a flag: long work looks at it, stops at its next step and keeps what it has found.

A step may be a pass over millions of rows. It is `given_up` between two of its parts where what was
found before is enough.
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
    """A fit or a search was interrupted from the keyboard, and kept the best found so far."""


class GivenUp(KeyboardInterrupt):
    """A step was given up, since Ctrl-C has been pressed."""


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
    """What Ctrl-C sets.

    Attributes
    ----------
    kept : bool
        Whether there is a model already that will be kept: work which goes on then need not lead
        to another one.
    """

    kept: bool = False


@dataclass(frozen=True)
class Interrupts:
    """What an interrupt from the keyboard has to do with some work.

    Attributes
    ----------
    stop : Flag
        Set by an interrupt; work within other work shares it.
    outermost : bool
        Whether this work is not part of other work, and so is the one that warns.
    """

    stop: Flag
    outermost: bool

    def warn(self, what: str, stacklevel: int) -> None:
        """Say that the work was interrupted, unless the work that it is part of will."""
        if self.outermost:
            warnings.warn(
                f"{what} was interrupted: the model is the best found so far",
                InterruptedFitWarning,
                stacklevel=stacklevel + 1,
            )


_current: Flag | None = None
_thread = threading.local()


def present_flag() -> Flag | None:
    """Return the flag that Ctrl-C sets, None where nothing keeps it.

    A thread apart has that of the work which began it, whatever the main thread does by now.
    """
    own: Flag | None = getattr(_thread, "flag", None)
    return _current if own is None else own


@contextmanager
def watching(flag: Flag | None) -> Iterator[None]:
    """Let a flag be that of this thread."""
    before = getattr(_thread, "flag", None)
    _thread.flag = flag
    try:
        yield
    finally:
        _thread.flag = before


def interrupted() -> bool:
    """Whether Ctrl-C has been pressed while `interrupts` keeps it."""
    flag = present_flag()
    return flag is not None and flag.is_set()


def check_interrupt() -> None:
    """Raise ``KeyboardInterrupt`` if Ctrl-C has been pressed while `interrupts` keeps it."""
    if interrupted():
        raise KeyboardInterrupt


@contextmanager
def giving_up(may: bool = True) -> Iterator[None]:
    """Let steps of this thread be given up when Ctrl-C has been pressed, or not, if not `may`."""
    before = getattr(_thread, "may", False)
    _thread.may = may
    try:
        yield
    finally:
        _thread.may = before


def flag_to_give_up() -> Flag | None:
    """Return the flag that ends the present step of this thread, None where it must be finished."""
    return present_flag() if getattr(_thread, "may", False) else None


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Let the first Ctrl-C set a flag, which the work must look at; a second one raises.

    Outside the main thread, which no interrupt reaches, and where the program has a handler of its
    own for interrupts, the flag is never set from here.
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
    """Let Ctrl-C end work of several fits, of which none is worth anything without the others."""
    with interrupts() as interrupt:
        try:
            with giving_up():
                yield
        except GivenUp:
            raise KeyboardInterrupt from None
        if interrupt.stop.is_set():
            raise KeyboardInterrupt
