"""Tables in chunks or on a cluster whose columns have not been interpreted yet.

The first pass collects facts about every column. If measurements are skewed, a second pass collects
those of some rows, from which powers are chosen, and a third the moments of the transformed values.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Protocol

import numpy as np

from exchangeable.arrays import FloatArray, is_sparse
from exchangeable.data.columns.facts import ColumnFacts, Seen, facts_of, numbers_of
from exchangeable.data.columns.kinds import decided_kinds, made_schema, sparse_schema, told_kinds
from exchangeable.data.columns.one_hot import OneHot, one_hot_of
from exchangeable.data.columns.raw import RawColumn, library_of, raw_columns
from exchangeable.data.columns.schema import Schema
from exchangeable.data.columns.transforms import (
    Moments,
    Transform,
    likeliest_power,
    made_transform,
    rows_for_power,
    yeo_johnson,
)
from exchangeable.data.observed import Observed
from exchangeable.data.packed import PackedBits
from exchangeable.data.stream.passes import ChunkError, add
from exchangeable.data.stream.sources import Source


class RawTable(Protocol):
    """Parts of a table before they are interpreted."""

    @property
    def first(self) -> Any:
        """The first part, or an empty one of the same types."""

    def total(self, function: Callable[[Any, int], Any]) -> Any:
        """Return the sum of a function of every part, and of the number of rows before it."""


class ChunkedTable:
    """The parts of a source.

    Parameters
    ----------
    source : Source
        The rows.
    """

    def __init__(self, source: Source) -> None:
        self._given, self._begun = source, list[Iterator[Any]]()

    @property
    def first(self) -> Any:
        """The first part; the next pass, whoever makes it, continues from there."""
        raw = self._given.tables is not None
        parts = (self._given.tables if raw else self._given.chunks)()  # type: ignore[misc]
        part = next(parts, None)
        self._begun.append(iter(()) if part is None else chain([part], parts))
        return part[0] if isinstance(part, tuple) else part

    @property
    def source(self) -> Source:
        """The source; no part that was already looked at is read twice in a pass."""
        given = self._given
        if given.tables is not None:
            return Source(given.chunks, given.description, given.names, self._parts)
        return Source(self._parts, given.description, given.names)

    def _parts(self) -> Iterator[Any]:
        given = self._given
        anew = given.chunks if given.tables is None else given.tables
        return self._begun.pop() if self._begun else anew()

    def total(self, function: Callable[[Any, int], Any]) -> Any:
        """Return the sum of a function of every part, and of the number of rows before it."""
        result, begin = None, 0
        for number, part in enumerate(self.source.parts()):
            try:
                found = function(part, begin)
                result = found if result is None else add(result, found)
            except (ValueError, TypeError) as error:
                where = f"chunk {number} of {self._given.description}"
                raise ChunkError(f"{where}: {error}") from error
            begin += int(part.shape[0]) if hasattr(part, "shape") else int(part.num_rows)
        if result is None:
            raise ChunkError(f"{self._given.description} has no chunks")
        return result


@dataclass(frozen=True)
class Reader:
    """How the columns of a part are read.

    Attributes
    ----------
    told : dict
        The kinds given by the user, by names of columns.
    one_hot : OneHot, optional
        One-hot columns, by group.
    names : sequence
        The names of the columns, if there are such groups.
    """

    told: dict[Any, str]
    one_hot: OneHot | None = None
    names: Sequence[Any] = ()

    def columns(self, part: Any) -> list[RawColumn]:
        """Return the columns of a part."""
        if isinstance(part, PackedBits | Observed):
            raise ValueError("rows of bits are binary; leave kinds away")
        return raw_columns(part) if self.one_hot is None else self.one_hot.read(part, self.names)

    def facts(self, part: Any, begin: int) -> tuple[int, list[ColumnFacts]]:
        """Return the number of rows, and the facts about every column."""
        raw = self.columns(part)
        n_rows = raw[0].values.size if raw else 0
        return n_rows, [facts_of(column, self.told.get(column.name)) for column in raw]

    def some(
        self, part: Any, begin: int, columns: Sequence[int], n_rows: int
    ) -> dict[int, FloatArray]:
        """Return the numbers of those rows of some columns from which powers are chosen."""
        raw, chosen = self.columns(part), rows_for_power(n_rows)
        here = chosen[(chosen >= begin) & (chosen < begin + raw[0].values.size)] - begin
        return {begin: np.stack([numbers_of(raw[j], "continuous")[here] for j in columns], axis=1)}

    def bent(self, part: Any, begin: int, powers: dict[int, float]) -> list[Moments]:
        """Return the moments of columns transformed by their powers."""
        raw = self.columns(part)
        numbers = [(numbers_of(raw[j], "continuous"), power) for j, power in powers.items()]
        return [Moments.of(yeo_johnson(x[~np.isnan(x)], power)) for x, power in numbers]


def decide_table(
    table: RawTable, kinds: Any, unseen: str = "hole", bend: bool = True, groups: Any = None
) -> Schema | None:
    """Return the schema, as `data.columns.kinds.decide` does for a table in memory.

    None if all columns are binary and are read as numbers.
    """
    first = table.first
    library = library_of(first)
    if library is None and kinds is None and groups is None:
        return None
    if is_sparse(first) and isinstance(kinds, str) and kinds == "count" and groups is None:
        return sparse_schema(first, unseen)
    one_hot, names = one_hot_of(first, groups) if groups is not None else (None, [])
    names = names or [column.name for column in Reader({}).columns(first)]
    told = told_kinds(names, kinds, one_hot)
    reader = Reader(told, one_hot, names)
    n_rows, found = table.total(reader.facts)
    facts = [each.seen for each in found]
    decided = decided_kinds(facts, told, library)
    if decided is None:
        return None
    measured = [j for j, kind in enumerate(decided) if kind == "continuous"]
    transforms = _transforms(table, reader, facts, measured, int(n_rows), bend)
    return made_schema(facts, decided, transforms, library, unseen, one_hot)


def _transforms(
    table: RawTable,
    reader: Reader,
    facts: Sequence[Seen],
    measured: Sequence[int],
    n_rows: int,
    bend: bool,
) -> dict[int, Transform]:
    """Return the transforms of columns of measurements."""
    moments = {j: facts[j].moments or Moments.of(np.empty(0)) for j in measured}
    transforms = {j: made_transform(1.0, moments[j]) for j in measured if moments[j].n}
    skewed = [j for j in measured if bend and moments[j].skewed]
    if not skewed:
        return transforms
    parts = table.total(partial(reader.some, columns=skewed, n_rows=n_rows))
    some = np.concatenate([parts[begin] for begin in sorted(parts)])
    known = [column[~np.isnan(column)] for column in some.T]
    powers = {j: likeliest_power(x) for j, x in zip(skewed, known, strict=True)}
    bent = table.total(partial(reader.bent, powers=powers))
    return transforms | {
        j: made_transform(powers[j], each) for j, each in zip(skewed, bent, strict=True)
    }
