"""Data labelled by the paper's Boolean functions, drawn in seconds even at the paper's size.

Every row has its own random stream, which depends on the seed and the row's number, so the same
seed gives the same rows for any number of threads and any size of chunks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from exchangeable.arrays import check_count
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.threads import run

Binary = NDArray[np.uint8]
Labels = NDArray[np.int64]

FUNCTIONS = ("parity", "counting", "threshold", "exact", "conjunction", "disjunction")
_ROWS_PER_TASK = 4096


def make_boolean(
    function: str,
    n_samples: int = 10_000,
    n_variables: int = 1_000,
    random_state: Any = None,
    *,
    ones: str = "uniform",
    modulus: int = 5,
    remainder: int = 3,
    at_least: int = 10,
    counts: Sequence[int] | None = None,
    n_relevant: int = 3,
) -> tuple[Binary, Labels]:
    """Draw binary examples and label them by a Boolean function.

    The symmetric functions ("parity", "counting", "threshold", "exact") depend only on the number
    of ones ``n(x)`` of an example; one fully exchangeable block per class is optimal for them, as
    is a model of exchangeable blocks for conjunctions and disjunctions (the paper's theorem on
    optimality under zero-one loss).

    Parameters
    ----------
    function : {"parity", "counting", "threshold", "exact", "conjunction", "disjunction"}
        What makes an example belong to class 1:

        - "parity": ``n(x)`` is odd;
        - "counting": ``n(x) mod modulus == remainder``;
        - "threshold": ``n(x) >= at_least`` ("m of n");
        - "exact": ``n(x)`` is one of `counts`;
        - "conjunction": the first `n_relevant` variables are all one;
        - "disjunction": at least one of the first `n_relevant` variables is one.
    n_samples, n_variables : int
        Size of the table. The paper trains on 1,000,000 examples of 1,000 variables.
    random_state : int, RandomState instance or None
        Seed of the draws.
    ones : {"uniform", "fair"}, default="uniform"
        "uniform" draws the number of ones uniformly from 0 to ``n_variables - 1`` and their
        positions at random, which reproduces the paper's figures; "fair" draws independent fair
        bits, so that the number of ones is nearly always close to ``n_variables / 2``.
    modulus, remainder : int, default=5 and 3
        For "counting".
    at_least : int, default=10
        For "threshold".
    counts : sequence of int, optional
        For "exact"; by default 0, 1/5, 2/5, … and all of `n_variables`.
    n_relevant : int, default=3
        For "conjunction" and "disjunction".

    Returns
    -------
    X : ndarray of shape (n_samples, n_variables), uint8
        The examples.
    y : ndarray of shape (n_samples,), int64
        The labels, 0 or 1.

    See Also
    --------
    iter_boolean : The same rows, chunk by chunk.

    Examples
    --------
    >>> from exchangeable.datasets import make_boolean
    >>> X, y = make_boolean("parity", n_samples=4, n_variables=8, random_state=0)
    >>> X.shape, X.dtype
    ((4, 8), dtype('uint8'))
    >>> bool((X.sum(axis=1) % 2 == y).all())
    True
    """
    n_samples = check_count(n_samples, "n_samples", minimum=0)
    rule = _Rule.make(function, n_variables, modulus, remainder, at_least, counts, n_relevant)
    return _rows(rule, 0, n_samples, n_variables, _seed(random_state), _is_uniform(ones))


def iter_boolean(
    function: str,
    n_samples: int = 10_000,
    n_variables: int = 1_000,
    random_state: Any = None,
    *,
    chunk_size: int = 65_536,
    ones: str = "uniform",
    modulus: int = 5,
    remainder: int = 3,
    at_least: int = 10,
    counts: Sequence[int] | None = None,
    n_relevant: int = 3,
) -> Iterator[tuple[Binary, Labels]]:
    """Yield the rows of `make_boolean` in chunks, so that they need not fit in memory.

    Parameters
    ----------
    function, n_samples, n_variables, random_state
        As in `make_boolean`; the same integer seed gives the same rows.
    chunk_size : int, default=65536
        Number of rows in a chunk; the last one may be shorter.
    ones, modulus, remainder, at_least, counts, n_relevant
        As in `make_boolean`.

    Yields
    ------
    X : ndarray of shape (chunk_size, n_variables), uint8
        Examples.
    y : ndarray of shape (chunk_size,), int64
        Their labels.

    Examples
    --------
    >>> from exchangeable.datasets import iter_boolean
    >>> chunks = iter_boolean("exact", 10, n_variables=5, random_state=0, chunk_size=4)
    >>> [X.shape for X, y in chunks]
    [(4, 5), (4, 5), (2, 5)]
    """
    chunk_size = check_count(chunk_size, "chunk_size")
    n_samples = check_count(n_samples, "n_samples", minimum=0)
    rule = _Rule.make(function, n_variables, modulus, remainder, at_least, counts, n_relevant)
    seed, uniform = _seed(random_state), _is_uniform(ones)
    return (
        _rows(rule, start, min(chunk_size, n_samples - start), n_variables, seed, uniform)
        for start in range(0, n_samples, chunk_size)
    )


@dataclass(frozen=True)
class _Rule:
    """A Boolean function: labels by the number of ones, or all/any of the first variables."""

    table: Labels | None
    relevant: int
    every: bool

    @classmethod
    def make(
        cls,
        function: str,
        n_variables: int,
        modulus: int,
        remainder: int,
        at_least: int,
        counts: Sequence[int] | None,
        n_relevant: int,
    ) -> "_Rule":
        if check_count(n_variables, "n_variables") >= 2**32:
            raise ValueError(f"n_variables must be less than 2^32, got {n_variables}")
        number = np.arange(n_variables + 1)
        match function:
            case "parity":
                chosen = number % 2 == 1
            case "counting":
                check_count(remainder, "remainder", minimum=0)
                if remainder >= check_count(modulus, "modulus"):
                    raise ValueError(
                        f"remainder must lie in [0, {modulus - 1}] for modulus={modulus}, got "
                        f"{remainder}"
                    )
                chosen = number % modulus == remainder
            case "threshold":
                chosen = number >= check_count(at_least, "at_least", minimum=0)
            case "exact":
                fifths = [round(i * n_variables / 5) for i in range(6)]
                wanted = fifths if counts is None else _reachable(counts, n_variables)
                chosen = np.isin(number, wanted)
            case "conjunction" | "disjunction":
                if check_count(n_relevant, "n_relevant") > n_variables:
                    raise ValueError(
                        f"n_relevant must lie in [1, {n_variables}], the number of variables, got "
                        f"{n_relevant}"
                    )
                return cls(None, n_relevant, function == "conjunction")
            case _:
                raise ValueError(
                    f"function={function!r} is unknown; expected one of {', '.join(FUNCTIONS)}"
                )
        return cls(chosen.astype(np.int64), 0, False)

    def label(self, X: Binary, n_ones: Labels) -> Labels:
        if self.table is not None:
            labels: Labels = self.table[n_ones]
            return labels
        combine = np.logical_and if self.every else np.logical_or
        return np.asarray(combine.reduce(X[:, : self.relevant], axis=1), dtype=np.int64)


def _reachable(counts: Sequence[int], most: int) -> list[int]:
    """Return the given numbers of ones, refusing those that no example can have."""
    many = isinstance(counts, Iterable)
    listed = [check_count(c, "each of counts", minimum=0) for c in counts] if many else []
    if not listed or max(listed) > most:
        raise ValueError(
            f"counts must be a list of one or more numbers in [0, {most}], got {counts!r}"
        )
    return listed


def _is_uniform(ones: str) -> bool:
    if ones not in ("uniform", "fair"):
        raise ValueError(f"ones must be 'uniform' or 'fair', got {ones!r}")
    return ones == "uniform"


def _seed(random_state: Any) -> np.uint64:
    drawn = check_random_state(random_state).randint(np.iinfo(np.int64).max, dtype=np.int64)
    return np.uint64(drawn)


def _rows(
    rule: _Rule, start: int, n_rows: int, n_variables: int, seed: np.uint64, uniform: bool
) -> tuple[Binary, Labels]:
    """Return rows ``start`` to ``start + n_rows`` of the infinite table that a seed defines."""
    X = np.empty((n_rows, n_variables), dtype=np.uint8)
    n_ones = np.empty(n_rows, dtype=np.int64)
    fill = _fill_uniform if uniform else _fill_fair

    def task(first: int) -> None:
        part = slice(first, first + _ROWS_PER_TASK)
        fill(X[part], n_ones[part], np.uint64(start + first), seed)

    run(task, range(0, n_rows, _ROWS_PER_TASK))
    return X, rule.label(X, n_ones)


_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)
_TWO_32 = np.uint64(1 << 32)
_ONE = np.uint64(1)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)


@compiled(inline="always")
def _mix(z):  # type: ignore[no-untyped-def]
    """Scramble a counter into 64 random bits (the output function of SplitMix64)."""
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@compiled(inline="always")
def _below(state, bound):  # type: ignore[no-untyped-def]
    """Draw from 0..bound-1 without bias (multiply and shift, rejecting the uneven rest)."""
    uneven = (_TWO_32 - bound) % bound
    while True:
        state += _STEP
        product = (_mix(state) >> _S32) * bound
        if (product & _LOW) >= uneven:
            return state, product >> _S32


@compiled()
def _fill_uniform(X, n_ones, start, seed):  # type: ignore[no-untyped-def]
    """Fill rows with a uniform number of ones, by flipping randomly drawn entries."""
    n_rows, n_variables = X.shape
    bound = np.uint64(n_variables)
    for i in range(n_rows):
        state = _mix(seed + _mix((start + np.uint64(i) + _ONE) * _STEP))
        state, drawn = _below(state, bound)
        count = np.int64(drawn)
        n_ones[i] = count
        common = np.uint8(1) if 2 * count > n_variables else np.uint8(0)
        row = X[i]
        row[:] = common
        left = n_variables - count if common else count
        while left > 0:
            state, drawn = _below(state, bound)
            j = np.int64(drawn)
            if row[j] == common:
                row[j] = np.uint8(1) - common
                left -= 1


@compiled()
def _fill_fair(X, n_ones, start, seed):  # type: ignore[no-untyped-def]
    """Fill rows with independent fair bits, 64 per draw."""
    n_rows, n_variables = X.shape
    for i in range(n_rows):
        state = _mix(seed + _mix((start + np.uint64(i) + _ONE) * _STEP))
        count = np.int64(0)
        for j in range(n_variables):
            if j % 64 == 0:
                state += _STEP
                bits = _mix(state)
            value = np.uint8(bits & _ONE)
            bits >>= _ONE
            X[i, j] = value
            count += np.int64(value)
        n_ones[i] = count
