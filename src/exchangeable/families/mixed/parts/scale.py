"""Dependent items of a scale: the partial credit model with a free distribution of totals.

P(x) = q(T)·Π_j ε_j(x_j) / F(T), where T is the sum of the items' scores 0, 1, …: given the total
this is Masters' partial credit model, and Rasch's model if items are binary. ε is normalised to the
level probabilities of independent items, and F is the distribution of their total.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.common import total_kernels as kernels
from exchangeable.families.items import ItemScale
from exchangeable.families.mixed.parts.base import Arrays, Ask, Part, PartSums, Prior
from exchangeable.families.mixed.parts.levels import Levels
from exchangeable.storage.checks import CLOSE, check_columns, needed, numbers

LEAST_TOTAL = 1e-290
"""Lower bound of the probability of a total of independent columns."""
LEAST_SHARE = 1e-12
"""Lower bound of the probability of levels that occur, in independent columns."""


@dataclass(frozen=True)
class Scale(Part):
    """Partial credit models, one for each class.

    Attributes
    ----------
    log_shares : array of shape (n_levels, n_classes)
        log ε of all levels of all columns, normalised for each column.
    log_totals : array of shape (n_totals, n_classes)
        log q of the totals 0, 1, …
    """

    name: ClassVar[str] = "scale"
    kinds: ClassVar[tuple[str, ...]] = ("binary", "ordinal")
    parameters: ClassVar[tuple[str, ...]] = ("log_shares", "log_totals")
    latent: ClassVar[bool] = True
    log_shares: FloatArray
    log_totals: FloatArray

    @cached_property
    def sizes(self) -> IntArray:
        """Number of levels of each column."""
        return np.array([kind.n_levels for kind in self.types], dtype=np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """Where the levels of each column begin."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: the scale of the scores is not one."""
        own = int((self.sizes - 1).sum()) - 1 + len(self.log_totals) - 1
        return own * self.n_classes

    @cached_property
    def scales(self) -> list[kernels.Scale]:
        """The parameters of each class in the form of the kernels."""
        made = []
        for y in range(self.n_classes):
            shares = np.exp(self.log_shares[:, y])
            independent = np.empty(self.log_totals.shape[0])
            kernels.independent_totals(self.starts, self.sizes, shares, independent)
            ratio = np.exp(self.log_totals[:, y]) / np.maximum(independent, LEAST_TOTAL)
            made.append(kernels.Scale(self.starts, self.sizes, shares, ratio))
        return made

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return the frequencies of levels, and the result of one step from them."""
        # The prior of independent items is Laplace's alone: that of totals is computed from this
        # part.
        alone = yield from Levels.beginning(columns, types, n_classes, Prior(prior.alpha))
        log_shares = np.maximum(alone.log_shares, np.log(LEAST_SHARE))
        n_totals = int((alone.sizes - 1).sum()) + 1
        blank = cls(columns, types, log_shares, np.zeros((n_totals, alone.n_classes)))
        start = replace(blank, log_totals=blank._independent())
        sums = yield start.sums
        totals = sums["totals"] + start._pseudo_totals(prior)
        weight = totals.sum(axis=0)
        own = np.where(weight > 0, totals / np.where(weight > 0, weight, 1.0), 1 / n_totals)
        with np.errstate(divide="ignore"):
            return replace(start, log_totals=np.log(own))

    def _independent(self) -> FloatArray:
        """Return the log-probabilities of totals of independent columns."""
        out = np.empty_like(self.log_totals)
        for y in range(self.n_classes):
            line = np.empty(len(out))
            kernels.independent_totals(self.starts, self.sizes, np.exp(self.log_shares[:, y]), line)
            out[:, y] = np.log(np.maximum(line, LEAST_TOTAL))
        return out

    def score(self, values: FloatArray) -> FloatArray:
        """Return log P of the known entries."""
        out = np.empty((self.n_classes, len(values)))
        for y, scale in enumerate(self.scales):
            kernels.score_rows(values, scale, out[y])
        return np.ascontiguousarray(out.T)

    def sums(self, values: FloatArray, mass: FloatArray) -> PartSums:
        """Return the mass of levels and totals, with exact expectations for missing ones."""
        levels = np.zeros((self.n_classes, self.log_shares.shape[0]))
        totals = np.zeros((self.n_classes, self.log_totals.shape[0]))
        for y, scale in enumerate(self.scales):
            kernels.sum_rows(values, np.ascontiguousarray(mass[:, y]), scale, levels[y], totals[y])
        return {"levels": levels.T, "totals": totals.T}

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the shares of totals, and levels scaled once by observed over expected mass.

        If scaled by a root of this ratio (generalised iterative scaling), the likelihood cannot
        decrease.
        """
        seen = sums["levels"] + self._pseudo_levels(prior)
        totals = sums["totals"] + self._pseudo_totals(prior)
        step = 1.0 / self.columns.size if careful else 1.0
        log_shares, log_totals = np.array(self.log_shares), np.array(self.log_totals)
        nothing = np.full((1, self.columns.size), np.nan)
        for y, scale in enumerate(self.scales):
            if not totals[:, y].sum() > 0:
                continue
            independent = np.exp(self._independent_of(scale))
            expected, unused = np.zeros(len(log_shares)), np.zeros(len(log_totals))
            held = scale._replace(ratio=totals[:, y] / np.maximum(independent, LEAST_TOTAL))
            kernels.sum_rows(nothing, totals[:, y].sum(keepdims=True), held, expected, unused)
            with np.errstate(divide="ignore", invalid="ignore"):
                moved = self.log_shares[:, y] + step * np.log(seen[:, y] / expected)
                moved = np.where(seen[:, y] > 0, moved, -np.inf)
                log_shares[:, y] = self._centred(moved, totals[:, y])
                log_totals[:, y] = np.log(totals[:, y] / totals[:, y].sum())
        return replace(self, log_shares=log_shares, log_totals=log_totals)

    def _independent_of(self, scale: kernels.Scale) -> FloatArray:
        line = np.empty(self.log_totals.shape[0])
        kernels.independent_totals(self.starts, self.sizes, scale.shares, line)
        return np.asarray(np.log(np.maximum(line, LEAST_TOTAL)))

    def _centred(self, log_shares: FloatArray, totals: FloatArray) -> FloatArray:
        """Return the same model, normalised such that independent columns have the mean total."""
        scores = np.concatenate([np.arange(size) for size in self.sizes])
        wanted = float(totals @ np.arange(totals.size) / totals.sum())

        def tilted(tilt: float) -> FloatArray:
            raised = log_shares + tilt * scores
            highest = np.repeat(np.maximum.reduceat(raised, self.starts), self.sizes)
            shares = np.exp(raised - highest)
            whole = np.repeat(np.add.reduceat(shares, self.starts), self.sizes)
            return np.asarray(shares / whole)

        low, high = -20.0, 20.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = float(tilted(middle) @ scores) < wanted
            low, high = (middle, high) if below else (low, middle)
        return np.asarray(np.log(tilted(0.5 * (low + high))))

    def _pseudo_levels(self, prior: Prior) -> FloatArray:
        """Return the prior's weight of each level."""
        if prior.pooled is None:
            return np.zeros((self.log_shares.shape[0], 1))
        return np.asarray(prior.strength * prior.pooled.pooled_levels)

    def _pseudo_totals(self, prior: Prior) -> FloatArray:
        """Return the prior's weight of each total; at first, as if independent."""
        if prior.pooled is None:
            return np.asarray(prior.alpha * np.exp(self._independent()))
        return np.asarray(prior.strength * np.exp(prior.pooled.log_totals))

    @cached_property
    def pooled_levels(self) -> FloatArray:
        """The probability of each level in each class, without evidence."""
        nothing = np.full((1, self.columns.size), np.nan)
        return self.sums(nothing, np.ones((1, self.n_classes)))["levels"]

    def log_prior(self, prior: Prior) -> float:
        """Return the expected score of the pseudo-rows."""
        levels, totals = self._pseudo_levels(prior), self._pseudo_totals(prior)
        if not levels.any():
            return 0.0
        ratio = self.log_totals - self._independent()
        levels, totals = (
            np.broadcast_to(levels, self.log_shares.shape),
            np.broadcast_to(totals, ratio.shape),
        )
        seen, reached = levels > 0, totals > 0
        own = (levels[seen] * self.log_shares[seen]).sum()
        return float(own + (totals[reached] * ratio[reached]).sum())

    def distance(self, after: "Scale") -> float:
        """Return how much a step has changed the weights of levels that occur."""
        both = np.isfinite(self.log_shares) & np.isfinite(after.log_shares)
        moved = after.log_shares[both] - self.log_shares[both]
        return float(np.sqrt(np.mean(moved**2))) if both.any() else 0.0

    def predictive(self, values: FloatArray, column: int, y: int) -> FloatArray:
        """Return the probabilities of the levels, given the other known entries."""
        out = np.empty((len(values), self.sizes[column]))
        for row, line in zip(values, out, strict=True):
            kernels.level_shares(row, column, self.scales[y], line)
        return out

    def complete(self, values: FloatArray, y: int) -> FloatArray:
        """Return the rows with the jointly most probable missing levels."""
        filled = np.array(values)
        for row in filled:
            kernels.fill_by_best(row, self.scales[y])
        return filled

    def draw(self, values: FloatArray, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with missing levels drawn."""
        drawn, uniform = np.array(values), rng.random(values.shape)
        for row, chances in zip(drawn, uniform, strict=True):
            kernels.fill_by_draw(row, chances, self.scales[y])
        return drawn

    def on_page(self) -> Arrays:
        """Return the shares of levels, and the factors of totals."""
        shares, ratios = ([scale.shares for scale in self.scales], [s.ratio for s in self.scales])
        return {"shares": np.stack(shares, axis=1), "ratio": np.stack(ratios, axis=1)}

    @property
    def page_steps(self) -> float:
        """Approximate number of products of an answer on the page."""
        return float(self.log_shares.size * len(self.log_totals))

    def item_scale(self) -> ItemScale:
        """Return the credits of answers above the lowest, and the distribution of totals."""
        lowest = np.repeat(self.log_shares[self.starts], self.sizes, axis=0)
        above = np.delete(self.log_shares - lowest, self.starts, axis=0)
        return ItemScale(self.columns, self.sizes - 1, above, self.log_totals)

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""
        log_shares, log_totals = needed(arrays, ("log_shares", "log_totals"))
        n_levels = sum(kind.n_levels for kind in types)
        n_totals = n_levels - len(types) + 1
        k = log_shares.shape[1] if log_shares.ndim == 2 else 0
        part = cls(
            columns,
            types,
            numbers(log_shares, "log_shares", (n_levels, k), low=-np.inf, high=CLOSE),
            numbers(log_totals, "log_totals", (n_totals, k), low=-np.inf, high=CLOSE),
        )
        check_columns(part.log_shares, part.starts, "log_shares")
        check_columns(part.log_totals, np.zeros(1, dtype=np.int64), "log_totals")
        return part
