"""The observed information of latent class models, and standard errors from it.

Parameters are the logits of each item's levels in each class, and the coefficients of a multinomial
logistic regression of the class on a design matrix, which without covariates is a column of ones.
The information is exact, by Louis's formula (1982): the information of complete rows, minus what is
lost because classes are unobserved.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.classes.criteria import degrees_of_freedom
from exchangeable.classes.profiles import entries_of
from exchangeable.classes.uncertainty.sampling import Sampling, squares
from exchangeable.data.columns.schema import typed_rows
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.queries.answers import class_posterior
from exchangeable.runtime.threads import row_ranges

CHUNK = 4096
BOUNDARY = 1e-5
"""Probabilities closer to 0 or 1 than this are on the boundary and have no standard error."""
SINGULAR = 1e-9
"""Smallest accepted eigenvalue of the information, relative to the largest after scaling."""


@dataclass(frozen=True)
class Information:
    """Covariances of the estimates.

    Attributes
    ----------
    covariance : array of shape (n_parameters, n_parameters)
        Coefficients first, class after class, starting from the second; then logits of levels,
        class after class. NaN for parameters on the boundary, and everywhere if the model is not
        identified.
    n_coefficients : int
        Number of coefficients among them.
    """

    covariance: FloatArray
    n_coefficients: int


def row_count(weight: FloatArray, sampling: bool) -> float:
    """Return the number of rows, by sampling weights or by frequencies."""
    return float(np.count_nonzero(weight) if sampling else weight.sum())


def information_errors(
    model: Any,
    observed: Observed,
    weight: FloatArray,
    robust: bool,
    sampling: Sampling | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return standard errors of class sizes and of the lines of the profiles of a mixture.

    They are NaN if there are fewer rows than parameters. `robust` uses the sandwich estimator, as
    sampling weights require, and `sampling` its clusters.
    """
    mixture = model._mixture()
    free, n_rows = degrees_of_freedom(model), row_count(weight, robust)
    if free < 0:
        warnings.warn(
            f"the model has {-free:.0f} more parameters than the table of all answers can tell "
            "apart: it is not identified, and standard errors are not given; use fewer classes or "
            "more items",
            stacklevel=4,
        )
    if free < 0 or n_rows <= model.n_parameters_:
        n_lines = len(entries_of(model))
        return np.full(model.weights_.size, np.nan), np.full((n_lines, model.weights_.size), np.nan)
    shares = mixture.model.level_shares()
    if shares is None:
        examples = merge_equal_rows(observed, weight)[0]
        start = class_posterior(mixture, examples.observed)
        mixture = model._refits().fit(examples, np.random.default_rng(0), start).mixture
        shares = mixture.model.level_shares()
    if shares is None:
        raise ValueError(
            "method='information' is for columns with levels (binary, nominal, ordinal) that are "
            "independent within classes; use method='bootstrap'"
        )
    design = np.ones((observed.n_rows, 1))
    log_prior = np.tile(mixture.log_prior, (observed.n_rows, 1))
    values = typed_rows(observed).values
    found = observed_information(shares, values, log_prior, design, weight, robust, sampling)
    sizes = np.exp(mixture.log_prior)
    slopes = np.diag(sizes) - np.outer(sizes, sizes)
    size_errors = _delta(slopes[:, 1:], found.covariance[: sizes.size - 1, : sizes.size - 1])
    if sizes.size == 1:
        size_errors = np.zeros(1)
    return size_errors, level_errors(shares, found, model._schema())


def level_errors(shares: list[FloatArray], found: Information, schema: Any) -> FloatArray:
    """Return standard errors of the probabilities of levels, as profiles list them."""
    k = shares[0].shape[1]
    errors = [np.empty((len(table), k)) for table in shares]
    at = found.n_coefficients
    for y in range(k):
        for j, table in enumerate(shares):
            own, width = table[:, y], len(table) - 1
            block = found.covariance[at : at + width, at : at + width]
            slopes = (np.diag(own) - np.outer(own, own))[:, 1:]
            errors[j][:, y] = _delta(slopes, block)
            at += width
    binary = [schema is None or schema.columns[j].kind == "binary" for j in range(len(shares))]
    return np.concatenate([e[1:] if b else e for e, b in zip(errors, binary, strict=True)])


def _delta(slopes: FloatArray, covariance: FloatArray) -> FloatArray:
    variances = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
    return np.asarray(np.sqrt(np.maximum(variances, 0.0)))


