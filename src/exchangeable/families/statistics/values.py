"""T of rows: its value if all its variables are known, otherwise the numbers of completions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import RLock

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.statistics import Statistic

FINDING = RLock()
UNSAFE = 1e-200
"""Smaller sums of products are computed again by their logarithms."""


@dataclass(frozen=True)
class Values:
    """T of rows, computed once and read by EM and scores as often as they need it.

    Attributes
    ----------
    complete, position : arrays
        The complete rows, and the index of their value.
    holed, pattern : arrays
        The other rows, and their line of `log_sizes`.
    log_sizes : array of shape (n_patterns, n_values)
        Logarithm of the number of completions with each value.
    """

    complete: IntArray
    position: IntArray
    holed: IntArray
    pattern: IntArray
    log_sizes: FloatArray

    @classmethod
    def of(cls, statistic: Statistic, states: npt.NDArray[np.int8]) -> "Values":
        """Return T of rows with 0, 1 and `UNASSIGNED`."""
        whole = (states != UNASSIGNED).all(axis=1)
        complete, holed = np.flatnonzero(whole), np.flatnonzero(~whole)
        position = statistic._index(states[complete].astype(np.int64))
        distinct, pattern = np.unique(states[holed], axis=0, return_inverse=True)
        log_sizes = statistic._log_sizes_each(distinct.astype(np.int64))
        return cls(complete, position, holed, pattern.ravel(), log_sizes)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.complete.size + self.holed.size

    @cached_property
    def cells(self) -> npt.NDArray[np.int32]:
        """The index of each row's value, or the number of values plus the index of its pattern."""
        cells = np.empty(self.n_rows, dtype=np.int32)
        cells[self.complete] = self.position
        cells[self.holed] = self.log_sizes.shape[1] + self.pattern
        return cells

    def table(self, log_urns: FloatArray) -> FloatArray:
        """Return the score of every cell, given log P of a member of each S_t in each class."""
        if not self.holed.size:
            return log_urns
        return np.concatenate([log_urns, log_dot(self.log_sizes, log_urns)])

    def scores(self, log_urns: FloatArray) -> FloatArray:
        """Return log P(e | y), given the log-probability of a member of each S_t in each class."""
        return self.table(log_urns)[self.cells]

    def histograms(self, mass: FloatArray, log_urns: FloatArray) -> FloatArray:
        """Return the expected mass of each value in each class.

        Parameters
        ----------
        mass : array of shape (n_rows, n_classes)
            The mass of each row in each class.
        log_urns : array of shape (n_values, n_classes)
            The distribution for missing entries.
        """
        n_cells = self.log_sizes.shape[1] + len(self.log_sizes)
        by_cell = np.empty((n_cells, mass.shape[1]))
        for y, own in enumerate(mass.T):
            by_cell[:, y] = np.bincount(self.cells, own, minlength=n_cells)
        return self.expected(by_cell, log_urns)

    def expected(self, by_cell: FloatArray, log_urns: FloatArray) -> FloatArray:
        """Return the same, given the mass of each class in each cell."""
        n_values = len(log_urns)
        out = by_cell[:n_values].copy()
        if self.holed.size:
            for y in range(out.shape[1]):
                by_pattern = np.ascontiguousarray(by_cell[n_values:, y])
                out[:, y] += _expected(self.log_sizes, log_urns[:, y], by_pattern)
        return out


def log_dot(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return log Σ_t exp(left[·, t] + right[t, ·])."""
    highest, peak = _peaks(left, 1), _peaks(right, 0)
    product = np.exp(left - highest) @ np.exp(right - peak)
    with np.errstate(divide="ignore"):
        result = np.log(product) + highest + peak
    for i, y in np.argwhere(product < UNSAFE):
        result[i, y] = np.logaddexp.reduce(left[i] + right[:, y])
    return np.asarray(result)


def _peaks(values: FloatArray, axis: int) -> FloatArray:
    """Return the largest entries, 0 where all are −inf."""
    largest = values.max(axis=axis, keepdims=True)
    return np.where(np.isfinite(largest), largest, 0.0)


def _expected(log_sizes: FloatArray, log_urns: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the expected mass of each value, given that of each pattern."""
    seen = np.flatnonzero(mass > 0)
    totals = log_dot(log_sizes[seen], log_urns[:, None])[:, 0]
    possible = np.isfinite(totals)
    shares = log_sizes[seen[possible]] + (log_urns - totals[possible, None])
    return np.asarray(mass[seen[possible]] @ np.exp(shares))


Reader = tuple[IntArray, Statistic]
"""Variables, and the statistic that reads them."""


def values_of(examples: Examples, readers: Sequence[Reader]) -> list[Values]:
    """Return T of examples for several blocks, computed on first use and cached with them."""
    keys = [("values", variables.tobytes(), id(statistic)) for variables, statistic in readers]
    with FINDING:  # parallel runs ask for the same values
        new = [number for number, key in enumerate(keys) if key not in examples.derived]
        found = values_in(examples.observed, [readers[number] for number in new]) if new else []
        for number, values in zip(new, found, strict=True):
            examples.derived[keys[number]] = (values, readers[number][1])  # keeps its identity
    return [examples.derived[key][0] for key in keys]


def alike_histograms(
    examples: Examples, posterior: FloatArray, readers: Sequence[Reader]
) -> list[FloatArray]:
    """Return the mass of each class with each value; holes are 0 or 1 with equal odds."""
    mass = examples.weights[:, None] * posterior
    return [
        values.histograms(mass, np.zeros((statistic.n_values, mass.shape[1])))
        for values, (_, statistic) in zip(values_of(examples, readers), readers, strict=True)
    ]


def histograms_of_all(examples: Examples, readers: Sequence[Reader]) -> list[FloatArray]:
    """Return the same of all rows as one class."""
    return alike_histograms(examples, np.ones((examples.rows.n_rows, 1)), readers)


def values_in(observed: Observed, readers: Sequence[Reader]) -> list[Values]:
    """Return T of rows for several blocks."""
    states = [np.empty((observed.n_rows, each.size), dtype=np.int8) for each, _ in readers]
    for span, part in observed.chunks():
        symbols = part.symbols()
        for (variables, _), own in zip(readers, states, strict=True):
            own[span] = symbols[:, variables]
    pairs = zip(readers, states, strict=True)
    return [Values.of(statistic, own) for (_, statistic), own in pairs]
