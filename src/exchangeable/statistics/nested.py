"""Statistics of statistics: an outer one reads the values of inner ones."""

from collections.abc import Iterable, Sequence

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, SymbolArray, check_count
from exchangeable.partitions import check_partition
from exchangeable.statistics.base import Statistic
from exchangeable.statistics.combinatorics import log_divide
from exchangeable.statistics.finite_state import FiniteState
from exchangeable.statistics.on_page import Told


class Nested(Statistic):
    """A statistic of statistics: T(x) = outer(inner(x on group 1), inner(x on group 2), …).

    Each inner statistic reads one group of variables; the index of its value is the symbol that the
    outer one reads. Set sizes multiply for given inner values and add up over them, which is what
    the outer automaton's dynamic programme does with weighted symbols.

    Parameters
    ----------
    outer : FiniteState
        Reads one symbol per group; its `n_symbols` must be the inner statistics' number of values.
    inner : Statistic or sequence of Statistic
        One statistic for all groups, or one for each.
    groups : sequence of sequences of int
        A partition of the variables, in the order in which `outer` reads the groups.

    Examples
    --------
    Is the number of pairs that agree even?

    >>> from exchangeable import FiniteState, Nested
    >>> agree = FiniteState(2, lambda last, x: (x, int(x == last)), start=None)
    >>> even = FiniteState(3, lambda odd, x: (odd ^ x, 0), start=0, final=lambda odd: 1 - odd)
    >>> pairs = Nested(even, agree, [[0, 1], [2, 3], [4, 5]])
    >>> pairs.values[pairs.index([[1, 1, 0, 1, 0, 0]])].tolist()
    [1]
    """

    def __init__(
        self,
        outer: FiniteState,
        inner: Statistic | Sequence[Statistic],
        groups: Iterable[Sequence[int]],
    ) -> None:
        self.groups = check_partition(groups)
        if not isinstance(outer, FiniteState):
            raise TypeError(f"outer must be a FiniteState, got {outer!r}")
        self.outer = outer
        self.inner = list(inner) if isinstance(inner, Iterable) else [inner] * len(self.groups)
        self._check_fit()
        super().__init__(sum(map(len, self.groups)), self.inner[0].n_symbols)

    def _check_fit(self) -> None:
        """Reject inner statistics that do not match the groups or the outer statistic."""
        if not len(self.groups) == len(self.inner) == self.outer.n_variables:
            raise ValueError(
                f"outer reads {self.outer.n_variables} values, but there are {len(self.groups)} "
                f"groups and {len(self.inner)} inner statistics"
            )
        for number, (inner, group) in enumerate(zip(self.inner, self.groups, strict=True)):
            if not isinstance(inner, Statistic):
                raise TypeError(f"inner must be one Statistic or one a group, got {inner!r}")
            if inner.n_variables != len(group):
                raise ValueError(
                    f"group {number} has {len(group)} variables, its statistic {inner!r} "
                    f"expects {inner.n_variables}"
                )
            if inner.n_values != self.outer.n_symbols:
                raise ValueError(
                    f"{inner!r} has {inner.n_values} values, but outer reads symbols "
                    f"0..{self.outer.n_symbols - 1}"
                )
            if inner.n_symbols != self.inner[0].n_symbols:
                raise ValueError("all inner statistics must have the same n_symbols")

    @property
    def values(self) -> IntArray:
        """The values of the outer statistic."""
        return self.outer.values

    def _index(self, X: IntArray) -> IntArray:
        symbols = [
            inner._index(X[:, group]) for inner, group in zip(self.inner, self.groups, strict=True)
        ]
        return self.outer._index(np.stack(symbols, axis=1))

    def _inner_log_sizes(self, assigned: IntArray) -> FloatArray:
        return np.stack(
            [
                inner._log_sizes(assigned[group])
                for inner, group in zip(self.inner, self.groups, strict=True)
            ]
        )

    def _log_sizes(self, assigned: IntArray) -> FloatArray:
        return self.outer._weighted_log_sizes(self._inner_log_sizes(assigned))

    def _complete(self, position: int, assigned: IntArray) -> IntArray:
        weights = self._inner_log_sizes(assigned)
        completed = assigned.copy()
        symbols = self.outer._weighted_words(weights, position, 1, None)[0]
        for symbol, inner, group in zip(symbols, self.inner, self.groups, strict=True):
            completed[group] = inner._complete(int(symbol), assigned[group])
        return completed

    def _draw(
        self, position: int, assigned: IntArray, size: int, rng: np.random.Generator
    ) -> SymbolArray:
        weights = self._inner_log_sizes(assigned)
        words = self.outer._weighted_words(weights, position, size, rng)
        draws = np.empty((size, self.n_variables), dtype=self._dtype)
        for symbols, inner, group in zip(words.T, self.inner, self.groups, strict=True):
            for symbol in np.unique(symbols):
                rows = np.flatnonzero(symbols == symbol)
                part = inner._draw(int(symbol), assigned[group], rows.size, rng)
                draws[np.ix_(rows, group)] = part
        return draws

    def _log_masses(self, log_weights: FloatArray, assigned: IntArray) -> FloatArray:
        weights = self._inner_log_sizes(assigned)
        joint = self.outer._weighted_log_masses(log_weights, weights)
        masses = np.empty((self.n_variables, self.n_symbols))
        for inner, group, mass, size in zip(self.inner, self.groups, joint, weights, strict=True):
            # The contribution of the other groups to each value of this one.
            outside = log_divide(mass, size)
            masses[group] = inner._log_masses(outside, assigned[group])
        return masses

    def _on_page(self) -> Told | None:
        distinct = {id(inner): inner for inner in self.inner}
        told = [inner._on_page() for inner in distinct.values()]
        if any(each is None for each in told):
            return None
        number = {key: position for position, key in enumerate(distinct)}
        which = [number[id(inner)] for inner in self.inner]
        return {
            "outer": self.outer._on_page(),
            "inner": told,
            "which": which,
            "groups": self.groups,
        }

    def __repr__(self) -> str:
        return f"Nested({self.outer!r}, {self.inner[0]!r} on {len(self.groups)} groups)"


