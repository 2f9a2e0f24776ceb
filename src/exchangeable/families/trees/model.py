"""Classes or components that are trees over the variables, with or without a count distribution.

A plain tree is P(x) = T(x), T(x) = exp(base + Σ_j slope_j·x_j + Σ_j pair_j·x_j·x_parent(j)). A
weighted tree is P(x) = q(n) · T(x) / F(n), where n is the number of ones and F(n) its probability
under T. Without edges the first is naive Bayes, the second a weighted urn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.observed import Observed
from exchangeable.families.common.log_linear.model import LogLinearModel
from exchangeable.families.common.log_linear.scores import NO_NUMBERS, NO_PARENTS, LogLinear
from exchangeable.families.contract import Arrays
from exchangeable.families.page import OnPage
from exchangeable.families.trees import independent, polynomials, saved, shared
from exchangeable.families.trees.kernels import assignments
from exchangeable.families.trees.kernels import queries as query_kernels
from exchangeable.families.trees.kernels.workspace import Workspace
from exchangeable.families.trees.polynomials import Forest
from exchangeable.families.trees.shared import SharedTrees
from exchangeable.partitions import Partition

ParentArray = npt.NDArray[np.int32]
NO_TABLE = np.zeros(1)


@dataclass(frozen=True)
class TreeModel(LogLinearModel):
    """A forest for each class, its natural parameters, and q of the number of ones if there is one.

    Attributes
    ----------
    base : array of shape (n_classes,)
        log P of the row without ones, for plain trees; zero for weighted ones.
    slope : array of shape (n_variables, n_classes)
        What a one adds.
    parent, pair : arrays of shape (n_variables, n_classes), or (0, 0) where there are no edges
        Each variable's parent (the number of variables for a root), and the term of the pair.
    log_q : array of shape (n_variables + 1, n_classes), or (0, 0) for plain trees
        log q(l) of every number of ones.
    reach : int, optional
        The largest number of ones that can be scored while a model is being fitted; by default all.
    n_jobs : int, optional
        Number of threads for computing `scores`.
    """

    kind: ClassVar[str] = "trees"
    base: FloatArray
    slope: FloatArray
    parent: ParentArray
    pair: FloatArray
    log_q: FloatArray
    reach: int | None = None
    n_jobs: int | None = None

    @classmethod
    def make(
        cls,
        base: FloatArray,
        slope: FloatArray,
        parent: ParentArray = NO_PARENTS,
        pair: FloatArray = NO_NUMBERS,
        log_q: FloatArray = NO_NUMBERS,
        n_jobs: int | None = None,
        reach: int | None = None,
    ) -> Self:
        """Return the model of given parameters."""
        return cls(base, slope, parent, pair, log_q, reach, n_jobs)

    def whole(self) -> Self:
        """Return a model that can score any row."""
        return self if self.reach is None else replace(self, reach=None)

    @cached_property
    def counts(self) -> tuple[FloatArray, FloatArray]:
        """Log F of the counts that can be scored, and the tilts that gave it."""
        reach = self.n_variables if self.reach is None else self.reach
        return polynomials.log_counts(self.slope, self.parent, self.pair, reach, self.n_jobs)

    @cached_property
    def scores(self) -> LogLinear:
        """The data for scoring, computed on first use."""
        by_count = NO_NUMBERS
        if self.log_q.size:
            weights = self.counts[0]
            by_count = np.full(self.log_q.shape, -np.inf)
            # A count that the tree almost excludes remains impossible, whatever q says.
            possible = np.where(np.isfinite(weights), weights, np.inf)
            by_count[: len(weights)] = self.log_q[: len(weights)] - possible
            excluded = np.isinf(possible)
            if excluded.any():
                lost = np.where(excluded, np.exp(self.log_q[: len(weights)]), 0.0).sum(axis=0)
                by_count -= np.log1p(-np.minimum(lost, 1.0 - 2.0**-52))
        return LogLinear(self.base, self.slope, self.parent, self.pair, by_count)

    def without_edges(self) -> Self:
        """Return the model with the same forests, whose edges have no effect."""
        return replace(self, pair=np.zeros(self.pair.shape))

    @property
    def n_steps(self) -> float:
        """Approximate nanoseconds for the polynomials: quadratic in the number of variables."""
        squares = 40.0 * self.n_classes * self.n_variables**2 if self.log_q.size else 0.0
        return squares + super().n_steps

    def log_totals(self) -> FloatArray:
        """Return log Σ_x P(x | y), for weighted trees from the data for scoring."""
        if self.independent:  # incomplete rows are scored without the base
            return np.asarray(self.base + self._off.sum(axis=0))
        if not self.log_q.size:
            return super().log_totals()
        if self.n_classes > 1:  # one at a time, so that their memory does not add up
            each = [self.only(np.array([y])).log_totals() for y in range(self.n_classes)]
            polynomials.forget_shapes()
            return np.concatenate(each)
        by_count, weights = self.scores.by_count, self.counts[0]
        with np.errstate(invalid="ignore"):
            shares = np.where(by_count == -np.inf, 0.0, np.exp(by_count + weights))
        return np.asarray(self.base + np.log(shares.sum(axis=0)))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.slope.shape[1])

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.slope.shape[0])

    @property
    def independent(self) -> bool:
        """Whether there are neither edges nor counts: variables are independent in each class."""
        return not self.parent.size and not self.log_q.size

    @cached_property
    def _off(self) -> FloatArray:
        """−log P(x_j = 0 | y) of independent variables."""
        return np.logaddexp(0.0, self.slope)

    @cached_property
    def own_marginals(self) -> FloatArray | None:
        """P(x_j = 1 | y), shape (n_classes, n_variables), of independent variables."""
        return np.ascontiguousarray(expit(self.slope.T)) if self.independent else None

    @cached_property
    def _shared(self) -> list[SharedTrees]:
        """Plain trees grouped by the edges they share, if many do."""
        if not self.parent.size or self.log_q.size:
            return []
        return shared.share_edges(self.base, self.slope, self.parent, self.pair)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: one for each variable, one for each edge, and q."""
        n, k = self.slope.shape
        edges = int((self.parent < n).sum())
        return int(n * k + edges + ((n - 1) * k if self.log_q.size else 0))

    @property
    def partitions(self) -> list[Partition]:
        """The blocks of each class: all variables for weighted trees, single ones for others."""
        n = self.n_variables
        labels = np.zeros(n, dtype=np.int64) if self.log_q.size else np.arange(n)
        return [Partition.from_labels(labels)] * self.n_classes

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) for every class, block and count l."""
        if self.log_q.size:
            return [[np.exp(column)] for column in self.log_q.T]
        return super().count_probabilities()

    def log_urn_weights(self) -> FloatArray:
        """Return what a one of each variable adds in each class."""
        return self.slope

    def encode(self) -> Arrays:
        """Return the parameters as arrays for a file."""
        return {name: getattr(self, name) for name in saved.ARRAYS}

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model from arrays of a file, after checking everything."""
        return cls.make(*saved.decode(arrays))

    def on_page(self) -> OnPage:
        """Return natural parameters, parents, and look-ups by count if there are any."""
        n, k = self.slope.shape
        data = {
            "base": self.base,
            "slope": self.slope.T,
            "parent": self.parent.T,
            "pair": self.pair.T,
            "tables": self.scores.by_count.T,
        }
        steps = 8.0 * n * k * (n if self.log_q.size else 4)
        return OnPage("trees", "exchangeable.families.trees", data, steps)

    def edges(self) -> list[IntArray]:
        """Return, for each class, the (variable, parent) of each edge of its forest."""
        if not self.parent.size:
            return [np.empty((0, 2), dtype=np.int64)] * self.n_classes
        by_class = []
        for column in self.parent.T.astype(np.int64):
            child = np.flatnonzero(column < self.n_variables)
            by_class.append(np.stack([child, column[child]], axis=1))
        return by_class

    @classmethod
    def stack(cls, models: Sequence["TreeModel"]) -> Self:
        """Return the model of all classes of several models."""
        names = ("base", "slope", "parent", "pair", "log_q")
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(model, name) for model in models], axis=-1)
            for name in names
        }
        return cls.make(**arrays)

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes."""
        arrays: dict[str, Any] = {
            name: np.ascontiguousarray(getattr(self, name)[:, classes])
            for name in ("slope", "parent", "pair", "log_q")
            if getattr(self, name).size
        }
        return type(self).make(self.base[classes], **arrays)

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries."""
        by_product = observed.holes is not None or independent.dense(observed, self.n_classes)
        if by_product and self.independent:
            return independent.score(observed, self.base, self.slope, self._off)
        if by_product and self._shared:
            if observed.holes is not None:
                return shared.score(self._shared, observed, self.n_classes, n_jobs)
            natural = self.base, self.slope, self.parent, self.pair
            return shared.score_complete(self._shared, observed, natural)
        return super().score(observed, n_jobs)

    def score_class(self, states: SymbolArray, y: int, out: FloatArray) -> None:
        """Write log P(e | y) of rows with missing entries; e are a row's known entries."""
        self._ask(query_kernels.score_rows, y, states, out, self._workspace)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""
        out = np.empty((observed.n_rows, self.n_variables))
        states = observed.symbols()
        order = self._ask(query_kernels.marginal_rows, y, states, out, self._workspace)[0]
        back = np.empty_like(out)
        back[:, order] = out
        return back

    def mean_marginals(self, observed: Observed, shares: FloatArray) -> FloatArray:
        """Return Σ_y shares[row, y]·P(x_j = 1 | e, y), all classes at once if edges are shared."""
        if self.own_marginals is not None:
            return independent.mean_marginals(observed, shares, self.own_marginals)
        if self._shared:
            return shared.mean_marginals(self._shared, observed, shares)
        return super().mean_marginals(observed, shares)

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of each row, and log P(x | y)."""
        out = np.empty(observed.n_rows)
        kernel = assignments.complete_rows
        return self._filled(kernel, y, observed, out, self._node_workspace), out

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        uniforms = rng.random((observed.n_rows, 2 * self.n_variables + 1))
        rooms = self._workspace, self._node_workspace
        return self._filled(assignments.draw_rows, y, observed, uniforms, *rooms)

    def numbers_drawn(self, observed: Observed, y: int) -> tuple[int, ...]:
        """Return how many random numbers `draw` takes for each row."""
        return (2 * self.n_variables + 1,)

    def hole_sums(
        self, observed: Observed, mass: FloatArray, y: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mass of class y by variables on, by pairs on, and by counts."""
        n = self.n_variables
        node_sums, sums = np.zeros((3, n + 1)), np.zeros((3, n + 1))
        forest = Forest.of(self.slope, self.parent, self.pair, y)
        states = np.ascontiguousarray(observed.symbols()[:, forest.order])
        counting = bool(self.log_q.size)
        by_node = query_kernels.RowSums(node_sums[0, :n], node_sums[1, :n], node_sums[2])
        workspace = self._workspace(forest)
        query_kernels.sums_rows(states, forest, self._table(y), counting, mass, by_node, workspace)
        sums[:2, forest.order] = node_sums[:2, :n]
        return sums[0, :n], sums[1, :n], node_sums[2]

    def _table(self, y: int) -> FloatArray:
        """Return a class's look-ups by count, or for a plain tree the score of the empty row."""
        return self.scores.by_count[:, y].copy() if self.log_q.size else self.base[y : y + 1]

    def _workspace(self, forest: Forest) -> Workspace:
        """Return the workspace for the polynomials of a forest, as far as they are needed."""
        return Workspace.of([forest.merges], self.n_variables if self.log_q.size else 0)

    def _node_workspace(self, forest: Forest) -> assignments.NodeWorkspace:
        """Return the workspace for the polynomials of each node and of all before it."""
        n = self.n_variables
        return assignments.NodeWorkspace.of(n, n if self.log_q.size else 0)

    def _filled(
        self,
        kernel: Callable[..., None],
        y: int,
        observed: Observed,
        extra: FloatArray,
        *rooms: Callable[[Forest], Any],
    ) -> SymbolArray:
        """Return the rows as filled in by a kernel."""
        order, states = self._ask(kernel, y, observed.symbols(), extra, *rooms)
        back = np.empty_like(states)
        back[:, order] = states
        return back

    def _ask(
        self,
        kernel: Callable[..., None],
        y: int,
        states: SymbolArray,
        extra: FloatArray,
        *rooms: Callable[[Forest], Any],
    ) -> tuple[IntArray, SymbolArray]:
        """Run a kernel on a class; return the order of the nodes, and the rows in that order.

        `rooms` create the workspace that it needs.
        """
        forest = Forest.of(self.slope, self.parent, self.pair, y)
        counting = bool(self.log_q.size)
        ordered = np.ascontiguousarray(states[:, forest.order])
        made = [room(forest) for room in rooms]
        kernel(ordered, forest, self._table(y), counting, extra, *made)
        return forest.order, ordered
