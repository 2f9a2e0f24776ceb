"""Deadlines, by one clock that is passed down to every loop."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from exchangeable.runtime.interrupts import interrupted


class OutOfTime(RuntimeError):
    """There was no time for a useful result."""


@dataclass(frozen=True)
class Clock:
    """A deadline, and how to tell the time.

    Attributes
    ----------
    deadline : float
        The deadline, by `now`.
    now : callable
        Returns the seconds since some moment; tests replace the machine's clock.
    patient : bool
        Whether work continues until it has a useful result, however late.
    worked : callable
        Returns the processor seconds of the work: fewer than `now` says if other programs use the
        processors.

    Examples
    --------
    >>> clock = Clock(10.0, lambda: 4.0)
    >>> clock.left, clock.part(0.5).deadline, clock.earlier(7.0).over
    (6.0, 7.0, True)
    """

    deadline: float = float("inf")
    now: Callable[[], float] = field(default=time.monotonic, repr=False)
    patient: bool = False
    worked: Callable[[], float] = field(default=time.process_time, repr=False)

    @property
    def left(self) -> float:
        """Seconds until the deadline, negative once it has passed."""
        return self.deadline - self.now()

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return self.left <= 0

    @property
    def limited(self) -> bool:
        """Whether there is a deadline."""
        return self.deadline < float("inf")

    def part(self, share: float) -> "Clock":
        """Return a clock for a fraction of the remaining time."""
        return self.earlier((1.0 - share) * max(self.left, 0.0)) if self.limited else self

    def earlier(self, seconds: float) -> "Clock":
        """Return a clock whose deadline is this many seconds earlier."""
        return replace(self, deadline=self.deadline - seconds)

    def check(self) -> None:
        """Give up work that has no result yet, once the deadline has passed."""
        if not self.patient and self.over:
            raise OutOfTime("there was no time for it")


@dataclass
class Pace:
    """The durations of the steps of some work, to tell whether there is time for another one.

    Attributes
    ----------
    clock : Clock
        When the work has to end.
    first, latest : float
        Seconds of the first step, including everything before it, and of the latest.
    ended : float
        When the latest step ended.

    Examples
    --------
    >>> times = iter([0.0, 3.0, 3.0, 5.0, 5.0, 7.0, 7.0])
    >>> pace = Pace(Clock(8.5, lambda: next(times)))  # the last step would end at 9
    >>> for _ in range(3):
    ...     pace.step()
    ...     pace.goes_on()
    True
    True
    False
    >>> pace.first, pace.latest
    (3.0, 2.0)
    """

    clock: Clock
    first: float = 0.0
    latest: float = 0.0
    ended: float = field(init=False)
    _before: float = 0.0
    _n_steps: int = 0

    def __post_init__(self) -> None:
        self.ended = self.clock.now()

    @property
    def patient(self) -> bool:
        """Whether work continues until it has a useful result."""
        return self.clock.patient

    def step(self) -> None:
        """Record that a step has ended."""
        now = self.clock.now()
        took, self.ended = now - self.ended, now
        self._before = self.latest if self._n_steps > 1 else 0.0
        self.first, self.latest = (self.first if self._n_steps else took), took
        self._n_steps += 1

    def goes_on(self, reserve: float = 0.0) -> bool:
        """Return whether there is time for one more step.

        It may take as long as the slower of the last two; the first, which includes what came
        before it, counts half. `reserve` is the duration of the work after the last step. After
        Ctrl-C there is no time.
        """
        if interrupted():
            return False
        expected = max(self._before, self.latest) if self._n_steps > 1 else 0.5 * self.first
        return self.clock.left > expected + reserve
