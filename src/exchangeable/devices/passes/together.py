"""Runs of EM that make their passes together, by one program for all that are waiting."""

import threading
from collections.abc import Callable, Hashable, Sequence
from types import TracebackType
from typing import Any

FEWER = 4
"""A pass is made for all runs, or for one in this many of them, so that few shapes are compiled."""
LONGEST_WAIT = 1.0
"""Seconds that the first run waits for the others."""


class Request:
    """A request of a run: parameters of a pass, and its result."""

    def __init__(self, key: Hashable, given: Any, make: Callable[[Sequence[Any]], Any]) -> None:
        self.key, self.given, self.make = key, given, make
        self.found: Any = None
        self.error: BaseException | None = None
        self.done = False


class Together:
    """Where runs meet. Each is a member as long as it runs (``with together:``).

    When every member waits for a pass, requests of the same kind are served by one call.

    Parameters
    ----------
    most : int
        Largest number of members at a time.
    threads : int
        Maximum number of members that work at a time while they do not wait.

    Attributes
    ----------
    memo : dict
        What passes keep for all members.
    """

    def __init__(self, most: int, threads: int) -> None:
        self.most, self.memo = most, dict[Any, Any]()
        self._tickets = threading.Semaphore(threads)
        self._changed = threading.Condition()
        self._members, self._waiting, self._begun = 0, list[Request](), False

    def __enter__(self) -> "Together":
        with self._changed:
            self._members += 1
            self._begun |= self._members == self.most
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._begun, LONGEST_WAIT)
            self._begun = True
        self._tickets.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tickets.release()
        with self._changed:
            self._members -= 1
            self._changed.notify_all()

    def ask(self, key: Hashable, given: Any, make: Callable[[Sequence[Any]], Any]) -> Any:
        """Return the result of a pass, which is made when all members wait for one.

        Parameters
        ----------
        key : hashable
            What passes must have in common to be made together.
        given : Any
            The parameters of this pass.
        make : callable
            Returns the results for some parameters, in order.
        """
        request = Request(key, given, make)
        self._tickets.release()
        try:
            with self._changed:
                self._waiting.append(request)
                self._changed.notify_all()
                while not request.done:
                    if len(self._waiting) == self._members:
                        self._make_all()
                    else:
                        self._changed.wait()
        finally:
            self._tickets.acquire()
        if request.error is not None:
            raise request.error
        return request.found

    def _padded(self, given: Sequence[Any]) -> Sequence[Any]:
        """Return parameters, padded with copies of the last to one of a few sizes.

        >>> together = Together(8, 1)
        >>> [len(together._padded([0] * count)) for count in (8, 3, 2, 1)]
        [8, 8, 2, 1]
        """
        sizes = {1, max(1, self.most // FEWER), self.most}
        size = min(each for each in sizes if each >= len(given))
        return [*given, *[given[-1]] * (size - len(given))]

    def _make_all(self) -> None:
        """Make all requested passes."""
        asked, self._waiting = self._waiting, []
        by_key = dict[Hashable, list[Request]]()
        for request in asked:
            by_key.setdefault(request.key, []).append(request)
        for requests in by_key.values():
            try:
                found = requests[0].make(self._padded([request.given for request in requests]))
                for request, one in zip(requests, found, strict=False):
                    request.found = one
            except Exception as error:
                for request in requests:
                    request.error = error
            for request in requests:
                request.done = True
        self._changed.notify_all()


def make_pass(
    together: Together | None, key: Hashable, given: Any, make: Callable[[Sequence[Any]], Any]
) -> Any:
    """Return the result of a pass, made with those of other runs if some go together."""
    return make([given])[0] if together is None else together.ask(key, given, make)
