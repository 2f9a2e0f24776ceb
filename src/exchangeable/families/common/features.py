"""Rows of columns of any kind as features, for scores that are linear in them."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.rows import Rows
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.mixture import Mixture


class SharedTerms(NamedTuple):
    """What terms that all classes share make of linear scores.

    Attributes
    ----------
    log_totals : array of shape (n_columns, n_classes)
        log of the sum, or integral, over the values of each column of the exponential of its score.
    gain : float
        What the shared terms add to the average score of the rows.
    slope : array
        How `gain` grows with each of the terms.
    pull : callable
        Returns, given how something grows with `log_totals`, how it grows with the terms.
    """

    log_totals: FloatArray
    gain: float
    slope: FloatArray
    pull: Callable[[FloatArray], FloatArray]


class Features(Protocol):
    """Features of rows, and the way back from linear scores to a mixture."""

    @property
    def ones(self) -> Rows:
        """Those that are on or off, as lists of ones."""

    @property
    def numbers(self) -> FloatArray:
        """Those that are numbers, shape (n_rows, n_numbers); they follow the others."""

    @property
    def columns(self) -> IntArray:
        """The column that each feature is of."""

    @property
    def together(self) -> IntArray:
        """The columns that depend on each other in a class, whose first has the total of all."""

    @property
    def scored(self) -> npt.NDArray[np.bool_]:
        """Which features generative scores look at."""

    @property
    def hidden_together(self) -> IntArray:
        """Numbers that features share which are known or hidden together.

        Empty where weights are not chosen for rows with half of their columns hidden as well.
        """

    def start(self, scores: LogLinear) -> FloatArray:
        """Return shared terms to begin with."""

    def shared(self, scores: LogLinear, terms: FloatArray) -> SharedTerms:
        """Return what some shared terms make of scores."""

    def mixture(self, scores: LogLinear, terms: FloatArray) -> Mixture:
        """Return the mixture of these scores and terms: P(y | x) is the softmax of the scores."""
