"""The shape of components, on which compiled training depends."""

import math
from dataclasses import dataclass
from typing import NamedTuple

FEW_POINTS = 8
"""Fewer points are padded to this number."""
SHARE_CELLS = 1 << 26
"""Number of scores (rows by components) held while shares are fitted."""
LARGEST = 12.0
"""Log-odds are clipped to this."""


PER_VARIABLE = {"odds and counts": 3.0}
"""Multiplications for each point and pair of variables, for any number of rows, by kind of
component."""


class Head(NamedTuple):
    """The shape of the components, which compiled code depends on.

    Attributes
    ----------
    kind : str
        What the components are made of.
    n_variables : int
        Number of columns of the rows.
    holes : bool
        Whether rows have missing entries.
    groups : int
        Number of groups of points, each with its own last layer.
    """

    kind: str
    n_variables: int
    holes: bool
    groups: int = 1

    def work(self, n_rows: int, n_points: int) -> float:
        """Return the approximate number of multiplications for the scores of rows at points.

        >>> Head("odds", 100, False).work(512, 1024)
        52428800.0
        """
        pairs = PER_VARIABLE.get(self.kind, 0.0) * self.n_variables
        return float(n_points) * self.n_variables * (n_rows + pairs)

    def room(self, n_rows: int, n_points: int) -> float:
        """Return the approximate bytes for the gradient of the scores of rows at points.

        Messages of incomplete rows are stored for every row, point and variable, those of counts
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
    """The settings of a decoder and its training; see `Neural` for their meaning."""

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
