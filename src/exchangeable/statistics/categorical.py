"""The counts of the values of variables with more than two values."""

import math
from functools import cached_property

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray, SymbolArray
from exchangeable.statistics.base import Statistic
from exchangeable.statistics.combinatorics import check_n_values, log_multinomial
from exchangeable.statistics.on_page import COUNTING, Told, told_automaton


class CategoricalCounts(Statistic):
    """The vector of counts of each of `n_symbols` values: exchangeable discrete variables.

    Examples
    --------
    >>> from exchangeable import CategoricalCounts
    >>> dice = CategoricalCounts(2, n_symbols=3)
    >>> dice.values.tolist()
    [[0, 0, 2], [0, 1, 1], [0, 2, 0], [1, 0, 1], [1, 1, 0], [2, 0, 0]]
    >>> dice.complete([1, 0, 1]).tolist()
    [0, 2]
    """

    def __init__(self, n_variables: int, n_symbols: int) -> None:
        super().__init__(n_variables, n_symbols)
        n, v = self.n_variables, self.n_symbols
        check_n_values(self.n_values, f"CategoricalCounts({n}, n_symbols={v})", width=v)
        # compositions[r, p]: the number of ways in which p + 1 parts sum to r.
        self._compositions = np.array(
            [[math.comb(r + p, p) for p in range(v)] for r in range(n + 1)], dtype=np.int64
        )

    @property
    def n_values(self) -> int:
        """Number of distinct vectors of counts."""
        return math.comb(self.n_variables + self.n_symbols - 1, self.n_symbols - 1)

    @cached_property
    def values(self) -> IntArray:
        """All vectors of counts that add up to `n_variables`, in lexicographic order."""
        return self._unrank(np.arange(self.n_values))

    def _unrank(self, rank: IntArray) -> IntArray:
        """Return the vectors of counts at the given positions of the lexicographic order."""
        counts = np.zeros((rank.size, self.n_symbols), dtype=np.int64)
        left = np.full(rank.size, self.n_variables)
        for part in range(self.n_symbols - 1):
            ways = self._compositions[:, self.n_symbols - 1 - part]
            # The last `left - count` for which enough compositions remain after it.
            after = np.searchsorted(ways, ways[left] - rank, side="left")
            counts[:, part] = left - after
            rank = rank - (ways[left] - ways[after])
            left = after
        counts[:, -1] = left
        return counts

    def _rank(self, counts: IntArray) -> IntArray:
        """Return the position of each vector of counts in the lexicographic order."""
        rank = np.zeros(len(counts), dtype=np.int64)
        left = np.full(len(counts), self.n_variables)
        for part in range(self.n_symbols - 1):
            ways = self._compositions[:, self.n_symbols - 1 - part]
            rank += ways[left] - ways[left - counts[:, part]]
            left = left - counts[:, part]
        return rank

    def _index(self, X: IntArray) -> IntArray:
        counts = [np.count_nonzero(symbol == X, axis=1) for symbol in range(self.n_symbols)]
        return self._rank(np.stack(counts, axis=1))

    def _left(self, assigned: IntArray) -> IntArray:
        """Return, per value of T, how often each symbol must still occur given the evidence."""
        return self.values - np.bincount(assigned[assigned != UNASSIGNED], minlength=self.n_symbols)

    def _log_sizes(self, assigned: IntArray) -> FloatArray:
        return log_multinomial(self._left(assigned))

    def _complete(self, position: int, assigned: IntArray) -> IntArray:
        completed = assigned.copy()
        left = self._left(assigned)[position]
        completed[assigned == UNASSIGNED] = np.repeat(np.arange(self.n_symbols), left)
        return completed

    def _draw(
        self, position: int, assigned: IntArray, size: int, rng: np.random.Generator
    ) -> SymbolArray:
        return self._shuffle_free(self._complete(position, assigned), assigned, size, rng)

    def _log_masses(self, log_weights: FloatArray, assigned: IntArray) -> FloatArray:
        left = self._left(assigned)
        masses = np.full((self.n_variables, self.n_symbols), -np.inf)
        total = np.logaddexp.reduce(log_weights + log_multinomial(left))
        for symbol in range(self.n_symbols):
            masses[assigned == symbol, symbol] = total
            left[:, symbol] -= 1
            mass = np.logaddexp.reduce(log_weights + log_multinomial(left))
            masses[assigned == UNASSIGNED, symbol] = mass
            left[:, symbol] += 1
        return masses

    def _on_page(self) -> Told | None:
        if self.n_symbols != 2:
            return None
        rows = np.tri(self.n_variables + 1, self.n_variables, -1, dtype=np.int64)
        return told_automaton(COUNTING, self.n_variables, self._index(rows))

    def __repr__(self) -> str:
        return f"CategoricalCounts({self.n_variables}, n_symbols={self.n_symbols})"
