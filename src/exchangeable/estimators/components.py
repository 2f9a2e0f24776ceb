"""Methods of estimators whose components have no labels."""

from typing import Any

import numpy as np
from sklearn.utils import ClassifierTags

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.estimators.base import MixtureEstimator
from exchangeable.estimators.rows import by_chunks


class ComponentEstimator(MixtureEstimator):
    """Mixin for density estimators: scores, posteriors of components, information criteria."""

    weights_: FloatArray
    n_parameters_: Any
    n_jobs: int | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's check of sparse input calls these if there is a predict_proba.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def score(self, X: Any, y: Any = None) -> float:
        """Return the average log-probability of the rows."""
        return float(self.score_samples(X).mean())

    @by_chunks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log-probability of each component for every row."""
        return self._mixture().log_posterior(self._observed(X), self.n_jobs)[0]

    @by_chunks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each component for every row."""
        return np.exp(self.predict_log_proba(X))

    @by_chunks
    def predict(self, X: Any) -> IntArray:
        """Return the most probable component of every row."""
        return np.asarray(self.predict_log_proba(X).argmax(axis=1))

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X; the lower the better."""
        log_likelihood = self.score_samples(X)
        return float(-2 * log_likelihood.sum() + self.n_parameters_ * np.log(log_likelihood.size))

    def aic(self, X: Any) -> float:
        """Return the Akaike information criterion on X; the lower the better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self.n_parameters_)

    @property
    def _log_prior(self) -> FloatArray:
        return np.asarray(np.log(self.weights_))
