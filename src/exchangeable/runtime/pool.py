"""Threads that are kept from call to call and are quick to start.

Waking a thread that sleeps takes longer than many a task of EM. So a helper that has done its work
watches for the next for a fraction of a millisecond, in compiled code that leaves the interpreter
to others, before it sleeps; so does who waits for a helper.
"""

import itertools
import os
from collections import deque
from collections.abc import Callable
from threading import Semaphore, Thread
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

WATCH = 1_000_000
"""How often a number is looked at before who waits for it to grow goes to sleep: about 0.3 ms."""
MOST_WATCHING = 4
"""How many threads may watch at once; further ones sleep."""
CORES: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
"""How many threads may run at once."""


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _look(typing_context: Any, numbers: Any) -> Any:
    """Return the first of an array's numbers as it is now, whoever has written it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(array.data, "acquire", 8)

    return types.int64(numbers), generate


@njit(cache=True, nogil=True)
def _watch(number, least, looks):  # type: ignore[no-untyped-def]
    """Say whether a number reaches `least` before one has looked so many times."""
    left = looks
    while left and _look(number) < least:  # type: ignore[call-arg]
        left -= 1
    return left > 0


_n_watching = 0


class _Counter:
    """A number that one thread raises and another waits for."""

    def __init__(self) -> None:
        self._number: npt.NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._sleeping = False
        self._wake = Semaphore(0)

    def rise(self) -> None:
        """Add one."""
        self._number[0] += 1
        if self._sleeping:
            self._wake.release()

    def wait_for(self, least: int) -> None:
        """Return when the number is so high."""
        global _n_watching
        while True:
            # Who watches must not take a core from who works.
            few = _n_helpers < CORES and _n_watching < MOST_WATCHING
            _n_watching += 1
            try:
                if _watch(self._number, least, WATCH if few else 1):
                    return
            finally:
                _n_watching -= 1
            self._sleeping = True
            # What has risen meanwhile need not be slept for; what rises from now on wakes us.
            if self._number[0] < least:
                self._wake.acquire()
            self._sleeping = False


class Errand:
    """Work that another thread is asked to do."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = [work]
        self._done = _Counter()

    def do(self) -> None:
        """Do the work, unless it was taken back."""
        work = self._claim()
        if work is not None:
            work()

    def tell(self) -> None:
        """Say that the work is done."""
        self._done.rise()

    def end(self) -> None:
        """Take the work back if it has not begun, otherwise wait until it is done.

        Not waiting for work that has not begun lets work have helpers of its own.
        """
        if self._claim() is None:
            self._done.wait_for(1)

    def _claim(self) -> Callable[[], None] | None:
        try:
            return self._work.pop()
        except IndexError:
            return None


class _Helper:
    """A thread that does one errand after the other, and is idle in between."""

    def __init__(self) -> None:
        self._errands: deque[Errand] = deque()
        self._asked = _Counter()
        Thread(target=self._serve, name="exchangeable", daemon=True).start()

    def send(self, errand: Errand) -> None:
        self._errands.append(errand)
        self._asked.rise()

    def _serve(self) -> None:
        for number in itertools.count(1):
            self._asked.wait_for(number)
            errand = self._errands.popleft()
            errand.do()
            _idle.append(self)  # first, so that who has waited finds a helper
            errand.tell()
            del errand


_idle: list[_Helper] = []
_n_helpers = 0


def ask(work: Callable[[], None], most: int) -> Errand:
    """Let another thread do some work, which must not raise; `Errand.end` must be called.

    There are no more than `most` helpers, or as many as there are further cores: when all are at
    work, nobody begins, and `end` takes the work back.
    """
    global _n_helpers
    errand = Errand(work)
    try:
        helper = _idle.pop()
    except IndexError:
        if _n_helpers >= max(most, CORES - 1):
            return errand
        _n_helpers += 1
        helper = _Helper()
    helper.send(errand)
    return errand


def _forget() -> None:
    """Begin anew in a forked process, which has none of the threads."""
    global _n_helpers
    _idle.clear()
    _n_helpers = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
