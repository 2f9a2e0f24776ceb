"""Dynamic programmes over a finite automaton that reads variables and sums a total.

Everything here is a sum over paths: a path visits one state before each variable, reads a symbol,
moves on and adds to a running total. Symbols have log-weights, so the same code counts (weights 0
and −inf, for the evidence) and nests (weights that are themselves log-counts).
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.statistics.combinatorics import MAX_VALUES

MAX_STATES = 10_000
CELLS = 1 << 20
"""Number of counts of words, by state and total, that are held at once."""


@dataclass(frozen=True)
class Automaton:
    """Tables of a deterministic automaton whose start state is number 0.

    Attributes
    ----------
    moves : array of shape (n_states, n_symbols)
        The state after reading a symbol.
    gains : array of shape (n_states, n_symbols)
        The gain when the symbol is read.
    final : array of shape (n_states,)
        The gain for ending in a state.
    """

    moves: IntArray
    gains: IntArray
    final: IntArray

    def max_total(self, length: int) -> int:
        """Return the largest total any word of this length can reach."""
        best = np.full(len(self.final), -1)
        best[0] = 0
        for _ in range(length):
            after = np.full_like(best, -1)
            reached = best >= 0
            np.maximum.at(after, self.moves[reached], best[reached][:, None] + self.gains[reached])
            best = after
        return int((best + self.final)[best >= 0].max())

    def log_counts(self, log_weights: FloatArray, n_totals: int) -> list[FloatArray]:
        """Return tables B with B[i][s, r] = log weight of the suffixes from i, s that add r."""
        return list(self._count_back(log_weights, n_totals))[::-1]

    def log_totals(self, log_weights: FloatArray, n_totals: int) -> FloatArray:
        """Return the log weight of all words by their total: ``log_counts(...)[0][0]`` alone.

        Parameters
        ----------
        log_weights : array of shape (length, n_symbols)
            Log-weight of each symbol at each position.
        n_totals : int
            One more than the largest total of interest.
        """
        for table in self._count_back(log_weights, n_totals):
            first = table
        totals: FloatArray = first[0]
        return totals

    def count_words(self, allowed: npt.NDArray[np.bool_], n_totals: int) -> FloatArray:
        """Return the number of words by their total, for many sets of allowed symbols at once.

        Parameters
        ----------
        allowed : array of shape (n_sets, length, n_symbols)
            Whether a symbol may stand at a position.
        n_totals : int
            One more than the largest total of interest.
        """
        n_sets, n_states = len(allowed), len(self.final)
        size = max(1, CELLS // (n_states * n_totals))
        parts = [
            self._count_part(allowed[begin : begin + size], n_totals)
            for begin in range(0, n_sets, size)
        ]
        return np.concatenate(parts) if parts else np.empty((0, n_totals))

    def _count_part(self, allowed: npt.NDArray[np.bool_], n_totals: int) -> FloatArray:
        n_states = len(self.final)
        counts = np.zeros((n_states, n_totals, len(allowed)))
        counts[0, 0] = 1.0
        possible = allowed.astype(np.float64)
        for i in range(allowed.shape[1]):
            after = np.zeros_like(counts)
            for state, symbol in np.ndindex(self.moves.shape):
                gain = self.gains[state, symbol]
                if gain < n_totals:
                    with np.errstate(over="ignore", invalid="ignore"):
                        moved = counts[state, : n_totals - gain] * possible[:, i, symbol]
                        after[self.moves[state, symbol], gain:] += moved
            counts = after
        totals = np.zeros((n_totals, len(allowed)))
        for state, gain in enumerate(self.final):
            if gain < n_totals:
                with np.errstate(over="ignore", invalid="ignore"):
                    totals[gain:] += counts[state, : n_totals - gain]
        return np.ascontiguousarray(totals.T)

    def log_masses(self, log_weights: FloatArray, log_totals: FloatArray) -> FloatArray:
        """Return, per position and symbol, the log weight of the words that have it there.

        A word's weight is the product of its symbols' weights times exp(log_totals[total]).
        """
        n_totals, n_states = len(log_totals), len(self.final)
        ends = np.append(log_totals, -np.inf)
        last = ends[np.minimum(np.arange(n_totals) + self.final[:, None], n_totals)]
        sources = self._sources(n_totals, +1)
        after = list(self._sweep_back(log_weights, last, sources))[::-1]
        before = np.full((n_states, n_totals), -np.inf)
        before[0, 0] = 0.0
        masses = np.empty_like(log_weights)
        for i, weights in enumerate(log_weights):
            following = np.append(after[i + 1].ravel(), -np.inf)
            for symbol, source in enumerate(sources):
                through = np.logaddexp.reduce(before + following[source], axis=None)
                masses[i, symbol] = weights[symbol] + through
            before = self._advance(before, weights)
        return masses

    def walk(
        self,
        log_weights: FloatArray,
        tables: list[FloatArray],
        total: int,
        size: int,
        rng: np.random.Generator | None,
    ) -> IntArray:
        """Return words with the given total, drawn by weight, or the first one if `rng` is None."""
        words = np.empty((size, len(log_weights)), dtype=np.int64)
        state, left = np.zeros(size, np.int64), np.full(size, total)
        for i, weights in enumerate(log_weights):
            moves, remains = self.moves[state], left[:, None] - self.gains[state]
            chances = weights + tables[i + 1][moves, np.maximum(remains, 0)]
            chances = np.where(remains >= 0, chances, -np.inf)
            if rng is None:
                chosen = np.isfinite(chances).argmax(axis=1)
            else:
                steps = np.exp(chances - chances.max(axis=1, keepdims=True)).cumsum(axis=1)
                # In 1 − U, which is never 0, a symbol of weight 0 cannot be reached.
                mark = (1.0 - rng.random(size)) * steps[:, -1]
                chosen = (steps < mark[:, None]).sum(axis=1)
            words[:, i] = chosen
            rows = np.arange(size)
            state, left = moves[rows, chosen], remains[rows, chosen]
        return words

    def _sources(self, n_totals: int, direction: int) -> list[IntArray]:
        """Return, per symbol, where entry (s, c) of a table finds its value in the next table.

        Entries that would come from a total out of range point at a sentinel behind the table.
        """
        sources = []
        for symbol in range(self.moves.shape[1]):
            totals = np.arange(n_totals) + direction * self.gains[:, symbol, None]
            cells = self.moves[:, symbol, None] * n_totals + totals
            outside = (totals < 0) | (totals >= n_totals)
            sources.append(np.where(outside, len(self.final) * n_totals, cells))
        return sources

    def _count_back(self, log_weights: FloatArray, n_totals: int) -> Iterator[FloatArray]:
        """Yield the tables of `log_counts` from the last position to the first."""
        last = np.full((len(self.final), n_totals), -np.inf)
        inside = self.final < n_totals
        last[inside, self.final[inside]] = 0.0
        return self._sweep_back(log_weights, last, self._sources(n_totals, -1))

    def _sweep_back(
        self, log_weights: FloatArray, last: FloatArray, sources: list[IntArray]
    ) -> Iterator[FloatArray]:
        """Yield tables from the last position to the first, each made from the one after it."""
        table = last
        yield table
        for weights in log_weights[::-1]:
            following = np.append(table.ravel(), -np.inf)
            table = np.full(last.shape, -np.inf)
            for symbol, source in enumerate(sources):
                if weights[symbol] > -np.inf:
                    np.logaddexp(table, weights[symbol] + following[source], out=table)
            yield table

    def _advance(self, before: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the log weight of the prefixes that are one symbol longer, by state and total."""
        after = np.full(before.shape, -np.inf)
        n_totals = before.shape[1]
        for state, symbol in np.ndindex(self.moves.shape):
            gain = self.gains[state, symbol]
            if weights[symbol] > -np.inf and gain < n_totals:
                row = after[self.moves[state, symbol], gain:]
                np.logaddexp(row, weights[symbol] + before[state, : n_totals - gain], out=row)
        return after


