"""Mixtures whose class probabilities depend on covariates."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from exchangeable.arrays import FloatArray, IntArray, check_sample_weight, normalize_log
from exchangeable.classes.regression.design import Design
from exchangeable.classes.regression.logit import log_priors
from exchangeable.classes.regression.one_step import fit_one_step
from exchangeable.data.examples import merge_equal_rows
from exchangeable.estimators.components import ComponentEstimator
from exchangeable.estimators.rows import by_chunks
from exchangeable.fitting.tasks import rule_of
from exchangeable.queries.answers import class_posterior

FITTED = ("coefficients_", "covariates_")
"""Attributes that a fit with covariates stores in addition to the usual ones."""


def forget_covariates(estimator: Any) -> None:
    """Remove the attributes of an earlier fit with covariates."""
    for name in FITTED:
        estimator.__dict__.pop(name, None)


def add_covariates(
    estimator: Any, X: Any, covariates: Any, sample_weight: npt.ArrayLike | None
) -> None:
    """Extend a fit without covariates to one in which class probabilities depend on them."""
    design = Design.of(covariates)
    observed = estimator._observed(X)
    matrix = design.matrix(covariates, observed.n_rows)
    weight = check_sample_weight(sample_weight, observed.n_rows)
    refits = estimator._refits()
    if not refits.spec.row_priors:
        raise ValueError(
            f"covariates do not go with family={refits.spec.name!r} and these blocks; give "
            "blocks='independent', the blocks of latent class analysis"
        )
    examples = merge_equal_rows(observed, weight)[0]
    start = class_posterior(estimator._mixture(), examples.observed)
    begun = refits.fit(examples, np.random.default_rng(0), start).mixture
    rule = rule_of(estimator)
    found = fit_one_step(
        refits.spec,
        refits.problem,
        observed,
        weight,
        matrix,
        design.terms,
        begun,
        rule,
        estimator.n_jobs,
    )
    if not found.converged and len(found.history) > rule.max_iter:
        warnings.warn(
            f"EM with covariates did not converge in {rule.max_iter} iterations; raise max_iter or "
            "tol",
            ConvergenceWarning,
            stacklevel=4,
        )
    estimator._model, estimator.weights_ = found.mixture.model, np.exp(found.mixture.log_prior)
    estimator.coefficients_ = found.coefficients
    estimator.covariates_ = design.to_plain()
    estimator.history_, estimator.best_init_ = [found.history], 0
    estimator.n_iter_, estimator.converged_ = max(len(found.history) - 1, 1), found.converged
    estimator.log_likelihood_ = found.history[-1]


class CovariatePredictions(ComponentEstimator):
    """Mixin for mixtures: posteriors of components, given covariates if the fit had some."""

    @by_chunks
    def predict_log_proba(self, X: Any, covariates: Any = None) -> FloatArray:
        """Return the log-probability of each component for every row, given covariates if any.

        Without covariates, a model that was fitted with them uses the average probability of each
        component.
        """
        observed, mixture = self._observed(X), self._mixture()
        if covariates is None:
            return mixture.log_posterior(observed, self.n_jobs)[0]
        coefficients = vars(self).get("coefficients_")
        if coefficients is None:
            raise ValueError("covariates were not given to fit; leave them away, or fit with them")
        mixture.check_width(observed)
        design = Design.from_plain(vars(self)["covariates_"])
        own = log_priors(design.matrix(covariates, observed.n_rows), coefficients)
        joint = mixture.model.score(observed, self.n_jobs) + own
        return normalize_log(joint, mixture.log_prior)[0]

    @by_chunks
    def predict_proba(self, X: Any, covariates: Any = None) -> FloatArray:
        """Return the probability of each component for every row, given covariates if any."""
        return np.exp(self.predict_log_proba(X, covariates))

    @by_chunks
    def predict(self, X: Any, covariates: Any = None) -> IntArray:
        """Return the most probable component of every row, given covariates if any."""
        return np.asarray(self.predict_log_proba(X, covariates).argmax(axis=1))
