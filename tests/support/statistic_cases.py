"""Every statistic of the library in a few sizes, each with T written out for a single row."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from exchangeable import (
    AtLeast,
    BlockCounts,
    CategoricalCounts,
    Count,
    FiniteState,
    FirstAndLast,
    LongestRun,
    Nested,
    Pooled,
    Runs,
    SecondOrderTransitions,
    Transitions,
    WeightedSum,
)


@dataclass
class Case:
    """A statistic and a plain function that gives its value for one row."""

    statistic: Any
    value_of: Any

    def __repr__(self):
        return repr(self.statistic)


def count(n):
    return Case(Count(n), sum)


def block_counts(sizes, seed):
    order = np.random.default_rng(seed).permutation(sum(sizes))
    blocks = np.split(order, np.cumsum(sizes)[:-1])
    return Case(BlockCounts(blocks), lambda x: tuple(int(sum(x[b])) for b in blocks))


def transitions(n):
    return Case(Transitions(n), lambda x: sum((a, b) == (0, 1) for a, b in pairwise(x)))


def categorical(n, v):
    return Case(
        CategoricalCounts(n, n_symbols=v), lambda x: tuple(list(x).count(s) for s in range(v))
    )


def pooled(n, k, tau):
    def value_of(x):
        image = np.reshape(x, (n, n))
        corners = range(0, n, k)
        return sum(int(image[i : i + k, j : j + k].sum() > tau) for i in corners for j in corners)

    return Case(Pooled(n, k, tau), value_of)


def parity(n):
    statistic = FiniteState(n, lambda odd, x: (odd ^ x, 0), start=0, final=lambda odd: odd)
    return Case(statistic, lambda x: sum(x) % 2)


def runs(n, v=2):
    statistic = FiniteState(n, lambda last, x: (x, int(x != last)), start=None, n_symbols=v)
    return Case(statistic, lambda x: 1 + sum(a != b for a, b in pairwise(x)))


def at_least(n, m):
    statistic = FiniteState(
        n, lambda c, x: (min(c + x, m), 0), start=0, final=lambda c: int(c == m)
    )
    return Case(statistic, lambda x: int(sum(x) >= m))


def second_order(n):
    """How often 1 follows 01: totals with a gap of states, gains that depend on two symbols."""
    statistic = FiniteState(
        n, lambda s, x: ((s[1], x), 3 * int((*s, x) == (0, 1, 1))), start=(None, None)
    )
    return Case(
        statistic,
        lambda x: 3 * sum(tuple(x[i : i + 3]) == (0, 1, 1) for i in range(len(x) - 2)),
    )


def longest_run(n):
    return Case(LongestRun(n), lambda x: max(map(len, "".join(map(str, x)).split("0"))))


def ready_made():
    """The statistics that are ready to use, each beside what it says in plain words."""
    triples = lambda x: list(zip(x, x[1:], x[2:], strict=False))  # noqa: E731
    weights = [2, 0, 1, 3, 1]
    return [
        longest_run(1),
        longest_run(6),
        Case(Runs(5), lambda x: 1 + sum(a != b for a, b in pairwise(x))),
        Case(FirstAndLast(1), lambda x: 3 * x[0]),
        Case(FirstAndLast(5), lambda x: 2 * x[0] + x[-1]),
        Case(
            SecondOrderTransitions(7),
            lambda x: (triples(list(x)).count((0, 0, 1)), triples(list(x)).count((1, 0, 1))),
        ),
        Case(SecondOrderTransitions(1), lambda x: (0, 0)),
        Case(AtLeast(6, 3), lambda x: int(sum(x) >= 3)),
        Case(AtLeast(2, 2), lambda x: int(sum(x) >= 2)),
        Case(WeightedSum(weights), lambda x: int(np.dot(weights, x))),
    ]


def nested_mixed():
    """An outer automaton over inner statistics of different kinds, in scattered groups."""
    outer = FiniteState(3, lambda last, x: (x, int(x > last)), start=0, n_symbols=3)
    groups = [[5, 0], [1, 3, 7, 4], [2, 6]]
    inner = [Count(2), Transitions(4), Count(2)]

    def value_of(x):
        x = np.asarray(x)
        row = x[groups[1]]
        symbols = [sum(x[groups[0]]), transitions(4).value_of(row), sum(x[groups[2]])]
        return sum(b > a for a, b in pairwise([0, *symbols]))

    return Case(Nested(outer, inner, groups), value_of)


CASES = [
    count(1),
    count(5),
    block_counts([2, 1, 3], seed=0),
    block_counts([4], seed=1),
    transitions(1),
    transitions(2),
    transitions(7),
    categorical(4, 3),
    categorical(3, 4),
    pooled(4, 2, 0),
    pooled(2, 2, 2),
    pooled(3, 1, 0),
    parity(5),
    runs(6),
    runs(4, v=3),
    at_least(6, 3),
    second_order(7),
    nested_mixed(),
    *ready_made(),
]


def any_case():
    """A hypothesis strategy for statistics of up to 12 binary variables (fewer if not binary)."""
    small = st.integers(1, 9)
    return st.one_of(
        st.integers(1, 12).map(count),
        st.builds(
            block_counts,
            st.lists(st.integers(1, 3), min_size=1, max_size=3),
            seed=st.integers(0, 99),
        ),
        st.integers(1, 12).map(transitions),
        st.builds(categorical, st.integers(1, 5), st.integers(2, 4)),
        st.sampled_from([(2, 1, 0), (2, 2, 0), (2, 2, 3), (3, 3, 4), (3, 1, 0)]).map(
            lambda p: pooled(*p)
        ),
        small.map(parity),
        st.builds(runs, st.integers(1, 6), st.integers(2, 3)),
        st.builds(at_least, small, st.integers(0, 4)),
        small.map(second_order),
    )


def any_evidence(statistic):
    """A hypothesis strategy for evidence as an array with NaN where a variable is unassigned."""
    entry = st.one_of(st.just(np.nan), st.integers(0, statistic.n_symbols - 1).map(float))
    size = statistic.n_variables
    return st.lists(entry, min_size=size, max_size=size).map(np.array)
