"""What compiled training depends on."""

import math
from dataclasses import dataclass
from typing import NamedTuple

FEW_POINTS = 8
"""Fewer points are filled up to this many."""
SHARE_CELLS = 1 << 26
"""Scores of rows by components that are held while shares are fitted."""
LARGEST = 12.0
"""Log-odds are clipped at this: nothing is quite certain."""


PER_VARIABLE = {"odds and counts": 3.0}
"""Multiplications for each point and pair of variables, whatever the rows, by kind of component."""


class Head(NamedTuple):
    """The shape of the components, which compiled code depends on.

    Attributes
    ----------
    kind : str
        What the components are made of.
    n_variables : int
        Number of columns of the rows.
    holes : bool
        Whether rows have entries that are not known.
    groups : int
        Number of groups: points this far apart belong to the same one, and each has a last layer
        of its own.
    """

    kind: str
    n_variables: int
    holes: bool
    groups: int = 1

    def work(self, n_rows: int, n_points: int) -> float:
        """Return about how many multiplications the scores of rows at points take.

        >>> Head("odds", 100, False).work(512, 1024)
        52428800.0
        """
        pairs = PER_VARIABLE.get(self.kind, 0.0) * self.n_variables
        return float(n_points) * self.n_variables * (n_rows + pairs)

    def room(self, n_rows: int, n_points: int) -> float:
        """Return about how many bytes the gradient of the scores of rows at points takes.

        Messages of rows with holes are kept for every row, point and variable, those of counts
        for every point, count and block of variables.

        >>> Head("odds", 100, False).room(512, 8192) / 1e6
        76.939264
        """
        n, cells = float(self.n_variables), 4.0 * n_points
        room = cells * (4 * n_rows + 3 * n)
        if self.kind == "odds and counts":
            room += 3 * cells * n * math.sqrt(n)
        if self.kind == "conditional odds" and self.holes:
            room += 8 * cells * n_rows * n
        return room


@dataclass(frozen=True)
class Settings:
    """How a decoder is made and trained; `Neural` says what each setting means."""

    latent: int
    layers: tuple[int, ...]
    points: int
    batch_size: int
    learning_rate: float
    warm_up: int
    patience: int
    cuts: int
    trees: int
    settle: int