def build_automaton(
    step: Callable[[Any, int], tuple[Hashable, int]],
    start: Hashable,
    final: Callable[[Any], int] | None,
    n_symbols: int,
) -> Automaton:
    """Tabulate the states reachable from `start` by breadth-first search."""
    for name, function in (("step", step), ("final", final)):
        if not (callable(function) or (name == "final" and function is None)):
            raise TypeError(f"{name} must be a function, got {function!r}")
    _check_hashable(start, "start is")
    number = {start: 0}
    states = [start]
    moves, gains = [], []
    for state in states:
        for symbol in range(n_symbols):
            after, gain = _take_step(step, state, symbol)
            _check_hashable(after, f"step({state!r}, {symbol}) goes to")
            if after not in number:
                number[after] = len(states)
                states.append(after)
                if len(states) > MAX_STATES:
                    raise ValueError(
                        f"step reaches more than {MAX_STATES:,} states from {start!r}; "
                        "a finite-state statistic needs few (does a state keep counting?)"
                    )
            moves.append(number[after])
            gains.append(_check_gain(gain, f"step({state!r}, {symbol}) adds"))
    ends = [0 if final is None else _check_gain(final(s), f"final({s!r}) is") for s in states]
    shape = (len(states), n_symbols)
    return Automaton(np.array(moves).reshape(shape), np.array(gains).reshape(shape), np.array(ends))


def _take_step(
    step: Callable[[Any, int], tuple[Hashable, int]], state: Hashable, symbol: int
) -> tuple[Hashable, int]:
    result = step(state, symbol)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError(
            f"step({state!r}, {symbol}) returned {result!r}; expected a pair (next state, gain)"
        )
    return result


def _check_hashable(state: Any, what: str) -> None:
    try:
        hash(state)
    except TypeError:
        raise TypeError(f"{what} {state!r}; expected a hashable state, e.g. a tuple") from None


def _check_gain(gain: Any, what: str) -> int:
    if not isinstance(gain, int | np.integer) or gain < 0:
        raise ValueError(f"{what} {gain!r}; expected an integer of at least 0")
    if gain > MAX_VALUES:
        raise ValueError(f"{what} {gain!r}, more than the {MAX_VALUES:,} values T may have")
    return int(gain)
