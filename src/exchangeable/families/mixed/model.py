"""Components of mixed kinds: products of parts, each over columns of one kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, SymbolArray, is_sparse
from exchangeable.data.columns.schema import typed, typed_rows
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType, CountRows, TypedRows
from exchangeable.families.common.posteriors import RowPriors
from exchangeable.families.contract import Arrays, Model
from exchangeable.families.items import ItemScale
from exchangeable.families.mixed import kernels, saved
from exchangeable.families.mixed.listing import all_completions, block_shares
from exchangeable.families.mixed.parts.base import Normal, Part, PartSums, add_sums
from exchangeable.families.mixed.rows.sums import check_types
from exchangeable.families.page import OnPage
from exchangeable.families.sums import NO_POSTERIOR, RowsInMemory, Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.kernels.vectors import TILE
from exchangeable.runtime.threads import row_ranges, run

CHUNK = 1 << 12
"""Number of rows that a thread works on at a time."""


@dataclass(frozen=True)
class MixedSums(Sums):
    """The sums of a pass, for each part."""

    parts: list[PartSums]


@dataclass(frozen=True)
class MixedModel(Model):
    """Products of parts, one for each class.

    Attributes
    ----------
    types : tuple of ColumnType
        What the numbers of each column stand for.
    parts : list of Part
        The parts; every column belongs to one of them.
    labels : array of shape (n_variables,)
        The block of each column.
    """

    kind: ClassVar[str] = "mixed"
    types: tuple[ColumnType, ...]
    parts: list[Part]
    labels: IntArray

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.parts[0].n_classes

    @property
    def n_variables(self) -> int:
        """Number of columns."""
        return len(self.types)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, without the probabilities of the classes."""
        return sum(part.n_parameters for part in self.parts)

    @property
    def partitions(self) -> list[Partition]:
        """The blocks, the same for all classes."""
        return [Partition.from_labels(self.labels)] * self.n_classes

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y); measurements are per unit of the user's scale."""
        values, jacobian = self._values(observed)

        def one(span: tuple[int, int]) -> FloatArray:
            return self._score(values[slice(*span)])

        scores = run(one, row_ranges(observed.n_rows, CHUNK), n_jobs)
        if not scores:
            return np.empty((0, self.n_classes))
        return np.asarray(np.concatenate(scores) + jacobian[:, None])

    def _score(self, values: Any) -> FloatArray:
        total = np.asfortranarray(self.parts[0].score(self._columns(self.parts[0], values)))
        for part in self.parts[1:]:
            total += part.score(self._columns(part, values))
        return total

    def _columns(self, part: Part, values: Any) -> Any:
        """Return a part's own columns of rows, dense or sparse."""
        if np.array_equal(part.columns, np.arange(self.n_variables)):
            return values
        own = values[:, part.columns]
        return own if is_sparse(own) else np.ascontiguousarray(own)

    def _values(self, observed: Observed) -> tuple[Any, FloatArray]:
        """Return rows as numbers, sparse if they are, and the logarithms of their Jacobians."""
        if isinstance(observed.ones, CountRows):
            check_types(observed.ones.types, self.types)
            return observed.ones.matrix, np.zeros(observed.n_rows)
        rows = self._rows(observed)
        return rows.values, rows.log_jacobian

    def on_page(self) -> OnPage:
        """Return the parameters of the parts."""
        parts = [
            {
                "name": part.name,
                "columns": part.columns,
                "levels": np.array([kind.n_levels for kind in part.types]),
                **part.on_page(),
            }
            for part in self.parts
        ]
        data = {"classes": self.n_classes, "parts": parts}
        steps = sum(part.page_steps for part in self.parts)
        return OnPage("mixed", "exchangeable.families.mixed", data, steps)

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y) of binary columns, means of numbers, NaN of nominal columns.

        Those of measurements are on the transformed scale. Known entries stay as they are.
        """
        values = self._rows(observed).values
        result = np.array(values)
        for j, kind in enumerate(self.types):
            open_rows = np.flatnonzero(np.isnan(values[:, j]))
            if not open_rows.size:
                continue
            answer = self._predictive(values[open_rows], j, y)
            if isinstance(answer, Normal):
                result[open_rows, j] = answer.mean
            elif kind.kind != "nominal":
                result[open_rows, j] = answer @ np.arange(answer.shape[1])
        return result

    def predictive(self, observed: Observed, variable: int, y: int) -> FloatArray | Normal:
        """Return the distribution of a column in class y given the other known entries."""
        return self._predictive(self._rows(observed).values, variable, y)

    def _predictive(self, values: FloatArray, column: int, y: int) -> FloatArray | Normal:
        for part in self.parts:
            inside = np.flatnonzero(part.columns == column)
            if inside.size:
                own = np.array(values[:, part.columns])
                own[:, inside[0]] = np.nan
                return part.predictive(own, int(inside[0]), y)
        raise IndexError(f"column {column} is in no part")

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion of each row, and log P(x | y)."""
        rows = self._rows(observed)
        values = np.array(rows.values)
        for part in self.parts:
            values[:, part.columns] = part.complete(values[:, part.columns], y)
        return self._given_back(values, observed), self.score(
            typed(values, self.types, rows.log_jacobian)
        )[:, y]

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
        values = np.array(self._rows(observed).values)
        for part in self.parts:
            values[:, part.columns] = part.draw(values[:, part.columns], y, rng)
        return self._given_back(values, observed)

    def imagined(self, n_rows: int, y: int, rng: np.random.Generator) -> Observed:
        """Return rows drawn from P(x | y)."""
        nothing = typed(np.full((n_rows, self.n_variables), np.nan), self.types)
        return typed(np.asarray(self.draw(nothing, y, rng), dtype=np.float64), self.types)

    def _given_back(self, values: FloatArray, observed: Observed) -> npt.NDArray[Any]:
        """Return rows in their original form: numbers, or bits as 0 and 1."""
        numbers = isinstance(observed.ones, TypedRows | CountRows)
        return values if numbers else values.astype(np.uint8)

    def _rows(self, observed: Observed) -> TypedRows:
        rows = typed_rows(observed)
        check_types(rows.types, self.types)
        return rows

    def expect(self, data: RowsInMemory, log_prior: FloatArray, moments: bool = False) -> MixedSums:
        """Compute the posteriors of all rows, and the sums for the next parameters.

        `log_prior` may have a line for every row.
        """
        examples = data.examples
        usual = log_prior if log_prior.ndim == 1 else log_prior.mean(axis=0)
        spans = row_ranges(examples.rows.n_rows, CHUNK) or [(0, 0)]
        prepared, jacobian = self._prepared(examples, spans)
        passes = [part.reading(own) for part, own in zip(self.parts, prepared, strict=True)]
        priors = RowPriors(examples.weights, examples.clamp, usual)
        posterior = np.empty((self.n_classes, examples.rows.n_rows))

        def one(number: int) -> tuple[float, list[PartSums]]:
            begin, end = spans[number]
            joint = np.empty((self.n_classes, end - begin))
            joint[:] = log_prior[:, None] if log_prior.ndim == 1 else log_prior[begin:end].T
            for each in passes:
                each.add_scores(number, joint)
            mass, work = np.empty_like(joint), np.empty((self.n_classes, TILE))
            worth = kernels.settle_rows(joint, begin, priors, work, posterior, mass)
            return worth, [each.sums(number, mass) for each in passes]

        results = run(one, range(len(spans)), data.n_jobs)
        found = [add_sums(sums) for sums in zip(*(sums for _, sums in results), strict=True)]
        return MixedSums(
            float(sum(worth for worth, _ in results)) + jacobian,
            posterior.T,
            posterior @ examples.weights,
            [each.finish(sums) for each, sums in zip(passes, found, strict=True)],
        )

    def _prepared(
        self, examples: Examples, spans: Sequence[tuple[int, int]]
    ) -> tuple[list[Any], float]:
        """Return the rows of each part in the form of its passes, and their total log-Jacobian.

        They are cached with the rows, since passes and runs with the same blocks share them.
        """
        key = "parts", tuple((part.name, part.columns.tobytes()) for part in self.parts)
        if key not in examples.derived:
            values, jacobian = self._values(examples.observed)
            own = [part.prepare(self._columns(part, values), spans) for part in self.parts]
            examples.derived[key] = own, float(examples.weights @ jacobian)
        kept: tuple[list[Any], float] = examples.derived[key]
        return kept

    def shared_out(self, examples: Examples, mass: FloatArray) -> MixedSums:
        """Return the sums of rows with known class memberships."""
        values = self._values(examples.observed)[0]
        sums = [part.sums(self._columns(part, values), mass) for part in self.parts]
        return MixedSums(0.0, NO_POSTERIOR, mass.sum(axis=0), sums)

    def alternatives(self, observed: Observed, most: int) -> list[npt.NDArray[Any]] | None:
        """Return all completions of each row, if the unknown columns have levels."""
        levels = np.array([kind.n_levels for kind in self.types])
        found = all_completions(self._rows(observed).values, levels, most)
        return None if found is None else [self._given_back(rows, observed) for rows in found]

    def only(self, classes: IntArray) -> Self:
        """Return the model of some of the classes, in the given order."""
        return type(self)(self.types, [part.only(classes) for part in self.parts], self.labels)

    @classmethod
    def stack(cls, models: Sequence["MixedModel"]) -> Self:
        """Return the model of all classes of several models."""
        first = models[0]
        parts = [type(each[0]).stack(each) for each in zip(*(m.parts for m in models), strict=True)]
        return cls(first.types, parts, first.labels)

    def count_probabilities(self) -> list[list[FloatArray]]:
        """Return the probabilities of the levels or counts of every column, by class and block.

        For a block of several binary columns they are those of each number of ones; blocks of
        measurements, and of several columns of other kinds, have none.
        """
        nothing = np.full((1, self.n_variables), np.nan)
        blocks = self.partitions[0].blocks
        alone = partial(self._predictive, nothing)
        return [
            [block_shares(self.parts, block, y, alone) for block in blocks]
            for y in range(self.n_classes)
        ]

    def level_shares(self) -> list[FloatArray] | None:
        """Return P(x_j = v | y) for every column, if all are independent and have levels."""
        tables: list[FloatArray] = [np.empty((0, 0))] * self.n_variables
        for part in self.parts:
            own = part.level_shares()
            if own is None:
                return None
            for j, table in zip(part.columns, own, strict=True):
                tables[j] = table
        return tables

    def item_scale(self) -> ItemScale | None:
        """Return the items of a single block of dependent binary or ordinal columns."""
        scales = [scale for part in self.parts if (scale := part.item_scale()) is not None]
        return scales[0] if len(scales) == 1 else None

    def log_totals(self) -> FloatArray:
        """Return log Σ_x P(x | y) of each class: 0, as the checks of each part guarantee."""
        return np.zeros(self.n_classes)

    def encode(self) -> Arrays:
        """Return the parameters as arrays for a file."""
        return saved.encode(self.types, self.parts, self.labels)

    @classmethod
    def decode(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the model from arrays of a file, rejecting what the kernels cannot trust."""
        return cls(*saved.decode(arrays))
