"""Statistics of totals: weighted sums, and whether a total is reached."""

from collections.abc import Sequence

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, SymbolArray, check_count
from exchangeable.statistics.base import Statistic
from exchangeable.statistics.counts import Count
from exchangeable.statistics.finite_state import FiniteState
from exchangeable.statistics.on_page import COUNTING, Told, told_automaton


class WeightedSum(FiniteState):
    """Σ weight·x over binary variables, for small whole numbers as weights.

    Examples
    --------
    A test whose items give 1, 2 or 3 points:

    >>> from exchangeable import WeightedSum
    >>> points = WeightedSum([1, 2, 3])
    >>> points.values.tolist()
    [0, 1, 2, 3, 4, 5, 6]
    >>> points.values[points.index([[1, 0, 1]])].tolist()
    [4]
    """

    def __init__(self, weights: Sequence[int]) -> None:
        given = np.asarray(weights)
        if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or given.min() < 0:
            raise ValueError(f"weights must be whole numbers of at least 0, got {weights!r}")
        self.weights = [int(weight) for weight in given]

        def step(read: int, x: int) -> tuple[int, int]:
            if read == len(self.weights):
                return read, 0
            return read + 1, self.weights[read] * x

        super().__init__(len(self.weights), step, start=0)

    def __repr__(self) -> str:
        return f"WeightedSum({self.weights})"


class AtLeast(Statistic):
    """Whether at least `minimum` of the binary variables are on.

    Examples
    --------
    >>> from exchangeable import AtLeast
    >>> import numpy as np
    >>> majority = AtLeast(3, minimum=2)
    >>> majority.index([[1, 1, 0], [0, 0, 1]]).tolist()
    [1, 0]
    >>> np.exp(majority.log_sizes()).round().tolist()
    [4.0, 4.0]
    """

    def __init__(self, n_variables: int, minimum: int) -> None:
        super().__init__(n_variables)
        self.minimum = check_count(minimum, "minimum")
        if self.minimum > self.n_variables:
            raise ValueError(
                f"minimum={self.minimum} is never reached by {self.n_variables} variables"
            )
        self._count = Count(self.n_variables)
        self._reached = (self._count.values >= self.minimum).astype(np.int64)

    @property
    def values(self) -> IntArray:
        """0 and 1."""
        return np.arange(2)

    def _index(self, X: IntArray) -> IntArray:
        return self._reached[self._count._index(X)]

    def _log_sizes(self, assigned: IntArray) -> FloatArray:
        sizes = self._count._log_sizes(assigned)
        return np.array([np.logaddexp.reduce(sizes[self._reached == t]) for t in (0, 1)])

    def _complete(self, position: int, assigned: IntArray) -> IntArray:
        return self._count._complete(self._counts(position, assigned)[0], assigned)

    def _draw(
        self, position: int, assigned: IntArray, size: int, rng: np.random.Generator
    ) -> SymbolArray:
        counts = self._counts(position, assigned)
        sizes = self._count._log_sizes(assigned)[counts]
        chance = np.exp(sizes - np.logaddexp.reduce(sizes))
        chosen = rng.choice(counts, size=size, p=chance / chance.sum())
        draws = np.empty((size, self.n_variables), dtype=self._dtype)
        for count in np.unique(chosen):
            rows = np.flatnonzero(chosen == count)
            draws[rows] = self._count._draw(int(count), assigned, rows.size, rng)
        return draws

    def _counts(self, position: int, assigned: IntArray) -> IntArray:
        """Return the possible numbers of ones of completions with this value."""
        possible = np.isfinite(self._count._log_sizes(assigned))
        return np.flatnonzero(possible & (self._reached == position))

    def _log_masses(self, log_weights: FloatArray, assigned: IntArray) -> FloatArray:
        return self._count._log_masses(log_weights[self._reached], assigned)

    def _on_page(self) -> Told:
        return told_automaton(COUNTING, self.n_variables, self._reached)

    def __repr__(self) -> str:
        return f"AtLeast({self.n_variables}, minimum={self.minimum})"
