"""A pool of threads that stay alive between calls and start work quickly.

Waking a sleeping thread takes longer than many tasks of EM. So after finishing its work, a helper
spins for a fraction of a millisecond before it goes to sleep, in compiled code without the
interpreter's lock, and looks for its next task; so does a thread that waits for a helper.
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
from numba import types
from numba.extending import intrinsic

from exchangeable.runtime.kernels.bits import COMPILED
from exchangeable.runtime.kernels.cache import compiled

SPINS = 1_000_000 if COMPILED else 1
"""How often a waiting thread checks a number before it goes to sleep: about 0.3 ms in total."""
MOST_SPINNING = 4
"""Maximum number of spinning threads; further ones sleep."""
CORES: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
"""Maximum number of running threads."""


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _load(typing_context: Any, numbers: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(array.data, "acquire", 8)

    return types.int64(numbers), generate


def _plain_load(numbers: Any) -> Any:
    return numbers[0]


_look: Any = _load if COMPILED else _plain_load
"""The current first number of an array, whichever thread has written it."""


@compiled()
def _spin(number, least, spins):  # type: ignore[no-untyped-def]
    """Return whether a number reaches `least` within this many checks."""
    while spins and _look(number) < least:
        spins -= 1
    return spins > 0


_n_spinning = 0


class _Counter:
    """A number that one thread increments and another waits for."""

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
        """Return when the number is at least this high."""
        global _n_spinning
        while True:
            # Spinning threads must not starve workers.
            few = _n_helpers < CORES and _n_spinning < MOST_SPINNING
            _n_spinning += 1
            try:
                if _spin(self._number, least, SPINS if few else 1):
                    return
            finally:
                _n_spinning -= 1
            self._sleeping = True
            # The number may have risen in the meantime; if it rises from now on, `rise` wakes us.
            if self._number[0] < least:
                self._wake.acquire()
            self._sleeping = False


class Errand:
    """Work that another thread is asked to do."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = [work]
        self._done = _Counter()

    def do(self) -> None:
        """Do the work, unless it was withdrawn."""
        work = self._claim()
        if work is not None:
            work()

    def report(self) -> None:
        """Mark the work as done."""
        self._done.rise()

    def end(self) -> None:
        """Withdraw the work if it has not started, otherwise wait until it is done.

        Since nobody waits for work that has not started, tasks may have helpers of their own.
        """
        if self._claim() is None:
            self._done.wait_for(1)

    def _claim(self) -> Callable[[], None] | None:
        try:
            return self._work.pop()
        except IndexError:
            return None


class _Helper:
    """A thread that runs one errand after the other, and is idle in between."""

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
            _idle.append(self)  # first, so that the waiting thread finds a helper
            errand.report()
            del errand


_idle: list[_Helper] = []
_n_helpers = 0


def ask(work: Callable[[], None], most: int) -> Errand:
    """Let another thread do some work, which must not raise; `Errand.end` must be called.

    There are at most `most` helpers, or as many as there are further cores: if all are busy, nobody
    starts the work, and `end` withdraws it.
    """
    global _n_helpers
    errand = Errand(work)
    try:
        helper = _idle.pop()
    except IndexError:
        if _n_helpers >= max(most, CORES - 1):
            return errand
        if not _n_helpers:
            # Load what a helper needs for waiting before there is one: Numba imports some of its
            # modules then, and this thread, importing others in the meantime, could find them half
            # done.
            _spin(np.zeros(1, dtype=np.int64), 0, 1)
        _n_helpers += 1
        helper = _Helper()
    helper.send(errand)
    return errand


def _forget() -> None:
    """Start again in a forked process, which has none of the threads."""
    global _n_helpers
    _idle.clear()
    _n_helpers = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
