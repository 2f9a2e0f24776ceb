"""What compiled training depends on."""

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
        Every so many points belong to the same group, and each group has a last layer of its own.
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
