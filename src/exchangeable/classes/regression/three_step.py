"""Class membership explained by covariates, corrected for classification errors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, ndtr

from exchangeable.arrays import FloatArray, check_number, check_sample_weight
from exchangeable.classes.assignments import posterior_of
from exchangeable.classes.regression.design import Design
from exchangeable.classes.regression.logit import Logit, fit_logit
from exchangeable.classes.regression.one_step import one_step_logit
from exchangeable.classes.tables import Table, Tabular, p_text
from exchangeable.classes.uncertainty.intervals import normal_interval
from exchangeable.classes.uncertainty.sampling import Sampling
from exchangeable.fitting.tasks import check_choice

METHODS = ("bch", "ml", "one-step")
ASSIGNMENTS = ("modal", "proportional")
LEAST_PROBABILITY = 1e-15
LARGEST_LOGIT = 300.0
SMALLEST_DETERMINANT = 1e-8


@dataclass(frozen=True)
class Effects(Tabular):
    """Coefficients of a regression of the class on covariates.

    Attributes
    ----------
    coefficients, errors : arrays of shape (n_classes, n_terms)
        Logits against the reference class, and their standard errors; NaN if there is no finite
        estimate. The row of the reference class is zero.
    p_values : array of shape (n_classes, n_terms)
        p-values of Wald's test that a coefficient is zero.
    interval : array of shape (2, n_classes, n_terms)
        Confidence limits.
    terms : list of str
        Names of the columns: the intercept, covariates, categories relative to the first.
    tests : dict from str to (statistic, degrees of freedom, p-value)
        Wald's test that a covariate has no effect at all.
    reference : int
        The reference class.
    method : str
        The correction for classification errors.
    """

    coefficients: FloatArray
    errors: FloatArray
    p_values: FloatArray
    interval: FloatArray
    terms: list[str]
    tests: dict[str, tuple[float, int, float]]
    reference: int
    method: str

    def as_table(self) -> Table:
        """Return one row per class and term."""
        lines = [
            (y, j)
            for y in range(len(self.coefficients))
            if y != self.reference
            for j in range(len(self.terms))
        ]
        columns: dict[str, Any] = {
            "class": [f"{y} against {self.reference}" for y, _ in lines],
            "term": [self.terms[j] for _, j in lines],
            "logit": [self.coefficients[at] for at in lines],
            "SE": [self.errors[at] for at in lines],
            "p": [p_text(self.p_values[at]) for at in lines],
            "odds ratio": [_odds(self.coefficients, at) for at in lines],
            "low": [_odds(self.interval[0], at) for at in lines],
            "high": [_odds(self.interval[1], at) for at in lines],
        }
        wald = [
            f"{name}: χ²({df}) = {statistic:.2f}, p {'' if p < 0.001 else '= '}{p_text(p)}"
            for name, (statistic, df, p) in self.tests.items()
            if np.isfinite(statistic)
        ]
        note = f"{TITLES[self.method]}. Wald tests: {'; '.join(wald)}." if wald else ""
        return Table(columns, "Covariates of class membership", note=note)


def _odds(logits: FloatArray, at: tuple[int, int]) -> float:
    """Return an odds ratio; NaN for intercepts, and if it is too large to represent."""
    readable = at[1] > 0 and logits[at] < LARGEST_LOGIT
    return float(np.exp(logits[at])) if readable else float("nan")


TITLES = {
    "bch": "Three steps, corrected by the method of Bolck, Croon and Hagenaars",
    "ml": "Three steps, corrected by maximum likelihood",
    "one-step": "One step",
}


def covariate_effects(
    model: Any,
    X: Any,
    covariates: Any,
    *,
    method: str = "ml",
    assignment: str = "modal",
    sample_weight: npt.ArrayLike | None = None,
    strata: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
    reference: int = 0,
    level: float = 0.95,
) -> Effects:
    """Regress class membership on covariates.

    Three-step methods leave the classes as they are: rows are assigned to classes, and the
    regression of the assigned class is corrected for the estimated probabilities of wrong
    assignments. Standard errors are robust, and treat the parameters of the classes as known.

    Parameters
    ----------
    model : ExchangeableMixture
        A fitted mixture; fitted with ``covariates=`` for ``method="one-step"``.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows it was fitted to.
    covariates : table or array of shape (n_samples, n_covariates)
        Numbers, or categories (text, pandas categories), whose first level is the reference.
    method : {"ml", "bch", "one-step"}, default="ml"
        The correction: maximum likelihood (Vermunt 2010), or the weights of Bolck, Croon and
        Hagenaars. ``"one-step"`` reports the coefficients of ``fit(X, covariates=…)``.
    assignment : {"modal", "proportional"}, default="modal"
        Whether rows are assigned to their most probable class, or to all by their posteriors.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each row.
    strata, clusters : array-like of shape (n_samples,), optional
        The stratum of each respondent, and the cluster sampled within it, such as a school or a
        block of houses, for design-based standard errors.
    reference : int, default=0
        The reference class.
    level : float, default=0.95
        The confidence level.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.classes import covariate_effects
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(size=1000)
    >>> kind = rng.random(1000) < 1 / (1 + np.exp(-age))
    >>> X = rng.random((1000, 6)) < np.where(kind[:, None], 0.8, 0.2)
    >>> model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0).fit(X)
    >>> found = covariate_effects(model, X, age)
    >>> bool(0.7 < abs(found.coefficients[1, 1]) < 1.3)
    True
    """
    check_choice(method, "method", METHODS)
    check_choice(assignment, "assignment", ASSIGNMENTS)
    k = model.weights_.size
    if k < 2:
        raise ValueError("the mixture has one class, whose membership has no covariates")
    if reference not in range(k):
        raise ValueError(f"reference={reference!r} is not a class; expected 0 to {k - 1}")
    level = check_number(level, "level")
    if method == "one-step":
        sampling = Sampling.of(strata, clusters, model._observed(X).n_rows)
        design, fitted = one_step_logit(model, X, covariates, sample_weight, sampling)
        return _effects(fitted, design, reference, level, method)
    design = Design.of(covariates)
    log_posterior = posterior_of(model, X)
    weight = check_sample_weight(sample_weight, len(log_posterior))
    sampling = Sampling.of(strata, clusters, len(log_posterior))
    matrix = design.matrix(covariates, len(log_posterior))
    share = np.exp(log_posterior)
    if method == "bch":
        known: dict[str, Any] = {"shares": bch_weights(share, weight, assignment)}
    elif assignment == "modal":
        known = {"log_emission": log_emission(share, weight)}
    else:  # one record for each class that a row may be assigned to, by its posterior
        table = _log_table(share, weight, assignment)
        known = {"log_emission": np.repeat(table.T, len(share), axis=0), "copies": k}
        matrix, weight = np.tile(matrix, (k, 1)), (weight[:, None] * share).T.ravel()
    fitted = fit_logit(matrix, weight, terms=design.terms, sampling=sampling, **known)
    return _effects(fitted, design, reference, level, method)


def assigned(share: FloatArray, assignment: str) -> FloatArray:
    """Return how much of each row is assigned to each class."""
    if assignment == "proportional":
        return share
    return np.asarray(np.eye(share.shape[1])[share.argmax(axis=1)])


def error_table(share: FloatArray, weight: FloatArray, assignment: str) -> FloatArray:
    """Return P(assigned class | true class), one row per true class.

    >>> error_table(np.array([[0.9, 0.1], [0.1, 0.9]]), np.ones(2), "modal").round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    mass = weight[:, None] * share
    return np.asarray(mass.T @ assigned(share, assignment) / mass.sum(axis=0)[:, None])


