"""Questions of parts about rows, answered in memory, in chunks or on a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray, is_sparse
from exchangeable.data.columns.schema import typed_rows
from exchangeable.data.examples import Examples
from exchangeable.data.rows import ColumnType, CountRows, Rows, TypedRows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.common.streaming.recipes import PosteriorRecipe
from exchangeable.families.mixed.parts.base import Ask, Part, Prior
from exchangeable.families.sums import EMData, Sums

FARTHEST = 4.0
"""Upper bound of half the squared distance in a single column."""
LEAST_SPREAD = 1e-12
NUMBERS = "numbers of typed rows"
"""The name under which the numbers of rows of bits are cached."""

Layout = Sequence[tuple[type[Part], IntArray]]


def types_of(rows: Rows) -> tuple[ColumnType, ...]:
    """Return what the columns of rows are; bits are binary columns."""
    if isinstance(rows, TypedRows | CountRows):
        return rows.types
    return (ColumnType("binary", 2),) * rows.n_variables


def check_types(given: Sequence[ColumnType], fitted: Sequence[ColumnType]) -> None:
    """Reject rows with other columns than those of the fit."""
    if given != fitted:
        pairs = zip(given, fitted, strict=True)
        odd = next(j for j, pair in enumerate(pairs) if len(set(pair)) > 1)
        raise ValueError(
            f"column {odd} is {given[odd].kind} with {given[odd].n_levels} levels, "
            f"but was {fitted[odd].kind} with {fitted[odd].n_levels} when fitted"
        )


def values_of(examples: Examples) -> Any:
    """Return rows as numbers, NaN if missing; a sparse matrix if they are sparse counts."""
    rows = examples.rows
    if isinstance(rows, CountRows):
        return rows.matrix
    if isinstance(rows, TypedRows):
        return rows.values
    if NUMBERS not in examples.derived:
        examples.derived[NUMBERS] = typed_rows(examples.observed).values
    return examples.derived[NUMBERS]


def columns_of(values: Any, columns: IntArray) -> Any:
    """Return some columns of rows."""
    if columns.size == values.shape[1] and np.array_equal(columns, np.arange(columns.size)):
        return values
    own = values[:, columns]
    return own if is_sparse(own) else np.ascontiguousarray(own)


def answers(
    examples: Examples,
    posterior: FloatArray | None = None,
    *,
    asked: Sequence[tuple[IntArray, Ask]],
) -> list[Any]:
    """Return the answers of some rows to questions about some of their columns."""
    values, weights = values_of(examples), examples.weights[:, None]
    mass = weights if posterior is None else weights * posterior
    return [ask(columns_of(values, columns), mass) for columns, ask in asked]


def begin_parts(
    data: EMData,
    layout: Layout,
    types: Sequence[ColumnType],
    priors: Sequence[Prior],
    n_classes: int = 1,
    shares: Any = None,
) -> list[Part]:
    """Return parts fitted to given posteriors, or to all rows as one class; one pass each."""
    makers = [
        kind.beginning(columns, tuple(types[j] for j in columns), n_classes, prior)
        for (kind, columns), prior in zip(layout, priors, strict=True)
    ]
    waiting: dict[int, Ask] = {number: next(maker) for number, maker in enumerate(makers)}
    parts: dict[int, Part] = {}
    while waiting:
        asked = [(layout[number][1], ask) for number, ask in waiting.items()]
        found = data.summed(partial(answers, asked=asked), shares)
        for number, answer in zip(list(waiting), found, strict=True):
            try:
                waiting[number] = makers[number].send(answer)
            except StopIteration as end:
                parts[number] = end.value
                del waiting[number]
    return [parts[number] for number in range(len(makers))]


def pooled_priors(
    data: EMData,
    layout: Layout,
    types: Sequence[ColumnType],
    alpha: float,
    pooling: float | None,
) -> list[Prior]:
    """Return the pseudo-rows of parts, distributed as the training set."""
    keys = [("prior", kind.name, columns.tobytes(), alpha) for kind, columns in layout]
    new = [number for number, key in enumerate(keys) if key not in data.kept]
    if new:
        pooled = begin_parts(data, [layout[n] for n in new], types, [Prior(alpha)] * len(new))
        asked: list[tuple[IntArray, Ask]] = [(part.columns, part.sums) for part in pooled]
        summed = data.summed(partial(answers, asked=asked))
        for number, part, sums in zip(new, pooled, summed, strict=True):
            row = {name: each / data.total for name, each in sums.items()}
            data.kept[keys[number]] = part, row
    return [Prior(alpha, pooling, *data.kept[key]) for key in keys]


def held_sums(examples: Examples, posterior: FloatArray) -> Sums:
    """Return given posteriors of some rows, and the weights of the classes."""
    return Sums(0.0, posterior, examples.weights @ posterior)


def count_moments(examples: Examples) -> list[FloatArray]:
    """Return the weight of known values in each column, and sums of numbers and squares."""
    values, weights = values_of(examples), examples.weights
    if is_sparse(values):
        squares = values.multiply(values)
        return [np.full(values.shape[1], weights.sum()), weights @ values, weights @ squares]
    filled = np.nan_to_num(values)
    return [weights @ ~np.isnan(values), weights @ filled, weights @ filled**2]


def spread_of(moments: Sequence[FloatArray], types: Sequence[ColumnType]) -> FloatArray:
    """Return the variances of columns of counts; measurements have 1, levels 0."""
    weight, once, twice = moments
    safe = np.where(weight > 0, weight, 1.0)
    variance = np.maximum(twice / safe - (once / safe) ** 2, LEAST_SPREAD)
    own = {"count": variance, "continuous": np.ones_like(variance)}
    zero = np.zeros_like(variance)
    return np.array([own.get(kind.kind, zero)[j] for j, kind in enumerate(types)])


@dataclass(frozen=True)
class Near(PosteriorRecipe):
    """Posteriors by the distances of rows from some of them, one for each component.

    Attributes
    ----------
    chosen : array of shape (n_components, n_columns)
        These rows.
    spread : array of shape (n_columns,)
        The scale of squared distances; 0 if values are levels, which are equal or not.
    """

    chosen: FloatArray
    spread: FloatArray

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows with positive weight."""
        return self.sums(chunk.examples).posterior

    def sums(self, examples: Examples) -> Sums:
        """Return the posteriors of some rows, and the weights of the components."""
        values = values_of(examples)
        distance = self._sparse_distance if is_sparse(values) else self._distance
        apart = np.stack([distance(values, own) for own in self.chosen], axis=1)
        nearness = np.exp(apart.min(axis=1, keepdims=True) - apart)
        return held_sums(examples, nearness / nearness.sum(axis=1, keepdims=True))

    def _distance(self, values: FloatArray, own: FloatArray) -> FloatArray:
        """Return the distances of rows from one row, over the columns known in both."""
        total = np.zeros(len(values))
        for j, spread in enumerate(self.spread):
            here = values[:, j]
            both = ~np.isnan(here) & ~np.isnan(own[j])
            if spread > 0:
                step = np.minimum(0.5 * (here - own[j]) ** 2 / spread, FARTHEST)
            else:
                step = 1.0 * (here != own[j])
            total += np.where(both, step, 0.0)
        return total

    def _sparse_distance(self, matrix: Any, own: FloatArray) -> FloatArray:
        """Return the same for sparse counts: zeros contribute equally to all rows."""

        def step(counts: Any, columns: Any) -> FloatArray:
            gap = 0.5 * (counts - own[columns]) ** 2 / self.spread[columns]
            return np.asarray(np.minimum(gap, FARTHEST))

        at = matrix.indices
        more = step(matrix.data, at) - step(0.0, at)
        number = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        far = np.bincount(number, more, minlength=matrix.shape[0])
        return np.asarray(far + float(step(0.0, np.arange(own.size)).sum()), dtype=np.float64)
