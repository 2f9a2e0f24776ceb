"""Naive Bayes over exchangeable blocks."""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from exchangeable.arrays import (
    FloatArray,
    IntArray,
    check_alpha,
    check_count,
    check_flag,
    check_number,
    check_sample_weight,
    missing_as_nan,
    normalize_log,
)
from exchangeable.data.observed import Observed, as_observed
from exchangeable.estimators.base import FittedBlocks
from exchangeable.estimators.rows import by_chunks, fit_classifier, open_rows
from exchangeable.families.blocks.model import BlockModel, fit_blocks, learn_partitions
from exchangeable.families.count_trees.model import CountTreeModel
from exchangeable.families.trees.model import TreeModel
from exchangeable.families.urns.model import UrnModel
from exchangeable.fitting.incomplete import fit_incomplete
from exchangeable.fitting.labelled_fit import fit_labelled
from exchangeable.fitting.labels import class_groups, log_prior, unique_labels
from exchangeable.fitting.options import check_choices, density_options, is_papers, refuse
from exchangeable.fitting.structural_em import EMSettings
from exchangeable.structure.learner import Structure


def _adds_up(classifier: Any) -> bool:
    """Whether batches add up: the weights of urns and trees need all rows at once."""
    if not is_papers(classifier):
        raise AttributeError(
            "partial_fit is for the paper's model; urn='weighted', dependence='tree' and pooling "
            "need all rows at once: use fit"
        )
    return True


