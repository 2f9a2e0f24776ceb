"""What the tree models share: input checks, scores and sampling."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from exchangeable.arrays import (
    FloatArray,
    IntArray,
    RandomState,
    as_generator,
    check_alpha,
    check_count,
    check_number,
)
from exchangeable.baselines.tree import Binary, BinaryTree


class TreeEstimator(DensityMixin, BaseEstimator):
    """Base of density estimators that keep a `BinaryTree` in ``_tree``."""

    alpha: float
    binarize: float | None
    n_jobs: int | None
    _tree: BinaryTree

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-probability of every row."""
        check_is_fitted(self, "_tree")
        rows = self._binary(X)
        return self._tree.log_probabilities(np.ascontiguousarray(rows.T), self.n_jobs)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the average log-probability of the rows."""
        return float(self.score_samples(X).mean())

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X; the lower the better."""
        scores = self.score_samples(X)
        return float(-2 * scores.sum() + self.n_parameters_ * np.log(scores.size))

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Binary:
        """Draw rows.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState, Generator or None
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples, n_features), uint8
            Zeros and ones.
        """
        check_is_fitted(self, "_tree")
        n_samples = check_count(n_samples, "n_samples")
        return self._tree.sample(n_samples, as_generator(random_state))

    @property
    def edges_(self) -> IntArray:
        """One row (node, parent) per edge; hidden nodes are numbered after the variables."""
        check_is_fitted(self, "_tree")
        return self._tree.edges

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        check_is_fitted(self, "_tree")
        return self._tree.n_parameters

    def _check_alpha(self) -> float:
        alpha = check_alpha(self.alpha)
        if alpha <= 0:
            raise ValueError(
                f"alpha must be positive, got {alpha}: without smoothing, values never seen in "
                "training would get probability 0; give a small number such as 0.01"
            )
        return alpha

    def _binary(self, X: Any, reset: bool = False) -> Binary:
        """Return checked rows of zeros and ones."""
        values: npt.NDArray[Any] = validate_data(self, X, dtype="numeric", reset=reset)
        if self.binarize is not None:
            return (values > check_number(self.binarize, "binarize")).astype(np.uint8)
        bad = np.argwhere((values != 0) & (values != 1))
        if bad.size:
            i, j = bad[0]
            raise ValueError(
                f"X[{i}, {j}] is {values[i, j]}; expected 0 or 1, or set binarize to a threshold"
            )
        return values.astype(np.uint8)
