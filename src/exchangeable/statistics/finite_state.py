"""Statistics computed by a small automaton that reads the variables in order."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray, SymbolArray
from exchangeable.statistics.automaton import build_automaton
from exchangeable.statistics.base import Statistic
from exchangeable.statistics.combinatorics import check_n_values
from exchangeable.statistics.on_page import Told, told_automaton


class FiniteState(Statistic):
    """Any statistic computed by a finite automaton that reads the variables in order.

    The automaton begins in `start`. When it reads the symbol x in state s, ``step(s, x)`` returns
    the next state and a gain, which is added to the total; at the end, ``final(s)`` is added. T is
    the total. States can be any hashable objects; those reachable from `start` are found by trying
    all symbols. Counting, completing and sampling are dynamic programmes that cost O(n_variables ·
    n_values · states).

    Parameters
    ----------
    n_variables : int
        Number of variables.
    step : callable
        ``step(state, symbol)`` returns the next state and a gain of at least 0.
    start : hashable
        The state before the first variable.
    final : callable, optional
        ``final(state)`` is added at the end; 0 by default.
    n_symbols : int, default=2
        Number of values each variable can take.

    Examples
    --------
    The number of runs of equal symbols:

    >>> from exchangeable import FiniteState
    >>> import numpy as np
    >>> runs = FiniteState(4, lambda last, x: (x, int(x != last)), start=None)
    >>> runs.values.tolist()
    [1, 2, 3, 4]
    >>> np.exp(runs.log_sizes()).round().tolist()
    [2.0, 6.0, 6.0, 2.0]

    Parity, which is known only at the end:

    >>> parity = FiniteState(4, lambda odd, x: (odd ^ x, 0), start=0, final=lambda odd: odd)
    >>> parity.index([[1, 1, 1, 0], [1, 1, 0, 0]]).tolist()
    [1, 0]
    """

    def __init__(
        self,
        n_variables: int,
        step: Callable[[Any, int], tuple[Hashable, int]],
        start: Hashable,
        *,
        final: Callable[[Any], int] | None = None,
        n_symbols: int = 2,
    ) -> None:
        super().__init__(n_variables, n_symbols)
        self._automaton = build_automaton(step, start, final, self.n_symbols)
        n_totals = self._automaton.max_total(self.n_variables) + 1
        self._n_totals = check_n_values(n_totals, f"a total of up to {n_totals - 1}")
        anything = np.zeros((self.n_variables, self.n_symbols))
        sizes = self._automaton.log_totals(anything, self._n_totals)
        self._values = np.flatnonzero(np.isfinite(sizes))

    @property
    def values(self) -> IntArray:
        """The totals that some assignment reaches."""
        return self._values

    @property
    def n_states(self) -> int:
        """Number of states of the automaton."""
        return len(self._automaton.final)

    def _index(self, X: IntArray) -> IntArray:
        state, total = np.zeros((2, len(X)), dtype=np.int64)
        for symbols in X.T:
            total += self._automaton.gains[state, symbols]
            state = self._automaton.moves[state, symbols]
        total += self._automaton.final[state]
        return np.searchsorted(self._values, total)

    def _log_sizes(self, assigned: IntArray) -> FloatArray:
        return self._weighted_log_sizes(self._indicator(assigned))

    def _log_sizes_each(self, rows: IntArray) -> FloatArray:
        allowed = (rows[:, :, None] == UNASSIGNED) | (rows[:, :, None] == np.arange(self.n_symbols))
        counts = self._automaton.count_words(allowed, self._n_totals)[:, self._values]
        if not np.isfinite(counts).all():  # more words than a float can count
            return super()._log_sizes_each(rows)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(counts))

    def _complete(self, position: int, assigned: IntArray) -> IntArray:
        return self._weighted_words(self._indicator(assigned), position, 1, None).ravel()

    def _draw(
        self, position: int, assigned: IntArray, size: int, rng: np.random.Generator
    ) -> SymbolArray:
        return self._weighted_words(self._indicator(assigned), position, size, rng)

    def _log_masses(self, log_weights: FloatArray, assigned: IntArray) -> FloatArray:
        return self._weighted_log_masses(log_weights, self._indicator(assigned))

    def _indicator(self, assigned: IntArray) -> FloatArray:
        """Return evidence as log-weights of symbols: 0 for those it allows, −inf for the others."""
        allowed = (assigned[:, None] == UNASSIGNED) | (
            assigned[:, None] == np.arange(self.n_symbols)
        )
        return np.where(allowed, 0.0, -np.inf)

    # The same three programmes with any log-weights, as needed for nesting.

    def _weighted_log_sizes(self, symbol_weights: FloatArray) -> FloatArray:
        return self._automaton.log_totals(symbol_weights, self._n_totals)[self._values]

    def _weighted_words(
        self,
        symbol_weights: FloatArray,
        position: int,
        size: int,
        rng: np.random.Generator | None,
    ) -> IntArray:
        total = int(self._values[position])
        tables = self._automaton.log_counts(symbol_weights, total + 1)
        return self._automaton.walk(symbol_weights, tables, total, size, rng)

    def _weighted_log_masses(
        self, log_weights: FloatArray, symbol_weights: FloatArray
    ) -> FloatArray:
        log_totals = np.full(self._n_totals, -np.inf)
        log_totals[self._values] = log_weights
        return self._automaton.log_masses(symbol_weights, log_totals)

    def _on_page(self) -> Told:
        place = np.full(self._n_totals, -1)
        place[self._values] = np.arange(self._values.size)
        return told_automaton(self._automaton, self.n_variables, place)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_variables} variables, {self.n_states} states)"


class Transitions(FiniteState):
    """The number of times 01 occurs as a substring of the variables.

    Examples
    --------
    >>> from exchangeable import Transitions
    >>> steps = Transitions(8)
    >>> steps.values[steps.index([[1, 1, 0, 1, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]])].tolist()
    [1, 4]
    """

    def __init__(self, n_variables: int) -> None:
        super().__init__(n_variables, lambda last, x: (x, int((last, x) == (0, 1))), start=1)

    def __repr__(self) -> str:
        return f"Transitions({self.n_variables})"
