"""Progress lines for fits and searches on a terminal; nothing is shown elsewhere."""

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 2.0
"""Seconds before a progress bar appears."""


class Reported(Protocol):
    """What is shown of a run, of EM or of training."""

    @property
    def n_iter(self) -> int:
        """Number of iterations so far."""

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""

    @property
    def told(self) -> str:
        """The progress, in a few words."""


class OnTheWay(NamedTuple):
    """The progress of a run from which nothing can continue yet: it is shown, but not saved."""

    n_iter: int
    ended: bool
    told: str


class _Lines:
    """Progress display on an interactive terminal, which ends with the work."""

    _bar: "Progress | None" = None

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched = _watched()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._watched = False
            if self._bar is not None:
                self._bar.stop()


def _watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _bar(first: str, *others: str | None) -> "Progress":
    """Return a progress display with texts, a bar in place of None, and the time; imports rich.

    If there is a bar, the remaining time is shown too.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = [BarColumn() if text is None else TextColumn(text) for text in others]
    beginning = [] if others else [SpinnerColumn()]
    left = [TextColumn("at most"), TimeRemainingColumn(), TextColumn("left")] if others else []
    return Progress(
        *beginning,
        TextColumn(first),
        *columns,
        TimeElapsedColumn(),
        *left,
        console=Console(stderr=True),
        transient=True,
    )


class FitProgress(_Lines):
    """A bar for each run, shown once a fit has taken a while."""

    def __init__(self, n_runs: int, max_iter: int) -> None:
        super().__init__()
        self._began = time.monotonic()
        self._n_runs, self._max_iter = n_runs, max_iter

    def update(self, run: int, state: Reported) -> None:
        """Show the state of a run."""
        if not self._watched or time.monotonic() - self._began < PATIENCE:
            return
        with self._lock:
            if not self._watched:
                return
            if self._bar is None:
                self._bar = _bar("{task.description}", None, "{task.fields[text]}")
                for number in range(self._n_runs):
                    self._bar.add_task(f"run {number}", total=self._max_iter, text="")
                self._bar.start()
            done = self._max_iter if state.ended else state.n_iter
            self._bar.update(self._bar.task_ids[run], completed=done, text=state.told)


class SearchProgress(_Lines):
    """A line that says what a search has tried and found."""

    def __init__(self) -> None:
        super().__init__()
        if self._watched:
            self._bar = _bar("{task.description}")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._bar.add_task("searching")
        return self

    def show(self, text: str) -> None:
        """Replace the text shown."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=text)


class DrawProgress(_Lines):
    """A bar for several equal pieces of work, with the remaining time."""

    def __init__(self, text: str, n_draws: int) -> None:
        super().__init__()
        self._began = time.monotonic()
        self._text, self._n_draws, self._done = text, n_draws, 0

    def advance(self) -> None:
        """Count one more."""
        with self._lock:
            self._done += 1
            if not self._watched or time.monotonic() - self._began < PATIENCE:
                return
            if self._bar is None:
                self._bar = _bar("{task.description}", None, "{task.completed} of {task.total}")
                self._bar.add_task(self._text, total=self._n_draws)
                self._bar.start()
            self._bar.update(self._bar.task_ids[0], completed=self._done)
