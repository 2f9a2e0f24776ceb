"""What a model must be able to do for every query to have an exact answer."""

from typing import Protocol

import numpy as np

from exchangeable.arrays import FloatArray, SymbolArray
from exchangeable.data.observed import Observed


class ClassModel(Protocol):
    """Distributions over binary variables, one a class or component y.

    Four operations on rows with holes are all that the queries in this package are written over.
    A row that is impossible in class y has score −inf there; its marginals, completion and draws
    in that class are never used, but must be numbers.
    """

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""

    def score(self, observed: Observed, n_jobs: int | None = None) -> FloatArray:
        """Return log P(e | y), shape (n_rows, n_classes): e are a row's known entries."""

    def marginals(self, observed: Observed, y: int) -> FloatArray:
        """Return P(x_j = 1 | e, y), shape (n_rows, n_variables); known entries stay 0 or 1."""

    def complete(self, observed: Observed, y: int) -> tuple[SymbolArray, FloatArray]:
        """Return the most probable completion x of each row, and log P(x | y).

        Where that is hard to find, as with hidden states in a class, one that is hard to better.
        """

    def draw(self, observed: Observed, y: int, rng: np.random.Generator) -> SymbolArray:
        """Return a completion of each row, drawn from P(x | e, y)."""