class ExchangeableClassifier(FittedBlocks, ClassifierMixin, BaseEstimator):
    r"""Naive Bayes classifier over blocks of exchangeable variables.

    Given the class, the variables fall into blocks; in a block only the number of ones matters:
    P(y, x) = p(y) · Π_b q_b(n_b(x) | y) / C(m_b, n_b(x)) for blocks of m_b variables (Definition
    4.1 of the paper). Each class has blocks of its own, learned from its rows. With every variable
    a block of its own this is `BernoulliNB`; with larger blocks it sees correlations that naive
    Bayes cannot, with the same number of parameters.

    Parameters
    ----------
    structure : {"auto", "evidence", "welch", "independent", "full"}, partition or dict
        How each class's variables are put into blocks. ``"welch"`` is the paper's sweep: sort by
        mean, cut where Welch's t-test rejects. ``"evidence"`` starts from a finer sweep and merges
        neighbours as long as the evidence grows. ``"independent"`` is naive Bayes, ``"full"`` one
        block. A list of lists of variables (numbers or feature names) is used for all classes, a
        dict from class to such a list for each its own. ``"auto"``, the default, is ``"evidence"``
        for uniform urns, ``"full"`` for weighted ones, and ``"independent"`` for trees of
        variables.
    urn : {"uniform", "weighted"}, default="uniform"
        Whether the variables of a block are all alike, as in the paper, or have weights: given how
        many are on, heavier ones are on more often. P(x) = q(n)·Π_j θ_j^{x_j} / e_n(θ) in a block.
    dependence : {"independent", "tree"}, default="independent"
        With ``"tree"`` each class has a tree over its variables: with uniform urns its Chow-Liu
        tree, with weighted ones a weighted tree, q(n)·T(x) / F(n). With uniform urns and a
        `structure` of larger blocks it is a tree over the blocks' counts.
    pooling : float, optional
        Strength of the pooled prior: each class is given so many pseudo-rows distributed as the
        whole training set. Without it the paper's model has Laplace smoothing alone, and weighted
        urns and trees have 8 pseudo-rows.
    shrinkage : float, optional
        Pseudo-rows that pull each edge of a tree towards independence; 32 by default, 200 for
        weighted trees, 4 for each free parameter of an edge between blocks' counts.
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
        Largest number of EM iterations (by EM only).
    tol : float, default=1e-3
        EM stops when the average log-likelihood gains less than this (by EM only).
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
        Average log-likelihood of the training rows after EM (by EM only).
    history_ : list of float
        The same after each EM iteration (by EM only).
    n_iter_ : int
        Number of times the parameters were estimated: 1, or the number of EM iterations.
    converged_ : bool
        Whether EM stopped before `max_iter` (by EM only).

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
        structure: Any = "auto",
        *,
        urn: str = "uniform",
        dependence: str = "independent",
        pooling: float | None = None,
        shrinkage: float | None = None,
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
        self.urn = urn
        self.dependence = dependence
        self.pooling = pooling
        self.shrinkage = shrinkage
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
        tags.input_tags.allow_nan = True
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn the blocks and the parameters of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; an entry greater than `binarize` is on. A NaN is not known: EM sums over it.
            Files, other sources of chunks and Dask collections are read a part at a time: see
            ``docs/scaling.md``.
        y : array-like of shape (n_samples,)
            Class labels; of a table in chunks or on a cluster it may be the name of a column.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, 1 by default.
        """
        self._check_options()
        elsewhere = open_rows(self, X, y, sample_weight, labelled=True)
        if elsewhere is not None:
            model, classes = fit_classifier(self, elsewhere)
            self._set_model(model, classes, model.totals)
            self.n_iter_ = 1
            self._forget_em()
            return self
        X, y = validate_data(
            self,
            missing_as_nan(X),
            y,
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite="allow-nan",
        )
        labelled = y[y != -1] if self.semi_supervised else y
        if not labelled.size:
            raise ValueError("all rows are unlabelled (-1); at least one needs a class")
        classes = unique_labels(labelled, "y")
        check_classification_targets(labelled)
        alpha, observed = check_alpha(self.alpha), as_observed(X, self.binarize, self.n_jobs)
        structure = self._check_structure(observed.n_variables, classes.tolist())
        if not is_papers(self):
            self._fit_pooled(observed, y, sample_weight, structure, classes)
            return self
        if self.semi_supervised or observed.holes is not None:
            labels = np.full(len(y), -1)
            known = y != -1 if self.semi_supervised else np.full(len(y), True)
            labels[known] = np.searchsorted(classes, labelled)
            self._fit_incomplete(observed, labels, sample_weight, structure, classes)
            return self
        rows = observed.ones
        groups = class_groups(y, classes, sample_weight)
        partitions = learn_partitions(rows, groups, structure, self.n_jobs)
        model = fit_blocks(rows, groups, partitions, alpha, self.n_jobs)
        self._set_model(model, classes, model.totals)
        self.n_iter_ = 1
        self._forget_em()
        return self

    @available_if(_adds_up)
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
        self._check_options()
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        known = unique_labels(classes, "classes") if first else self.classes_
        X, y = validate_data(
            self,
            missing_as_nan(X),
            y,
            accept_sparse="csr",
            dtype="numeric",
            ensure_all_finite="allow-nan",
            reset=first,
        )
        alpha, observed = check_alpha(self.alpha), as_observed(X, self.binarize, self.n_jobs)
        if observed.holes is not None:
            raise ValueError(
                "X contains NaN; partial_fit needs complete rows, since hidden counts of one batch "
                "depend on the others: use fit for rows with holes"
            )
        rows = observed.ones
        if not (classes is None or np.array_equal(known, np.unique(np.asarray(classes)))):
            raise ValueError(f"classes={classes!r} is not the same as on the first call: {known}")
        unknown = np.setdiff1d(y, known)
        if unknown.size:
            raise ValueError(f"y contains {unknown.tolist()}, which are not in {known}")
        groups = class_groups(y, known, sample_weight)
        structure = self._check_structure(rows.n_variables, known.tolist())
        before = BlockModel.blank(rows.n_variables, known.size) if first else self._fitted()
        if not isinstance(before, BlockModel):
            raise ValueError("partial_fit cannot go on from weighted urns or trees; use fit")
        model = before.add(rows, groups, structure, self.n_jobs)
        model.set_tables(alpha, self.n_jobs)
        self._set_model(model, known, model.totals)
        return self

    @by_chunks
    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Return log P(x, y) for every row and class, −inf where the model excludes it."""
        return self._fitted().score(self._observed(X), self.n_jobs) + self.class_log_prior_

    @by_chunks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log-probability of each class for every row.

        A row that is impossible in every class (which needs ``alpha=0``) tells nothing: it has the
        classes' prior probabilities.
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

    def _check_options(self) -> None:
        """Refuse values of parameters that only some fits would notice."""
        check_choices(self)
        check_flag(self.fit_prior, "fit_prior")
        check_flag(self.semi_supervised, "semi_supervised")
        check_count(self.max_iter, "max_iter")
        if not 0 <= check_number(self.tol, "tol") < np.inf:
            raise ValueError(f"tol must be finite and at least 0, got {self.tol}")
        if isinstance(self.structure, Iterator):
            raise TypeError("structure is an iterator, which can be read only once; pass a list")

    def _set_model(
        self,
        model: BlockModel | UrnModel | TreeModel | CountTreeModel,
        classes: npt.NDArray[Any],
        totals: FloatArray,
        prior: FloatArray | None = None,
    ) -> None:
        """Take over what was fitted, all at once: a fit that fails changes nothing."""
        if prior is None:
            prior = log_prior(totals, self.fit_prior, self.class_prior)
        self.class_log_prior_ = prior
        self.class_count_ = totals
        self.classes_ = classes
        self._model = model

    def _fit_pooled(
        self,
        observed: Observed,
        y: npt.NDArray[Any],
        sample_weight: npt.ArrayLike | None,
        structure: Structure,
        classes: npt.NDArray[Any],
    ) -> None:
        """Fit weighted urns or trees, or blocks under a pooled prior."""
        refuse(
            self,
            {"semi_supervised": False},
            "is for the paper's model, not for urn='weighted', dependence='tree' or pooling",
        )
        options = density_options(self, structure, classes.size)
        weight = check_sample_weight(sample_weight, observed.n_rows)
        model, totals, self.n_iter_ = fit_labelled(
            observed, np.searchsorted(classes, y), weight, options, self.n_jobs
        )
        self._set_model(model, classes, totals)
        self._forget_em()

    def _forget_em(self) -> None:
        """Drop what an earlier fit by EM has left."""
        for name in ("history_", "log_likelihood_", "converged_"):
            if hasattr(self, name):
                delattr(self, name)

    def _fit_incomplete(
        self,
        observed: Observed,
        labels: IntArray,
        sample_weight: npt.ArrayLike | None,
        structure: Structure,
        classes: npt.NDArray[Any],
    ) -> None:
        learned = self.class_prior is None and self.fit_prior
        known = None if learned else log_prior(np.ones(classes.size), False, self.class_prior)
        state = fit_incomplete(
            observed,
            labels,
            check_sample_weight(sample_weight, observed.n_rows),
            classes.size,
            structure,
            EMSettings(
                check_alpha(self.alpha),
                self.tol,
                self.max_iter,
                fixed_prior=known,
                n_jobs=self.n_jobs,
            ),
        )
        self._set_model(state.model, classes, state.model.totals, state.log_prior)
        self.history_, self.log_likelihood_ = state.history, state.history[-1]
        self.n_iter_, self.converged_ = state.n_iter, state.converged
