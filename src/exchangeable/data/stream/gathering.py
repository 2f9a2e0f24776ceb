"""Collecting all rows of a source in memory, for training that draws them repeatedly."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.observed import Observed
from exchangeable.data.rows import NO_INDICES, NO_POINTERS, Rows
from exchangeable.data.stacking import stack_observed
from exchangeable.data.stream.chunk import Chunk
from exchangeable.data.stream.passes import Passes


class Gathered(NamedTuple):
    """Rows of positive weight, in memory.

    Attributes
    ----------
    observed : Observed
        The rows, with a bit per entry if the chunks were matrices.
    weights : array of shape (n_rows,)
        Their weights.
    labels : array of shape (n_rows,), optional
        Their classes, if they have any.
    """

    observed: Observed
    weights: FloatArray
    labels: npt.NDArray[Any] | None


def gathered(passes: Passes) -> Gathered:
    """Return all rows of positive weight, by two passes: the first finds each chunk's first row."""
    if not passes.total(_n_counting):
        raise ValueError("sample_weight is zero for every row; at least one must count")
    found: dict[int, Gathered] = passes.total(_rows_that_count)
    parts = [found[first] for first in sorted(found)]
    labels = [part.labels for part in parts if part.labels is not None]
    return Gathered(
        _stacked([part.observed for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate(labels) if labels else None,
    )


def _n_counting(chunk: Chunk) -> int:
    return chunk.n_counting


def _rows_that_count(chunk: Chunk) -> dict[int, Gathered]:
    """Return the rows of a chunk by the number of the first; none if none has positive weight."""
    observed, weights, labels = Observed(chunk.rows, chunk.holes), chunk.weights, chunk.labels
    if not weights.size:
        weights = np.ones(observed.n_rows)
    counting = np.flatnonzero(weights)
    if not counting.size:
        return {}
    labels = None if labels is None else labels[counting]
    return {chunk.first: Gathered(observed.take(counting), weights[counting], labels)}


def _stacked(parts: list[Observed]) -> Observed:
    """Concatenate rows; bits stay bits, if all are complete."""
    rows = [part.ones for part in parts]
    if any(
        part.holes is not None or not row.bits.size for part, row in zip(parts, rows, strict=True)
    ):
        return stack_observed(parts)
    bits = np.concatenate([row.bits for row in rows])
    return Observed(Rows(len(bits), rows[0].n_variables, bits, NO_POINTERS, NO_INDICES))
