"""Leaves: the distributions of the blocks of a tree in each of their hidden states.

A leaf consists of variables and a model of them, whose classes are the states. Messages along the
tree only need the probability of its rows in every state, and every distinct row of a block is
scored once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray
from exchangeable.data.columns.schema import typed, typed_rows
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.rows import ColumnType, TypedRows
from exchangeable.families.contract import Model
from exchangeable.families.mixed.model import MixedModel
from exchangeable.families.statistics.model import MixedBlocksModel
from exchangeable.runtime.threads import row_ranges

MODELS: dict[str, type[Model]] = {each.kind: each for each in (MixedBlocksModel, MixedModel)}
"""The supported models of leaves, by their names in files."""
CHUNK_CELLS = 1 << 21
"""Number of rows times leaves times states processed at once."""
LARGEST_CHUNK, SMALLEST_CHUNK = 1 << 12, 1 << 6


@dataclass(frozen=True)
class Leaf:
    """A block of variables with its distribution in each state.

    Attributes
    ----------
    variables : array
        The variables, in the order of the model's.
    model : Model
        Their distribution in each state.
    """

    variables: IntArray
    model: Model

    @property
    def of_bits(self) -> bool:
        """Whether the model reads binary rows, and no others."""
        return not isinstance(self.model, MixedModel)

    @property
    def types(self) -> tuple[ColumnType, ...]:
        """What the values of each variable stand for."""
        if isinstance(self.model, MixedModel):
            return self.model.types
        return (ColumnType("binary", 2),) * self.variables.size

    @property
    def levels(self) -> IntArray:
        """The number of levels of each variable, 0 if it has none."""
        return np.array([kind.n_levels for kind in self.types], dtype=np.int64)


@dataclass(frozen=True)
class Columns:
    """Rows of which some columns are read at a time."""

    observed: Observed

    @cached_property
    def typed(self) -> TypedRows:
        """The rows as numbers."""
        return typed_rows(self.observed)

    @cached_property
    def symbols(self) -> npt.NDArray[np.int8]:
        """The rows as 0, 1 and `UNASSIGNED`; only read for binary columns."""
        if not isinstance(self.observed.ones, TypedRows):
            return self.observed.symbols()
        values = self.typed.values
        return np.where(np.isnan(values), UNASSIGNED, values).astype(np.int8)

    def take(self, variables: IntArray, bits: bool) -> Observed:
        """Return the values of some variables, in the given order, as bits or as numbers."""
        if bits:
            return Observed.from_symbols(self.symbols[:, variables])
        types = tuple(self.typed.types[j] for j in variables)
        return typed(self.typed.values[:, variables], types)


def jacobians(observed: Observed) -> FloatArray:
    """Return what densities per unit of the user's measurements have more, in logarithm."""
    rows = observed.ones
    return rows.log_jacobian if isinstance(rows, TypedRows) else np.zeros(observed.n_rows)


@dataclass(frozen=True)
class Shown:
    """The codes of the leaves of a tree in some rows.

    Attributes
    ----------
    codes : array of shape (n_rows, n_leaves)
        The number of the distinct row of each leaf, counted over all leaves.
    first : array of shape (n_leaves + 1,)
        The first number of each leaf, and the total number.
    rows : list of Examples
        The distinct rows of each leaf, with their weights.
    """

    codes: npt.NDArray[np.int32]
    first: IntArray
    rows: list[Examples]

    @classmethod
    def of(
        cls,
        blocks: Sequence[tuple[IntArray, bool]],
        observed: Observed,
        weights: FloatArray | None = None,
    ) -> "Shown":
        """Return the codes of blocks, each given by its variables and whether it reads bits."""
        if weights is None:
            weights = np.ones(observed.n_rows)
        codes = np.empty((observed.n_rows, len(blocks)), dtype=np.int32)
        columns, first, rows = Columns(observed), [0], []
        for b, (variables, bits) in enumerate(blocks):
            found, member = merge_equal_rows(columns.take(variables, bits), weights)
            codes[:, b] = first[-1] + member
            first.append(first[-1] + found.weights.size)
            rows.append(found)
        return cls(codes, np.array(first, dtype=np.int64), rows)

    def own_codes(self, b: int) -> IntArray:
        """Return the distinct row of a leaf for each row."""
        return np.asarray(self.codes[:, b] - self.first[b], dtype=np.int64)

    def log_evidence(self, leaves: Sequence[Leaf]) -> FloatArray:
        """Return log P of each distinct row in every state, (n_codes, n_states)."""
        pairs = zip(leaves, self.rows, strict=True)
        return np.concatenate([leaf.model.score_examples(rows, 1) for leaf, rows in pairs])

    def by_leaf(self, table: FloatArray) -> list[FloatArray]:
        """Split a table with a line per distinct row into one table per leaf."""
        return np.split(table, self.first[1:-1])

    def by_code(self, b: int, mass: FloatArray) -> FloatArray:
        """Return the sum of the rows' lines for every distinct row of a leaf."""
        own, n = self.own_codes(b), self.rows[b].weights.size
        columns = [np.bincount(own, each, minlength=n) for each in mass.T]
        return np.stack(columns, axis=1).astype(np.float64)


def shown_chunks(
    leaves: Sequence[Leaf], n_states: int, examples: Examples
) -> list[tuple[slice, Shown]]:
    """Return the codes of leaves in examples, some rows at a time, cached with them."""
    blocks = [(leaf.variables, leaf.of_bits) for leaf in leaves]
    key: Any = ("leaves", n_states, tuple((each.tobytes(), bits) for each, bits in blocks))
    if key not in examples.derived:
        size = chunk_rows(len(blocks), n_states)
        examples.derived[key] = [
            (slice(begin, end), Shown.of(blocks, examples.observed.take(np.arange(begin, end))))
            for begin, end in row_ranges(examples.rows.n_rows, size) or [(0, 0)]
        ]
    return examples.derived[key]  # type: ignore[no-any-return]


def chunk_rows(n_leaves: int, n_states: int) -> int:
    """Return how many rows are processed at once; it does not depend on the number of threads."""
    fitting = CHUNK_CELLS // (n_leaves * n_states)
    return int(np.clip(fitting, SMALLEST_CHUNK, LARGEST_CHUNK))
