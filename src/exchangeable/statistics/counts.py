"""The number of variables that are on: among all of them, or in each block."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray, SymbolArray
from exchangeable.partitions import check_partition
from exchangeable.statistics.automaton import Automaton
from exchangeable.statistics.base import Statistic
from exchangeable.statistics.combinatorics import check_n_values, log_binomial, log_divide
from exchangeable.statistics.on_page import COUNTING, Told, told_automaton


class Count(Statistic):
    """The number of ones among `n_variables` binary variables: full finite exchangeability.

    Examples
    --------
    >>> from exchangeable import Count
    >>> import numpy as np
    >>> count = Count(3)
    >>> np.exp(count.log_sizes()).round().tolist()
    [1.0, 3.0, 3.0, 1.0]
    >>> count.complete(2, evidence={0: 0}).tolist()
    [0, 1, 1]
    """

    def __init__(self, n_variables: int) -> None:
        super().__init__(n_variables)
        check_n_values(self.n_values, repr(self))

    @property
    def n_values(self) -> int:
        """Number of distinct counts."""
        return self.n_variables + 1

    @property
    def values(self) -> IntArray:
        """The counts 0, 1, …, `n_variables`."""
        return np.arange(self.n_values)

    def _index(self, X: IntArray) -> IntArray:
        return np.asarray(X.sum(axis=1))

    def _log_sizes(self, assigned: IntArray) -> FloatArray:
        free = np.count_nonzero(assigned == UNASSIGNED)
        return log_binomial(free, self.values - np.count_nonzero(assigned == 1))

    def _complete(self, position: int, assigned: IntArray) -> IntArray:
        free = np.flatnonzero(assigned == UNASSIGNED)
        completed = np.where(assigned == UNASSIGNED, 0, assigned)
        completed[free[: position - np.count_nonzero(assigned == 1)]] = 1
        return completed

    def _draw(
        self, position: int, assigned: IntArray, size: int, rng: np.random.Generator
    ) -> SymbolArray:
        return self._shuffle_free(self._complete(position, assigned), assigned, size, rng)

    def _log_masses(self, log_weights: FloatArray, assigned: IntArray) -> FloatArray:
        on, free = np.count_nonzero(assigned == 1), np.count_nonzero(assigned == UNASSIGNED)
        left = self.values - on
        masses = np.full((self.n_variables, 2), -np.inf)
        for symbol, slots in ((0, left), (1, left - 1)):
            sizes = log_binomial(free - 1, slots)
            masses[assigned == UNASSIGNED, symbol] = np.logaddexp.reduce(log_weights + sizes)
            total = np.logaddexp.reduce(log_weights + log_binomial(free, left))
            masses[assigned == symbol, symbol] = total
        return masses

    def _on_page(self) -> Told:
        return told_automaton(COUNTING, self.n_variables, self.values)

    def __repr__(self) -> str:
        return f"Count({self.n_variables})"


class BlockCounts(Statistic):
    """The vector of counts over given blocks of binary variables.

    Parameters
    ----------
    blocks : sequence of sequences of int
        A partition of the variables 0..n − 1.

    Examples
    --------
    >>> from exchangeable import BlockCounts
    >>> blocks = BlockCounts([[0, 2], [1]])
    >>> blocks.values.tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]
    >>> blocks.index([[1, 1, 0]]).tolist()
    [3]
    """

    def __init__(self, blocks: Iterable[Sequence[int]]) -> None:
        self.blocks = check_partition(blocks)
        super().__init__(sum(map(len, self.blocks)))
        self._counts = [Count(len(block)) for block in self.blocks]
        self._shape = tuple(count.n_values for count in self._counts)
        width = len(self.blocks)
        check_n_values(self.n_values, f"BlockCounts over {width} blocks", width)

    @property
    def n_values(self) -> int:
        """Number of distinct vectors of counts."""
        return math.prod(self._shape)

    @cached_property
    def values(self) -> IntArray:
        """All vectors of counts, one per row, in lexicographic order."""
        return np.indices(self._shape).reshape(len(self.blocks), -1).T

    def _index(self, X: IntArray) -> IntArray:
        counts = [X[:, block].sum(axis=1) for block in self.blocks]
        return np.asarray(np.ravel_multi_index(counts, self._shape), dtype=np.int64)

    def _log_sizes(self, assigned: IntArray) -> FloatArray:
        total = np.zeros(self.n_values)
        for b, sizes in enumerate(self._block_log_sizes(assigned)):
            total += sizes[self.values[:, b]]
        return total

    def _block_log_sizes(self, assigned: IntArray) -> list[FloatArray]:
        return [
            count._log_sizes(assigned[block])
            for count, block in zip(self._counts, self.blocks, strict=True)
        ]

    def _complete(self, position: int, assigned: IntArray) -> IntArray:
        completed = assigned.copy()
        for b, (count, block) in enumerate(zip(self._counts, self.blocks, strict=True)):
            completed[block] = count._complete(self.values[position, b], assigned[block])
        return completed

    def _draw(
        self, position: int, assigned: IntArray, size: int, rng: np.random.Generator
    ) -> SymbolArray:
        draws = np.empty((size, self.n_variables), dtype=self._dtype)
        for b, (count, block) in enumerate(zip(self._counts, self.blocks, strict=True)):
            ones = int(self.values[position, b])
            draws[:, block] = count._draw(ones, assigned[block], size, rng)
        return draws

    def _log_masses(self, log_weights: FloatArray, assigned: IntArray) -> FloatArray:
        joint = (log_weights + self._log_sizes(assigned)).reshape(self._shape)
        masses = np.empty((self.n_variables, 2))
        sizes = self._block_log_sizes(assigned)
        for b, (count, block) in enumerate(zip(self._counts, self.blocks, strict=True)):
            others = tuple(axis for axis in range(joint.ndim) if axis != b)
            # The contribution of the other blocks to each count of this one.
            outside = log_divide(logsumexp(joint, axis=others), sizes[b])
            masses[block] = count._log_masses(outside, assigned[block])
        return masses

    def _on_page(self) -> Told:
        """Return an automaton that keeps track of the next variable, and so of its gain."""
        gains = np.zeros((self.n_variables + 1, 2), dtype=np.int64)
        for b, block in enumerate(self.blocks):
            gains[block, 1] = math.prod(self._shape[b + 1 :])
        moves = np.minimum(np.arange(self.n_variables + 1) + 1, self.n_variables)
        final = np.zeros(self.n_variables + 1, dtype=np.int64)
        reader = Automaton(np.stack([moves, moves], axis=1), gains, final)
        return told_automaton(reader, self.n_variables, np.arange(self.n_values))

    def __repr__(self) -> str:
        return f"BlockCounts({len(self.blocks)} blocks of {self.n_variables} variables)"
