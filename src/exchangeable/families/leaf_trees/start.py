"""The start of EM for a tree with leaves: a mixture in which blocks are independent.

It is the start of hidden trees over counts (`hidden_trees/start.py`), for which leaves need an
order: a leaf that ranks high corresponds to a block with many ones.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, normalize_log
from exchangeable.data.columns.schema import typed_rows
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.hidden_trees.start import START_POOLING, SURE, States
from exchangeable.families.leaf_trees.leaves import Shown
from exchangeable.families.statistics.values import values_of
from exchangeable.runtime.threads import row_ranges
from exchangeable.statistics import Statistic

MOST_BINS = 8
"""Number of bins for the rows of a leaf, from which the tree is learned."""
PAIR_ROWS = 1 << 11
"""Number of rows whose bins are compared at a time."""
LEAST_SPREAD = 1e-12
"""Lower bound of the spread by which columns are scaled."""


@dataclass(frozen=True)
class Bins:
    """The rows of every leaf in bins, in the order of their ranks.

    Attributes
    ----------
    by_leaf : list of arrays
        The bin of each distinct row of a leaf.
    number : array of shape (n_leaves,)
        The number of bins.
    cuts : array of shape (n_leaves,)
        The largest bin that counts as low, about half of the rows.
    """

    by_leaf: list[IntArray]
    number: IntArray
    cuts: IntArray

    @property
    def starts(self) -> IntArray:
        """The start of each leaf's bins."""
        return np.asarray(np.cumsum(self.number) - self.number)

    def high(self, b: int) -> IntArray:
        """Return 1 for each distinct row of a leaf that ranks high, 0 for the others."""
        return np.asarray(self.by_leaf[b] > self.cuts[b], dtype=np.int64)

    def pairs(self, shown: Shown, weights: FloatArray) -> FloatArray:
        """Return the weight of the rows with each bin of one leaf and each of another."""
        width = int(self.number.sum())
        every = np.stack(
            [self.starts[b] + own[shown.own_codes(b)] for b, own in enumerate(self.by_leaf)], axis=1
        )
        return pairs_of_bins(every, weights, width)


def pairs_of_bins(every: IntArray, weights: FloatArray, width: int) -> FloatArray:
    """Return the weight of the rows with each two of `width` bins; a row has one of each leaf."""
    both = np.zeros((width, width))
    for begin, end in row_ranges(len(every), PAIR_ROWS):
        flat = np.zeros((end - begin, width))
        np.put_along_axis(flat, every[begin:end], 1.0, axis=1)
        both += flat.T @ (weights[begin:end, None] * flat)
    return both


def binned(ranks: FloatArray, weights: FloatArray) -> tuple[IntArray, int, int]:
    """Return the bin of each distinct row, their number, and the largest that counts as low.

    Each of a few ranks is a bin; many ranks are grouped into bins of similar weight.

    >>> bins, number, cut = binned(np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0]))
    >>> bins.tolist(), number, cut
    ([2, 0, 1], 3, 0)
    """
    values, place = np.unique(ranks, return_inverse=True)
    mass = np.bincount(place.ravel(), weights)
    if values.size > MOST_BINS:
        middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
        into = np.minimum((MOST_BINS * middle).astype(np.int64), MOST_BINS - 1)
        into = np.unique(into, return_inverse=True)[1].ravel()
        mass, place = np.bincount(into, mass), into[place.ravel()]
    share = np.cumsum(mass / mass.sum())[:-1]
    cut = int(np.abs(share - 0.5).argmin()) if share.size else 0
    return np.asarray(place.ravel(), dtype=np.int64), mass.size, cut


