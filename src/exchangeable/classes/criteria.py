"""Criteria by which numbers of classes are compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, check_sample_weight

MOST_CLASSES = 1000
"""With more classes than this, criteria that need all posteriors at once are not computed."""


@dataclass(frozen=True)
class Criteria:
    """How well a mixture fits rows, and how well its classes are separated.

    Attributes
    ----------
    log_likelihood : float
        Weighted log-likelihood of all rows.
    n_parameters : int
        Number of free parameters.
    n : float
        Number of rows, or their total weight.
    aic, bic, abic : float
        Criteria of Akaike and of Bayes and Schwarz, and the latter with an adjusted sample size: N
        is replaced by (N + 2) / 24. The lower the better.
    icl : float
        Integrated completed likelihood: BIC plus twice the entropy of the posteriors.
    entropy_r2 : float
        1 − entropy / (N·log K): 1 if the class of every row is certain, 0 if the rows tell nothing;
        NaN for one class.
    smallest : float
        Share of the smallest class.
    """

    log_likelihood: float
    n_parameters: int
    n: float
    aic: float
    bic: float
    abic: float
    icl: float
    entropy_r2: float
    smallest: float


def criteria_of(model: Any, X: Any, sample_weight: npt.ArrayLike | None = None) -> Criteria:
    """Return criteria for the fit of a mixture to rows.

    Parameters
    ----------
    model : ExchangeableMixture
        A fitted mixture.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows, usually the training rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each row. The criteria take the sum as the number of rows: scale survey weights so
        that they sum to it.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> X = np.random.default_rng(0).integers(0, 2, size=(100, 5))
    >>> model = ExchangeableMixture(1, blocks="independent").fit(X)
    >>> found = criteria_of(model, X)
    >>> found.n_parameters, found.smallest
    (5, 1.0)
    """
    each = np.asarray(model.score_samples(X))
    weight = check_sample_weight(sample_weight, each.size)
    total, p = float(weight.sum()), model.n_parameters_
    log_likelihood = float(weight @ each)
    k = model.weights_.size
    entropy, smallest = float("nan"), float(model.weights_.min())
    if k <= MOST_CLASSES:
        log_posterior = np.asarray(model.predict_log_proba(X))
        entropy = float(weight @ row_entropy(log_posterior))
        smallest = float((weight @ np.exp(log_posterior)).min() / total)
    bic = -2 * log_likelihood + p * np.log(total)
    return Criteria(
        log_likelihood,
        p,
        total,
        aic=-2 * log_likelihood + 2 * p,
        bic=float(bic),
        abic=float(-2 * log_likelihood + p * np.log((total + 2) / 24)),
        icl=float(bic + 2 * entropy),
        entropy_r2=1 - entropy / (total * float(np.log(k))) if k > 1 else float("nan"),
        smallest=smallest,
    )


def row_entropy(log_posterior: FloatArray) -> FloatArray:
    """Return −Σ_y p(y) log p(y) of every row.

    >>> row_entropy(np.log([[0.5, 0.5], [1.0, 1e-300]])).round(3).tolist()
    [0.693, 0.0]
    """
    share = np.exp(log_posterior)
    with np.errstate(invalid="ignore"):
        return np.asarray(-np.where(share > 0, share * log_posterior, 0.0).sum(axis=1))


def degrees_of_freedom(model: Any) -> float:
    """Return the number of cells of the table of all answers, minus one and minus the parameters.

    If it is negative, there are more parameters than the table can identify. Infinity if a column
    is a count or a measurement.
    """
    schema = model._schema()
    sizes = (
        [2] * model.n_features_in_
        if schema is None
        else [len(column.levels) or float("inf") for column in schema.columns]
    )
    cells = float(np.exp(min(float(np.log(np.asarray(sizes, dtype=np.float64)).sum()), 700.0)))
    return float("inf") if np.isinf(sizes).any() else round(cells) - 1 - model.n_parameters_