def observed_information(
    shares: list[FloatArray],
    values: FloatArray,
    log_prior: FloatArray,
    design: FloatArray,
    weight: FloatArray,
    robust: bool,
    sampling: Sampling | None = None,
) -> Information:
    """Return the covariances of the estimates of a latent class model.

    Parameters
    ----------
    shares : list of arrays of shape (n_levels, n_classes)
        The probabilities of each item's levels.
    values : array of shape (n_rows, n_items)
        Numbers of levels, NaN if missing.
    log_prior : array of shape (n_rows, n_classes)
        Log-probabilities of the classes of each row.
    design : array of shape (n_rows, n_terms)
        The design matrix of the class probabilities.
    weight : array of shape (n_rows,)
        Weights of the rows.
    robust : bool
        Whether to use the sandwich estimator.
    sampling : Sampling, optional
        Clusters and strata of the rows, for the sandwich estimator.
    """
    k, d = log_prior.shape[1], design.shape[1]
    width = sum(len(table) - 1 for table in shares)
    n_coefficients = d * (k - 1)
    size = n_coefficients + k * width
    information, meat = np.zeros((size, size)), np.zeros((size, size))
    contributions = np.empty((0 if sampling is None else len(values), size))
    for begin, end in row_ranges(len(values), CHUNK):
        span = slice(begin, end)
        parts = _sums(shares, values[span], log_prior[span], design[span], weight[span])
        information += parts[0]
        if sampling is None:
            meat += squares(parts[1], None)
        else:
            contributions[span] = parts[1]
    if sampling is not None:
        meat = sampling.squares(contributions)
    free = np.ones(size, dtype=np.bool_)
    free[n_coefficients:] = ~_on_boundary(shares)
    covariance = np.full((size, size), np.nan)
    inner = information[np.ix_(free, free)]
    inverse = _inverse(inner)
    if robust and inverse is not None:
        inverse = inverse @ meat[np.ix_(free, free)] @ inverse
    if inverse is not None:
        covariance[np.ix_(free, free)] = inverse
    return Information(covariance, n_coefficients)


def _on_boundary(shares: list[FloatArray]) -> npt.NDArray[np.bool_]:
    """Return which logits belong to items with a level that is never or always given."""
    flags = []
    for y in range(shares[0].shape[1]):
        for table in shares:
            edge = bool((table[:, y] < BOUNDARY).any())
            flags += [edge] * (len(table) - 1)
    return np.array(flags, dtype=np.bool_)


def _inverse(information: FloatArray) -> FloatArray | None:
    """Return the inverse of an information matrix; None, with a warning, if it is singular."""
    if not information.size:
        return information
    scale = np.sqrt(np.maximum(np.diag(information), 0.0))
    good = (scale > 0).all()
    if good:
        scaled = information / np.outer(scale, scale)
        values, vectors = np.linalg.eigh(0.5 * (scaled + scaled.T))
        good = values[0] > SINGULAR * values[-1]
    if not good:
        warnings.warn(
            "the observed information is singular: the model is not identified, or EM has not "
            "converged; standard errors are not given. Use fewer classes or more items, or a "
            "smaller tol",
            stacklevel=5,
        )
        return None
    return np.asarray((vectors / values) @ vectors.T / np.outer(scale, scale))


def _sums(
    shares: list[FloatArray],
    values: FloatArray,
    log_prior: FloatArray,
    design: FloatArray,
    weight: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the information of some rows, and their weighted scores."""
    n, k = log_prior.shape
    d = design.shape[1]
    scores, joint, known = _item_scores(shares, values, log_prior)
    posterior = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    prior = np.exp(log_prior)
    width, nc = scores.shape[2], d * (k - 1)
    gradient = np.empty((n, nc + k * width))
    off = posterior[:, 1:] - prior[:, 1:]
    gradient[:, :nc] = (off[:, :, None] * design[:, None, :]).reshape(n, nc)
    for y in range(k):
        gradient[:, nc + y * width : nc + (y + 1) * width] = posterior[:, y, None] * scores[y]
    weighted = weight[:, None] * gradient
    total = weighted.T @ gradient
    for c in range(1, k):
        for e in range(1, k):
            same = float(c == e)
            complete = prior[:, c] * (same - prior[:, e])
            squares = (
                posterior[:, c] * same
                - posterior[:, c] * prior[:, e]
                - prior[:, c] * posterior[:, e]
                + prior[:, c] * prior[:, e]
            )
            block = design.T @ ((weight * (complete - squares))[:, None] * design)
            total[(c - 1) * d : c * d, (e - 1) * d : e * d] += block
    for y in range(k):
        own = slice(nc + y * width, nc + (y + 1) * width)
        mass = weight * posterior[:, y]
        total[own, own] += _complete_information(shares, known, mass, y)
        total[own, own] -= scores[y].T @ (mass[:, None] * scores[y])
        for c in range(1, k):
            cross = design.T @ ((mass * (float(c == y) - prior[:, c]))[:, None] * scores[y])
            at = slice((c - 1) * d, c * d)
            total[at, own] -= cross
            total[own, at] -= cross.T
    return total, weighted


def _item_scores(
    shares: list[FloatArray], values: FloatArray, log_prior: FloatArray
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Return derivatives by the logits of each class, log P(e, y), and which entries are known."""
    n, k = log_prior.shape
    known = ~np.isnan(values)
    joint = log_prior.copy()
    scores = np.zeros((k, n, sum(len(table) - 1 for table in shares)))
    at = 0
    for j, table in enumerate(shares):
        rows = np.flatnonzero(known[:, j])
        levels = values[rows, j].astype(np.int64)
        with np.errstate(divide="ignore"):
            joint[rows] += np.log(table)[levels]
        for v in range(1, len(table)):
            scores[:, rows, at] = (levels == v) - table[v][:, None]
            at += 1
    return scores, joint, known


def _complete_information(
    shares: list[FloatArray], known: npt.NDArray[np.bool_], mass: FloatArray, y: int
) -> FloatArray:
    """Return the information about the logits of a class if classes were observed."""
    size = sum(len(table) - 1 for table in shares)
    block, at = np.zeros((size, size)), 0
    for j, table in enumerate(shares):
        own = table[1:, y]
        span = slice(at, at + own.size)
        block[span, span] = (mass @ known[:, j]) * (np.diag(own) - np.outer(own, own))
        at += own.size
    return block
