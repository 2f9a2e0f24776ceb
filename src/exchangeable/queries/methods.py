"""The questions every fitted model answers about any subset of its variables."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from exchangeable.arrays import (
    Evidence,
    FloatArray,
    IntArray,
    RandomState,
    SymbolArray,
    as_generator,
    check_count,
    check_evidence,
    is_sparse,
    missing_as_nan,
    named_evidence,
    normalize_log,
)
from exchangeable.data.observed import Observed
from exchangeable.families.contract import ClassModel
from exchangeable.queries import answers

METHODS = ("most_probable", "marginal", "draw")
MEMORY_SHARE = 1 / 32
"""Filled rows are made in parts so much larger than those that fit the cache."""


class MostProbable(NamedTuple):
    """The most probable completion of evidence.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features), or (n_features,) for a single row
        The completed rows.
    y : ndarray of shape (n_samples,), or a single label
        The class or component of each.
    log_prob : ndarray of shape (n_samples,), or a float
        log P(x, y).
    """

    X: SymbolArray
    y: Any
    log_prob: Any


class Queries:
    """Mixin for estimators made of classes or components that satisfy `ClassModel`.

    Evidence is a matrix with NaN where nothing is known, one row a question; or, for a single
    question, a dict from variable (its number or name) to value, a vector with NaN, or None if
    nothing is known at all.
    """

    n_jobs: int | None = None

    def _class_model(self) -> ClassModel:
        """Return the fitted model, or say that there is none yet."""
        raise NotImplementedError

    @property
    def _log_prior(self) -> FloatArray:
        """Log-probabilities of the classes."""
        raise NotImplementedError

    def _labels(self) -> npt.NDArray[Any]:
        """Return the names of the classes."""
        return np.arange(self._class_model().n_classes)

    def _observed(self, X: Any, reset: bool = False) -> Observed:
        """Return checked rows with holes."""
        raise NotImplementedError

    def score_samples(self, X: Any) -> FloatArray:
        """Return the log-probability of what is known of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; a NaN is an entry that is not known, which is summed out exactly.
        """
        joint = self._class_model().score(self._observed(X), self.n_jobs) + self._log_prior
        return normalize_log(joint, self._log_prior)[1]

    def anomaly_score(self, X: Any) -> FloatArray:
        """Return −log P of what is known of every row: the higher, the more unusual.

        The more entries of a row are known, the lower its probability: compare rows with about
        equally many holes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples, possibly with NaN.
        """
        return -self.score_samples(X)

    def marginals(self, evidence: Any = None) -> FloatArray:
        """Return the probability of each variable being on, given the evidence.

        Parameters
        ----------
        evidence : {array-like, sparse matrix} of shape (n_samples, n_features), dict or None
            What is known; it must be possible.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_features,) for a single question
            Known variables have probability 0 or 1.
        """
        observed, single = self._evidence(evidence)
        result = answers.marginals(self._class_model(), self._log_prior, observed, self.n_jobs)
        return result[0] if single else result

    def conditional(self, query: Any, evidence: Any = None) -> FloatArray:
        """Return the joint distribution of a few variables, given the evidence.

        Parameters
        ----------
        query : sequence of int or str, or one of them
            The variables asked for, none of which the evidence may set.
        evidence : {array-like, sparse matrix} of shape (n_samples, n_features), dict or None
            What is known; it must be possible.

        Returns
        -------
        ndarray of shape (n_samples, 2, 2, …), or (2, 2, …) for a single question
            One axis a query variable, in their order: entry [1, 0] is the probability that the
            first is on and the second off.
        """
        observed, single = self._evidence(evidence)
        variables = self._query(query, observed)
        result = answers.conditional(
            self._class_model(), self._log_prior, observed, variables, self.n_jobs
        )
        return result[0] if single else result

    def most_probable(self, evidence: Any = None, given: Any = None) -> MostProbable:
        """Return the most probable completion of the evidence together with its class.

        The class or component is completed too: P(x, y) is maximised jointly, which is exact. What
        is most probable without regard to the class is intractable in every mixture.

        Parameters
        ----------
        evidence : {array-like, sparse matrix} of shape (n_samples, n_features), dict or None
            What is known; it must be possible.
        given : label, optional
            A class or component, if that is known as well.
        """
        observed, single = self._evidence(evidence)
        model, labels = self._class_model(), self._labels()
        if given is None:
            classes = np.arange(labels.size)
        else:
            classes = np.flatnonzero(labels == given)
            if not classes.size:
                raise ValueError(f"given={given!r} is not one of {labels.tolist()}")
        found = answers.most_probable(model, self._log_prior, observed, classes, self.n_jobs)
        named = labels[found.classes]
        if single:
            return MostProbable(found.rows[0], named[0], float(found.log_prob[0]))
        return MostProbable(found.rows, named, found.log_prob)

    def sample(
        self, n_samples: int = 1, evidence: Evidence = None, random_state: RandomState = None
    ) -> tuple[SymbolArray, npt.NDArray[Any]]:
        """Draw rows, given the evidence, and return them with the classes they came from.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        evidence : array-like of shape (n_features,), dict or None
            What is known of all of them; it must be possible.
        random_state : int, RandomState, Generator or None
            Seed of the draws.
        """
        model = self._class_model()
        n_samples = check_count(n_samples, "n_samples", minimum=0)
        rng = as_generator(random_state)
        observed, single = self._evidence(evidence)
        if not single:
            raise ValueError(
                "sample takes a single row of evidence; for draws from many rows see impute"
            )
        posterior = answers.class_posterior(model, self._log_prior, observed)
        classes = np.sort(answers.draw_classes(np.repeat(posterior, n_samples, axis=0), rng))
        rows = np.empty((n_samples, model.n_variables), dtype=np.uint8)
        for y in np.unique(classes):
            members = np.flatnonzero(classes == y)
            copies = observed.take(np.zeros(members.size, dtype=np.int64))
            rows[members] = model.draw(copies, int(y), rng)
        return rows, self._labels()[classes]

    def impute(
        self,
        X: Any,
        method: str = "most_probable",
        n_draws: int | None = None,
        random_state: RandomState = None,
    ) -> Any:
        """Fill the holes of X; what is known stays as it is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples with NaN where nothing is known.
        method : {"most_probable", "marginal", "draw"}, default="most_probable"
            ``"most_probable"``: the completion that is most probable together with a class or
            component. ``"marginal"``: each hole's probability of being on. ``"draw"``: a draw from
            all completions, by their probabilities given what is known.
        n_draws : int, optional
            With ``"draw"``, the number of completed copies to return (multiple imputation).
        random_state : int, RandomState, Generator or None
            Seed of the draws.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features)
            Completed rows, sparse where X is; or with `n_draws` an array of shape
            (n_draws, n_samples, n_features).
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

    def information_gain(self, evidence: Any = None, target: Any = None) -> FloatArray:
        """Return how much each open variable would tell, in nats: which one to ask next.

        It is the expected loss of entropy of the class or component, or of a target variable, when
        the variable becomes known. Variables already known, and the target, have 0.

        Parameters
        ----------
        evidence : {array-like, sparse matrix} of shape (n_samples, n_features), dict or None
            What is known; it must be possible.
        target : int or str, optional
            A variable; by default it is the class or component one wants to know.
        """
        observed, single = self._evidence(evidence)
        given = self._class_model(), self._log_prior, observed
        if target is None:
            result = answers.class_information(*given, self.n_jobs)
        else:
            result = answers.variable_information(*given, self._variable(target), self.n_jobs)
        return result[0] if single else result

    def _evidence(self, evidence: Any) -> tuple[Observed, bool]:
        """Return evidence in any of its forms as rows, and whether it is a single question."""
        n_variables = self._class_model().n_variables
        if is_sparse(evidence) or np.ndim(evidence) > 1:
            return self._observed(evidence), False
        named = named_evidence(evidence, getattr(self, "feature_names_in_", None))
        return Observed.from_symbols(check_evidence(named, n_variables)[None]), True

    def _variable(self, name: Any) -> int:
        """Return the number of a variable given by number or name."""
        n_variables = self._class_model().n_variables
        names = getattr(self, "feature_names_in_", None)
        if isinstance(name, str) and names is not None and name in names:
            return int(np.flatnonzero(names == name)[0])
        number = isinstance(name, int | np.integer) and not isinstance(name, bool)
        if number and 0 <= name < n_variables:
            return int(name)
        raise ValueError(f"{name!r} is not a variable; they are numbered 0..{n_variables - 1}")

    def _query(self, query: Any, observed: Observed) -> IntArray:
        """Return the numbers of the variables asked for."""
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
        """Return X with its holes filled once."""
        self._class_model()
        observed = self._observed(X)
        values = check_array(
            missing_as_nan(X), accept_sparse="csr", dtype="numeric", ensure_all_finite="allow-nan"
        )
        if observed.holes is None:
            return values.copy()
        values = values.astype(values.dtype if values.dtype.kind == "f" else np.float64)
        for place, part in observed.chunks(MEMORY_SHARE):
            _fill_holes(values, place, self._filled(part, method, rng))
        if is_sparse(values):
            values.eliminate_zeros()
        return values

    def _filled(self, part: Observed, method: str, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Return some rows complete."""
        model, log_prior = self._class_model(), self._log_prior
        if method == "marginal":
            return answers.marginals(model, log_prior, part, self.n_jobs)
        if method == "draw":
            return answers.draw(model, log_prior, part, rng, self.n_jobs)[0]
        classes = np.arange(model.n_classes)
        return answers.most_probable(model, log_prior, part, classes, self.n_jobs).rows


def _fill_holes(values: Any, place: slice, filled: npt.NDArray[Any]) -> None:
    """Write what was filled in over the NaN of some rows, in place."""
    if not is_sparse(values):
        part = values[place]
        gaps = np.isnan(part)
        part[gaps] = filled[gaps]
        return
    stored = slice(values.indptr[place.start], values.indptr[place.stop])
    lengths = np.diff(values.indptr[place.start : place.stop + 1])
    row = np.repeat(np.arange(lengths.size), lengths)
    part = values.data[stored]
    gaps = np.isnan(part)
    part[gaps] = filled[row[gaps], values.indices[stored][gaps]]