class Pooled(Nested):
    """The number of k × k squares of an n × n image that have more than `tau` pixels on.

    Max-pooling is ``tau=0``. Images are given as rows of n·n pixels, line after line.

    Parameters
    ----------
    n : int
        Side length of the image.
    k : int
        Side length of a square, a divisor of `n`.
    tau : int, default=0
        A square is on if more than this many of its pixels are; must be less than k·k.

    Examples
    --------
    >>> from exchangeable import Pooled
    >>> import numpy as np
    >>> image = np.zeros((4, 4))
    >>> image[0, 1] = image[3, 3] = 1
    >>> pooled = Pooled(4, k=2)
    >>> pooled.values[pooled.index([image.ravel()])].tolist()
    [2]
    """

    def __init__(self, n: int, k: int, tau: int = 0) -> None:
        self.n, self.k = check_count(n, "n"), check_count(k, "k")
        self.tau = check_count(tau, "tau", minimum=0)
        if self.n % self.k:
            raise ValueError(f"k must divide n, got n={n} and k={k}")
        if self.tau >= self.k**2:
            raise ValueError(f"tau must be less than k·k = {k * k}, got {tau}")
        pixels = np.arange(self.n**2).reshape(self.n // self.k, self.k, -1, self.k)
        groups = pixels.swapaxes(1, 2).reshape(-1, self.k**2)
        on_from = self.tau + 1
        on = FiniteState(
            self.k**2,
            lambda count, x: (min(count + x, on_from), int(count + x == on_from > count)),
            start=0,
        )
        squares = FiniteState(len(groups), lambda state, on: (state, on), start=0)
        super().__init__(squares, on, list(groups))

    def __repr__(self) -> str:
        return f"Pooled(n={self.n}, k={self.k}, tau={self.tau})"
