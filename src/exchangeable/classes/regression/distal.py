"""Distal outcomes: differences between classes, corrected for classification errors."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, check_number, check_sample_weight
from exchangeable.classes.assignments import posterior_of
from exchangeable.classes.regression.distal_likelihood import Variance, fit_outcome
from exchangeable.classes.regression.three_step import (
    ASSIGNMENTS,
    bch_weights,
    log_emission,
    wald_test,
)
from exchangeable.classes.tables import Table, Tabular, p_text
from exchangeable.classes.uncertainty.intervals import normal_interval
from exchangeable.classes.uncertainty.sampling import Sampling, squares
from exchangeable.data.columns.raw import RawColumn, raw_columns
from exchangeable.data.columns.values import finite_numbers
from exchangeable.fitting.tasks import check_choice

METHODS = ("bch", "ml")
MOST_LEVELS = 50


@dataclass(frozen=True)
class Outcome:
    """One outcome in every class.

    Attributes
    ----------
    name, category : str
        The column, and the category whose share is estimated; an empty text for the mean of
        numbers.
    estimates, errors : arrays of shape (n_classes,)
        Means or shares, and their standard errors; NaN if they cannot be estimated.
    interval : array of shape (2, n_classes)
        Confidence limits; those of shares lie between 0 and 1.
    covariance : array of shape (n_classes, n_classes)
        Of the estimates.
    """

    name: str
    category: str
    estimates: FloatArray
    errors: FloatArray
    interval: FloatArray
    covariance: FloatArray


@dataclass(frozen=True)
class Outcomes(Tabular):
    """Outcomes compared across classes.

    Attributes
    ----------
    outcomes : list of Outcome
        Means of numbers, and the share of each category of other columns.
    tests : dict from str to (statistic, degrees of freedom, p-value)
        Wald's test that an outcome is the same in all classes.
    differences : list of (name, category, class, class, difference, error, p-value)
        All pairs of classes.
    method : str
        The correction for classification errors.
    """

    outcomes: list[Outcome]
    tests: dict[str, tuple[float, int, float]]
    differences: list[tuple[str, str, int, int, float, float, float]]
    method: str

    def as_table(self) -> Table:
        """Return one row per outcome, category and class."""
        lines = [(one, y) for one in self.outcomes for y in range(one.estimates.size)]
        columns: dict[str, Any] = {
            "outcome": [one.name for one, _ in lines],
            "category": [one.category or "mean" for one, _ in lines],
            "class": [y for _, y in lines],
            "estimate": [one.estimates[y] for one, y in lines],
            "SE": [one.errors[y] for one, y in lines],
            "low": [one.interval[0, y] for one, y in lines],
            "high": [one.interval[1, y] for one, y in lines],
        }
        wald = [
            f"{name}: χ²({df}) = {statistic:.2f}, p {'' if p < 0.001 else '= '}{p_text(p)}"
            for name, (statistic, df, p) in self.tests.items()
            if np.isfinite(statistic)
        ]
        note = f"Equal in all classes? {'; '.join(wald)}." if wald else ""
        return Table(columns, "Distal outcomes", note=note)


def outcomes(
    model: Any,
    X: Any,
    Y: Any,
    *,
    method: str = "bch",
    assignment: str = "modal",
    sample_weight: npt.ArrayLike | None = None,
    strata: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Outcomes:
    """Compare distal outcomes across classes, with standard errors.

    Parameters
    ----------
    model : ExchangeableMixture
        A fitted mixture.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows it was fitted to.
    Y : table or array of shape (n_samples,) or (n_samples, n_outcomes)
        Outcomes: numbers, whose means are compared, or categories (text, pandas categories,
        booleans), whose shares are compared. Rows with a missing value are left out for that
        outcome.
    method : {"bch", "ml"}, default="bch"
        The correction: the weights of Bolck, Croon and Hagenaars, which assume nothing about the
        outcome; or maximum likelihood, which assumes numbers to be normal within classes.
    assignment : {"modal", "proportional"}, default="modal"
        Whether rows are assigned to their most probable class, or, with ``"bch"``, to all by their
        posteriors.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each row.
    strata, clusters : array-like of shape (n_samples,), optional
        The stratum of each respondent, and the cluster sampled within it, such as a school or a
        block of houses, for design-based standard errors.
    level : float, default=0.95
        The confidence level.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.classes import outcomes
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, size=1000)
    >>> X = rng.random((1000, 6)) < np.where(kind[:, None] == 1, 0.8, 0.2)
    >>> model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0).fit(X)
    >>> found = outcomes(model, X, rng.normal(kind, 1))
    >>> np.sort(found.outcomes[0].estimates).round(0).tolist()
    [-0.0, 1.0]
    """
    check_choice(method, "method", METHODS)
    check_choice(assignment, "assignment", ASSIGNMENTS)
    if method == "ml" and assignment != "modal":
        raise ValueError("method='ml' of outcomes goes with assignment='modal'")
    level = check_number(level, "level")
    share = np.exp(posterior_of(model, X))
    weight = check_sample_weight(sample_weight, len(share))
    sampling = Sampling.of(strata, clusters, len(share))
    if method == "bch":
        known = bch_weights(share, weight, assignment)
    else:
        known = log_emission(share, weight)
    listed: list[Outcome] = []
    tests: dict[str, tuple[float, int, float]] = {}
    for column in _columns(Y, len(share)):
        name = f"y{column.name}" if isinstance(column.name, int | np.integer) else str(column.name)
        rows = np.flatnonzero(~column.holes)
        values, categories = _coded(column, rows, name)
        given = known[rows], weight[rows], values
        variance = partial(squares, sampling=sampling, rows=rows)
        if method == "bch":
            estimates, covariance = _by_weights(*given, variance)
        else:
            sizes = model.weights_
            estimates, covariance = fit_outcome(*given, sizes, bool(categories), variance)
        tests[name] = _equality(estimates, covariance, bool(categories))
        listed += _listed(name, categories or [""], estimates, covariance, level)
    return Outcomes(listed, tests, _differences(listed), method)


def _columns(Y: Any, n_rows: int) -> list[RawColumn]:
    array = Y
    if not hasattr(Y, "columns") and not hasattr(Y, "column_names"):
        array = np.asarray(Y)
        array = array[:, None] if array.ndim == 1 else array
    found = list(raw_columns(array))
    name = getattr(Y, "name", None)
    if len(found) == 1 and isinstance(name, str):
        found = [RawColumn(name, found[0].values, found[0].holes)]
    if found and found[0].values.size != n_rows:
        raise ValueError(
            f"Y has {found[0].values.size} rows, but X has {n_rows}; give one for each"
        )
    return found


def _coded(
    column: RawColumn, rows: npt.NDArray[np.int64], name: str
) -> tuple[FloatArray, list[str]]:
    """Return known values as a matrix: one column of numbers, or one per category."""
    known = column.values[rows]
    if not rows.size:
        raise ValueError(f"outcome {name!r} is missing in all rows")
    if column.levels is None and known.dtype.kind in "iuf":
        return finite_numbers(known, name, "an outcome")[:, None], []
    values = known.tolist()
    if column.levels is None and all(type(v) in (int, float) for v in values):
        return np.array(values, dtype=np.float64)[:, None], []
    present = set(values)
    levels = (
        sorted(present, key=str)
        if column.levels is None
        else [v for v in column.levels if v in present]
    )
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"outcome {name!r} has {len(levels)} categories, the limit is {MOST_LEVELS}"
        )
    array = np.array(values, dtype=object)
    matrix = np.stack([(array == level).astype(np.float64) for level in levels], axis=1)
    return matrix, [str(level) for level in levels]


def _by_weights(
    share: FloatArray, weight: FloatArray, values: FloatArray, variance: Variance
) -> tuple[FloatArray, FloatArray]:
    """Return weighted means, shape (n_values, n_classes), and the covariance of all of them."""
    mass = weight[:, None] * share
    totals = mass.sum(axis=0)
    good = totals > 0
    safe = np.where(good, totals, 1.0)
    estimates = np.where(good, values.T @ mass / safe, np.nan)
    influence = mass[:, None, :] * (values[:, :, None] - estimates[None]) / safe
    flat = influence.reshape(len(values), -1)
    return estimates, variance(flat)


def _equality(
    estimates: FloatArray, covariance: FloatArray, categories: bool
) -> tuple[float, int, float]:
    """Test that the estimates are equal in all classes; for shares, one category is redundant."""
    n_values, k = estimates.shape
    contrast = np.eye(k)[1:] - np.eye(k)[0]
    used = slice(1, None) if categories else slice(None)
    kept = np.kron(np.eye(n_values)[used], contrast)
    if not kept.size:
        return float("nan"), 0, float("nan")
    return wald_test(kept @ estimates.ravel(), kept @ covariance @ kept.T)


def _listed(
    name: str, categories: list[str], estimates: FloatArray, covariance: FloatArray, level: float
) -> list[Outcome]:
    k = estimates.shape[1]
    found = []
    for v, category in enumerate(categories):
        own = covariance[v * k : (v + 1) * k, v * k : (v + 1) * k]
        errors = np.sqrt(np.maximum(np.diag(own), 0.0))
        errors[~np.isfinite(estimates[v])] = np.nan
        interval = normal_interval(estimates[v], errors, level)
        if category:  # a share lies between 0 and 1
            interval = np.clip(interval, 0.0, 1.0)
        found.append(Outcome(name, category, estimates[v], errors, interval, own))
    return found


def _differences(listed: list[Outcome]) -> list[tuple[str, str, int, int, float, float, float]]:
    found = []
    for one in listed:
        for y in range(one.estimates.size):
            for z in range(y + 1, one.estimates.size):
                contrast = np.zeros(one.estimates.size)
                contrast[[y, z]] = 1.0, -1.0
                difference = float(one.estimates[y] - one.estimates[z])
                variance = float(contrast @ one.covariance @ contrast)
                p = wald_test(np.array([difference]), np.array([[variance]]))[2]
                error = float(np.sqrt(max(variance, 0.0)))
                found.append((one.name, one.category, y, z, difference, error, p))
    return found