def bch_weights(share: FloatArray, weight: FloatArray, assignment: str) -> FloatArray:
    """Return the weight of each row in each class; those of a row add up to one."""
    table = error_table(share, weight, assignment)
    if abs(np.linalg.det(table)) < SMALLEST_DETERMINANT:
        raise ValueError(
            "assigned classes say nothing about true classes (some class gets no rows, or two are "
            "alike), so that there is nothing to correct by; use fewer classes, or "
            "assignment='proportional'"
        )
    return np.asarray(assigned(share, assignment) @ np.linalg.inv(table))


def log_emission(share: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the log-probability of each row's most probable class given each true class."""
    return np.asarray(_log_table(share, weight, "modal").T[share.argmax(axis=1)])


def _log_table(share: FloatArray, weight: FloatArray, assignment: str) -> FloatArray:
    table = np.clip(error_table(share, weight, assignment), LEAST_PROBABILITY, 1.0)
    return np.asarray(np.log(table))


def _effects(fitted: Logit, design: Design, reference: int, level: float, method: str) -> Effects:
    """Return coefficients against a reference class, with their tests."""
    k, d = fitted.coefficients.shape
    coefficients = fitted.coefficients - fitted.coefficients[reference]
    # Contrasts of all classes with the reference; class 0 has no coefficients.
    contrast = np.zeros((k, k - 1))
    contrast[1:] = np.eye(k - 1)
    contrast -= contrast[reference]
    whole = np.kron(contrast, np.eye(d))
    lost = np.isnan(np.diag(fitted.covariance))
    covariance = whole @ np.nan_to_num(fitted.covariance) @ whole.T
    touched = np.abs(whole) @ lost > 0
    covariance[touched] = covariance[:, touched] = np.nan
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0)).reshape(k, d)
    with np.errstate(invalid="ignore", divide="ignore"):
        p_values = 2 * ndtr(-np.abs(coefficients / errors))
    p_values[reference] = np.nan
    others = [y for y in range(k) if y != reference]
    tests = {}
    for name, columns in design.groups.items():
        at = [y * d + j for y in others for j in columns]
        tests[name] = wald_test(coefficients.ravel()[at], covariance[np.ix_(at, at)])
    interval = normal_interval(coefficients, errors, level)
    return Effects(coefficients, errors, p_values, interval, design.terms, tests, reference, method)


def wald_test(estimates: FloatArray, covariance: FloatArray) -> tuple[float, int, float]:
    """Return Wald's statistic that all estimates are zero, its degrees of freedom and p-value."""
    if np.isnan(estimates).any() or np.isnan(covariance).any():
        return float("nan"), estimates.size, float("nan")
    statistic = float(estimates @ np.linalg.pinv(covariance, hermitian=True) @ estimates)
    return statistic, estimates.size, float(chdtrc(estimates.size, statistic))
