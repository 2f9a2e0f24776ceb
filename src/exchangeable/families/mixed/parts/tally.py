"""Dependent counts: multinomial given their total, which has its own distribution.

The total is negative binomial with mean m and size r, and the shares θ distribute units over
columns. Summing out columns keeps that form: the known ones have a total with mean m·Σθ and the
same size, so missing ones need no sums over all totals. An infinite size gives Poisson totals, with
which the columns are independent.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from exchangeable.arrays import FloatArray, IntArray, is_sparse
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.algebra.splits import best_split
from exchangeable.families.mixed.algebra.totals import (
    LEAST_MEAN,
    MOST,
    checked_largest,
    checked_totals,
    draw_counts,
    fit_counts,
    highest_count,
    log_counts,
    log_pairs,
)
from exchangeable.families.mixed.parts.base import Ask, Highest, Part, PartSums, Prior, laid_out
from exchangeable.families.mixed.parts.counts import check_largest
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import CLOSE, needed, numbers

SPARE = 2
"""Totals up to this many times the largest are listed if some counts are unknown."""


class Rest(NamedTuple):
    """The total of the unknown counts given the known ones: its mean and size, and a score."""

    mean: FloatArray
    size: FloatArray
    known: FloatArray
    open_share: FloatArray


@dataclass(frozen=True)
class Tally(Part):
    """Multinomial distributions given a total, one for each class.

    Attributes
    ----------
    log_shares : array of shape (n_columns, n_classes)
        log θ: the share of each column in the units.
    means, sizes : array of shape (n_classes,)
        The parameters of the totals.
    largest : array of shape (1,)
        The largest total that is covered.
    """

    name: ClassVar[str] = "tally"
    kinds: ClassVar[tuple[str, ...]] = ("count",)
    parameters: ClassVar[tuple[str, ...]] = ("log_shares", "means", "sizes")
    shared: ClassVar[tuple[str, ...]] = ("largest",)
    log_shares: FloatArray
    means: FloatArray
    sizes: FloatArray
    largest: IntArray

    @property
    def top(self) -> int:
        """The largest total that is covered."""
        return int(self.largest[0])

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return (self.columns.size + 1) * self.n_classes

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return shares and totals of rows with missing counts replaced by the column's mean."""
        units, weight, holes = yield _known_units
        with np.errstate(invalid="ignore", divide="ignore"):
            usual = np.round(np.nan_to_num(units / weight))
        top = int((yield partial(_largest_total, usual=usual)).numbers)
        check_largest(np.array([top]))
        blank = cls(
            columns,
            types,
            np.full((columns.size, n_classes), -np.log(columns.size)),
            np.full(n_classes, max(float(usual.sum()), LEAST_MEAN)),
            np.full(n_classes, np.inf),
            np.array([SPARE * top + 10 if holes else top]),
        )
        sums = yield partial(_filled_sums, blank=blank, usual=usual)
        return blank.following(sums, prior)

    @property
    def reach(self) -> IntArray:
        """The largest total."""
        return self.largest

    def reached(self, values: Any, mass: FloatArray) -> Highest:
        """Return the largest total of some rows, larger if any count is unknown."""
        top = int(_largest_total(values, mass, np.zeros(self.columns.size)).numbers)
        holed = not is_sparse(values) and bool(np.isnan(values).any())
        return Highest(np.array([SPARE * top + 10 if holed else top]))

    def widened(self, reach: IntArray) -> Self:
        """Return the part with a larger reach for totals."""
        check_largest(reach // SPARE)
        largest = np.maximum(self.largest, reach)
        return self if largest[0] == self.top else replace(self, largest=largest)

    def carried(self, sums: PartSums, after: Self) -> PartSums:
        """Return the mass of each total in the terms of a part with another reach."""
        return {"units": sums["units"], "totals": laid_out(sums["totals"], after.top + 1)}

    def _rest(self, values: FloatArray, y: int) -> Rest:
        """Return the distribution of the unknown counts of each row given the known ones."""
        open_share = np.isnan(values) @ np.exp(self.log_shares[:, y])
        open_share = np.where(np.isnan(values).all(axis=1), 1.0, np.minimum(open_share, 1.0))
        known = np.nansum(values, axis=1)
        mean, size = self.means[y], self.sizes[y]
        if np.isinf(size):
            return Rest(mean * open_share, np.full(len(values), np.inf), known, open_share)
        scale = (size + known) / (size + mean * (1 - open_share))
        return Rest(mean * open_share * scale, size + known, known, open_share)

    def score(self, values: Any) -> FloatArray:
        """Return log P of the known entries."""
        if is_sparse(values):
            return self._sparse_score(values)
        out = np.empty((len(values), self.n_classes))
        filled = np.nan_to_num(values)
        coefficient = -special.gammaln(filled + 1).sum(axis=1)
        for y in range(self.n_classes):
            share = 1 - self._rest(values, y).open_share
            total = filled.sum(axis=1)
            alone = np.where(share > 0, share, 1.0)
            each = special.xlogy(filled, np.exp(self.log_shares[:, y])).sum(axis=1)
            each += special.gammaln(total + 1) - total * np.log(alone) + coefficient
            means = np.maximum(self.means[y] * share, np.finfo(np.float64).tiny)
            each += log_pairs(total, means, self.sizes[y])
            out[:, y] = np.where(share > 0, each, 0.0)
        return out

    def _sparse_score(self, values: Any) -> FloatArray:
        """Return log P of rows whose counts are mostly 0."""
        row = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        ways = np.bincount(row, special.gammaln(values.data + 1), minlength=values.shape[0])
        distinct, code = np.unique(values.sum(axis=1), return_inverse=True)
        each = log_counts(distinct, self.means, self.sizes) + special.gammaln(distinct + 1)[:, None]
        return np.asarray(values @ self.log_shares + each[code] - ways[:, None])

    def sums(self, values: Any, mass: FloatArray) -> PartSums:
        """Return the expected units of each column, and the mass of each total."""
        units = np.zeros(self.log_shares.shape)
        totals = np.zeros((self.top + 1, self.n_classes))
        if is_sparse(values):
            counted = np.minimum(values.sum(axis=1), self.top).astype(np.int64)
            for y in range(self.n_classes):
                totals[:, y] = np.bincount(counted, mass[:, y], minlength=self.top + 1)
            return {"units": np.asarray(values.T @ mass), "totals": totals}
        holes, filled = np.isnan(values), np.nan_to_num(values)
        whole = ~holes.any(axis=1)
        counted = filled.sum(axis=1).astype(np.int64)
        for y in range(self.n_classes):
            weight = mass[:, y]
            units[:, y] = weight @ filled
            totals[:, y] = np.bincount(counted[whole], weight[whole], minlength=self.top + 1)[
                : self.top + 1
            ]
            if whole.all():
                continue
            rest = self._rest(values, y)
            shares = np.exp(self.log_shares[:, y])
            open_share = np.where(rest.open_share > 0, rest.open_share, 1.0)
            units[:, y] += shares * ((weight * rest.mean / open_share) @ holes)
            for row in np.flatnonzero(~whole & (weight > 0)):
                known = int(rest.known[row])
                more = np.arange(max(self.top - known, 0) + 1.0)
                own = np.exp(log_counts(more, rest.mean[[row]] + 1e-300, rest.size[[row]]))[:, 0]
                place = min(known, self.top)
                totals[place:, y] += weight[row] * own / own.sum()
        return {"units": units, "totals": totals}

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the smoothed shares of all units, and the maximum likelihood totals."""
        units = sums["units"] + self._pseudo_units(prior)
        whole = units.sum(axis=0)
        equal = 1 / self.columns.size
        shares = np.where(whole > 0, units / np.where(whole > 0, whole, 1.0), equal)
        means, sizes = fit_counts(sums["totals"] + self._pseudo_totals(prior))
        with np.errstate(divide="ignore"):
            return replace(self, log_shares=np.log(shares), means=means, sizes=sizes)

    def _pseudo_units(self, prior: Prior) -> FloatArray:
        """Return the prior's units of each column: Laplace's, or those of pooled rows."""
        if prior.pooled is None or prior.pooling is None:
            return np.full((self.columns.size, 1), prior.alpha)
        pooled = prior.pooled
        return np.asarray(prior.pooling * pooled.means * np.exp(pooled.log_shares))

    def _pseudo_totals(self, prior: Prior) -> FloatArray:
        """Return the prior's weight of each total."""
        counts = np.arange(self.top + 1.0)
        if prior.pooled is None:
            return np.zeros((counts.size, 1))
        shares = np.exp(log_counts(counts, prior.pooled.means, prior.pooled.sizes))
        return np.asarray(prior.strength * shares / shares.sum())

    def log_prior(self, prior: Prior) -> float:
        """Return the score of the pseudo-rows."""
        units = np.broadcast_to(self._pseudo_units(prior), self.log_shares.shape)
        seen = units > 0
        own = float((units[seen] * self.log_shares[seen]).sum())
        scores = log_counts(np.arange(self.top + 1.0), self.means, self.sizes)
        return own + float((self._pseudo_totals(prior) * scores).sum())

    def predictive(self, values: FloatArray, column: int, y: int) -> FloatArray:
        """Return the probabilities of the counts of a column, given the other known ones."""
        rest = self._rest(values, y)
        part = np.exp(self.log_shares[column, y]) / np.maximum(rest.open_share, 1e-300)
        means = np.maximum(rest.mean * np.minimum(part, 1.0), 1e-300)
        counts = np.arange(highest_count(means, rest.size) + 1.0)
        return np.ascontiguousarray(np.exp(log_counts(counts, means, rest.size)).T)

    def complete(self, values: FloatArray, y: int) -> FloatArray:
        """Return the rows with the jointly most probable missing counts."""
        filled, shares = np.array(values), np.exp(self.log_shares[:, y])
        rest = self._rest(values, y)
        for row in np.flatnonzero(np.isnan(values).any(axis=1)):
            holes = np.flatnonzero(np.isnan(values[row]))
            filled[row, holes] = best_split(shares[holes], rest.mean[row], rest.size[row])
        return filled

    def draw(self, values: FloatArray, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with the total of missing counts drawn, and then these counts."""
        drawn, shares = np.array(values), np.exp(self.log_shares[:, y])
        rest = self._rest(values, y)
        for row in np.flatnonzero(np.isnan(values).any(axis=1)):
            holes = np.flatnonzero(np.isnan(values[row]))
            total = int(draw_counts(rest.mean[row], rest.size[row], 1, rng)[0])
            own = shares[holes] / shares[holes].sum()
            drawn[row, holes] = rng.multinomial(total, own)
        return drawn

    @property
    def page_steps(self) -> float:
        """Approximate number of logarithms or exponentials of an answer on the page."""
        return float(highest_count(self.means, self.sizes) * self.log_shares.size)

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""
        log_shares, means, sizes, largest = needed(arrays, (*cls.parameters, *cls.shared))
        k = log_shares.shape[1] if log_shares.ndim == 2 else 0
        shape = (columns.size, k)
        log_shares = numbers(log_shares, "log_shares", shape, low=-np.inf, high=CLOSE)
        if not (np.abs(np.exp(log_shares).sum(axis=0) - 1) < CLOSE).all():
            raise ModelFileError("log_shares hold probabilities that do not add up to one")
        means, sizes = checked_totals(means, sizes, (k,))
        largest = checked_largest(largest, 1, SPARE * MOST + 10)
        return cls(columns, types, log_shares, means, sizes, largest)


def _known_units(values: Any, mass: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Return the units of each column, the weight of the rows that know it, and how many do not."""
    weights = mass.sum(axis=1)
    if is_sparse(values):
        return np.asarray(weights @ values), np.full(values.shape[1], weights.sum()), 0
    known = ~np.isnan(values)
    return weights @ np.nan_to_num(values), weights @ known, int((~known).sum())


def _filled(values: Any, usual: FloatArray) -> Any:
    """Return rows with missing counts replaced by means."""
    return values if is_sparse(values) else np.where(np.isnan(values), usual, values)


def _largest_total(values: Any, mass: FloatArray, usual: FloatArray) -> Highest:
    """Return the largest total of rows with missing counts replaced by means."""
    return Highest(np.asarray(_filled(values, usual).sum(axis=1).max(initial=0)))


def _filled_sums(values: Any, mass: FloatArray, blank: Tally, usual: FloatArray) -> PartSums:
    """Return the sums of rows with missing counts replaced by means."""
    return blank.sums(_filled(values, usual), mass)
