"""The available memory, and errors for work that needs more."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
STATUS = Path("/proc/self/status")
LIMIT = "EXCHANGEABLE_MEMORY"
"""The environment variable that limits the total memory of the process in bytes."""
CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current"))


def available() -> float:
    """Return the available memory in bytes, infinite if the system does not report it."""
    room = float("inf")
    try:
        lines = dict(line.split(":") for line in MEMINFO.read_text().splitlines() if ":" in line)
        kilobytes = [int(lines[key].split()[0]) for key in ("MemAvailable", "SwapFree")]
        room = 1024.0 * sum(kilobytes)
    except (OSError, KeyError, ValueError):
        pass
    try:
        limit, used = (path.read_text().strip() for path in CGROUP)
        if limit != "max":
            room = min(room, float(int(limit) - int(used)))
    except (OSError, ValueError):
        pass
    try:
        lines = dict(line.split(":") for line in STATUS.read_text().splitlines() if ":" in line)
        taken = 1024.0 * int(lines["VmRSS"].split()[0])
        room = min(room, float(os.environ[LIMIT]) - taken)
    except (OSError, KeyError, ValueError):
        pass
    return room


def check_memory(n_bytes: float, what: str, advice: str) -> None:
    """Raise an error if work needs more memory than there is.

    Parameters
    ----------
    n_bytes : float
        The least memory that it needs.
    what : str
        A description of the work.
    advice : str
        Advice on how to need less.
    """
    room = available()
    if n_bytes > room:
        raise MemoryError(
            f"{what} needs at least {_gigabytes(n_bytes)} of memory, but only {_gigabytes(room)} "
            f"are available: {advice}"
        )


def times_available(n_bytes: float) -> int:
    """Return how many times this much memory is available."""
    return int(min(available() / n_bytes, 1e9))


class Room:
    """Memory shared by parallel work: work that does not fit waits until other work has ended.

    Work that needs more than all of it is not rejected here, but done alone.

    Parameters
    ----------
    n_bytes : float
        The total amount.

    Examples
    --------
    >>> room = Room(100.0)
    >>> with room.taking(60.0):
    ...     room.free
    40.0
    """

    def __init__(self, n_bytes: float) -> None:
        self.n_bytes = self.free = n_bytes
        self._at_work = 0
        self._changed = threading.Condition()

    @contextmanager
    def taking(self, n_bytes: float) -> Iterator[None]:
        """Wait until there is enough memory, and reserve it for the duration of a block."""
        with self._changed:
            self._changed.wait_for(lambda: n_bytes <= self.free or not self._at_work)
            self.free, self._at_work = self.free - n_bytes, self._at_work + 1
        try:
            yield
        finally:
            with self._changed:
                self.free, self._at_work = self.free + n_bytes, self._at_work - 1
                self._changed.notify_all()


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB"
