"""Components of mixed kinds in files: each part's arrays, under its number."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import IntArray
from exchangeable.data.columns.column import KINDS, MOST_LEVELS, WITH_LEVELS
from exchangeable.data.rows import ColumnType
from exchangeable.families.mixed.parts.base import Arrays, Part
from exchangeable.families.mixed.parts.choice import PARTS
from exchangeable.storage.archive import ModelFileError
from exchangeable.storage.checks import needed

NAMES = tuple(PARTS)


def encode(types: Sequence[ColumnType], parts: Sequence[Part], labels: IntArray) -> Arrays:
    """Return the arrays for a file."""
    arrays: Arrays = {
        "kinds": np.array([[KINDS.index(t.kind), t.n_levels] for t in types], dtype=np.int64),
        "labels": labels.astype(np.int64),
        "parts": np.array([NAMES.index(part.name) for part in parts], dtype=np.int64),
    }
    for number, part in enumerate(parts):
        arrays[f"part{number}.columns"] = part.columns
        arrays |= {f"part{number}.{name}": array for name, array in part.encode().items()}
    return arrays


def decode(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[tuple[ColumnType, ...], list[Part], IntArray]:
    """Return the parameters from arrays of a file, after checking everything."""
    kinds, labels, names = needed(arrays, ("kinds", "labels", "parts"))
    types = _types(kinds)
    n = len(types)
    if labels.dtype != np.int64 or labels.shape != (n,) or not _within(labels, n):
        raise ModelFileError("labels are not the blocks of the columns")
    if not np.isin(np.arange(labels.max() + 1), labels).all():
        raise ModelFileError("labels leave a block without columns")
    if (
        names.dtype != np.int64
        or names.ndim != 1
        or not names.size
        or not _within(names, len(NAMES))
    ):
        raise ModelFileError("parts holds a part that is unknown")
    parts: list[Part] = []
    for number, name in enumerate(names):
        prefix = f"part{number}."
        own = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        (columns,) = needed(own, ("columns",))
        if columns.dtype != np.int64 or columns.ndim != 1 or not columns.size:
            raise ModelFileError(f"part {number} has no columns")
        if not _within(columns, n):
            raise ModelFileError(f"part {number} holds a column that is out of range")
        mine = tuple(types[j] for j in columns)
        kind = PARTS[NAMES[name]]
        if not all(t.kind in kind.kinds for t in mine):
            raise ModelFileError(f"part {number} holds a column of another kind")
        if kind.alike and len({t.n_levels for t in mine}) > 1:
            raise ModelFileError(f"part {number} holds columns with other numbers of levels")
        parts.append(kind.decode(columns, mine, own))
    everything = np.concatenate([part.columns for part in parts])
    if not np.array_equal(np.sort(everything), np.arange(n)):
        raise ModelFileError("the parts do not hold every column once")
    if len({part.n_classes for part in parts}) > 1 or parts[0].n_classes < 1:
        raise ModelFileError("the parts have different numbers of classes")
    return types, parts, labels


def _types(kinds: npt.NDArray[Any]) -> tuple[ColumnType, ...]:
    if kinds.dtype != np.int64 or kinds.ndim != 2 or kinds.shape[1:] != (2,) or not kinds.size:
        raise ModelFileError("kinds are not those of columns")
    if not _within(kinds[:, 0], len(KINDS)) or not _within(kinds[:, 1], MOST_LEVELS + 1):
        raise ModelFileError("kinds hold a number that is out of range")
    types = tuple(ColumnType(KINDS[kind], int(size)) for kind, size in kinds)
    if any((t.n_levels > 0) != (t.kind in WITH_LEVELS) for t in types):
        raise ModelFileError(
            "kinds give levels to a column that has none, or none to one with some"
        )
    return types


def _within(array: npt.NDArray[Any], end: int) -> bool:
    return bool(array.size and array.min() >= 0 and array.max() < end)
