"""The classifier: naive Bayes over exchangeable blocks, and classes of any other family."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from exchangeable.arrays import (
    FloatArray,
    IntArray,
    check_flag,
    check_sample_weight,
    normalize_log,
)
from exchangeable.data.observed import Observed, observe_numbers
from exchangeable.data.stream.gathering import gathered
from exchangeable.data.stream.passes import Passes
from exchangeable.estimators.base import MixtureEstimator
from exchangeable.estimators.described import lists_families
from exchangeable.estimators.fits.chosen import (
    CHOSEN,
    LEARNED,
    check_generative,
    choose,
    components_asked,
    fit_components,
)
from exchangeable.estimators.fits.class_batches import add_labelled_batch
from exchangeable.estimators.fits.class_chunks import fit_class_chunks
from exchangeable.estimators.fits.hybrid import (
    TRAINED,
    check_hybrid,
    fit_hybrid,
    keep_trained,
    mixture_of,
)
from exchangeable.estimators.kinds import COLUMNS, decide_kinds, labels_of, observe_typed
from exchangeable.estimators.labels import (
    check_class_weight,
    open_labels,
    weigh_classes,
)
from exchangeable.estimators.names import give_names
from exchangeable.estimators.rows import (
    by_chunks,
    open_rows,
    take_names,
    validated_with_labels,
    warn_if_cut,
)
from exchangeable.families.contract import FamilySpec
from exchangeable.families.problem import Problem
from exchangeable.fitting.classes.labelled import (
    FittedClasses,
    check_class_prior,
    class_groups,
    fit_classes,
    log_prior,
    unique_labels,
    with_prior,
)
from exchangeable.fitting.hybrid.settings import Hybrid
from exchangeable.fitting.tasks import problem_of, rule_of, spec_of
from exchangeable.fitting.trainings import Chosen, Generative, as_training
from exchangeable.runtime.attempts import all_or_nothing


def _adds_up(classifier: Any) -> bool:
    """Whether batches add up, so that `partial_fit` is available."""
    try:
        spec = spec_of(classifier)
        spec.check("partial_fit", "partial_fit")
    except (TypeError, ValueError) as error:
        raise AttributeError(str(error)) from None
    settings = as_training(classifier.training)
    always_mixtures = spec.class_components is not None
    if not (settings is None or (always_mixtures and isinstance(settings, Generative))):
        raise AttributeError(f"training={classifier.training!r} needs all rows at once; use fit")
    return True


@lists_families("classes")
class ExchangeableClassifier(MixtureEstimator, ClassifierMixin, BaseEstimator):
    r"""Naive Bayes classifier over blocks of exchangeable variables.

    Given the class, the variables fall into independent blocks, and within a block only the number
    of ones matters: P(y, x) = p(y) · Π_b q_b(n_b(x) | y) / C(m_b, n_b(x)) for blocks of m_b
    variables (Definition 4.1 of the paper). Each class has its own blocks, learned from its rows.
    If every variable is a block of its own, this is `BernoulliNB`; larger blocks capture
    correlations that naive Bayes cannot, with the same number of parameters. Other families go
    beyond the paper.

    Parameters
    ----------
    family : str, default="blocks"
        What each class is made of, with the default blocks and prior of each family:

        {families}
    blocks : {"auto", "evidence", "welch", "independent", "full"}, Blocks, list or dict
        How the variables of each class are grouped into blocks: the name of a method, or `Blocks`
        with a method and its settings. A list of lists of variables (numbers or feature names) sets
        the blocks of all classes, a dict from class to such a list the blocks of each class.
        ``"auto"``, the default, is the family's default.
    pooling : float, optional
        Strength of the pooled prior: each class gets this many pseudo-rows distributed as the whole
        training set. The default depends on the family and may be Laplace smoothing alone.
    alpha : float, default=0.1
        Laplace smoothing: added to the number of rows with each count in a block. Under a pooled
        prior it smooths the training set's overall frequencies.
    binarize : float or None, default=0.0
        Entries greater than this are on. With None, all entries must be 0 or 1.
    kinds : {"binary", "nominal", "ordinal", "count", "continuous"}, dict, Kinds or None
        Kinds of the columns: one name for all, a dict from column to kind, or `Kinds` with further
        settings. By default kinds are inferred from the types of a table, and columns of arrays are
        binary. If a column is not binary, ``family="blocks"`` is replaced by ``"mixed"``.
    class_prior : "uniform" or array-like of shape (n_classes,), optional
        Prior probabilities of the classes: uniform or given. By default they are learned.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn; they multiply the weights of their rows.
    semi_supervised : bool, default=False
        Whether rows labelled −1, None or NaN are unlabelled rows, from which `fit` learns by EM.
    max_iter : int, default=50
        Maximum number of iterations, if parameters are found by EM or step by step.
    tol : float, default=1e-3
        EM stops when the average penalised log-likelihood improves by less than this; weights
        fitted to complete rows have converged when a step changes them by less than this.
    n_jobs : int, optional
        Number of threads; all cores by default. It does not change the result.
    training : {"generative", "hybrid", "discriminative", "chosen"} or object
        The objective of the fit. ``"generative"`` maximises the likelihood of the rows in their
        classes, as in the paper. ``"hybrid"`` fits the labels, as logistic regression does, with
        generative scores as additional features; the result is still a distribution, which sums out
        missing values exactly. ``"discriminative"`` does the same without generative scores. Both
        fill in missing entries of training rows by draws from each variable's frequency.
        ``"chosen"`` selects by held-out predictions between generative training, with one or
        several components per class, and hybrid training; see ``docs/kinds.md``. `Generative`,
        `Hybrid` and `Chosen` hold the settings; see ``docs/hybrid.md``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    kinds_ : dict
        Kind of each column.
    class_count_ : ndarray of shape (n_classes,)
        Total weight of the training rows of each class.
    class_log_prior_ : ndarray of shape (n_classes,)
        Log-probability of each class.
    n_blocks_ : ndarray of shape (n_classes,)
        Number of blocks of each class.
    partitions_ : list of lists of ndarray
        The variables of each block of each class.
    count_probabilities_ : list of lists of ndarray
        The probabilities q(l | y) of l = 0, 1, … ones, for each class and block.
    log_likelihood_ : float
        Average log-likelihood of the training rows after EM (only if fitted by EM).
    history_ : list of float
        The same after each EM iteration (only if fitted by EM).
    n_iter_ : int
        Number of times the parameters were estimated: 1, or the number of EM iterations.
    converged_ : bool
        Whether EM, or every conditional fit, converged.
    scales_ : dict from name to float
        Weight of each generative score (not with generative training).
    penalties_, penalty_shares_ : ndarrays of shape (n_penalties,)
        The penalties tried, and the weights of their fits (not with generative training).
    loss_ : float
        Cross-validated log-loss, NaN if all settings were given (not with generative training).
    chosen_ : dict
        The chosen settings (only with ``training="chosen"``).
    choice_losses_ : ndarray of shape (n_candidates,)
        Cross-validated log-loss of each candidate, NaN if there was only one.

    Examples
    --------
    Naive Bayes cannot learn parity; one block of exchangeable variables can.

    >>> import numpy as np
    >>> from exchangeable import ExchangeableClassifier
    >>> from sklearn.naive_bayes import BernoulliNB
    >>> X = np.random.default_rng(0).integers(0, 2, size=(1000, 10))
    >>> y = X.sum(axis=1) % 2
    >>> BernoulliNB().fit(X[:500], y[:500]).score(X[500:], y[500:]) < 0.6
    True
    >>> ExchangeableClassifier().fit(X[:500], y[:500]).score(X[500:], y[500:])
    1.0
    """

    def __init__(
        self,
        family: str = "blocks",
        *,
        blocks: Any = "auto",
        pooling: float | None = None,
        alpha: float = 0.1,
        binarize: float | None = 0.0,
        kinds: Any = None,
        class_prior: str | npt.ArrayLike | None = None,
        class_weight: Any = None,
        semi_supervised: bool = False,
        max_iter: int = 50,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        training: Any = "generative",
    ) -> None:
        self.family = family
        self.blocks = blocks
        self.pooling = pooling
        self.alpha = alpha
        self.binarize = binarize
        self.kinds = kinds
        self.class_prior = class_prior
        self.class_weight = class_weight
        self.semi_supervised = semi_supervised
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.training = training

    @classmethod
    def from_logistic_regression(cls, classifier: Any) -> Self:
        """Return a classifier with the predictions of a `LogisticRegression` on 0/1 features.

        It can also predict with missing features. If this matters, train with
        ``training="discriminative"`` instead: a logistic regression does not know how often each
        variable is on, so here each is assumed to be on half of the time on average over the
        classes.

        Parameters
        ----------
        classifier : LogisticRegression
            A fitted binary or multinomial one.

        Examples
        --------
        >>> import numpy as np
        >>> from exchangeable import ExchangeableClassifier
        >>> from sklearn.linear_model import LogisticRegression
        >>> X = np.random.default_rng(0).integers(0, 2, size=(200, 5))
        >>> fitted = LogisticRegression().fit(X, X.sum(axis=1) > 2)
        >>> model = ExchangeableClassifier.from_logistic_regression(fitted)
        >>> np.allclose(model.predict_proba(X), fitted.predict_proba(X))
        True
        """
        mixture = mixture_of(classifier)
        model = cls(training="discriminative")
        model.n_features_in_ = mixture.model.n_variables
        if hasattr(classifier, "feature_names_in_"):
            model.feature_names_in_ = classifier.feature_names_in_
        classes = np.asarray(classifier.classes_)
        model._keep(FittedClasses(mixture.model, np.zeros(classes.size)), classes)
        model.class_log_prior_ = mixture.log_prior
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        feature_names: Any = None,
    ) -> Self:
        """Learn the blocks and the parameters of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; an entry greater than `binarize` is on. NaN is a missing entry, which EM sums
            out. Files, other sources of chunks and Dask collections are read in parts: see
            ``docs/scaling.md``.
        y : array-like of shape (n_samples,)
            Class labels; for a table in chunks or on a cluster this may be the name of a column.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, 1 by default.
        feature_names : array-like of str or transformer, optional
            Names of the columns if X has none, or a transformer with ``get_feature_names_out``: in
            a pipeline, the vectorizer before this step.
        """
        spec = self._check_options()
        elsewhere = open_rows(self, spec, X, y, sample_weight, labelled=True)
        if elsewhere is not None and elsewhere[0].draws_rows:
            return self._fit_gathered(*elsewhere, feature_names)
        if elsewhere is not None:
            self._keep(*fit_class_chunks(self, *elsewhere, feature_names))
            return self
        y, known = open_labels(y, self.semi_supervised)
        spec, observed, y = self._labelled_rows(spec, X, y)
        give_names(self, feature_names)
        return self._fit_rows(spec, observed, y, sample_weight, known)

    def _fit_gathered(self, spec: FamilySpec, passes: Passes, feature_names: Any) -> Self:
        """Fit rows in chunks or on a cluster that must be collected in memory."""
        observed, weight, labels = gathered(passes)
        y, known = open_labels(labels, self.semi_supervised)
        if y is None:
            raise ValueError("y is missing: give one label per row, or chunks that bring them")
        take_names(self, passes, feature_names)
        return self._fit_rows(spec, observed, np.asarray(y), weight, known)

    def _fit_rows(
        self,
        spec: FamilySpec,
        observed: Observed,
        y: npt.NDArray[Any],
        sample_weight: npt.ArrayLike | None,
        known: Any = None,
    ) -> Self:
        """Fit rows in memory; `known` says which have a label, if not all do."""
        labelled = y if known is None else y[known]
        classes = unique_labels(labelled, "y")
        check_classification_targets(labelled)
        settings = as_training(self.training)
        if isinstance(settings, Hybrid):
            return self._fit_hybrid(spec, settings, observed, y, classes, sample_weight)
        if isinstance(settings, Chosen):
            return self._fit_chosen(spec, settings, observed, y, classes, sample_weight)
        labels = np.full(len(y), -1)
        labels[slice(None) if known is None else known] = np.searchsorted(classes, labelled)
        sample_weight = weigh_classes(self.class_weight, classes, labels, sample_weight)
        several = components_asked(spec, settings)
        if several is not None:
            weight = check_sample_weight(sample_weight, observed.n_rows)
            self._keep(fit_components(self, spec, several, observed, labels, weight), classes)
            return self
        problem = problem_of(self, spec, observed.n_variables, classes.tolist(), labelled=True)
        if spec.direct is not None and self._is_direct(observed, problem):
            groups = class_groups(y, classes, sample_weight)
            model = spec.direct.fit(problem, observed.ones, groups, self.n_jobs)
            self._keep(FittedClasses(model, np.array([g.total for g in groups])), classes)
            return self
        self._keep(self._fit_in_memory(spec, problem, observed, labels, sample_weight), classes)
        return self

    def _fit_hybrid(
        self,
        spec: FamilySpec,
        settings: Hybrid,
        observed: Observed,
        y: npt.NDArray[Any],
        classes: npt.NDArray[Any],
        sample_weight: npt.ArrayLike | None,
    ) -> Self:
        """Train discriminatively, and store the resulting mixture."""
        labels = np.searchsorted(classes, y)
        found, totals = fit_hybrid(self, spec, settings, observed, labels, classes, sample_weight)
        model = found.mixture.model
        self._keep(FittedClasses(model, totals, max(found.n_iter, 1)), classes)
        self.class_log_prior_ = found.mixture.log_prior
        keep_trained(self, found, settings)
        return self

    def _fit_chosen(
        self,
        spec: FamilySpec,
        settings: Chosen,
        observed: Observed,
        y: npt.NDArray[Any],
        classes: npt.NDArray[Any],
        sample_weight: npt.ArrayLike | None,
    ) -> Self:
        """Store the candidate that predicts held-out rows best."""
        weight = check_sample_weight(sample_weight, observed.n_rows)
        best, chosen, losses = choose(self, spec, settings, observed, y, classes, weight)
        for name in (*LEARNED, *TRAINED):
            self.__dict__.pop(name, None)
            if name in vars(best):
                setattr(self, name, getattr(best, name))
        self._model, self.chosen_, self.choice_losses_ = best._model, chosen, losses
        return self

    def _labelled_rows(
        self, spec: FamilySpec, X: Any, y: Any
    ) -> tuple[FamilySpec, Observed, npt.NDArray[Any]]:
        """Return rows and labels, and the family that suits the columns."""
        own, schema = decide_kinds(self, spec, X)
        if schema is not None:
            return own, observe_typed(self, X, schema, reset=True), labels_of(X, y)
        self.__dict__.pop(COLUMNS, None)
        matrix, y = validated_with_labels(self, X, y)
        observed, zero_one = observe_numbers(matrix, self.binarize, self.n_jobs)
        if not zero_one:
            warn_if_cut(matrix, self.binarize, X, self.n_jobs)
        return spec, observed, y

    def _is_direct(self, observed: Observed, problem: Problem) -> bool:
        """Whether sums over the rows of each class are sufficient."""
        return not self.semi_supervised and observed.holes is None and problem.pooling is None

    def _fit_in_memory(
        self,
        spec: FamilySpec,
        problem: Problem,
        observed: Observed,
        labels: IntArray,
        sample_weight: npt.ArrayLike | None,
    ) -> FittedClasses:
        """Fit classes from sums, or by EM if labels or entries are missing."""
        problem = with_prior(problem, self.class_prior)
        weight = check_sample_weight(sample_weight, observed.n_rows)
        return fit_classes(spec, problem, observed, labels, weight, rule_of(self), self.n_jobs)

    @available_if(_adds_up)
    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add a batch of rows to the fit.

        As a class grows, its blocks and trees are learned again from sums over all batches and a
        sample of up to 4,096 of its rows; memory does not grow with the number of rows. `fit` and
        `load` keep no sample: after them, blocks stay as they are and only their counts are
        updated; in other families, rows drawn from the model replace the missing sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples of this batch, with NaN for missing entries.
        y : array-like of shape (n_samples,)
            Class labels of this batch.
        classes : array-like of shape (n_classes,), optional
            All classes that can ever occur in y; required in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, 1 by default.
        """
        added = add_labelled_batch(self, self._check_options(), X, y, classes, sample_weight)
        self._keep(added.fitted, added.classes)
        if added.kept is not None:
            self._kept = added.kept
        return self

    @by_chunks
    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Return log P(x, y) for every row and class, −inf if the model excludes it."""
        return self._mixture().joint(self._observed(X), self.n_jobs)

    @by_chunks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log-probability of each class for every row.

        A row that is impossible in every class (only with ``alpha=0``) gets the prior probabilities
        of the classes.
        """
        return normalize_log(self.predict_joint_log_proba(X), self.class_log_prior_)[0]

    @by_chunks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class for every row."""
        return np.exp(self.predict_log_proba(X))

    @by_chunks
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of every row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    @property
    def _log_prior(self) -> FloatArray:
        return self.class_log_prior_

    def _labels(self) -> npt.NDArray[Any]:
        return self.classes_

    def _check_options(self) -> FamilySpec:
        """Reject invalid values of parameters that only some fits would notice."""
        spec = spec_of(self)
        check_class_prior(self.class_prior)
        check_flag(self.semi_supervised, "semi_supervised")
        check_class_weight(self.class_weight)
        rule_of(self)
        if self.semi_supervised:
            spec.check("semi_supervised", "semi_supervised=True")
        settings = as_training(self.training)
        if isinstance(settings, Hybrid):
            check_hybrid(self, spec)
        elif settings is not None:
            check_generative(self, settings)
        return spec

    def _keep(self, fitted: FittedClasses, classes: npt.NDArray[Any]) -> None:
        """Store all results of a fit at once, so that a fit that fails changes nothing."""
        state = fitted.state
        self.__dict__.pop("_kept", None)
        if state is None:
            prior = log_prior(fitted.totals, self.class_prior)
            for name in ("history_", "log_likelihood_", "converged_", *TRAINED, *CHOSEN):
                self.__dict__.pop(name, None)
        else:
            prior = state.best.log_prior
            self.history_, self.log_likelihood_ = state.history, state.history[-1]
            self.converged_ = state.converged
        self.class_log_prior_, self.class_count_ = prior, fitted.totals
        self.classes_, self._model, self.n_iter_ = classes, fitted.model, fitted.n_iter
