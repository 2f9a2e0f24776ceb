"""The queries that every fitted model answers about any subset of its variables."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from exchangeable.arrays import (
    NAMELESS,
    Evidence,
    FloatArray,
    IntArray,
    RandomState,
    SymbolArray,
    as_generator,
    check_count,
    check_evidence,
    is_assignment,
    is_sparse,
    named_evidence,
)
from exchangeable.data.containers import as_matrix
from exchangeable.data.observed import Observed
from exchangeable.families.mixture import Mixture
from exchangeable.queries import answers
from exchangeable.queries.recommendation import ORDERS, Recommendation, ones_alone, recommended

METHODS = ("most_probable", "marginal", "draw")
MEMORY_SHARE = 1 / 32
"""Rows are filled in by parts that are this much larger than what fits into the cache."""


class MostProbable(NamedTuple):
    """The most probable completion of the evidence.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features), or (n_features,) for a single row
        The completed rows.
    y : ndarray of shape (n_samples,), or a single label
        The class or component of each.
    log_prob : ndarray of shape (n_samples,), or a float
        log P(x, y).
    gap : ndarray of shape (n_samples,), or a float
        Upper bound on how much higher log P(x, y) of another completion could be: 0 if this is the
        maximum. It can be positive only in hidden trees, where the search has a limit.
    """

    X: SymbolArray
    y: Any
    log_prob: Any
    gap: Any

    @property
    def exact(self) -> Any:
        """Whether the completion is certainly the most probable one; per row, or a bool."""
        return self.gap == 0


class Queries:
    """Mixin with all queries, for estimators that are mixtures.

    The evidence `given` is a matrix with NaN for unknown entries, one query per row; or, for a
    single query, a dict from variable (number or name) to value, a vector with NaN, or None if
    nothing is known.
    """

    n_jobs: int | None = None

    def _mixture(self) -> Mixture:
        """Return the fitted mixture, or raise an error if there is none yet."""
        raise NotImplementedError

    def _labels(self) -> npt.NDArray[Any]:
        """Return the class labels."""
        return np.arange(self._mixture().log_prior.size)

    def _classes_of(self, label: Any) -> IntArray:
        """Return the number of the class with a label, or all numbers for None."""
        labels = self._labels()
        if label is None:
            return np.arange(labels.size)
        classes = np.flatnonzero(labels == label)
        if not classes.size:
            raise ValueError(f"label={label!r} is unknown; expected one of {labels.tolist()}")
        return classes

    def _of_class(self, label: Any) -> Mixture:
        """Return a mixture of only the class with a label, or the whole mixture for None."""
        return self._mixture() if label is None else self._mixture().only(self._classes_of(label))

    def _observed(self, X: Any, reset: bool = False) -> Observed:
        """Return checked rows with missing entries."""
        raise NotImplementedError

    def score_samples(self, X: Any) -> Any:
        """Return the log-probability of the known entries of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or dict
            Examples; NaN marks unknown entries, which are summed out exactly. A dict from variable
            to value is a single query, and its answer a number.
        """
        if is_assignment(X):
            return float(self._mixture().log_evidence(self._evidence(X)[0], self.n_jobs)[0])
        return self._mixture().log_evidence(self._observed(X), self.n_jobs)

    def anomaly_score(self, X: Any) -> Any:
        """Return −log P of the known entries of every row: the higher, the more unusual.

        The more entries of a row are known, the lower is its probability: compare rows with similar
        numbers of missing entries.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or dict
            Examples, possibly with NaN; a dict from variable to value is a single query.
        """
        return -self.score_samples(X)

    def marginals(self, given: Any = None, *, given_class: Any = None) -> FloatArray:
        """Return the probability of each variable being on, given the evidence.

        Parameters
        ----------
        given : {array-like, sparse matrix} of shape (n_samples, n_features), dict or None
            The evidence; it must be possible.
        given_class : label, optional
            A class or component, if known.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_features,) for a single query
            Known variables have probability 0 or 1.
        """
        observed, single = self._evidence(given)
        result = answers.marginals(self._of_class(given_class), observed, self.n_jobs)
        return result[0] if single else result

    def conditional(self, query: Any, given: Any = None) -> FloatArray:
        """Return the joint distribution of a few variables, given the evidence.

        Parameters
        ----------
        query : sequence of int or str, or one of them
            The query variables, none of which may be part of the evidence.
        given : {array-like, sparse matrix} of shape (n_samples, n_features), dict or None
            The evidence; it must be possible.

        Returns
        -------
        ndarray of shape (n_samples, 2, 2, …), or (2, 2, …) for a single query
            One axis per query variable, in the given order: entry [1, 0] is the probability that
            the first is on and the second off.
        """
        observed, single = self._evidence(given)
        variables = self._query(query, observed)
        result = answers.conditional(self._mixture(), observed, variables, self.n_jobs)
        return result[0] if single else result

    def most_probable(self, given: Any = None, *, label: Any = None) -> MostProbable:
        """Return the most probable completion of the evidence together with its class.

        The class or component is completed too: P(x, y) is maximised jointly. The most probable
        completion summed over the classes is intractable in every mixture. The maximum is exact; in
        hidden trees it is found by a search, and `exact` and `gap` tell how far the search got.

        Parameters
        ----------
        given : {array-like, sparse matrix} of shape (n_samples, n_features), dict or None
            The evidence; it must be possible.
        label : label, optional
            A class or component, if known.
        """
        observed, single = self._evidence(given)
        mixture, labels = self._mixture(), self._labels()
        classes = self._classes_of(label)
        best = answers.most_probable(mixture, observed, classes, self.n_jobs)
        named, gap = labels[best.classes], best.bound - best.log_prob
        if single:
            return MostProbable(best.rows[0], named[0], float(best.log_prob[0]), float(gap[0]))
        return MostProbable(best.rows, named, best.log_prob, gap)

    def recommend(
        self, X: Any, n: int = 5, *, by: str = "probability"
    ) -> list[Recommendation] | list[list[Recommendation]]:
        """Return the variables that are most likely to be on in addition to those that are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), table, dict or None
            The variables known to be on. Entries that are off count as unknown, like NaN: they can
            be recommended. In a dict from variable to value, a 0 is known and not recommended.
        n : int, default=5
            Number of recommendations for each row; fewer if fewer variables are open.
        by : {"probability", "lift"}, default="probability"
            Whether to rank by probability, or by how much the evidence raises the probability
            compared with no evidence.

        Returns
        -------
        list of Recommendation, or a list of such lists for several rows
            Each with `item`, `probability` and `lift`.

        Examples
        --------
        >>> import numpy as np
        >>> from exchangeable import ExchangeableMixture
        >>> baskets = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 50, axis=0)
        >>> model = ExchangeableMixture(2, random_state=0).fit(baskets)
        >>> model.recommend({0: 1}, n=1)[0].item
        1
        """
        check_count(n, "n")
        if by not in ORDERS:
            raise ValueError(f"by={by!r} is unknown; expected one of {', '.join(ORDERS)}")
        observed, single = self._evidence(X)
        if not is_assignment(X):
            observed = ones_alone(observed)
        names = getattr(self, "feature_names_in_", None)
        found = recommended(self._mixture(), observed, n, by, self.n_jobs)
        if names is not None:
            found = [[each._replace(item=str(names[each.item])) for each in row] for row in found]
        return found[0] if single else found

    def sample(
        self, n_samples: int = 1, given: Evidence = None, random_state: RandomState = None
    ) -> tuple[SymbolArray, npt.NDArray[Any]]:
        """Draw rows given the evidence, and return them with the classes they came from.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        given : array-like of shape (n_features,), dict or None
            Evidence common to all rows; it must be possible.
        random_state : int, RandomState, Generator or None
            Seed of the draws.
        """
        mixture = self._mixture()
        n_samples = check_count(n_samples, "n_samples", minimum=0)
        rng = as_generator(random_state)
        observed, single = self._evidence(given)
        if not single:
            raise ValueError(
                "sample takes a single row of evidence; for draws from many rows see impute"
            )
        known = given is not None
        posterior = (answers.class_posterior if known else answers.class_prior)(mixture, observed)
        classes = np.sort(answers.draw_classes(np.repeat(posterior, n_samples, axis=0), rng))
        rows = np.empty((n_samples, mixture.model.n_variables), dtype=np.uint8)
        for y in np.unique(classes):
            members = np.flatnonzero(classes == y)
            copies = observed.take(np.zeros(members.size, dtype=np.int64))
            rows[members] = mixture.model.draw(copies, int(y), rng)
        return rows, self._labels()[classes]

    def impute(
        self,
        X: Any,
        method: str = "most_probable",
        n_draws: int | None = None,
        random_state: RandomState = None,
    ) -> Any:
        """Fill in the missing entries of X; known entries stay as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples with NaN for missing entries.
        method : {"most_probable", "marginal", "draw"}, default="most_probable"
            ``"most_probable"``: the jointly most probable completion and class or component.
            ``"marginal"``: the probability that each missing entry is on. ``"draw"``: a random
            completion, drawn from the distribution given the known entries.
        n_draws : int, optional
            With ``"draw"``, the number of completed copies to return (multiple imputation).
        random_state : int, RandomState, Generator or None
            Seed of the draws.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features)
            Completed rows, sparse if X is; or with `n_draws` an array of shape (n_draws, n_samples,
            n_features).
        """
        if method not in METHODS:
            raise ValueError(f"method={method!r} is unknown; expected one of {', '.join(METHODS)}")
        if n_draws is None:
            return self._fill(X, method, as_generator(random_state))
        if method != "draw":
            raise ValueError(f"n_draws={n_draws!r} goes with method='draw', not {method!r}")
        n_draws, rng = check_count(n_draws, "n_draws"), as_generator(random_state)
        filled = [self._fill(X, method, rng) for _ in range(n_draws)]
        return np.stack([f.toarray() if is_sparse(f) else f for f in filled])

    def information_gain(self, given: Any = None, *, target: Any = None) -> FloatArray:
        """Return the information gain of each open variable, in nats: which one to ask next.

        It is the expected decrease in entropy of the class or component, or of a target variable,
        when the variable becomes known. Known variables and the target have gain 0.

        Parameters
        ----------
        given : {array-like, sparse matrix} of shape (n_samples, n_features), dict or None
            The evidence; it must be possible.
        target : int or str, optional
            A variable; by default the target is the class or component.
        """
        observed, single = self._evidence(given)
        mixture = self._mixture()
        if target is None:
            result = answers.class_information(mixture, observed, self.n_jobs)
        else:
            wanted = self._variable(target)
            result = answers.variable_information(mixture, observed, wanted, self.n_jobs)
        return result[0] if single else result

    def _evidence(self, given: Any) -> tuple[Observed, bool]:
        """Return the evidence, in any of its forms, as rows, and whether it is a single query."""
        n_variables = self._mixture().model.n_variables
        if is_sparse(given) or np.ndim(given) > 1:
            return self._observed(given), False
        named = named_evidence(given, getattr(self, "feature_names_in_", None))
        return Observed.from_symbols(check_evidence(named, n_variables)[None]), True

    def _variable(self, name: Any) -> int:
        """Return the number of a variable given by number or name."""
        n_variables = self._mixture().model.n_variables
        names = getattr(self, "feature_names_in_", None)
        if isinstance(name, str) and names is not None and name in names:
            return int(np.flatnonzero(names == name)[0])
        number = isinstance(name, int | np.integer) and not isinstance(name, bool)
        if number and 0 <= name < n_variables:
            return int(name)
        hint = f"; {NAMELESS}" if isinstance(name, str) and names is None else ""
        raise ValueError(
            f"{name!r} is not a variable; they are numbered 0..{n_variables - 1}{hint}"
        )

    def _query(self, query: Any, observed: Observed) -> IntArray:
        """Return the numbers of the query variables."""
        if is_assignment(query):
            raise TypeError(
                f"query={query!r} is a dict; query names the variables asked for, and what is "
                "known goes second: conditional(query, given)"
            )
        named = [query] if isinstance(query, str | int | np.integer) else list(query)
        variables = np.array([self._variable(name) for name in named], dtype=np.int64)
        if not variables.size or 1 << variables.size > answers.MAX_STATES:
            raise ValueError(f"a query is for 1 to 16 variables, got {variables.size}")
        if np.unique(variables).size < variables.size:
            raise ValueError(f"query={query!r} names a variable twice")
        holes = observed.hole_flags()[:, variables]
        if not holes.all():
            row, at = np.argwhere(~holes)[0]
            raise ValueError(
                f"query names the variable {named[at]!r}, which row {row} of the evidence sets"
            )
        return variables

    def _fill(self, X: Any, method: str, rng: np.random.Generator) -> Any:
        """Return X with its missing entries filled in once."""
        self._mixture()
        observed = self._observed(X)
        values = check_array(
            as_matrix(X), accept_sparse="csr", dtype="numeric", ensure_all_finite="allow-nan"
        )
        if observed.holes is None:
            return values.copy()
        values = values.astype(values.dtype if values.dtype.kind == "f" else np.float64)
        if is_sparse(values):
            values.sum_duplicates()
        for span, part in observed.chunks(MEMORY_SHARE):
            _fill_holes(values, span, self._filled(part, method, rng))
        if is_sparse(values):
            values.eliminate_zeros()
        return values

    def _filled(self, part: Observed, method: str, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Return some rows completed."""
        mixture = self._mixture()
        if method == "marginal":
            return answers.marginals(mixture, part, self.n_jobs)
        if method == "draw":
            return answers.draw(mixture, part, rng, self.n_jobs)[0]
        classes = np.arange(mixture.log_prior.size)
        return answers.most_probable(mixture, part, classes, self.n_jobs).rows


def _fill_holes(values: Any, span: slice, filled: npt.NDArray[Any]) -> None:
    """Write the answers over the NaN entries of a span of rows."""
    if not is_sparse(values):
        part = values[span]
        gaps = np.isnan(part)
        part[gaps] = filled[gaps]
        return
    stored = slice(values.indptr[span.start], values.indptr[span.stop])
    lengths = np.diff(values.indptr[span.start : span.stop + 1])
    row = np.repeat(np.arange(lengths.size), lengths)
    part = values.data[stored]
    gaps = np.isnan(part)
    part[gaps] = filled[row[gaps], values.indices[stored][gaps]]
