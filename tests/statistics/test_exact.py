"""Particular statistics: sizes the paper gives, costs at scale, and constructor errors."""

import math

import numpy as np
import pytest

from exchangeable import (
    BlockCounts,
    CategoricalCounts,
    Count,
    FiniteState,
    Nested,
    Pooled,
    Transitions,
)


def test_count_of_fifty_thousand_variables():
    log_sizes = Count(50_000).log_sizes({3: 1, 4: 0})
    assert log_sizes[0] == -np.inf
    assert log_sizes[1] == 0
    np.testing.assert_allclose(log_sizes[3], math.log(math.comb(49_998, 2)), rtol=1e-9)
    np.testing.assert_allclose(np.logaddexp.reduce(log_sizes), 49_998 * math.log(2), rtol=1e-12)


def test_transitions_of_two_thousand_variables():
    """The number of strings with t substrings 01 is C(n + 1, 2t + 1)."""
    statistic = Transitions(2000)
    assert statistic.n_values == 1001
    expected = [math.log(math.comb(2001, 2 * t + 1)) for t in range(1001)]
    np.testing.assert_allclose(statistic.log_sizes(), expected, rtol=1e-11)
    x = statistic.sample(500, {0: 1, 1999: 0}, random_state=0)
    assert statistic.index([x])[0] == 500
    assert (x[0], x[-1]) == (1, 0)


def test_transitions_has_the_papers_number_of_values():
    for n in range(1, 10):
        assert Transitions(n).n_values == n // 2 + 1


def test_categorical_counts_agree_with_count_for_two_symbols():
    two = CategoricalCounts(6, n_symbols=2)
    np.testing.assert_array_equal(two.values[:, 0], np.arange(7))
    np.testing.assert_allclose(two.log_sizes(), Count(6).log_sizes(), atol=1e-12)


def test_categorical_counts_rank_without_overflow():
    """3^99 does not fit in an integer, the 5,050 vectors of counts do."""
    statistic = CategoricalCounts(2, n_symbols=100)
    assert statistic.n_values == 5050
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, size=(50, 2))
    counts = statistic.values[statistic.index(X)]
    np.testing.assert_array_equal(counts.sum(axis=1), 2)
    assert all(counts[i, X[i]].min() >= 1 for i in range(50))


def test_tau_can_be_a_small_numpy_integer():
    log_sizes = Pooled(16, k=16, tau=np.uint8(255)).log_sizes()
    np.testing.assert_allclose(log_sizes, [256 * np.log(2), 0])


def test_max_pooling_is_tau_zero():
    pooled = Pooled(28, k=4)
    image = np.zeros(784)
    assert pooled.index([image])[0] == 0
    image[0] = 1
    assert pooled.values[pooled.index([image])[0]] == 1
    np.testing.assert_allclose(np.logaddexp.reduce(pooled.log_sizes()), 784 * math.log(2))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Count(0), ValueError, "n_variables must be at least 1, got 0"),
        (lambda: Count(2.0), TypeError, "n_variables must be an integer, got 2.0"),
        (lambda: Count(True), TypeError, "n_variables must be an integer, got True"),
        (lambda: BlockCounts([]), ValueError, "at least one block"),
        (lambda: BlockCounts([[0], [0, 1]]), ValueError, "outside|variable 0 is in 2 blocks"),
        (lambda: BlockCounts([[0, 0], [1]]), ValueError, "variable 0 is in 2 blocks"),
        (lambda: BlockCounts([[0, 3]]), ValueError, r"variable 3 is outside 0\.\.1"),
        (lambda: BlockCounts([[0], []]), ValueError, "block 1"),
        (lambda: BlockCounts([[0.5], [1]]), ValueError, "block 0"),
        (
            lambda: BlockCounts(np.arange(800).reshape(8, 100)),
            ValueError,
            r"about 10\^16 distinct values",
        ),
        (lambda: CategoricalCounts(3, n_symbols=1), ValueError, "n_symbols must be at least 2"),
        (lambda: CategoricalCounts(100, n_symbols=50), ValueError, "distinct values"),
        (lambda: Pooled(5, k=2), ValueError, "k must divide n, got n=5 and k=2"),
        (lambda: Pooled(4, k=2, tau=4), ValueError, "tau must be less than k·k = 4, got 4"),
        (lambda: Pooled(4, k=2, tau=-1), ValueError, "tau must be at least 0"),
        (lambda: FiniteState(3, lambda s, x: (s + x, 0), 0), ValueError, "more than 10,000 states"),
        (lambda: FiniteState(3, lambda s, x: s, 0), TypeError, "expected a pair"),
        (lambda: FiniteState(3, lambda s, x: (s, -x), 0), ValueError, r"step\(0, 1\) adds -1"),
        (lambda: FiniteState(3, lambda s, x: (s, x / 2), 0), ValueError, "adds 0.0"),
        (
            lambda: FiniteState(3, lambda s, x: (s, x), 0, final=lambda s: -1),
            ValueError,
            r"final\(0\) is -1",
        ),
        (lambda: Nested(Count(2), Count(1), [[0], [1]]), TypeError, "outer must be a FiniteState"),
        (
            lambda: Nested(Transitions(3), Count(1), [[0], [1]]),
            ValueError,
            "outer reads 3 values, but there are 2 groups",
        ),
        (
            lambda: Nested(Transitions(2), Count(1), [[0, 2], [1]]),
            ValueError,
            "group 0 has 2 variables",
        ),
        (
            lambda: Nested(Transitions(2), Count(2), [[0, 2], [1, 3]]),
            ValueError,
            "has 3 values, but outer reads symbols 0..1",
        ),
        (lambda: Nested(Transitions(2), 5, [[0], [1]]), TypeError, "inner must be .* got 5"),
        (lambda: Nested(Transitions(2), [5, 6], [[0], [1]]), TypeError, "inner must be .* got 5"),
        (lambda: BlockCounts(None), TypeError, "a partition must be a list of blocks"),
        (lambda: Count(10**12), ValueError, r"about 10\^12 distinct values; a table may have"),
        (lambda: CategoricalCounts(2, 3000), ValueError, "values, vectors of 3,000 numbers"),
        (lambda: FiniteState(3, 5, start=0), TypeError, "step must be a function, got 5"),
        (
            lambda: FiniteState(3, lambda s, x: (s, x), start=0, final=5),
            TypeError,
            "final must be a function, got 5",
        ),
        (
            lambda: FiniteState(3, lambda s, x: (s, x), start=[0]),
            TypeError,
            r"start is \[0\]; expected a hashable state",
        ),
        (
            lambda: FiniteState(3, lambda s, x: ([s], x), start=0),
            TypeError,
            r"step\(0, 0\) goes to \[0\]; expected a hashable state",
        ),
        (
            lambda: FiniteState(3, lambda s, x: (s, x * 10**30), start=0),
            ValueError,
            r"step\(0, 1\) adds 10+, more than the 10,000,000",
        ),
        (
            lambda: FiniteState(10, lambda s, x: (s, x * 10**7), start=0),
            ValueError,
            r"a total of up to 10+ has about 10\^8 distinct values",
        ),
    ],
)
def test_constructors_refuse(make, error, message):
    with pytest.raises(error, match=message):
        make()
