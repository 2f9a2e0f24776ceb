"""Filling holes as a step of a scikit-learn pipeline."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from exchangeable.arrays import RandomState
from exchangeable.data.raw_columns import library_of
from exchangeable.estimators.kinds import schema_of
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.estimators.rows import validated
from exchangeable.queries.methods import METHODS
from exchangeable.runtime.attempts import all_or_nothing


class ExchangeableImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill the holes of a table from a mixture fitted to what is known.

    Parameters
    ----------
    model : ExchangeableMixture, optional
        The mixture to fit, which is cloned; ``ExchangeableMixture(random_state=random_state)`` by
        default.
    method : {"most_probable", "marginal", "draw"}, default="most_probable"
        How to fill a hole, as in `ExchangeableMixture.impute`.
    random_state : int, RandomState, Generator or None
        Seed of the default mixture and of the draws.

    Attributes
    ----------
    model_ : ExchangeableMixture
        The fitted mixture.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableImputer, ExchangeableMixture
    >>> X = np.array([[1, 1, 1, 1], [0, 0, 0, 0]] * 20, dtype=float)
    >>> X[0, 3] = X[1, 0] = np.nan
    >>> imputer = ExchangeableImputer(ExchangeableMixture(2, random_state=0))
    >>> imputer.fit_transform(X)[:2].tolist()
    [[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
    """

    def __init__(
        self,
        model: Any = None,
        *,
        method: str = "most_probable",
        random_state: RandomState = None,
    ) -> None:
        self.model = model
        self.method = method
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the mixture to what is known of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples with NaN where nothing is known.
        y : ignored
            Present for scikit-learn's sake.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, 1 by default.
        """
        if self.method not in METHODS:
            raise ValueError(
                f"method={self.method!r} is unknown; expected one of {', '.join(METHODS)}"
            )
        if self.model is None:
            n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
            model = ExchangeableMixture(min(20, n_rows), random_state=self.random_state)
        else:
            model = clone(self.model)
        self.model_ = model.fit(X, sample_weight=sample_weight)
        self._check_columns(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Return X with its holes filled.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples with NaN where nothing is known.
        """
        check_is_fitted(self, "model_")
        self._check_columns(X, reset=False)
        filled = self.model_.impute(X, self.method, random_state=self.random_state)
        binary = schema_of(self.model_) is None and library_of(filled) is not None
        return np.asarray(filled, dtype=np.float64) if binary else filled

    def _check_columns(self, X: Any, reset: bool) -> None:
        """Set, or compare with X, what scikit-learn's estimators know of the columns."""
        if schema_of(self.model_) is None:
            validated(self, X, reset=reset)
        else:
            validate_data(self, X, reset=reset, skip_check_array=True)
