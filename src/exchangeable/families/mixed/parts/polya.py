"""Bursty counts: Pólya's urn, which is Dirichlet-multinomial given the total.

P(x) = q(T)·T!·Π_j (a_j)_{x_j} / x_j! / (A)_T, where (a)_x = a·(a + 1)⋯(a + x − 1), A = Σ_j a_j, and
the total T is negative binomial: a unit drawn from the urn is returned together with another of its
column. Unknown counts are combined to one column of weight Σ a_j, so that only their total is
summed over.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.algebra import urn_kernels as kernels
from exchangeable.families.mixed.algebra.splits import best_counts, drawn_split, split_count
from exchangeable.families.mixed.algebra.totals import (
    MOST,
    checked_largest,
    checked_totals,
    fit_counts,
    highest_count,
    log_counts,
)
from exchangeable.families.mixed.algebra.urn_weights import (
    FIRST_STEPS,
    LEAST_WEIGHT,
    MOST_WEIGHT,
    STEPS,
    Urn,
    settled_weights,
)
from exchangeable.families.mixed.parts.base import (
    Ask,
    Highest,
    Part,
    PartSums,
    Prior,
    csr_arrays,
    laid_out,
)
from exchangeable.families.mixed.parts.counts import check_largest
from exchangeable.families.mixed.rows.count_entries import entries_of, first_look, reach_of
from exchangeable.storage.checks import needed, numbers

SPARE = 1000
"""Totals are covered up to twice the largest observed one, or at least this."""


@dataclass(frozen=True)
class Polya(Part):
    """Dirichlet-multinomial distributions given a total, one for each class.

    Attributes
    ----------
    weights : array of shape (n_columns, n_classes)
        a: the weight of each column in the urn.
    means, sizes : array of shape (n_classes,)
        The parameters of the totals.
    largest : array of shape (n_columns + 1,)
        The largest count of each column that is covered, and the largest total.
    """

    name: ClassVar[str] = "polya"
    kinds: ClassVar[tuple[str, ...]] = ("count",)
    parameters: ClassVar[tuple[str, ...]] = ("weights", "means", "sizes")
    shared: ClassVar[tuple[str, ...]] = ("largest",)
    weights: FloatArray
    means: FloatArray
    sizes: FloatArray
    largest: IntArray

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return (self.columns.size + 2) * self.n_classes

    @cached_property
    def starts(self) -> IntArray:
        """The start of each column's lines, and the end of the last."""
        return np.concatenate([[0], np.cumsum(self.largest[:-1])]).astype(np.int64)

    @cached_property
    def whole(self) -> FloatArray:
        """The sum of the weights of each class."""
        return np.asarray(self.weights.sum(axis=0))

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return weights by the fixed point, from the known counts."""
        highest, units, weight = yield first_look
        largest = reach_of(highest)
        check_largest(largest)
        usual = max(float(units.sum()) / max(weight, LEAST_WEIGHT), 1.0)
        shares = (units + 1e-3) / (units + 1e-3).sum()
        blank = cls(
            columns,
            types,
            np.tile(np.maximum(usual * shares, LEAST_WEIGHT)[:, None], n_classes),
            np.full(n_classes, usual),
            np.full(n_classes, np.inf),
            largest,
        )
        return blank._fitted((yield blank.sums), prior, FIRST_STEPS)

    @property
    def reach(self) -> IntArray:
        """The largest count of each column, and the largest total."""
        return self.largest

    def reached(self, values: Any, mass: FloatArray) -> Highest:
        """Return the same for some rows, with larger totals if any count is unknown."""
        return Highest(reach_of(first_look(values, mass)[0]))

    def widened(self, reach: IntArray) -> Self:
        """Return the part with a larger reach."""
        check_largest(reach[:-1])
        largest = np.maximum(self.largest, reach)
        return self if np.array_equal(largest, self.largest) else replace(self, largest=largest)

    def carried(self, sums: PartSums, after: Self) -> PartSums:
        """Return sums in the terms of a part with another reach."""
        if np.array_equal(self.largest, after.largest):
            return sums
        column = np.repeat(np.arange(self.columns.size), np.diff(self.starts))
        drawn = np.arange(column.size) - self.starts[column]
        kept = drawn < after.largest[column]
        above = np.zeros((int(after.starts[-1]), sums["above"].shape[1]))
        above[after.starts[column[kept]] + drawn[kept]] = sums["above"][kept]
        totals = laid_out(sums["totals"], int(after.largest[-1]) + 1)
        return {"above": above, "fixed": sums["fixed"], "totals": totals}

    def score(self, values: Any) -> FloatArray:
        """Return log P of the known entries."""
        matrix, totals, holes = entries_of(values)
        out = np.zeros((len(totals), self.n_classes))
        kernels.score_rising(*csr_arrays(matrix), self.starts, self._table, out)
        row = np.repeat(np.arange(len(totals)), np.diff(matrix.indptr))
        beyond = np.flatnonzero(matrix.data > self.largest[matrix.indices])
        if beyond.size:
            weights = self.weights[matrix.indices[beyond]]
            more = special.gammaln(matrix.data[beyond, None] + weights) - special.gammaln(weights)
            np.add.at(out, row[beyond], more)
        ways = np.bincount(row, special.gammaln(matrix.data + 1), minlength=len(totals))
        out -= ways[:, None]
        if holes is None:
            distinct, code = np.unique(totals, return_inverse=True)
            each = log_counts(distinct, self.means, self.sizes)
            each += special.gammaln(distinct + 1)[:, None]
            each -= special.gammaln(distinct[:, None] + self.whole) - special.gammaln(self.whole)
            return np.asarray(out + each[code])
        for y in range(self.n_classes):
            weight, shares = holes @ self.weights[:, y], self._room(totals)
            for r in range(len(totals)):
                out[r, y] += self._open(totals[r], weight[r], y, shares)[0]
        return out

    @cached_property
    def _table(self) -> FloatArray:
        """Log (a)_x of all counts that are covered."""
        table = np.empty((int(self.starts[-1]), self.n_classes))
        kernels.rising_table(self.weights, self.starts, table)
        return table

    @cached_property
    def _ends(self) -> list[int]:
        return [highest_count(self.means[[y]], self.sizes[[y]]) for y in range(self.n_classes)]

    def _room(self, totals: FloatArray) -> FloatArray:
        """Return workspace for the totals of unknown counts, beyond which none matters."""
        top = max([*self._ends, int(totals.max(initial=0))])
        return np.empty(2 * top + SPARE)

    def _open(self, known: float, weight: float, y: int, shares: FloatArray) -> tuple[float, int]:
        """Write the probabilities of totals of unknown counts; return the log of their sum."""
        if not weight > 0:
            weight = 0.0
        found = kernels.open_totals(
            known, weight, self.whole[y], self.means[y], self.sizes[y], self._ends[y], shares
        )
        return float(found[0]), int(found[1])

    def sums(self, values: Any, mass: FloatArray) -> PartSums:
        """Return how often counts exceed 0, 1, …, terms of unknown ones, and the mass of totals."""
        matrix, totals, holes = entries_of(values)
        above = np.zeros((int(self.starts[-1]), self.n_classes))
        kernels.sum_above(*csr_arrays(matrix), self.starts, np.ascontiguousarray(mass), above)
        fixed, top = np.zeros(self.weights.shape), int(self.largest[-1])
        spread = np.zeros((top + 1, self.n_classes))
        whole = np.ones(len(totals), dtype=np.bool_) if holes is None else ~holes.any(axis=1)
        counted = np.minimum(totals, top).astype(np.int64)
        for y in range(self.n_classes):
            spread[:, y] = np.bincount(counted[whole], mass[whole, y], minlength=top + 1)
        if holes is None or whole.all():
            return {"above": above, "fixed": fixed, "totals": spread}
        shares = self._room(totals)
        for y in range(self.n_classes):
            weight = holes @ self.weights[:, y]
            for r in np.flatnonzero(~whole & (mass[:, y] > 0)):
                n = self._open(totals[r], weight[r], y, shares)[1]
                place = np.minimum(counted[r] + np.arange(n), top)
                spread[:, y] += mass[r, y] * np.bincount(place, shares[:n], minlength=top + 1)
                beyond = shares[:n][::-1].cumsum()[::-1][1:]
                units = mass[r, y] * float((beyond / (weight[r] + np.arange(n - 1))).sum())
                fixed[holes[r], y] += units * self.weights[holes[r], y]
        return {"above": above, "fixed": fixed, "totals": spread}

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the weights after some steps, and the best-fitting distribution of totals."""
        return self._fitted(sums, prior, STEPS)

    def _fitted(self, sums: PartSums, prior: Prior, steps: int) -> Self:
        own = {name: np.ascontiguousarray(sums[name] + _pseudo(prior, name)) for name in sums}
        lengths = np.ascontiguousarray(own["totals"][::-1].cumsum(axis=0)[::-1][1:])
        urn = Urn(own["above"], own["fixed"], lengths, self.starts)
        weights = settled_weights(urn, self.weights, steps)
        means, sizes = fit_counts(own["totals"])
        return replace(self, weights=weights, means=means, sizes=sizes)

    def log_prior(self, prior: Prior) -> float:
        """Return the score of the pseudo-rows."""
        if prior.row is None:
            return 0.0
        column = np.repeat(np.arange(self.columns.size), np.diff(self.starts))
        drawn = np.arange(column.size) - self.starts[column]
        own = _pseudo(prior, "above") * np.log(self.weights[column] + drawn[:, None])
        own_fixed = _pseudo(prior, "fixed") * np.log(self.weights)
        totals = np.arange(len(prior.row["totals"]), dtype=np.float64)
        each = log_counts(totals, self.means, self.sizes)
        each -= special.gammaln(totals[:, None] + self.whole) - special.gammaln(self.whole)
        return float(own.sum() + own_fixed.sum() + (_pseudo(prior, "totals") * each).sum())

    def predictive(self, values: Any, column: int, y: int) -> FloatArray:
        """Return the probabilities of the counts of a column, given the other known ones."""
        _, totals, holes = entries_of(values)
        assert holes is not None
        weight, shares = holes @ self.weights[:, y], self._room(totals)
        own, lines = self.weights[column, y], list[FloatArray]()
        for r in range(len(totals)):
            n = self._open(totals[r], weight[r], y, shares)[1]
            lines.append(split_count(shares[:n], own, max(weight[r] - own, 0.0)))
        width = max(line.size for line in lines)
        return np.stack([np.pad(line, (0, width - line.size)) for line in lines])

    def complete(self, values: Any, y: int) -> FloatArray:
        """Return the rows with the jointly most probable missing counts."""
        filled, weights = np.array(values), self.weights[:, y]
        for row in filled:
            holes = np.flatnonzero(np.isnan(row))
            if holes.size:
                known = float(np.nansum(row))
                own = (self.means[[y]], self.sizes[[y]])
                row[holes] = best_counts(known, weights[holes], self.whole[y], own, self._ends[y])
        return filled

    def draw(self, values: Any, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with the total of missing counts drawn, and then these counts."""
        drawn = np.array(values)
        _, totals, holes = entries_of(values)
        if holes is None:
            return drawn
        weight, shares = holes @ self.weights[:, y], self._room(totals)
        for r in np.flatnonzero(holes.any(axis=1)):
            n = self._open(totals[r], weight[r], y, shares)[1]
            left = int(np.searchsorted(shares[:n].cumsum(), rng.random() * (1 - 1e-15)))
            drawn[r, holes[r]] = drawn_split(left, self.weights[holes[r], y], weight[r], rng)
        return drawn

    @property
    def page_steps(self) -> float:
        """Approximate number of logarithms or exponentials of an answer on the page."""
        return float(max(self._ends)) ** 2 * self.weights.size

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""
        weights, means, sizes, largest = needed(arrays, ("weights", "means", "sizes", "largest"))
        k = weights.shape[1] if weights.ndim == 2 else 0
        shape = (columns.size, k)
        weights = numbers(weights, "weights", shape, low=LEAST_WEIGHT, high=MOST_WEIGHT)
        means, sizes = checked_totals(means, sizes, (k,))
        largest = checked_largest(largest, columns.size + 1, 2 * MOST + 10)
        return cls(columns, types, weights, means, sizes, largest)


def _pseudo(prior: Prior, name: str) -> Any:
    """Return the contribution of the pseudo-rows to a sum."""
    return 0.0 if prior.row is None else prior.strength * prior.row[name]
