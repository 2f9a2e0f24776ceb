"""Naive Bayes over exchangeable blocks."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from exchangeable.arrays import (
    FloatArray,
    IntArray,
    check_alpha,
    check_count,
    check_sample_weight,
    normalize_log,
)
from exchangeable.engines.cpu import Group
from exchangeable.engines.rows import Rows, as_rows
from exchangeable.models.blocks import BlockModel, fit_blocks, learn_partitions
from exchangeable.models.em import EMSettings
from exchangeable.models.semi_supervised import fit_partly_labelled
from exchangeable.structure.learner import BlockSettings, Structure, check_structure


class ExchangeableClassifier(ClassifierMixin, BaseEstimator):
    r"""Naive Bayes classifier over blocks of exchangeable variables.

    Given the class, the variables fall into blocks; in a block only the number of ones matters:
    P(y, x) = p(y) · Π_b q_b(n_b(x) | y) / C(m_b, n_b(x)) for blocks of m_b variables (Definition
    4.1 of the paper). Each class has blocks of its own, learned from its rows. With every variable
    a block of its own this is `BernoulliNB`; with larger blocks it sees correlations that naive
    Bayes cannot, with the same number of parameters.

    Parameters
    ----------
    structure : {"evidence", "welch", "independent", "full"}, partition or dict, default="evidence"
        How each class's variables are put into blocks. ``"welch"`` is the paper's sweep: sort by
        mean, cut where Welch's t-test rejects. ``"evidence"`` starts from a finer sweep and merges
        neighbours as long as the evidence grows. ``"independent"`` is naive Bayes, ``"full"`` one
        block. A list of lists of variables (numbers or feature names) is used for all classes, a
        dict from class to such a list for each its own.
    alpha : float, default=0.1
        Laplace smoothing: added to the number of rows with each count in a block.
    significance : float, default=0.1
        Significance level of the tests of ``structure="welch"``, and of conditions 2 and 3.
    start : float, default=0.5
        Significance level of the finer sweep that ``structure="evidence"`` starts from.
    prior : float, default=0.1
        Dirichlet parameter of the evidence.
    conditions : tuple of int, default=(1,)
        Which of Proposition 3.3's necessary conditions a learned block must pass: 1 (equal means)
        always, and with 2 or 3 blocks are split where variances or covariances differ.
    binarize : float or None, default=0.0
        Entries greater than this are on. With None all entries must be 0 or 1.
    fit_prior : bool, default=True
        Whether to learn class prior probabilities; if not, all classes have the same.
    class_prior : array-like of shape (n_classes,), optional
        Prior probabilities of the classes, used instead of learned ones.
    semi_supervised : bool, default=False
        Whether rows labelled −1 are rows without a label, from which `fit` learns by EM.
    max_iter : int, default=50
        Largest number of EM iterations (semi-supervised only).
    tol : float, default=1e-3
        EM stops when the average log-likelihood gains less than this (semi-supervised only).
    n_jobs : int, optional
        Number of threads; all cores by default. It never changes the result.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_count_ : ndarray of shape (n_classes,)
        Weight of the rows seen of each class.
    class_log_prior_ : ndarray of shape (n_classes,)
        Log-probability of each class.
    n_blocks_ : ndarray of shape (n_classes,)
        Number of blocks of each class.
    partitions_ : list of lists of ndarray
        The variables of each block of each class.
    count_probabilities_ : list of lists of ndarray
        For each class and block the probabilities q(l | y) of l = 0, 1, … ones.
    log_likelihood_ : float
        Average log-likelihood of the training rows after EM (semi-supervised only).
    n_iter_ : int
        Number of times the parameters were estimated: 1, or the number of EM iterations.
    converged_ : bool
        Whether EM stopped before `max_iter` (semi-supervised only).

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
        structure: Any = "evidence",
        *,
        alpha: float = 0.1,
        significance: float = 0.1,
        start: float = 0.5,
        prior: float = 0.1,
        conditions: Sequence[int] = (1,),
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: npt.ArrayLike | None = None,
        semi_supervised: bool = False,
        max_iter: int = 50,
        tol: float = 1e-3,
        n_jobs: int | None = None,
    ) -> None:
        self.structure = structure
        self.alpha = alpha
        self.significance = significance
        self.start = start
        self.prior = prior
        self.conditions = conditions
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.semi_supervised = semi_supervised
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn the blocks and the parameters of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; an entry greater than `binarize` is on.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, 1 by default.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric")
        labelled = y[y != -1] if self.semi_supervised else y
        if not labelled.size:
            raise ValueError("all rows are unlabelled (-1); at least one needs a class")
        check_classification_targets(labelled)
        self.classes_ = np.unique(labelled)
        alpha, rows = check_alpha(self.alpha), as_rows(X, self.binarize)
        structure = self._structure(rows.n_variables)
        if self.semi_supervised:
            labels = np.full(len(y), -1)
            labels[y != -1] = np.searchsorted(self.classes_, labelled)
            self._fit_partly_labelled(rows, labels, sample_weight, structure)
            return self
        groups = _class_groups(y, self.classes_, sample_weight)
        partitions = learn_partitions(rows, groups, structure, self.n_jobs)
        self._set_model(fit_blocks(rows, groups, partitions, alpha, self.n_jobs))
        self.n_iter_ = 1
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Add a batch of rows to what is known.

        The blocks of a class are learned from the first batch in which it occurs (unless they are
        given by `structure`) and stay; the counts in them add up. The larger the first batch, the
        closer the result is to that of `fit`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples of this batch.
        y : array-like of shape (n_samples,)
            Class labels of this batch.
        classes : array-like of shape (n_classes,), optional
            All classes that can ever occur in y; needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, 1 by default.
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric", reset=first)
        alpha, rows = check_alpha(self.alpha), as_rows(X, self.binarize)
        if first:
            self.classes_ = np.unique(np.asarray(classes))
            self._model = BlockModel.blank(rows.n_variables, self.classes_.size)
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError(
                f"classes={classes!r} is not the same as on the first call: {self.classes_}"
            )
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y contains {unknown.tolist()}, which are not in {self.classes_}")
        groups = _class_groups(y, self.classes_, sample_weight)
        structure = self._structure(rows.n_variables)
        self._set_model(self._model.add(rows, groups, structure, self.n_jobs), alpha)
        return self

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Return log P(x, y) for every row and class, −inf where the model excludes it."""
        check_is_fitted(self, "classes_")
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", reset=False)
        rows = as_rows(X, self.binarize)
        return self._model.score(rows, self.n_jobs) + self.class_log_prior_

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log-probability of each class for every row.

        A row that is impossible in every class (which needs ``alpha=0``) tells nothing: it has the
        classes' prior probabilities.
        """
        return normalize_log(self.predict_joint_log_proba(X), self.class_log_prior_)[0]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class for every row."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of every row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    @property
    def n_blocks_(self) -> IntArray:
        """Number of blocks of each class."""
        return np.array([partition.n_blocks for partition in self._model.partitions])

    @property
    def partitions_(self) -> list[list[IntArray]]:
        """The variables of each block of each class."""
        return [partition.blocks for partition in self._model.partitions]

    @property
    def count_probabilities_(self) -> list[list[FloatArray]]:
        """For each class and block the probabilities of each number of ones."""
        return self._model.count_probabilities()

    def _structure(self, n_variables: int) -> Structure:
        return check_structure(
            self.structure,
            BlockSettings(self.significance, self.start, self.prior, self.conditions),
            n_variables,
            self.classes_.tolist(),
            getattr(self, "feature_names_in_", None),
        )

    def _set_model(self, model: BlockModel, alpha: float | None = None) -> None:
        if alpha is not None:
            model.set_tables(alpha, self.n_jobs)
        self._model = model
        self.class_count_ = model.totals
        self.class_log_prior_ = self._log_prior(model.totals)

    def _log_prior(self, totals: FloatArray) -> FloatArray:
        n_classes = totals.size
        if self.class_prior is not None:
            prior = np.asarray(self.class_prior, dtype=np.float64)
            if prior.shape != (n_classes,):
                raise ValueError(
                    f"class_prior has shape {prior.shape}, expected ({n_classes},), one a class"
                )
            if not ((prior >= 0).all() and np.isclose(prior.sum(), 1.0)):
                raise ValueError(
                    f"class_prior must hold probabilities that add up to 1, got {prior}"
                )
        elif self.fit_prior and totals.sum() > 0:
            prior = totals / totals.sum()
        else:
            prior = np.full(n_classes, 1 / n_classes)
        with np.errstate(divide="ignore"):
            return np.log(prior)

    def _fit_partly_labelled(
        self,
        rows: Rows,
        labels: IntArray,
        sample_weight: npt.ArrayLike | None,
        structure: Structure,
    ) -> None:
        learned_prior = self.class_prior is None and self.fit_prior
        state = fit_partly_labelled(
            rows,
            labels,
            check_sample_weight(sample_weight, rows.n_rows),
            self.classes_.size,
            structure,
            EMSettings(
                check_alpha(self.alpha),
                self.tol,
                check_count(self.max_iter, "max_iter"),
                fixed_prior=None if learned_prior else self._log_prior(np.ones(self.classes_.size)),
                n_jobs=self.n_jobs,
            ),
        )
        self._set_model(state.model)
        self.class_log_prior_ = state.log_prior
        self.history_, self.log_likelihood_ = state.history, state.history[-1]
        self.n_iter_, self.converged_ = state.n_iter, state.converged


def _class_groups(
    y: npt.NDArray[Any], classes: npt.NDArray[Any], sample_weight: npt.ArrayLike | None
) -> list[Group]:
    """Return the rows of each class, with their weights."""
    small = np.uint16 if classes.size < 1 << 16 else np.int64  # which sort by counting
    number = np.searchsorted(classes, y).astype(small)
    order = np.argsort(number, kind="stable")
    cuts = np.cumsum(np.bincount(number, minlength=classes.size))[:-1]
    members = np.split(order, cuts)
    if sample_weight is None:
        return [Group(rows) for rows in members]
    weight = check_sample_weight(sample_weight, y.size)
    return [Group(rows, weight[rows]) for rows in members]
