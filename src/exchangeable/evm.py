"""One component of an exchangeable variable model: variables, a statistic, and its weights."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from exchangeable.arrays import (
    Evidence,
    FloatArray,
    IntArray,
    RandomState,
    SymbolArray,
    as_generator,
    as_numbers,
    check_alpha,
    check_count,
    check_evidence,
    check_matrix,
    check_sample_weight,
    is_assignment,
    named_evidence,
)
from exchangeable.data.containers import as_matrix
from exchangeable.data.observed import Observed
from exchangeable.families.contract import Model
from exchangeable.families.mixture import Mixture
from exchangeable.queries.methods import Queries
from exchangeable.runtime.attempts import all_or_nothing
from exchangeable.statistics import Statistic
from exchangeable.statistics.combinatorics import log_divide
from exchangeable.statistics.model import StatisticModel, log_marginals


class OneComponent(StatisticModel):
    """The model of one component."""

    most_probable = Model.most_probable


class EVM(Queries, BaseEstimator):
    """Variables that are partially exchangeable with respect to a statistic.

    By Theorem 2.3 of the paper such a distribution is a unique mixture of urns:
    P(x) = w_t / |S_t| with t = T(x), where S_t holds all assignments with T = t. The weights w are
    its only parameters. Every query is exact and costs a few set sizes (Proposition 3.1).

    Parameters
    ----------
    statistic : Statistic
        The statistic T, for instance ``Count(n)``.

    Attributes
    ----------
    weights_ : ndarray of shape (n_values,)
        Probability of each of ``statistic.values``.
    n_features_in_ : int
        Number of variables.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the variables, if `fit` saw a table with names.

    Examples
    --------
    >>> from exchangeable import EVM, Count
    >>> X = [[1, 1, 0], [0, 1, 1], [0, 0, 0], [1, 1, 1]]
    >>> evm = EVM(Count(3)).fit(X)
    >>> evm.weights_.tolist()
    [0.25, 0.0, 0.5, 0.25]
    >>> evm.marginals({0: 1}).round(3).tolist()
    [1.0, 0.714, 0.714]
    >>> x, log_probability = evm.map({0: 0})
    >>> x.tolist()
    [0, 0, 0]
    """

    def __init__(self, statistic: Statistic) -> None:
        self.statistic = statistic

    @classmethod
    def from_weights(cls, statistic: Statistic, weights: npt.ArrayLike) -> Self:
        """Return a component with known weights instead of estimated ones.

        Examples
        --------
        >>> from exchangeable import EVM, Count
        >>> EVM.from_weights(Count(2), [0.5, 0.0, 0.5]).marginals({0: 1}).tolist()
        [1.0, 1.0]
        """
        cls._check_statistic(statistic)
        w = as_numbers(weights, "weights").astype(np.float64)
        if w.shape != (statistic.n_values,):
            raise ValueError(f"weights has shape {w.shape}, expected ({statistic.n_values},)")
        bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
        if bad.size:
            raise ValueError(f"weights[{bad[0]}] is {w[bad[0]]}; expected a probability")
        if not np.isclose(w.sum(), 1.0, rtol=0, atol=1e-9):
            raise ValueError(f"weights add up to {w.sum()}, expected 1")
        evm = cls(statistic)
        evm.weights_ = w / w.sum()
        evm.n_features_in_ = statistic.n_variables
        return evm

    @all_or_nothing
    def fit(self, X: Any, sample_weight: npt.ArrayLike | None = None, alpha: float = 0.0) -> Self:
        """Estimate the weights by maximum likelihood (Theorem 3.2).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_variables)
            Complete examples, one per row.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, 1 by default.
        alpha : float, default=0.0
            Laplace smoothing: added to the count of every value of the statistic.
        """
        self._check_statistic(self.statistic)
        alpha = check_alpha(alpha)
        rows = check_matrix(as_matrix(X), self.statistic.n_variables, self.statistic.n_symbols)
        if not len(rows):
            raise ValueError("X has no rows; fitting needs at least one")
        validate_data(self, X, skip_check_array=True)
        row_weight = check_sample_weight(sample_weight, len(rows))
        counts = np.bincount(
            self.statistic._index(rows), weights=row_weight, minlength=self.statistic.n_values
        )
        self.weights_ = (counts + alpha) / (counts.sum() + alpha * counts.size)
        return self

    def log_prob(self, X: Any) -> FloatArray:
        """Return the log-probability of each row; NaN is summed out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_variables)
            Examples, with NaN for variables that were not observed.
        """
        log_urns = self._log_urns()
        return log_marginals(self.statistic, log_urns, self._symbols(X))

    def score_samples(self, X: Any) -> Any:
        """Return the log-probability of each row, as `log_prob`; for a dict, as `log_marginal`."""
        return self.log_marginal(X) if is_assignment(X) else self.log_prob(X)

    def log_marginal(self, given: Evidence = None) -> float:
        """Return the log-probability of a partial assignment, −inf if it is impossible.

        Parameters
        ----------
        given : array-like of shape (n_variables,), dict or None
            An array with NaN for unassigned variables, or a dict from variable (its number, or its
            name if the model was fitted on a frame with names) to value.
        """
        return self._log_joint(self._assigned(given), self._log_urns())[1]

    def marginals(self, given: Any = None, *, given_class: Any = None) -> FloatArray:
        """Return the probability of each variable being on, given the evidence.

        For variables with more than two values the result has one column per value, and only one
        query is answered at a time. An assigned variable has probability 1 for its value.

        Parameters
        ----------
        given : array-like of shape (n_variables,) or (n_samples, n_variables), dict or None
            As in `log_marginal`, or one row per query; it must be possible.
        given_class : label, optional
            Must be 0 if given, since there is only one component.
        """
        if given_class is not None:
            self._classes_of(given_class)
        if self.statistic.n_symbols == 2 and np.ndim(given) > 1:
            return super().marginals(given)
        log_urns, assigned = self._log_urns(), self._assigned(given)
        _, log_marginal = self._log_joint(assigned, log_urns)
        self._check_possible(log_marginal, given)
        masses = self.statistic._log_masses(log_urns, assigned)
        probability = np.exp(masses - logsumexp(masses, axis=1, keepdims=True))
        return probability[:, 1] if self.statistic.n_symbols == 2 else probability

    def map(self, given: Evidence = None) -> tuple[SymbolArray, float]:
        """Return the most probable completion of the evidence, and its log-probability.

        Parameters
        ----------
        given : array-like of shape (n_variables,), dict or None
            As in `log_marginal`; it must be possible.
        """
        log_urns, assigned = self._log_urns(), self._assigned(given)
        possible = np.isfinite(self.statistic._log_sizes(assigned))
        candidates = np.where(possible, log_urns, -np.inf)
        best = int(candidates.argmax())
        self._check_possible(candidates[best], given)
        x = self.statistic._complete(best, assigned).astype(self.statistic._dtype)
        return x, float(candidates[best])

    def sample(  # type: ignore[override]
        self, n: int = 1, given: Evidence = None, random_state: RandomState = None
    ) -> SymbolArray:
        """Draw `n` assignments from the distribution, given the evidence.

        Parameters
        ----------
        n : int, default=1
            Number of rows to draw.
        given : array-like of shape (n_variables,), dict or None
            As in `log_marginal`; it must be possible.
        random_state : int, RandomState, Generator or None
            Seed of the draws.
        """
        n = check_count(n, "n", minimum=0)
        rng = as_generator(random_state)
        log_urns, assigned = self._log_urns(), self._assigned(given)
        log_joint, log_marginal = self._log_joint(assigned, log_urns)
        self._check_possible(log_marginal, given)
        chance = np.exp(log_joint - log_marginal)
        positions = rng.choice(chance.size, size=n, p=chance / chance.sum())
        draws = np.empty((n, self.statistic.n_variables), dtype=self.statistic._dtype)
        for position in np.unique(positions):
            rows = np.flatnonzero(positions == position)
            draws[rows] = self.statistic._draw(int(position), assigned, rows.size, rng)
        return draws

    def _mixture(self) -> Mixture:
        """Return the component as a mixture of one, which answers all other queries."""
        log_urns = self._log_urns()
        if self.statistic.n_symbols != 2:
            raise ValueError(
                f"this question is for binary variables, but those of {self.statistic!r} have "
                f"{self.statistic.n_symbols} values; marginals, map and sample answer for them"
            )
        model: Any = OneComponent(self.statistic, log_urns)
        return Mixture(model, np.zeros(1))

    def _observed(self, X: Any, reset: bool = False) -> Observed:
        return Observed.from_symbols(self._symbols(X))

    def _symbols(self, X: Any) -> IntArray:
        """Return a checked matrix, with `UNASSIGNED` for missing entries."""
        rows = check_matrix(
            as_matrix(X), self.statistic.n_variables, self.statistic.n_symbols, missing=True
        )
        validate_data(self, X, reset=False, skip_check_array=True)
        return rows

    @staticmethod
    def _check_statistic(statistic: Any) -> None:
        if not isinstance(statistic, Statistic):
            raise TypeError(f"statistic must be a Statistic, got {statistic!r}")

    def _log_urns(self) -> FloatArray:
        """Return log (w_t / |S_t|), the log-probability of a single member of each S_t."""
        check_is_fitted(self, "weights_")
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights_)
        return log_divide(log_weights, self.statistic.log_sizes())

    def _log_joint(self, assigned: IntArray, log_urns: FloatArray) -> tuple[FloatArray, float]:
        """Return log P(T = t, evidence) for all t, and the log of their sum."""
        log_joint = log_urns + self.statistic._log_sizes(assigned)
        return log_joint, float(logsumexp(log_joint))

    def _assigned(self, given: Evidence) -> IntArray:
        named = named_evidence(given, getattr(self, "feature_names_in_", None))
        return check_evidence(named, self.statistic.n_variables, self.statistic.n_symbols)

    def _check_possible(self, log_probability: float, given: Evidence) -> None:
        if log_probability == -np.inf:
            raise ValueError(f"the evidence {given!r} has probability zero in this model")
