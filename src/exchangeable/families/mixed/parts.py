"""Which part a block of columns has, by their kind and number."""

from collections.abc import Sequence

import numpy as np

from exchangeable.arrays import IntArray
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.counts import Counts
from exchangeable.families.mixed.factor import Factor
from exchangeable.families.mixed.levels import Levels
from exchangeable.families.mixed.normals import Normals
from exchangeable.families.mixed.part import Part
from exchangeable.families.mixed.scale import Scale
from exchangeable.families.mixed.tally import Tally

INDEPENDENT: dict[str, type[Part]] = {
    "binary": Levels,
    "nominal": Levels,
    "ordinal": Levels,
    "count": Counts,
    "continuous": Normals,
}
"""Columns that are blocks of their own, by kind."""
TOGETHER: dict[str, type[Part]] = {
    "binary": Scale,
    "ordinal": Scale,
    "count": Tally,
    "continuous": Factor,
}
"""Columns of a block of several, by kind; other kinds are independent."""
PARTS: dict[str, type[Part]] = {
    part.name: part for part in (*INDEPENDENT.values(), *TOGETHER.values())
}
"""Parts by what they are called in files."""


def lay_out(
    blocks: Sequence[IntArray], types: Sequence[ColumnType]
) -> list[tuple[type[Part], IntArray]]:
    """Return the parts of a component, each with its columns.

    Columns of a block that are of different kinds do not depend on each other.
    """
    alone: dict[type[Part], list[int]] = {}
    together: list[tuple[type[Part], IntArray]] = []
    for block in blocks:
        by_kind: dict[str, list[int]] = {}
        for column in block.tolist():
            by_kind.setdefault(types[column].kind, []).append(column)
        for kind, columns in by_kind.items():
            if len(columns) > 1 and kind in TOGETHER:
                together.append((TOGETHER[kind], np.array(columns, dtype=np.int64)))
            else:
                alone.setdefault(INDEPENDENT[kind], []).extend(columns)
    singles = [(kind, np.sort(np.array(own, dtype=np.int64))) for kind, own in alone.items()]
    return [*singles, *together]
