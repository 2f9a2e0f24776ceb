"""Rasch, partial credit and mixed Rasch models."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from exchangeable.arrays import FloatArray, IntArray, RandomState, check_count
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.rasch.answers import Answers, read_answers
from exchangeable.rasch.conditional import fit_conditional
from exchangeable.rasch.errors import (
    class_parameters,
    warn_of_infinite,
    with_errors,
    without_unknown,
)
from exchangeable.rasch.existence import check_answers, usable_items
from exchangeable.rasch.parameters import among
from exchangeable.rasch.questions import RaschQuestions
from exchangeable.rasch.scores import score_distribution
from exchangeable.runtime.attempts import all_or_nothing

ROUGH = 1e-6
"""Starts of EM are compared once they improve by less than this."""


class RaschModel(RaschQuestions, BaseEstimator):
    """Rasch model of binary items, partial credit model of graded items, or a mixture of these.

    With one component, items are fitted by conditional maximum likelihood: given the scores on the
    answered items, the likelihood depends neither on abilities nor on missing answers. With several
    components it is the mixed Rasch model: classes with different item parameters and free score
    distributions, fitted by EM; missing answers are summed out. There is no prior and no smoothing.

    Parameters
    ----------
    n_components : int, default=1
        Number of classes.
    n_init : int, default=10
        Number of starts of EM, if there are several classes.
    tol : float, default=1e-9
        EM stops when the average log-likelihood improves by less than this.
    max_iter : int, default=5000
        Maximum number of iterations of EM.
    random_state : int, RandomState, Generator or None
        Seed of the starts.
    n_jobs : int, optional
        Number of threads; all cores by default. It does not change the result.

    Attributes
    ----------
    item_parameters_ : ItemParameters
        Thresholds and locations of the items in each class, with standard errors; locations sum to
        zero. NaN if there is no finite estimate.
    weights_ : ndarray of shape (n_components,)
        Sizes of the classes.
    log_likelihood_ : float
        With one class, of the answers given the scores; with several, of the answers.
    n_parameters_ : int
        Number of free parameters of that likelihood.
    n_persons_ : float
        Number of persons, or their total weight; with one class only those whose score is not
        extreme.
    n_iter_ : int
        Number of iterations.
    mixture_ : ExchangeableMixture
        The mixture, if there are several classes: for samples, imputation and files.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import RaschModel
    >>> rng = np.random.default_rng(0)
    >>> difficulty, ability = np.array([-1.0, 0.0, 0.0, 1.0]), rng.normal(size=(1000, 1))
    >>> X = (rng.random((1000, 4)) < 1 / (1 + np.exp(difficulty - ability))).astype(float)
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> model = RaschModel().fit(X)
    >>> print(model.item_parameters_)
    item  difficulty     s.e.
    x0       -0.9015   0.0693
    x1       -0.0634   0.0661
    x2        0.0621   0.0659
    x3        0.9029   0.0722
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_init: int = 10,
        tol: float = 1e-9,
        max_iter: int = 5000,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the items.

        Parameters
        ----------
        X : array-like of shape (n_persons, n_items)
            Answers 0, 1, 2, …, with NaN for missing answers. A binary item has the answers 0 and 1.
        y : ignored
            Ignored, present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_persons,), optional
            How many persons each row represents, 1 by default; standard errors treat it as such.
        """
        k = check_count(self.n_components, "n_components")
        validate_data(self, X, skip_check_array=True)
        answers = read_answers(X, getattr(self, "feature_names_in_", None), sample_weight)
        if k == 1:
            self._fit_one(answers)
        else:
            self._fit_several(answers, k)
        return self

    def _fit_one(self, answers: Answers) -> None:
        fit = fit_conditional(answers, self.n_jobs)
        self.__dict__.pop("mixture_", None)
        self.item_parameters_, self.weights_ = fit.parameters, np.ones(1)
        self.log_likelihood_, self.n_parameters_ = fit.log_likelihood, fit.n_parameters
        self.n_persons_, self.n_iter_ = fit.n_persons, fit.n_iter
        self._answered = [self._sorted(answers, 0, answers.weights)]

    def _fit_several(self, answers: Answers, k: int) -> None:
        used = usable_items(answers)
        inside = answers.only(items=used)
        check_answers(inside)
        values = inside.numbers
        mixture = ExchangeableMixture(
            k,
            kinds="ordinal",
            blocks="full",
            alpha=0.0,
            n_init=self.n_init,
            tol=max(self.tol, ROUGH),
            max_iter=self.max_iter,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        ).fit(values, sample_weight=inside.weights)
        if self.tol < ROUGH:  # only the best start continues
            mixture.set_params(tol=self.tol, warm_start=True, n_init=1)
            mixture.fit(values, sample_weight=inside.weights)
        scale = mixture._fitted().item_scale()
        assert scale is not None
        posterior = mixture.predict_proba(values)
        rows_per_weight = np.count_nonzero(answers.weights) / answers.weights.sum()
        mass = rows_per_weight * answers.weights[:, None] * posterior
        scale = without_unknown(scale, values, mass)
        found = class_parameters(scale, inside.names)
        warn_of_infinite(found)
        rest = (mixture.weights_, posterior, values, inside.weights)
        found = with_errors(found, scale, *rest)
        self.mixture_, self.weights_, self._in_mixture = mixture, mixture.weights_, used
        self.item_parameters_ = among(found, answers.names, answers.highest, used)
        self.log_likelihood_ = mixture.log_likelihood_ * float(answers.weights.sum())
        # To which classes those who solve all or none belong cannot be determined.
        self.n_parameters_ = mixture.n_parameters_ - 2 * (k - 1)
        self.n_iter_ = mixture.n_iter_
        self.n_persons_ = float(answers.weights.sum())
        self._answered = [
            self._sorted(answers, y, answers.weights * posterior[:, y]) for y in range(k)
        ]

    @property
    def score_distribution_(self) -> FloatArray:
        """Share of persons with each raw score in each class, shape (n_scores, n_components).

        Items without a finite estimate are not counted. Persons with missing answers are
        distributed over the scores that they might have had.
        """
        check_is_fitted(self, "item_parameters_")
        if hasattr(self, "mixture_"):
            scale = self.mixture_._fitted().item_scale()
            assert scale is not None
            return np.exp(scale.log_totals)
        highest, log_credits, _ = self._items(0)
        return score_distribution(highest, log_credits, self._answered[0])[:, None]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class for every person.

        Parameters
        ----------
        X : array-like of shape (n_persons, n_items)
            Answers, with NaN for missing answers.
        """
        answers = self._answers(X)
        if not hasattr(self, "mixture_"):
            return np.ones((len(answers.values), 1))
        return self.mixture_.predict_proba(answers.only(items=self._in_mixture).numbers)

    def predict(self, X: Any) -> IntArray:
        """Return the most probable class of every person.

        Parameters
        ----------
        X : array-like of shape (n_persons, n_items)
            Answers, with NaN for missing answers.
        """
        return np.asarray(self.predict_proba(X).argmax(axis=1))
