"""Classes and their covariates fitted together: each row has its own class probabilities."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, check_sample_weight
from exchangeable.classes.regression.design import Design
from exchangeable.classes.regression.logit import (
    SEPARATED,
    Logit,
    fit_logit,
    log_priors,
    without_infinite,
)
from exchangeable.classes.uncertainty.information import observed_information
from exchangeable.classes.uncertainty.sampling import Sampling
from exchangeable.data.columns.schema import typed_rows
from exchangeable.data.examples import Examples
from exchangeable.data.observed import Observed
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import Family, FamilySpec
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import StopRule

STEPS = 3
"""Newton steps of the regression per iteration of EM."""


@dataclass(frozen=True)
class OneStep:
    """The result of a fit with covariates.

    Attributes
    ----------
    mixture : Mixture
        The classes, and their average probabilities.
    coefficients : array of shape (n_classes, n_terms)
        Logits against the first class.
    history : list of float
        Average log-likelihood after every iteration.
    converged : bool
        Whether the last iteration improved by less than the tolerance.
    """

    mixture: Mixture
    coefficients: FloatArray
    history: list[float]
    converged: bool


def fit_one_step(
    spec: FamilySpec,
    problem: Problem,
    observed: Observed,
    weight: FloatArray,
    design: FloatArray,
    terms: list[str],
    start: Mixture,
    rule: StopRule,
    n_jobs: int | None,
) -> OneStep:
    """Continue from a mixture without covariates, by EM.

    An iteration uses each row's own class probabilities for its posterior, the family's steps for
    the classes, and Newton steps for the coefficients.
    """
    examples = Examples(observed.ones, weight, holes=observed.holes)
    data = InMemory(examples, n_jobs=n_jobs)
    family = spec.family(replace(problem, examples=examples))
    if not isinstance(family, Family) or not spec.row_priors:
        raise TypeError(f"family={spec.name!r} has no class probabilities that differ by row")
    start = family.resume(data, start)
    model, total = start.model, float(weight.sum())
    coefficients = np.zeros((start.log_prior.size, design.shape[1]))
    coefficients[:, 0] = start.log_prior - start.log_prior[0]
    sums: Any = model.expect(data, log_priors(design, coefficients))
    history, converged = [sums.log_likelihood / total], False
    while len(history) <= rule.max_iter and not converged:
        after: Any = family.following(data, model, sums, 0)[0]
        fitted = fit_logit(
            design,
            weight,
            shares=sums.posterior,
            terms=terms,
            start=coefficients,
            max_steps=STEPS,
            with_errors=False,
        )
        if np.isnan(fitted.coefficients).any():
            break
        ahead: Any = after.expect(data, log_priors(design, fitted.coefficients))
        gain = ahead.log_likelihood - sums.log_likelihood + family.prior_gain(model, after)
        if gain < 0:
            converged = -gain / total < rule.tol
            break
        model, coefficients, sums = after, fitted.coefficients, ahead
        history.append(sums.log_likelihood / total)
        converged = gain / total < rule.tol
    average = weight @ np.exp(log_priors(design, coefficients)) / total
    return OneStep(Mixture(model, np.log(average)), coefficients, history, converged)


def one_step_logit(
    model: Any,
    X: Any,
    covariates: Any,
    sample_weight: npt.ArrayLike | None,
    sampling: Sampling | None = None,
) -> tuple[Design, Logit]:
    """Return the coefficients of a fit with covariates, and their covariance.

    The covariance is that of all parameters together if columns have levels and are independent
    within classes; otherwise it is that of the coefficients given the classes.
    """
    if not hasattr(model, "coefficients_"):
        raise ValueError(
            "method='one-step' needs a mixture fitted with covariates: "
            "ExchangeableMixture(...).fit(X, covariates=Z)"
        )
    design = Design.from_plain(model.covariates_)
    observed = model._observed(X)
    matrix = design.matrix(covariates, observed.n_rows)
    weight = check_sample_weight(sample_weight, observed.n_rows)
    inner = model._fitted()
    shares = inner.level_shares()
    log_prior = log_priors(matrix, model.coefficients_)
    if shares is None:
        scores = inner.score(observed, model.n_jobs)
        start = model.coefficients_
        known = {"log_emission": scores, "terms": design.terms, "start": start}
        fitted = fit_logit(matrix, weight, sampling=sampling, **known)
        return design, replace(fitted, coefficients=model.coefficients_)
    values = typed_rows(observed).values
    robust = sample_weight is not None or sampling is not None
    found = observed_information(shares, values, log_prior, matrix, weight, robust, sampling)
    size = found.n_coefficients
    worth = float(weight @ np.logaddexp.reduce(log_prior + inner.score(observed), axis=1))
    covariance, coefficients = found.covariance[:size, :size], model.coefficients_.copy()
    infinite = np.abs(coefficients[1:] * matrix.std(axis=0)) > SEPARATED / 2
    if infinite.any():
        coefficients, covariance = without_infinite(
            coefficients, covariance, infinite, design.terms
        )
    return design, Logit(coefficients, covariance, worth)
