"""Multinomial logistic regression of classes that are known only with error."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from exchangeable.arrays import FloatArray
from exchangeable.classes.uncertainty.sampling import Sampling, squares

Flags = npt.NDArray[np.bool_]
MAX_STEPS = 200
SMALLEST_GRADIENT = 1e-9
"""Per unit of weight: Newton's method stops when the gradient is smaller."""
HALVINGS = 30
SEPARATED = 12.0
"""If the effect of one standard deviation exceeds this, in logits, the maximum is not finite."""


@dataclass(frozen=True)
class Logit:
    """Coefficients of class membership, the first class being the reference.

    Attributes
    ----------
    coefficients : array of shape (n_classes, n_terms)
        The first row is zero. NaN if the likelihood has no finite maximum.
    covariance : array of shape ((n_classes − 1)·n_terms, …)
        Of the other rows, by the sandwich estimator.
    log_likelihood : float
        Weighted log-likelihood.
    """

    coefficients: FloatArray
    covariance: FloatArray
    log_likelihood: float


def log_priors(design: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Return the log-probability of each class of every row.

    >>> np.exp(log_priors(np.ones((1, 1)), np.log([[1.0], [3.0]]))).round(2).tolist()
    [[0.25, 0.75]]
    """
    scores = design @ coefficients.T
    return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))


def fit_logit(
    design: FloatArray,
    weight: FloatArray,
    *,
    shares: FloatArray | None = None,
    log_emission: FloatArray | None = None,
    terms: Sequence[str] = (),
    start: FloatArray | None = None,
    max_steps: int = MAX_STEPS,
    with_errors: bool = True,
    copies: int = 1,
    sampling: Sampling | None = None,
) -> Logit:
    """Fit by Newton's method, from class shares or from class-conditional log-probabilities.

    Parameters
    ----------
    design : array of shape (n_rows, n_terms)
        Covariates with an intercept first.
    weight : array of shape (n_rows,)
        Weights of the rows.
    shares : array of shape (n_rows, n_classes), optional
        How much of each row belongs to each class; may be negative, as long as those of a row sum
        to one. The likelihood is then concave.
    log_emission : array of shape (n_rows, n_classes), optional
        Used instead: the log-probability of the observed part of each row given its class.
    terms : sequence of str
        Names of the columns of the design, for messages.
    start : array of shape (n_classes, n_terms), optional
        Initial coefficients.
    max_steps : int
        Maximum number of steps.
    with_errors : bool
        Whether to compute the covariance; it is NaN otherwise.
    copies : int
        How many copies of all rows there are, one set after the other, as records of the same
        persons.
    sampling : Sampling, optional
        Clusters and strata of the persons, for the covariance.
    """
    scale = np.concatenate([[1.0], design[:, 1:].std(axis=0)])
    centre = np.concatenate([[0.0], design[:, 1:].mean(axis=0)])
    inner = (design - centre) / scale
    problem = _Problem(inner, weight, shares, log_emission)
    k, d = problem.n_classes, design.shape[1]
    beta = np.zeros((k - 1, d))
    if start is not None:
        beta = start[1:] * scale
        beta[:, 0] += start[1:] @ centre
    beta, worth = problem.climb(beta, max_steps)
    infinite = np.abs(beta) > SEPARATED
    covariance = np.full((beta.size, beta.size), np.nan)
    if with_errors:
        covariance = problem.sandwich(beta, infinite, copies, sampling)
    back = np.diag(1 / scale)
    back[0, 1:] = -centre[1:] / scale[1:]
    whole = np.asarray(np.kron(np.eye(k - 1), back), dtype=np.float64)
    coefficients = np.zeros((k, d))
    coefficients[1:] = beta @ back.T
    covariance = _transformed(whole, covariance)
    if infinite.any():
        coefficients, covariance = without_infinite(coefficients, covariance, infinite, terms)
    return Logit(coefficients, covariance, worth)


def without_infinite(
    coefficients: FloatArray, covariance: FloatArray, infinite: Flags, terms: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Return estimates with NaN for infinite ones, after a warning that names them.

    The intercept of a class with an infinite coefficient is meaningless too.
    """
    _tell(infinite, terms)
    lost = infinite.copy()
    lost[:, 0] |= infinite[:, 1:].any(axis=1)
    coefficients, covariance = coefficients.copy(), covariance.copy()
    coefficients[1:][lost] = np.nan
    covariance[lost.ravel()] = np.nan
    covariance[:, lost.ravel()] = np.nan
    return coefficients, covariance


def _transformed(back: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the covariance of coefficients of the original covariates."""
    lost = np.isnan(np.diag(covariance))
    filled = np.where(np.isnan(covariance), 0.0, covariance)
    result = back @ filled @ back.T
    touched = (np.abs(back) @ lost.astype(np.float64)) > 0
    result[touched] = np.nan
    result[:, touched] = np.nan
    return np.asarray(result)


def _tell(infinite: Flags, terms: Sequence[str]) -> None:
    """Warn about infinite estimates."""
    pairs = [
        f"{terms[j] if j < len(terms) else f'term {j}'} for class {y + 1}"
        for y, j in np.argwhere(infinite)
    ]
    warnings.warn(
        f"perfect separation: the likelihood has no finite maximum in {', '.join(pairs[:4])}"
        f"{', …' if len(pairs) > 4 else ''}, so that no estimate is given; combine categories, "
        "leave the covariate out, or use fewer classes",
        stacklevel=5,
    )


class _Problem:
    """The likelihood of coefficients of standardised covariates."""

    def __init__(
        self,
        design: FloatArray,
        weight: FloatArray,
        shares: FloatArray | None,
        log_emission: FloatArray | None,
    ) -> None:
        self.design, self.weight, self.shares = design, weight, shares
        self.log_emission = np.zeros((1, 1)) if log_emission is None else log_emission
        self.n_classes = (self.log_emission if shares is None else shares).shape[1]

    def _log_prior(self, beta: FloatArray) -> FloatArray:
        scores = np.concatenate([np.zeros((len(self.design), 1)), self.design @ beta.T], axis=1)
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))

    def worth(self, beta: FloatArray) -> float:
        """Return the log-likelihood."""
        log_prior = self._log_prior(beta)
        if self.shares is not None:
            return float(self.weight @ (self.shares * log_prior).sum(axis=1))
        return float(self.weight @ logsumexp(log_prior + self.log_emission, axis=1))

    def derivatives(self, beta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return each row's score, the complete and the observed information."""
        log_prior = self._log_prior(beta)
        prior, shares = np.exp(log_prior), self.shares
        if shares is None:
            joint = log_prior + self.log_emission
            shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        off = (shares - prior)[:, 1:]
        scores = (off[:, :, None] * self.design[:, None, :]).reshape(len(off), -1)
        complete = self._squares(prior[:, 1:])
        if self.shares is not None:
            return scores, complete, complete
        return scores, complete, complete - self._squares(shares[:, 1:])

    def _squares(self, p: FloatArray) -> FloatArray:
        """Return Σ w (diag(p) − pp′) ⊗ zz′."""
        k, d = p.shape[1], self.design.shape[1]
        result = np.empty((k, d, k, d))
        for c in range(k):
            for e in range(c, k):
                spread = self.weight * p[:, c] * (float(c == e) - p[:, e])
                block = self.design.T @ (spread[:, None] * self.design)
                result[c, :, e] = block
                result[e, :, c] = block.T
        return result.reshape(k * d, k * d)

    def climb(self, beta: FloatArray, max_steps: int) -> tuple[FloatArray, float]:
        """Return the coefficients with the highest likelihood, or large ones if there is none."""
        worth, total = self.worth(beta), float(self.weight.sum())
        for _ in range(max_steps):
            scores, complete, observed = self.derivatives(beta)
            gradient = self.weight @ scores
            if np.abs(gradient).max(initial=0.0) < SMALLEST_GRADIENT * total:
                break
            moved = False
            for curvature in (observed, complete):
                step = _solve(curvature, gradient)
                if step is None:
                    continue
                for halving in range(HALVINGS):
                    ahead = beta + (0.5**halving * step).reshape(beta.shape)
                    better = self.worth(ahead)
                    if better > worth:
                        beta, worth, moved = ahead, better, True
                        break
                if moved:
                    break
            if not moved or np.abs(beta).max(initial=0.0) > 2 * SEPARATED:
                break
        return beta, worth

    def sandwich(
        self, beta: FloatArray, infinite: Flags, copies: int, sampling: Sampling | None
    ) -> FloatArray:
        """Return the robust covariance, NaN for coefficients that are infinite."""
        scores, _, observed = self.derivatives(beta)
        weighted = self.weight[:, None] * scores
        weighted = weighted.reshape(copies, -1, weighted.shape[1]).sum(axis=0)
        free = ~infinite.ravel()
        covariance = np.full(observed.shape, np.nan)
        if not free.any():
            return covariance
        bread = np.linalg.pinv(observed[np.ix_(free, free)], hermitian=True)
        meat = squares(weighted[:, free], sampling)
        covariance[np.ix_(free, free)] = bread @ meat @ bread
        return covariance


def _solve(curvature: FloatArray, gradient: FloatArray) -> FloatArray | None:
    """Return the Newton step, None if the curvature is not positive."""
    try:
        factor = np.linalg.cholesky(curvature)
    except np.linalg.LinAlgError:
        return None
    return np.linalg.solve(factor.T, np.linalg.solve(factor, gradient))
