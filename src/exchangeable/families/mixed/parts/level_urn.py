"""Exchangeable items with the same levels: Pólya's urn over the counts of the levels.

P(x) = Π_v (a_v)_{c_v} / (A)_m, where c_v of the m known items have level v: exchangeable, with the
counts of levels as the statistic. This is the distribution of items that are independent given
shares of the levels, which themselves have a Dirichlet distribution. Leaving out items keeps the
form, so missing ones cost nothing; the counts of a mixture of such components are distributed as a
mixture of Dirichlet-multinomials.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.algebra import urn_kernels as kernels
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
    Part,
    PartSums,
    Prior,
    csr_arrays,
    draw_levels,
)
from exchangeable.storage.checks import needed, numbers


@dataclass(frozen=True)
class LevelUrn(Part):
    """Urns of levels, one for each class.

    Attributes
    ----------
    weights : array of shape (n_levels, n_classes)
        a: the weight of each level in the urn.
    """

    name: ClassVar[str] = "level urn"
    kinds: ClassVar[tuple[str, ...]] = ("binary", "nominal", "ordinal")
    alike: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = ("weights",)
    weights: FloatArray

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return int(self.weights.size)

    @cached_property
    def starts(self) -> IntArray:
        """The start of each level's lines among those of all."""
        return np.arange(len(self.weights) + 1, dtype=np.int64) * self.columns.size

    @cached_property
    def _table(self) -> FloatArray:
        """Log (a)_c of all levels and counts."""
        table = np.empty((int(self.starts[-1]), self.n_classes))
        kernels.rising_table(self.weights, self.starts, table)
        return table

    @cached_property
    def _lengths(self) -> FloatArray:
        """Log (A)_m of all numbers of known items, shape (n_columns + 1, n_classes)."""
        steps = np.log(self.weights.sum(axis=0) + np.arange(self.columns.size)[:, None])
        return np.concatenate([np.zeros((1, self.n_classes)), np.cumsum(steps, axis=0)])

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return weights by the fixed point, starting from a total of one per level."""
        blank = cls(columns, types, np.ones((types[0].n_levels, n_classes)))
        return blank._fitted((yield blank.sums), prior, FIRST_STEPS)

    def score(self, values: FloatArray) -> FloatArray:
        """Return log P of the known entries."""
        counts = self._counts(values)
        out = np.zeros((len(values), self.n_classes))
        kernels.score_rising(*csr_arrays(sp.csr_array(counts)), self.starts, self._table, out)
        return np.asarray(out - self._lengths[_known(values)])

    def _counts(self, values: FloatArray) -> FloatArray:
        """Return how many items of each row have each level."""
        levels = np.arange(len(self.weights))
        return np.stack([(values == level).sum(axis=1) for level in levels], axis=1).astype(float)

    def sums(self, values: FloatArray, mass: FloatArray) -> PartSums:
        """Return how often counts of levels, and numbers of known items, exceed 0, 1 and so on."""
        above = np.zeros((int(self.starts[-1]), self.n_classes))
        mass = np.ascontiguousarray(mass)
        kernels.sum_above(*csr_arrays(sp.csr_array(self._counts(values))), self.starts, mass, above)
        known = _known(values)
        spread = [
            np.bincount(known, mass[:, y], minlength=self.columns.size + 1)
            for y in range(self.n_classes)
        ]
        lengths = np.stack(spread, axis=1)[::-1].cumsum(axis=0)[::-1][1:]
        return {"above": above, "lengths": lengths}

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the weights after some steps."""
        return self._fitted(sums, prior, STEPS)

    def _fitted(self, sums: PartSums, prior: Prior, steps: int) -> Self:
        above, lengths = self._with_prior(sums, prior)
        urn = Urn(above, np.zeros(self.weights.shape), lengths, self.starts)
        return replace(self, weights=settled_weights(urn, self.weights, steps))

    def _with_prior(self, sums: PartSums, prior: Prior) -> tuple[FloatArray, FloatArray]:
        """Return the sums plus those of pseudo-rows: one item of every level, and pooled rows."""
        above, lengths = np.array(sums["above"]), np.array(sums["lengths"])
        if prior.pooling is None:
            above[self.starts[:-1]] += prior.alpha
            lengths[0] += prior.alpha * len(self.weights)
        elif prior.row is not None:
            above += prior.pooling * prior.row["above"]
            lengths += prior.pooling * prior.row["lengths"]
        return np.ascontiguousarray(above), np.ascontiguousarray(lengths)

    def log_prior(self, prior: Prior) -> float:
        """Return the score of the pseudo-rows."""
        nothing = {
            "above": np.zeros((int(self.starts[-1]), self.n_classes)),
            "lengths": np.zeros((self.columns.size, self.n_classes)),
        }
        above, lengths = self._with_prior(nothing, prior)
        level = np.repeat(np.arange(len(self.weights)), self.columns.size)
        drawn = np.arange(level.size) - self.starts[level]
        own = above * np.log(self.weights[level] + drawn[:, None])
        return float(own.sum() - (lengths * np.diff(self._lengths, axis=0)).sum())

    def predictive(self, values: FloatArray, column: int, y: int) -> FloatArray:
        """Return the probabilities of the levels, given the other known items."""
        held = self._counts(values) + self.weights[:, y]
        return np.asarray(held / held.sum(axis=1, keepdims=True))

    def complete(self, values: FloatArray, y: int) -> FloatArray:
        """Return the rows with one level for all missing items: the urn favours equal levels."""
        held = self._counts(values) + self.weights[:, y]
        open_items = self.columns.size - _known(values)
        steps = np.arange(self.columns.size)[:, None, None]
        gain = np.where(steps < open_items[:, None], np.log(held + steps), 0.0).sum(axis=0)
        best = gain.argmax(axis=1).astype(np.float64)
        return np.where(np.isnan(values), best[:, None], values)

    def draw(self, values: FloatArray, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with missing items drawn, one after another."""
        drawn = np.array(values)
        held = self._counts(values) + self.weights[:, y]
        for j in range(self.columns.size):
            rows = np.flatnonzero(np.isnan(drawn[:, j]))
            if rows.size:
                drawn[rows, j] = draw_levels(held[rows], rng)
                held[rows, drawn[rows, j].astype(np.int64)] += 1
        return drawn

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""
        (weights,) = needed(arrays, ("weights",))
        shape = (types[0].n_levels, weights.shape[1] if weights.ndim == 2 else 0)
        weights = numbers(weights, "weights", shape, low=LEAST_WEIGHT, high=MOST_WEIGHT)
        return cls(columns, types, weights)


def _known(values: FloatArray) -> IntArray:
    """Return the number of known items of each row."""
    return np.asarray((~np.isnan(values)).sum(axis=1), dtype=np.int64)
