"""The choice of the part for a block of columns, by their kind and number."""

from collections.abc import Mapping, Sequence

import numpy as np

from exchangeable.arrays import IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.parts.alike import Alike
from exchangeable.families.mixed.parts.base import Part
from exchangeable.families.mixed.parts.count_bins import CountBins
from exchangeable.families.mixed.parts.counts import Counts
from exchangeable.families.mixed.parts.factor import Factor
from exchangeable.families.mixed.parts.level_urn import LevelUrn
from exchangeable.families.mixed.parts.levels import Levels
from exchangeable.families.mixed.parts.normals import Normals
from exchangeable.families.mixed.parts.polya import Polya
from exchangeable.families.mixed.parts.scale import Scale
from exchangeable.families.mixed.parts.tally import Tally

INDEPENDENT: dict[str, type[Part]] = {
    "binary": Levels,
    "nominal": Levels,
    "ordinal": Levels,
    "count": Counts,
    "continuous": Normals,
}
"""Columns that are blocks by themselves, by kind."""
TOGETHER: dict[str, type[Part]] = {
    "binary": Scale,
    "ordinal": Scale,
    "count": Tally,
    "continuous": Factor,
}
"""Columns of a block of several, with weights, by kind; other kinds are independent."""
URNS: dict[str, type[Part]] = {
    "binary": LevelUrn,
    "nominal": LevelUrn,
    "ordinal": LevelUrn,
    "count": Polya,
    "continuous": Alike,
}
"""Columns of a block of several, exchangeable or as bursty counts, by kind."""
TRAINED: dict[str, type[Part]] = {"count": CountBins}
"""Single columns with hybrid training, if different from the above."""
_TABLES = (INDEPENDENT, TOGETHER, URNS, TRAINED)
PARTS: dict[str, type[Part]] = {part.name: part for table in _TABLES for part in table.values()}
"""Parts by their names in files."""


def block_kind(kind: ColumnType, together: Mapping[str, type[Part]]) -> tuple[str, int] | None:
    """Return what columns must have in common to be in one part; None if they stay single."""
    if kind.kind not in together:
        return None
    return kind.kind, kind.n_levels if together[kind.kind].alike else 0


def lay_out(
    blocks: Sequence[IntArray],
    types: Sequence[ColumnType],
    together: Mapping[str, type[Part]] = TOGETHER,
) -> list[tuple[type[Part], IntArray]]:
    """Return the parts of a component, each with its columns.

    Columns of different kinds in a block do not depend on each other, nor do columns with different
    numbers of levels if all must be `alike`.
    """
    alone: dict[type[Part], list[int]] = {}
    several: list[tuple[type[Part], IntArray]] = []
    for block in blocks:
        by_kind: dict[tuple[str, int] | None, list[int]] = {}
        for column in block.tolist():
            by_kind.setdefault(block_kind(types[column], together), []).append(column)
        for key, columns in by_kind.items():
            if key is not None and len(columns) > 1:
                several.append((together[key[0]], np.array(columns, dtype=np.int64)))
                continue
            for column in columns:
                alone.setdefault(INDEPENDENT[types[column].kind], []).append(column)
    singles = [(kind, np.sort(np.array(own, dtype=np.int64))) for kind, own in alone.items()]
    return [*singles, *several]
