"""What compiled training depends on."""

from dataclasses import dataclass
from typing import NamedTuple

FEW_POINTS = 8
"""Fewer points are filled up to this many."""
SHARE_CELLS = 1 << 26
"""Scores of rows by components that are held while shares are fitted."""
LARGEST = 12.0
"""Log-odds are clipped at this: nothing is quite certain."""


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
