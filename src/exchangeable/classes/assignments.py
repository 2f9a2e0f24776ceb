"""How certain the classes of rows are: classification table, posteriors, outlying rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, as_generator, check_sample_weight
from exchangeable.classes.criteria import row_entropy
from exchangeable.classes.tables import Table, Tabular
from exchangeable.classes.uncertainty.drawing import drawn_values, with_holes
from exchangeable.data.columns.schema import typed
from exchangeable.data.rows import TypedRows

OUTLYING = 0.01
"""A row is outlying if less than this share of rows drawn from the model is as improbable."""
DRAWS, FEWEST, MOST_SCORES = 10_000, 500, 2_000_000
"""Maximum and minimum number of rows drawn to see how probable rows of the model are, and the
maximum over all patterns of missing values."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Classification(Tabular):
    """The assignment of rows to classes, and its uncertainty.

    Attributes
    ----------
    counts : array of shape (n_classes, n_classes)
        Expected number of rows by the class they are assigned to (rows of the table) and the class
        they belong to according to their posteriors (columns).
    average_posterior : array of shape (n_classes, n_classes)
        Average posterior of each class (columns) among the rows assigned to a class (rows of the
        table): the diagonal should be near 1, above 0.7 or 0.8 by common rules. NaN for a class to
        which no row is assigned.
    probabilities : array of shape (n_classes, n_classes)
        P(assigned class | true class), with one row per true class: the errors that three-step
        methods correct for.
    error_rate : float
        Expected share of rows that are assigned to a wrong class.
    entropy_r2 : float
        1 − entropy / (N·log K).
    assigned : array of shape (n_rows,)
        The most probable class of every row.
    entropy : array of shape (n_rows,)
        −Σ p log p of every row's posterior, in nats.
    tail : array of shape (n_rows,)
        Share of rows drawn from the model, with the same missing values, that are at most as
        probable as the row. For rows of the model itself it would be uniform.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.classes import classification
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 8)) < np.where(rng.random((500, 1)) < 0.4, 0.1, 0.9)
    >>> model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0).fit(X)
    >>> found = classification(model, X, random_state=0)
    >>> found.error_rate < 0.01
    True
    """

    counts: FloatArray
    average_posterior: FloatArray
    probabilities: FloatArray
    error_rate: float
    entropy_r2: float
    assigned: IntArray
    entropy: FloatArray
    tail: FloatArray

    @property
    def outlying(self) -> IntArray:
        """The rows that are less probable than 99 % of rows drawn from the model."""
        return np.flatnonzero(self.tail < OUTLYING)

    def as_table(self) -> Table:
        """Return the expected number of rows by assigned and true class, and average posteriors."""
        k = len(self.counts)
        columns: dict[str, Any] = {"assigned to": [f"class {y}" for y in range(k)]}
        for y in range(k):
            columns[f"in class {y}"] = self.counts[:, y]
        columns["rows"] = self.counts.sum(axis=1)
        columns["average posterior"] = np.diag(self.average_posterior)
        digits = {name: 1 for name in columns if name == "rows" or name.startswith("in class")}
        note = (
            f"Expected error rate {self.error_rate:.3f}, entropy R² {self.entropy_r2:.3f}, "
            f"{self.outlying.size} outlying row{'' if self.outlying.size == 1 else 's'}."
        )
        return Table(columns, "Classification", digits, note)


def classification(
    model: Any,
    X: Any,
    *,
    sample_weight: npt.ArrayLike | None = None,
    covariates: Any = None,
    random_state: Any = None,
) -> Classification:
    """Return the assignment of rows to classes, its uncertainty, and which rows are outlying.

    Parameters
    ----------
    model : ExchangeableMixture
        A fitted mixture.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each row.
    covariates : array-like, optional
        Covariates of the rows, if the mixture was fitted with some.
    random_state : int, RandomState, Generator or None
        Seed of the draws from the model.
    """
    log_posterior = posterior_of(model, X, covariates)
    weight = check_sample_weight(sample_weight, len(log_posterior))
    share = np.exp(log_posterior)
    assigned = share.argmax(axis=1)
    counts = assignment_table(share, weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        average = counts / counts.sum(axis=1, keepdims=True)
        probabilities = (counts / counts.sum(axis=0)).T
    entropy = row_entropy(log_posterior)
    total, k = float(weight.sum()), share.shape[1]
    r2 = 1 - float(weight @ entropy) / (total * float(np.log(k))) if k > 1 else float("nan")
    return Classification(
        counts,
        average,
        probabilities,
        float(1 - np.trace(counts) / total),
        r2,
        assigned,
        entropy,
        _tail(model, X, random_state),
    )


def posterior_of(model: Any, X: Any, covariates: Any = None) -> FloatArray:
    """Return log P(y | row) of every row."""
    given = {} if covariates is None else {"covariates": covariates}
    return np.asarray(model.predict_log_proba(X, **given))


def assignment_table(share: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the expected number of rows by assigned class (rows) and true class (columns).

    >>> assignment_table(np.array([[0.9, 0.1], [0.4, 0.6]]), np.ones(2)).tolist()
    [[0.9, 0.1], [0.4, 0.6]]
    """
    counts = np.zeros((share.shape[1], share.shape[1]))
    np.add.at(counts, share.argmax(axis=1), weight[:, None] * share)
    return counts


def _tail(model: Any, X: Any, random_state: Any) -> FloatArray:
    """Return the share of drawn rows, with the same missing values, that are as improbable.

    Rows with the same missing values are compared with the same draws, on the transformed scale.
    """
    observed, mixture = model._observed(X), model._mixture()
    patterns, member = np.unique(observed.hole_flags(), axis=0, return_inverse=True)
    n_draws = int(np.clip(MOST_SCORES / len(patterns), FEWEST, DRAWS))
    values = drawn_values(mixture, observed, n_draws, as_generator(random_state))
    tail = np.empty(observed.n_rows)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(member.ravel() == number)
        own = observed.take(rows)
        if isinstance(own.ones, TypedRows):
            own = typed(own.ones.values, own.ones.types)
        usual = np.sort(mixture.log_evidence(with_holes(values, pattern, own), model.n_jobs))
        here = mixture.log_evidence(own, model.n_jobs) + ROUNDING
        tail[rows] = np.searchsorted(usual, here, side="right") / usual.size
    return tail
