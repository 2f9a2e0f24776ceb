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
    """The effect of shared terms of all classes on linear scores.

    Attributes
    ----------
    log_totals : array of shape (n_columns, n_classes)
        Log of the sum, or integral, over the values of each column of the exponential of its score.
    gain : float
        What the shared terms add to the average score of the rows.
    slope : array
        The gradient of `gain` with respect to the terms.
    pull : callable
        Converts a gradient with respect to `log_totals` to one with respect to the terms.
    """

    log_totals: FloatArray
    gain: float
    slope: FloatArray
    pull: Callable[[FloatArray], FloatArray]


class Features(Protocol):
    """Features of rows, and the conversion of linear scores to a mixture."""

    @property
    def ones(self) -> Rows:
        """Binary features, as lists of ones."""

    @property
    def numbers(self) -> FloatArray:
        """Numerical features, shape (n_rows, n_numbers); they follow the others."""

    @property
    def columns(self) -> IntArray:
        """The column of each feature."""

    @property
    def together(self) -> IntArray:
        """Columns that depend on each other within a class; the first one has the total of all."""

    @property
    def scored(self) -> npt.NDArray[np.bool_]:
        """Which features generative scores use."""

    @property
    def hidden_together(self) -> IntArray:
        """Group numbers of features that are known or hidden together.

        Empty if weights are not chosen for rows with half of their columns hidden as well.
        """

    def start(self, scores: LogLinear) -> FloatArray:
        """Return initial shared terms."""

    def shared(self, scores: LogLinear, terms: FloatArray) -> SharedTerms:
        """Return the effect of some shared terms on scores."""

    def mixture(self, scores: LogLinear, terms: FloatArray) -> Mixture:
        """Return the mixture of these scores and terms: P(y | x) is the softmax of the scores."""
