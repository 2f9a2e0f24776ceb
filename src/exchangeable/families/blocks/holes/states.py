"""States of blocks in rows with missing entries, numbered so that passes look them up like counts.

In a block of m variables of which c are known to be on and h are missing, at most n = c + h are on.
The pair (n, c) is the block's *state*, number n(n + 1)/2 + c. Passes over complete rows look up the
number of ones of each block; passes over rows with missing entries look up its state, in tables
from which missing entries are summed out, and at the end the weight of the rows in each state is
converted to expected counts. Neither costs more than a few operations per state, since a missing
entry is either off or on: P(n, c) = P(n − 1, c) + P(n, c + 1).
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.common.tables import Tables
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.vectors import exponential, logarithm

_compile = compiled()

WIDEST = 690.0
"""Maximum difference of two entries of a block's table: beyond it, probabilities would underflow.
Blocks of about 900 variables reach it."""


def n_states(sizes: IntArray) -> IntArray:
    """Return the number of states of blocks of these sizes.

    >>> n_states(np.array([1, 2]))
    array([3, 6])
    """
    return (sizes + 1) * (sizes + 2) // 2


def lengths_of(tables: Tables) -> IntArray:
    """Return the number of entries of each block."""
    lengths = np.empty_like(tables.starts)
    lengths[:-1] = tables.starts[1:]
    lengths[-1:] = tables.values.size
    lengths -= tables.starts
    return lengths


def sizes_of(tables: Tables) -> IntArray:
    """Return the number of variables of each block."""
    return lengths_of(tables) - 1


def state_layout(tables: Tables) -> Tables:
    """Return tables with an entry for every state of the same blocks, with values not yet set."""
    ends = np.cumsum(n_states(sizes_of(tables)))
    starts = np.concatenate([[0], ends[:-1]])
    return replace(tables, starts=starts, values=np.empty(ends[-1]))


@dataclass(frozen=True)
class HoleStates:
    """The tables of all classes with missing entries summed out.

    Attributes
    ----------
    tables : Tables
        log P(state) of every block and state: the log-probability of its known entries.
    chances : array
        The same probabilities, up to a factor per block.
    """

    tables: Tables
    chances: FloatArray

    @classmethod
    def of(cls, tables: Tables) -> Self | None:
        """Sum missing entries out; None if the entries of a block's table differ too much."""
        states = state_layout(tables)
        chances = np.empty(states.values.size)
        if not _sum_out(tables.starts, tables.values, states.starts, chances, states.values):
            return None
        return cls(states, chances)

    def expected_counts(self, tables: Tables, by_state: FloatArray) -> FloatArray:
        """Return the expected weight of the rows by count, laid out as the tables.

        `by_state` has their weight by state, and is overwritten.
        """
        counts = np.zeros(tables.values.size)
        _fill_holes(tables.starts, counts, self.tables.starts, self.chances, by_state)
        return counts


@_compile
def _sum_out(starts, values, first_state, chances, log_chances):  # type: ignore[no-untyped-def]
    """Write the probability of every state, and its logarithm; return whether this was possible."""
    for b in range(starts.size):
        end = starts[b + 1] if b + 1 < starts.size else values.size
        table = values[starts[b] : end]
        highest, lowest = -np.inf, np.inf
        for count in range(table.size):
            highest = max(highest, table[count])
            if table[count] > -np.inf:
                lowest = min(lowest, table[count])
        if highest - lowest > WIDEST:
            return False
        scale = highest if highest > -np.inf else 0.0
        line, before = first_state[b], first_state[b]
        for n in range(table.size):
            known = table[n] > -np.inf
            chances[line + n] = exponential(table[n] - scale) if known else 0.0
            for c in range(n - 1, -1, -1):
                chances[line + c] = chances[line + c + 1] + chances[before + c]
            before, line = line, line + n + 1
        own, out = chances[first_state[b] : line], log_chances[first_state[b] : line]
        for state in range(own.size):
            possible = own[state] > 0.0
            value = logarithm(own[state] if possible else 1.0) + scale
            out[state] = value if possible else -np.inf
    return True


@_compile
def _fill_holes(starts, counts, first_state, chances, mass):  # type: ignore[no-untyped-def]
    """Move the mass of states with missing entries, one entry at a time, until none has any."""
    for b in range(starts.size):
        end = starts[b + 1] if b + 1 < starts.size else counts.size
        last = end - starts[b] - 1
        line = first_state[b] + last * (last + 1) // 2
        for n in range(last, -1, -1):
            before = line - n
            for c in range(n):
                if mass[line + c] > 0.0:
                    share = mass[line + c] / chances[line + c]
                    mass[line + c + 1] += share * chances[line + c + 1]
                    mass[before + c] += share * chances[before + c]
            counts[starts[b] + n] += mass[line + n]
            line = before
