"""Imputation as a step of a scikit-learn pipeline."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from exchangeable.arrays import RandomState, as_generator
from exchangeable.data.columns.raw import library_of
from exchangeable.estimators.kinds import decide_schema, schema_of
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.estimators.rows import validated
from exchangeable.queries.methods import METHODS
from exchangeable.runtime.attempts import all_or_nothing
from exchangeable.runtime.interrupts import stopping

TOGETHER = (1, 2, 3, 5)
"""Candidate numbers of components with dependent columns."""
FEWEST = 20
"""With fewer rows than this there is no choice."""


class ExchangeableImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill in the missing values of a table from a mixture fitted to the known ones.

    Parameters
    ----------
    model : ExchangeableMixture, optional
        The mixture to fit, which is cloned. The default is a mixture of 20 components; if a column
        is not binary, a held-out fifth of the rows chooses between that and mixtures of 1, 2, 3 and
        5 components whose columns depend on each other (``blocks="full"``).
    method : {"most_probable", "marginal", "draw"}, default="most_probable"
        How to fill in a missing value, as in `ExchangeableMixture.impute`.
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
        """Fit the mixture to the known values of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples with NaN for missing values.
        y : ignored
            Ignored, present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, 1 by default.
        """
        if self.method not in METHODS:
            raise ValueError(
                f"method={self.method!r} is unknown; expected one of {', '.join(METHODS)}"
            )
        model = self._default(X, sample_weight) if self.model is None else clone(self.model)
        self.model_ = model.fit(X, sample_weight=sample_weight)
        self._check_columns(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Return X with missing values filled in.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples with NaN for missing values.
        """
        check_is_fitted(self, "model_")
        self._check_columns(X, reset=False)
        filled = self.model_.impute(X, self.method, random_state=self.random_state)
        binary = schema_of(self.model_) is None and library_of(filled) is not None
        return np.asarray(filled, dtype=np.float64) if binary else filled

    def _default(self, X: Any, sample_weight: npt.ArrayLike | None) -> ExchangeableMixture:
        """Return the mixture to fit; for columns of several kinds, chosen by held-out rows."""
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        plain = ExchangeableMixture(min(20, n_rows), random_state=self.random_state)
        if n_rows < FEWEST or decide_schema(plain, X)[0] is None:
            return plain
        seed = int(as_generator(self.random_state).integers(1 << 31))
        with stopping():
            best, highest = plain, _held_out(plain, seed, X, sample_weight)
            for n_components in TOGETHER:
                model = clone(plain).set_params(n_components=n_components, blocks="full")
                worth = _held_out(model, seed, X, sample_weight)
                if worth > highest:
                    best, highest = model, worth
                elif best is not plain:
                    break
        return best

    def _check_columns(self, X: Any, reset: bool) -> None:
        """Set scikit-learn's attributes about the columns, or compare X with them."""
        if schema_of(self.model_) is None:
            validated(self, X, reset=reset)
        else:
            validate_data(self, X, reset=reset, skip_check_array=True)


def _held_out(
    model: ExchangeableMixture, seed: int, X: Any, sample_weight: npt.ArrayLike | None
) -> float:
    """Return the average log-likelihood of a held-out fifth of the rows."""
    judged = clone(model).set_params(validation_fraction=0.2, random_state=seed)
    judged.fit(X, sample_weight=sample_weight)
    return float(max(max(history) for history in judged.valid_history_))
