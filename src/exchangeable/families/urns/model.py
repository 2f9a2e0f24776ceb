"""Classes or components that consist of weighted urns: parameters, scores and queries.

In a block of m variables with weights θ, P(x) = q(n) · Π_j θ_j^{x_j} / e_n(θ), where n = Σ_j x_j is
the number of ones and e_n the elementary symmetric polynomial. Equal weights make it the paper's
block; q Poisson-binomial makes it naive Bayes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.common.log_linear.model import LogLinearModel
from exchangeable.families.common.log_linear.scores import LinearSums, LogLinear
from exchangeable.families.common.tables import Tables
from exchangeable.families.contract import Arrays
from exchangeable.families.items import ItemScale
from exchangeable.families.page import OnPage, stacked_labels
from exchangeable.families.urns import hole_pass, polynomials, query_kernels, saved
from exchangeable.families.urns.polynomials import UrnPolynomials
from exchangeable.families.urns.series_kernels import margin_above
from exchangeable.partitions import Partition


@dataclass(frozen=True)
class UrnModel(LogLinearModel):
    """The blocks of each class, the weights of its variables, and q of each block.

    Attributes
    ----------
    partitions : list of Partition
        The blocks of each class.
    log_weights : array of shape (n_variables, n_classes)
        log θ; only differences within a block matter.
    log_q : list of arrays
        log q(l) of each block and count for each class, in the layout of its partition.
    reach : int, optional
        The largest number of ones that can be scored while a model of one block is being fitted; by
        default all.
    n_jobs : int, optional
        Number of threads for computing `scores`.
    near : sequence of arrays
        An order of the variables for each class in which the weights are nearly sorted, if known:
        that of previous weights.
    """

    kind: ClassVar[str] = "urns"
    partitions: list[Partition]
    log_weights: FloatArray
    log_q: list[FloatArray]
    reach: int | None = None
    n_jobs: int | None = None
    near: Sequence[IntArray] = ()

    @classmethod
    def make(
        cls,
        partitions: Sequence[Partition],
        log_weights: FloatArray,
        log_q: Sequence[FloatArray],
        n_jobs: int | None = None,
        reach: int | None = None,
        near: Sequence[IntArray] = (),
    ) -> Self:
        """Return the model of given parameters."""
        return cls(list(partitions), log_weights, list(log_q), reach, n_jobs, near)

    def whole(self) -> Self:
        """Return a model that can score any row."""
        return self if self.reach is None else replace(self, reach=None)

    @cached_property
    def polynomials(self) -> list[UrnPolynomials]:
        """Log e_l of each block and those counts that are needed for each class, else +inf."""
        if self.reach is None:
            reach = [
                np.array([_last_possible(part) for part in np.split(log_q, partition.starts[1:])])
                for partition, log_q in zip(self.partitions, self.log_q, strict=True)
            ]
        else:  # one block, and expectations will be requested
            reach = [np.array([margin_above(self.reach, self.n_variables)])] * self.n_classes
        return polynomials.urn_polynomials(
            self.partitions, self.log_weights, reach, self.near, self.n_jobs
        )

    @cached_property
    def scores(self) -> LogLinear:
        """The data for scoring, computed on first use."""
        pairs = zip(self.log_q, self.polynomials, strict=True)
        made, base = [log_q - known.log_e for log_q, known in pairs], np.zeros(self.n_classes)
        if all(partition.n_blocks == 1 for partition in self.partitions):
            by_count = np.ascontiguousarray(np.stack(made, axis=1))
            return LogLinear(base, self.log_weights, by_count=by_count)
        tables = Tables.layout(self.partitions)
        tables.values[:] = np.concatenate(made)
        return LogLinear(base, self.log_weights, tables=tables)

    @property
    def n_steps(self) -> float:
        """Approximate nanoseconds for the polynomials, quadratic in the sizes of the urns."""
        sizes = [partition.sizes.astype(np.float64) for partition in self.partitions]
        return 2.0 * sum(float((each * each).sum()) for each in sizes) + super().n_steps

    def log_totals(self) -> FloatArray:
        """Return log Σ_x P(x | y): NaN if a required polynomial is not a number."""
        totals = []
        for y, (partition, log_q) in enumerate(zip(self.partitions, self.log_q, strict=True)):
            [known] = self.only(np.array([y])).polynomials
            possible = log_q > -np.inf
            shares = np.where(possible, np.exp(log_q), 0.0)
            shares[possible & ~np.isfinite(known.log_e)] = np.nan
            totals.append(np.log(np.add.reduceat(shares, partition.starts)).sum())
        return np.array(totals)

    def log_urn_weights(self) -> FloatArray:
        """Return log θ of each variable in each class."""
        return self.log_weights

    def item_scale(self) -> ItemScale | None:
        """Return the weights and the distribution of the count, if there is one block."""
        if any(partition.n_blocks > 1 for partition in self.partitions):
            return None
        items = np.arange(self.n_variables)
        return ItemScale(items, np.ones_like(items), self.log_weights, np.stack(self.log_q, axis=1))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.log_weights.shape[1])

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.log_weights.shape[0])

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: weights up to their scale, and q, of every block."""
        free, weighted = 0, np.ptp(self.log_weights) > 0
        for partition, log_q in zip(self.partitions, self.log_q, strict=True):
            free += int(np.isfinite(log_q).sum()) - partition.n_blocks
            if weighted:
                free += partition.labels.size - partition.n_blocks
        return free

    @classmethod
    def stack(cls, models: Sequence["UrnModel"]) -> Self:
        """Return the model of all classes of several models."""
        return cls.make(
            [partition for model in models for partition in model.partitions],
            np.concatenate([model.log_weights for model in models], axis=1),
            [log_q for model in models for log_q in model.log_q],
        )

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes."""
        return type(self).make(
            [self.partitions[y] for y in classes],
            np.ascontiguousarray(self.log_weights[:, classes]),
            [self.log_q[y] for y in classes],
        )

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return q(l | y) for every class, block and count l."""
        return [
            [np.exp(part) for part in np.split(log_q, partition.starts[1:])]
            for partition, log_q in zip(self.partitions, self.log_q, strict=True)
        ]

    def score_class(self, states: SymbolArray, y: int, out: FloatArray) -> None:
        """Write log P(e | y) of rows with missing entries; e are a row's known entries."""
        self._each(query_kernels.score_urn, y, states, out)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""
        states = observed.symbols()
        out = states.astype(np.float64)
        self._each(query_kernels.marginals_urn, y, states, out)
        return out

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of each row, and log P(x | y)."""
        states, out = observed.symbols(), np.zeros(observed.n_rows)
        self._each(query_kernels.complete_urn, y, states, out, ranked=True)
        return states, out

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        states = observed.symbols()
        if not observed.n_rows:
            return states
        # Rows with the same known entries are drawn together: they share their polynomials.
        _, first, alike = np.unique(states, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(alike.ravel(), kind="stable")
        for members in np.split(order, np.cumsum(np.bincount(alike.ravel()))[:-1]):
            known = states[first[alike.ravel()[members[0]]]].copy()
            self._draw_alike(states, members, known, y, rng)
        return states

    def expect_holes(
        self,
        examples: Examples,
        log_prior: FloatArray,
        n_jobs: int | None,
        given: FloatArray | None,
    ) -> LinearSums | None:
        """Compute posteriors and sums of incomplete rows, if every class is one urn."""
        if not self.scores.by_count.size:
            return None
        log_q = np.stack(self.log_q, axis=1)
        urns = (self.log_weights, self.scores.by_count, log_q)
        return hole_pass.expect(examples, *urns, log_prior, n_jobs, given)

    def numbers_drawn(self, observed: Observed, y: int) -> IntArray:
        """Return how many random numbers `draw` takes: for each urn one, and one per hole."""
        holes = observed.hole_flags()
        unknown = [holes[:, block].sum(axis=1) for block in self.partitions[y].blocks]
        return np.stack([each for n in unknown for each in (n > 0, n)], axis=1).astype(np.int64)

    def hole_sums(
        self, observed: Observed, mass: FloatArray, y: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mass of class y by variables on, by pairs on (none), and by counts."""
        weights = np.ascontiguousarray(self.log_weights[:, y])
        ones, counts = np.zeros(self.n_variables), np.zeros(self.partitions[y].table_size)
        states = observed.symbols()
        for (block, table), part in zip(
            self._urns(y), np.split(counts, self.partitions[y].starts[1:]), strict=True
        ):
            query_kernels.sums_urn(states, block, weights, table, mass, ones, part)
        return ones, np.empty(0), counts

    def contributions(self, row: IntArray, y: int) -> tuple[float, FloatArray]:
        """Return the score of the empty row in class y, and what each of the row's ones adds.

        In a block with n ones, these share table[n] − table[0] equally, and each adds its weight.
        """
        partition, table = self.partitions[y], np.concatenate([t for _, t in self._urns(y)])
        zero = table[partition.starts]
        count = np.bincount(partition.labels[row], minlength=partition.n_blocks)
        gain = (table[partition.starts + count] - zero) / np.maximum(count, 1)
        return float(zero.sum()), self.log_weights[row, y] + gain[partition.labels[row]]

    def on_page(self) -> OnPage:
        """Return blocks, weights and look-ups."""
        tables = [table for y in range(self.n_classes) for _, table in self._urns(y)]
        data = {
            "labels": stacked_labels(self.partitions),
            "weights": self.log_weights.T,
            "tables": np.concatenate(tables),
        }
        steps = 4.0 * sum(float((p.sizes**2).sum()) for p in self.partitions)
        return OnPage("urns", "exchangeable.families.urns", data, steps)

    def encode(self) -> Arrays:
        """Return the parameters as arrays for a file."""
        return saved.encode(self.partitions, self.log_weights, self.log_q)

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model from arrays of a file, after checking everything."""
        return cls.make(*saved.decode(arrays))

    def _draw_alike(
        self,
        states: SymbolArray,
        rows: IntArray,
        known: SymbolArray,
        y: int,
        rng: np.random.Generator,
    ) -> None:
        weights = np.ascontiguousarray(self.log_weights[:, y])
        for block, table in self._urns(y):
            holes = block[known[block] < 0]
            if not holes.size:
                continue
            counts = np.empty(rows.size, dtype=np.int64)
            query_kernels.draw_counts(known, block, weights, table, rng.random(rows.size), counts)
            on = np.empty((rows.size, holes.size), dtype=np.int8)
            query_kernels.draw_members(np.exp(weights[holes]), counts, rng.random(on.shape), on)
            states[np.ix_(rows, holes)] = on

    def _urns(self, y: int) -> list[tuple[IntArray, FloatArray]]:
        """Return the variables and the look-ups of each block of a class."""
        partition = self.partitions[y]
        if self.scores.by_count.size:
            return [(np.arange(self.n_variables), self.scores.by_count[:, y].copy())]
        tables = np.split(self.scores.tables.of_class(y), partition.starts[1:])
        return list(zip(partition.blocks, tables, strict=True))

    def _each(
        self,
        kernel: Callable[..., None],
        y: int,
        states: SymbolArray,
        out: FloatArray,
        ranked: bool = False,
    ) -> None:
        """Run a kernel on every block of a class."""
        weights = np.ascontiguousarray(self.log_weights[:, y])
        for block, table in self._urns(y):
            members = block[np.argsort(-weights[block], kind="stable")] if ranked else block
            kernel(states, members, weights, table, out)


def _last_possible(log_q: FloatArray) -> int:
    """Return the largest count that has a probability."""
    return int(np.flatnonzero(log_q > -np.inf)[-1])