@dataclass(frozen=True)
class Ranking:
    """The order of the rows of a leaf, if they are not all available at once.

    Attributes
    ----------
    statistic : Statistic, optional
        The statistic, whose values are in order; None for columns of any kind.
    usual, spread : arrays of shape (n_columns,)
        The averages of columns, and their standard deviations.
    edges : array of shape (n_bins,)
        The lowest rank of each bin.
    last_low : int
        The largest bin that counts as low.
    """

    statistic: Statistic | None
    usual: FloatArray = field(default_factory=lambda: np.empty(0))
    spread: FloatArray = field(default_factory=lambda: np.empty(0))
    edges: FloatArray = field(default_factory=lambda: np.empty(0))
    last_low: int = 0

    def scaled(self, usual: FloatArray, spread: FloatArray) -> "Ranking":
        """Return the ranking with the means of its columns."""
        return replace(self, usual=usual, spread=spread)

    def cut(self, ranks: FloatArray, bins: IntArray, number: int, last_low: int) -> "Ranking":
        """Return the ranking with bins for some ranks."""
        edges = np.full(number, np.inf)
        np.minimum.at(edges, bins, ranks)
        return replace(self, edges=edges, last_low=last_low)

    def ranks(self, own: Observed) -> FloatArray:
        """Return the numbers by which rows of the leaf are ordered."""
        if self.statistic is not None:
            rows = Examples(own.ones, np.ones(own.n_rows), holes=own.holes)
            return statistic_ranks(rows, self.statistic)
        values = typed_rows(own).values
        known = ~np.isnan(values)
        if values.shape[1] == 1:
            return np.where(known, values, self.usual)[:, 0]
        total = np.zeros(len(values))
        for j, column in enumerate(values.T):
            share = (column - self.usual[j]) / max(self.spread[j], LEAST_SPREAD)
            total += np.where(known[:, j], share, 0.0)
        return total

    def bins(self, own: Observed) -> IntArray:
        """Return the bins of rows of the leaf."""
        return np.asarray(np.searchsorted(self.edges, self.ranks(own), side="right") - 1)

    def high(self, own: Observed) -> IntArray:
        """Return 1 for each row that ranks high, 0 for the others."""
        return np.asarray(self.bins(own) > self.last_low, dtype=np.int64)


def statistic_ranks(rows: Examples, statistic: Statistic) -> FloatArray:
    """Return the index of T for every row; if it is not known, its expectation."""
    (values,) = values_of(rows, [(np.arange(statistic.n_variables), statistic)])
    ranks = np.empty(values.n_rows)
    ranks[values.complete] = values.position
    if values.holed.size:
        log_shares = normalize_log(values.log_sizes, np.zeros(statistic.n_values))[0]
        expected = np.exp(log_shares) @ np.arange(statistic.n_values)
        ranks[values.holed] = expected[values.pattern]
    return ranks


def column_ranks(rows: Examples) -> FloatArray:
    """Return the sum of every row's standardised columns; missing ones count as average."""
    values = typed_rows(rows.observed).values
    if values.shape[1] == 1:
        own = values[:, 0]
        known = ~np.isnan(own)
        usual = np.average(own[known], weights=rows.weights[known]) if known.any() else 0.0
        return np.where(known, own, usual)
    total = np.zeros(len(values))
    for column in values.T:
        known = ~np.isnan(column)
        if known.any():
            usual = np.average(column[known], weights=rows.weights[known])
            spread = np.sqrt(np.average((column[known] - usual) ** 2, weights=rows.weights[known]))
            total[known] += (column[known] - usual) / max(spread, LEAST_SPREAD)
    return total


def state_masses(states: States, high: IntArray, mass: FloatArray) -> FloatArray:
    """Return the mass of each state for each distinct row.

    `high` marks rows that rank high, `mass` is the mass of each row in each component.
    """
    return np.asarray(mass[:, states.component] * states.fits[:, high].T)


def leaning(states: States, seen: FloatArray, weights: FloatArray) -> Any:
    """Return masses shrunk towards the average, so that every state can produce everything."""
    totals = seen.sum(axis=0)
    usual = (weights / weights.sum())[:, None]
    own = seen + START_POOLING * usual
    sure = np.where(totals > 0, SURE * seen + (1 - SURE) * totals * usual, usual)
    return np.where(states.split, sure, own)


def shares_of_states(
    states: States, seen: FloatArray, totals: FloatArray, weight: float
) -> FloatArray:
    """Return the same as shares of each row, given the weights of all states and of all rows."""
    own = seen + START_POOLING / weight
    sure = np.where(totals > 0, SURE * seen + (1 - SURE) * totals / weight, 1 / weight)
    return np.where(states.split, sure, own)
