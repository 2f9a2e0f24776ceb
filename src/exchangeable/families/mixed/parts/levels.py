"""Independent columns with levels: binary, nominal or ordinal."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed import kernels
from exchangeable.families.mixed.parts.base import Ask, Part, PartSums, Prior
from exchangeable.families.mixed.rows import code_kernels
from exchangeable.families.mixed.rows.codes import CodedRows, coded, positions
from exchangeable.families.mixed.rows.passes import PartPass
from exchangeable.storage.checks import CLOSE, check_columns, needed, numbers

FEW = 6
"""With at most this many classes, each is scored separately."""


@dataclass(frozen=True)
class Levels(Part):
    """Categorical distributions, one for each column and class.

    Attributes
    ----------
    log_shares : array of shape (n_levels, n_classes)
        Log-probabilities of the levels of all columns, one column after another.
    """

    name: ClassVar[str] = "levels"
    kinds: ClassVar[tuple[str, ...]] = ("binary", "nominal", "ordinal")
    parameters: ClassVar[tuple[str, ...]] = ("log_shares",)
    log_shares: FloatArray

    @property
    def sizes(self) -> IntArray:
        """Number of levels of each column."""
        return _layout(self.types)[0]

    @property
    def starts(self) -> IntArray:
        """The start of each column's levels."""
        return _layout(self.types)[1]

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return int((self.sizes - 1).sum()) * self.n_classes

    @classmethod
    def beginning(
        cls, columns: IntArray, types: tuple[ColumnType, ...], n_classes: int, prior: Prior
    ) -> Generator[Ask, Any, Self]:
        """Return the frequencies of the levels."""
        n_levels = sum(kind.n_levels for kind in types)
        blank = cls(columns, types, np.zeros((n_levels, n_classes)))
        return blank.following((yield blank.sums), prior)

    def score(self, values: FloatArray) -> FloatArray:
        """Return log P of the known entries."""
        return score_by_table(values, self.starts, self.log_shares)

    def sums(self, values: FloatArray, mass: FloatArray) -> PartSums:
        """Return the mass of each level."""
        levels = np.zeros((int(self.sizes.sum()), mass.shape[1]))
        kernels.sum_levels(values, self.starts, np.ascontiguousarray(mass), levels)
        return {"levels": levels}

    def prepare(self, values: FloatArray, spans: Sequence[tuple[int, int]]) -> CodedRows:
        """Return the rows as codes of groups of columns."""
        sizes, starts = _layout(self.types)
        codes, members = coded(positions(values, starts, int(sizes.sum())), starts, sizes)
        return CodedRows([np.ascontiguousarray(codes[:, slice(*span)]) for span in spans], members)

    def reading(self, prepared: CodedRows) -> "LevelPass":
        """Return a pass over rows that are codes."""
        table = np.empty((self.n_classes, len(prepared.members)))
        code_kernels.code_scores(prepared.members, self.log_shares, table)
        return LevelPass(prepared, table, len(self.log_shares))

    def following(self, sums: PartSums, prior: Prior, careful: bool = False) -> Self:
        """Return the frequencies, smoothed by the prior."""
        log_shares = np.empty_like(sums["levels"])
        sizes, starts = self.sizes, self.starts
        code_kernels.share_out(sums["levels"], self.pseudo_rows(prior), starts, sizes, log_shares)
        return replace(self, log_shares=log_shares)

    def pseudo_rows(self, prior: Prior) -> FloatArray:
        """Return the prior's weight of each level."""
        if prior.pooled is None or prior.pooling is None:
            return np.full((len(self.log_shares), 1), prior.alpha)
        return np.asarray(prior.pooling * np.exp(prior.pooled.log_shares))

    def log_prior(self, prior: Prior) -> float:
        """Return the score of the pseudo-rows."""
        return float(code_kernels.pseudo_score(self.pseudo_rows(prior), self.log_shares))

    def predictive(self, values: FloatArray, column: int, y: int) -> FloatArray:
        """Return the probabilities of the levels, the same for every row."""
        return np.tile(self.shares(column, y), (len(values), 1))

    def shares(self, column: int, y: int) -> FloatArray:
        """Return the probabilities of the levels of a column."""
        begin = self.starts[column]
        return np.asarray(np.exp(self.log_shares[begin : begin + self.sizes[column], y]))

    def level_shares(self) -> list[FloatArray]:
        """Return the probabilities of each column's levels."""
        return np.split(np.exp(self.log_shares), self.starts[1:])

    def complete(self, values: FloatArray, y: int) -> FloatArray:
        """Return the rows with missing entries replaced by the most frequent level."""
        best = [float(self.shares(j, y).argmax()) for j in range(self.columns.size)]
        return np.where(np.isnan(values), best, values)

    def draw(self, values: FloatArray, y: int, rng: np.random.Generator) -> FloatArray:
        """Return the rows with missing entries drawn."""
        drawn = np.array(values)
        for j in range(self.columns.size):
            open_rows = np.flatnonzero(np.isnan(values[:, j]))
            heights = np.cumsum(self.shares(j, y))
            uniform = rng.random(open_rows.size) * heights[-1]
            if heights.size == 2:
                drawn[open_rows, j] = uniform >= heights[0]
                continue
            found = np.searchsorted(heights, uniform, side="right")
            drawn[open_rows, j] = np.minimum(found, heights.size - 1)
        return drawn

    @classmethod
    def decode(
        cls,
        columns: IntArray,
        types: tuple[ColumnType, ...],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> Self:
        """Return the part from arrays of a file, rejecting invalid ones."""
        (log_shares,) = needed(arrays, ("log_shares",))
        n_levels = sum(kind.n_levels for kind in types)
        k = log_shares.shape[1] if log_shares.ndim == 2 else 0
        part = cls(
            columns,
            types,
            numbers(log_shares, "log_shares", (n_levels, k), low=-np.inf, high=CLOSE),
        )
        check_columns(part.log_shares, part.starts, "log_shares")
        return part


class LevelPass(PartPass):
    """A pass over rows that are codes.

    Parameters
    ----------
    rows : CodedRows
        The rows.
    table : array of shape (n_classes, n_codes)
        Log-probabilities of the codes.
    n_levels : int
        Number of levels of all columns.
    """

    def __init__(self, rows: CodedRows, table: FloatArray, n_levels: int) -> None:
        self.rows, self.table, self.n_levels = rows, table, n_levels

    def add_scores(self, span: int, joint: FloatArray) -> None:
        """Add log P of the known entries of a span."""
        code_kernels.score_codes(self.rows.codes[span], self.table, joint)

    def sums(self, span: int, mass: FloatArray) -> PartSums:
        """Return the mass of each code."""
        sums = np.zeros_like(self.table)
        code_kernels.sum_codes(self.rows.codes[span], mass, sums)
        return {"levels": sums}

    def finish(self, sums: PartSums) -> PartSums:
        """Return the mass of each level."""
        levels = np.zeros((self.n_levels, len(self.table)))
        code_kernels.level_sums(self.rows.members, sums["levels"], levels)
        return {"levels": levels}


@lru_cache
def _layout(types: tuple[ColumnType, ...]) -> tuple[IntArray, IntArray]:
    """Return the number of levels of each column, and their start."""
    sizes = np.array([kind.n_levels for kind in types], dtype=np.int64)
    return sizes, np.cumsum(sizes) - sizes


def score_by_table(values: FloatArray, starts: IntArray, table: FloatArray) -> FloatArray:
    """Return the sum over known levels of a row of their lines in a table."""
    if table.shape[1] > FEW:
        out = np.zeros((len(values), table.shape[1]))
        kernels.score_levels(values, starts, table, out)
        return out
    by_class = np.zeros((table.shape[1], len(table) + 1))
    by_class[:, :-1] = table.T
    scores = np.zeros((table.shape[1], len(values)))
    kernels.score_few(values, starts, by_class, scores)
    return scores.T
