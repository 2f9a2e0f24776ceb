"""Labelled and partly labelled rows in chunks, for classes that are mixtures."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.observed import Observed
from exchangeable.data.stream.chunk import Chunk
from exchangeable.data.stream.passes import Passes
from exchangeable.data.stream.views import ChangedPasses, Selection
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.classes.mixtures import shares_of_class, told_of

Labels = npt.NDArray[Any]


@dataclass(frozen=True)
class ChunkRows:
    """Rows in chunks or on a cluster.

    Attributes
    ----------
    passes : Passes
        The rows.
    classes : array of shape (n_classes,)
        The labels of the classes.
    totals : array of shape (n_classes,)
        Weight of the rows with each label.
    unlabelled : float
        Weight of the rows without a label.
    """

    passes: Passes
    classes: Labels
    totals: FloatArray
    unlabelled: float

    @cached_property
    def numbers(self) -> IntArray:
        """The number of the class of each row with positive weight, −1 if unknown."""
        parts = self.passes.total(partial(_numbers, classes=self.classes))
        return np.concatenate([parts[first] for first in sorted(parts)])

    def of_class(self, y: int, classes: Mixture | None) -> Streamed:
        """Return the rows of a class; all rows with equal weight if it has none."""
        if classes is not None:
            return Streamed.of(ChangedPasses(self.passes, SharesOf(classes, self.classes, y)))
        chosen = self.numbers == y
        if not self.totals[y] > 0:
            return Streamed.of(ChangedPasses(self.passes, _alike))
        selection = Selection(chosen)
        return Streamed.of(ChangedPasses(self.passes, selection, selection.mark))

    def told(self, classes: Mixture) -> tuple[float, FloatArray]:
        """Return the log-likelihood of rows and labels, and the total weight of each class."""
        log_likelihood, totals = self.passes.total(
            partial(_told, mixture=classes, classes=self.classes)
        )
        return float(log_likelihood), np.asarray(totals)


@dataclass(frozen=True)
class SharesOf:
    """Rows weighted by their probability of belonging to one of several classes."""

    mixture: Mixture
    classes: Labels
    y: int

    def __call__(self, chunk: Chunk) -> Chunk:
        """Return a chunk with other weights."""
        joint, labels = _joint(chunk, self.mixture, self.classes)
        return replace(chunk, weights=_weights(chunk) * shares_of_class(joint, labels, self.y))


def _alike(chunk: Chunk) -> Chunk:
    """Return a chunk whose rows have equal weight."""
    return replace(chunk, weights=(_weights(chunk) > 0).astype(np.float64))


def _weights(chunk: Chunk) -> FloatArray:
    return chunk.weights if chunk.weights.size else np.ones(chunk.rows.n_rows)


def _joint(chunk: Chunk, mixture: Mixture, classes: Labels) -> tuple[FloatArray, IntArray]:
    """Return log P(x, y) of the rows of a chunk, and the numbers of their classes."""
    joint = mixture.joint(Observed(chunk.rows, chunk.holes), 1)
    return joint, chunk.numbers(classes)


def _numbers(chunk: Chunk, classes: Labels) -> dict[int, IntArray]:
    found = chunk.numbers(classes)[np.flatnonzero(_weights(chunk))]
    return {chunk.first: found} if found.size else {}


def _told(chunk: Chunk, mixture: Mixture, classes: Labels) -> tuple[float, FloatArray]:
    joint, labels = _joint(chunk, mixture, classes)
    return told_of(joint, labels, _weights(chunk))
