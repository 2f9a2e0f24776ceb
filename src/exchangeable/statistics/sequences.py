"""Statistics of sequences, in which the order of variables matters."""

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.statistics.automaton import MAX_STATES, build_automaton
from exchangeable.statistics.base import Statistic
from exchangeable.statistics.combinatorics import check_n_values
from exchangeable.statistics.finite_state import FiniteState
from exchangeable.statistics.on_page import Told, told_automaton

ROUNDING = 1e-13
"""Differences of counts that are less than this share of them are rounding errors."""


class Runs(FiniteState):
    """The number of runs of equal symbols.

    Examples
    --------
    >>> from exchangeable import Runs
    >>> runs = Runs(5)
    >>> runs.values[runs.index([[0, 0, 1, 1, 0], [1, 1, 1, 1, 1]])].tolist()
    [3, 1]
    """

    def __init__(self, n_variables: int) -> None:
        super().__init__(n_variables, lambda last, x: (x, int(x != last)), start=None)

    def __repr__(self) -> str:
        return f"Runs({self.n_variables})"


class FirstAndLast(FiniteState):
    """The first and the last variable, as the number 2·first + last.

    Examples
    --------
    >>> from exchangeable import FirstAndLast
    >>> ends = FirstAndLast(4)
    >>> ends.values[ends.index([[1, 0, 0, 0], [0, 1, 1, 1]])].tolist()
    [2, 1]
    """

    def __init__(self, n_variables: int) -> None:
        super().__init__(
            n_variables,
            lambda ends, x: ((x if ends is None else ends[0], x), 0),
            start=None,
            final=lambda ends: 0 if ends is None else 2 * ends[0] + ends[1],
        )

    def __repr__(self) -> str:
        return f"FirstAndLast({self.n_variables})"


class SecondOrderTransitions(FiniteState):
    """How often 001 and 101 occur as substrings: transitions, by the symbol before them.

    Two sequences with equal `Transitions` differ here if a one tends to return soon after it ended.
    A value is a pair of numbers.

    Examples
    --------
    >>> from exchangeable import SecondOrderTransitions
    >>> steps = SecondOrderTransitions(6)
    >>> steps.values[steps.index([[0, 0, 1, 0, 1, 0]])].tolist()
    [[1, 1]]
    """

    def __init__(self, n_variables: int) -> None:
        self._base = check_n_values(int(n_variables) // 2 + 1, "the number of transitions")

        def step(last: tuple[int, ...], x: int) -> tuple[tuple[int, ...], int]:
            word = (*last, x)
            gain = self._base * int(word == (0, 0, 1)) + int(word == (1, 0, 1))
            return (*last[-1:], x), gain

        super().__init__(n_variables, step, start=())

    @property
    def values(self) -> IntArray:
        """The pairs of numbers that some assignment has."""
        return np.stack([self._values // self._base, self._values % self._base], axis=1)

    def __repr__(self) -> str:
        return f"SecondOrderTransitions({self.n_variables})"


class LongestRun(Statistic):
    """The length of the longest run of ones.

    Examples
    --------
    >>> from exchangeable import LongestRun
    >>> import numpy as np
    >>> longest = LongestRun(4)
    >>> longest.index([[1, 1, 0, 1], [0, 0, 0, 0]]).tolist()
    [2, 0]
    >>> np.exp(longest.log_sizes()).round().tolist()
    [1.0, 7.0, 5.0, 2.0, 1.0]
    """

    def __init__(self, n_variables: int) -> None:
        super().__init__(n_variables)
        self._values = np.arange(check_n_values(self.n_variables + 1, repr(self)))

    @property
    def values(self) -> IntArray:
        """The lengths 0, 1, …, `n_variables`."""
        return self._values

    def _index(self, X: IntArray) -> IntArray:
        run, longest = np.zeros((2, len(X)), dtype=np.int64)
        for symbols in X.T:
            run = (run + 1) * symbols
            np.maximum(longest, run, out=longest)
        return longest

    def _log_sizes(self, assigned: IntArray) -> FloatArray:
        """Count the words that have no run longer than l, for all l at once, and subtract.

        An entry [l, r] of the table counts those that end in r ones.
        """
        n, scale = self.n_variables, 0.0
        ends = np.zeros((n + 1, n + 1))
        ends[:, 0] = 1.0
        allowed = np.tri(n + 1)[:, 1:]
        for symbol in assigned:
            after = np.zeros_like(ends)
            if symbol != 1:
                after[:, 0] = ends.sum(axis=1)
            if symbol != 0:
                after[:, 1:] = ends[:, :-1] * allowed
            largest = after.max()
            ends = after / largest
            scale += float(np.log(largest))
        at_most = ends.sum(axis=1)
        sizes = np.diff(at_most, prepend=0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(sizes > ROUNDING * at_most, sizes, 0.0)) + scale)

    def _complete(self, position: int, assigned: IntArray) -> IntArray:
        return self._exactly(position)._complete(1, assigned)

    def _draw(
        self, position: int, assigned: IntArray, size: int, rng: np.random.Generator
    ) -> SymbolArray:
        return self._exactly(position)._draw(1, assigned, size, rng)

    def _exactly(self, length: int) -> FiniteState:
        """Return the statistic that is 1 if the longest run has a given length, else 0."""

        def step(state: tuple[int, bool], x: int) -> tuple[tuple[int, bool], int]:
            run = (state[0] + 1) * x
            if state[0] > length or run > length:
                return (length + 1, False), 0
            return (run, state[1] or run == length), 0

        start = (0, length == 0)
        return FiniteState(self.n_variables, step, start, final=lambda state: int(state[1]))

    def _on_page(self) -> Told | None:
        """Return an automaton whose states are the current run, and the longest so far."""
        n = self.n_variables
        if (n + 1) * (n + 2) // 2 > MAX_STATES:
            return None

        def step(state: tuple[int, int], x: int) -> tuple[tuple[int, int], int]:
            run = min(state[0] + 1, n) * x
            return (run, max(run, state[1])), 0

        reader = build_automaton(step, (0, 0), lambda state: state[1], 2)
        return told_automaton(reader, n, self._values)

    def __repr__(self) -> str:
        return f"LongestRun({self.n_variables})"
