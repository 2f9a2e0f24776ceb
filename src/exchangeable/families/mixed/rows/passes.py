"""How a pass of EM reads the rows of a part: in spans, in a form that is cached between passes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from exchangeable.arrays import FloatArray

PartSums = dict[str, FloatArray]
"""The sums of a part over rows, by name; those of two sets of rows add up."""


class PartPass(ABC):
    """A pass over the rows of a part under its parameters, in spans that threads share."""

    @abstractmethod
    def add_scores(self, span: int, joint: FloatArray) -> None:
        """Add log P of the known entries of a span; `joint` has a line per class."""

    @abstractmethod
    def sums(self, span: int, mass: FloatArray) -> PartSums:
        """Return the contribution of a span to the sums; `mass` has a line per class."""

    def finish(self, sums: PartSums) -> PartSums:
        """Return the sums for the next parameters, from those of all spans."""
        return sums


@dataclass(frozen=True)
class PlainPass(PartPass):
    """A pass by a part's own `score` and `sums`, over its unconverted columns.

    Attributes
    ----------
    part : Part
        The part.
    rows : sequence of array or sparse matrix
        Its columns, for each span.
    """

    part: Any
    rows: Sequence[Any]

    def add_scores(self, span: int, joint: FloatArray) -> None:
        """Add log P of the known entries of a span."""
        joint += self.part.score(self.rows[span]).T

    def sums(self, span: int, mass: FloatArray) -> PartSums:
        """Return the contribution of a span to the sums."""
        found: PartSums = self.part.sums(self.rows[span], mass.T)
        return found
