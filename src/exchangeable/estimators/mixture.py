"""Mixtures of exchangeable blocks for density estimation and clustering."""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags

from exchangeable.arrays import (
    FloatArray,
    IntArray,
    RandomState,
    as_generator,
    check_alpha,
    check_count,
    check_sample_weight,
    normalize_log,
)
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.estimators.base import FittedBlocks
from exchangeable.estimators.rows import by_chunks, open_mixture, open_rows
from exchangeable.families.blocks.model import BlockModel
from exchangeable.fitting.chunked_mixture import ChunkedData
from exchangeable.fitting.mixture_fit import NO_MASS, FittedMixture, fit_mixture
from exchangeable.fitting.mixture_runs import MixtureRuns
from exchangeable.fitting.options import check_choices, is_papers, refuse
from exchangeable.fitting.restarts import run_all
from exchangeable.fitting.selection import Selection, select_components
from exchangeable.fitting.starts import STARTS
from exchangeable.fitting.structural_em import EMSettings, EMState, InMemory

NEEDS_POOLING = "needs a pooled prior: set pooling, urn='weighted', dependence='tree' or 'hidden'"


class ExchangeableMixture(FittedBlocks, DensityMixin, BaseEstimator):
    """Mixture of components whose variables fall into exchangeable blocks.

    P(x) = Σ_y p(y) · Π_b q_b(n_b(x) | y) / C(m_b, n_b(x)): the component is latent, each has blocks
    of its own, and blocks and parameters are found by structural EM (Algorithm 1 of the paper).
    With every variable a block of its own this is latent class analysis, a mixture of independent
    Bernoulli variables.

    Parameters
    ----------
    n_components : int, default=20
        Number of components.
    structure : {"auto", "evidence", "welch", "independent", "full"}, partition or dict
        How each component's variables are put into blocks. ``"welch"`` is the paper's sweep.
        ``"evidence"`` goes on, where that has converged, with what evidence merging makes of
        the sweep's blocks.
        ``"independent"`` is latent naive Bayes, ``"full"`` one block a component. A list of lists
        of variables (numbers or feature names) is used for all components, a dict from component
        (0, 1, …) to such a list for each its own. ``"auto"``, the default, is ``"evidence"`` for
        uniform urns, ``"full"`` for weighted ones, and ``"independent"`` for trees of variables.
    urn : {"uniform", "weighted"}, default="uniform"
        Whether the variables of a block are all alike, as in the paper, or have weights: given how
        many are on, heavier ones are on more often. P(x) = q(n)·Π_j θ_j^{x_j} / e_n(θ) in a block.
    dependence : {"independent", "tree", "hidden"}, default="independent"
        With ``"tree"`` each component has a tree over its variables: with uniform urns a mixture of
        Chow-Liu trees, with weighted ones a weighted tree, q(n)·T(x) / F(n). With uniform urns and
        a `structure` of larger blocks it is a tree over the blocks' counts, learned when
        structural EM has found the blocks. With ``"hidden"`` there is one tree over the blocks,
        single variables unless `structure` lists others, and every block has a hidden state of its
        own, given which it is exchangeable; `n_components` is the number of states, and the
        components are the states of the root.
    pooling : float, optional
        Strength of the pooled prior: each component is given so many pseudo-rows distributed as
        the whole training set. Without it the paper's model has Laplace smoothing alone, and
        weighted urns and trees have 8 pseudo-rows, each state of a hidden tree half a row.
    shrinkage : float, optional
        Pseudo-rows that pull each edge of a tree towards independence; 32 by default, 200 for
        weighted trees, 4 for each free parameter of an edge between blocks' counts, 1 for hidden
        trees.
    alpha : float, default=0.1
        Laplace smoothing: added to the weight of the rows with each count in a block. Under a
        pooled prior it smooths the training set's own frequencies.
    significance : float, default=0.1
        Significance level of the sweep.
    start : float, default=0.1
        Significance level of the sweep whose blocks evidence merging merges.
    prior : float, default=0.1
        Dirichlet parameter of the evidence.
    conditions : tuple of int, default=(1,)
        Which of Proposition 3.3's necessary conditions a learned block must pass.
    accept : {"all", "component"}, default="all"
        Whether all components change their blocks at once if that raises the log-likelihood, as in
        the paper, or each chooses for itself.
    init : {"rows", "random", "both"}, default="both"
        How EM starts. ``"random"``: rows dealt out to the components at random, as in the paper.
        ``"rows"``: each component leans towards a row of the data. ``"both"``: in turn.
    n_init : int, default=1
        Number of runs from different starts.
    restarts : {"best", "average"}, default="best"
        Whether the run with the highest log-likelihood is kept (of held-out rows, if there are
        some), or the average of all runs, which is itself one mixture with the components of all.
    tol : float, default=1e-4
        EM stops when the average log-likelihood gains less than this.
    max_iter : int, default=500
        Largest number of iterations of a run.
    validation_fraction : float, optional
        Share of the rows of `fit` to hold out: a run ends when their likelihood no longer grows,
        and keeps the best parameters. Needs weighted urns, trees or `pooling`, and is not used
        where `fit` gets ``X_valid``.
    binarize : float or None, default=0.0
        Entries greater than this are on. With None all entries must be 0 or 1.
    warm_start : bool, default=False
        Whether `fit` goes on from the parameters of the fit before.
    checkpoint : path-like, optional
        A file that is written after every iteration; a fit that finds it goes on from there.
    random_state : int, RandomState, Generator or None
        Seed of the starts.
    n_jobs : int, optional
        Number of threads; all cores by default. It never changes the result.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Probability of each component.
    n_blocks_ : ndarray of shape (n_components,)
        Number of blocks of each component.
    partitions_ : list of lists of ndarray
        The variables of each block of each component.
    count_probabilities_ : list of lists of ndarray
        For each component and block the probabilities q(l | y) of l = 0, 1, … ones.
    log_likelihood_ : float
        Average log-likelihood of the training rows.
    history_ : list of lists of float
        Average log-likelihood after every iteration, for each run.
    best_init_ : int
        The run that was kept.
    n_iter_ : int
        Its number of iterations.
    converged_ : bool
        Whether it stopped before `max_iter`.
    n_parameters_ : int
        Number of free parameters: k·n + k − 1 for uniform urns, whatever the blocks.
    urn_weights_ : ndarray of shape (n_components, n_features)
        Weight θ of each variable in each component; only ratios in a block matter.
    edges_ : list of ndarray of shape (n_edges, 2)
        For each component its tree's edges, each a variable and its parent, or a block and its
        parent where the tree is over counts or hidden.
    valid_history_ : list of lists of float
        Average log-likelihood of the held-out rows before every step, for each run.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, size=1000)
    >>> X = rng.random((1000, 8)) < np.where(kind[:, None] == 0, 0.2, 0.8)
    >>> mixture = ExchangeableMixture(n_components=2, random_state=0).fit(X)
    >>> mixture.score(X) > -5
    True
    >>> mixture.predict_proba(X[:3]).shape
    (3, 2)
    """

    def __init__(
        self,
        n_components: int = 20,
        *,
        structure: Any = "auto",
        urn: str = "uniform",
        dependence: str = "independent",
        pooling: float | None = None,
        shrinkage: float | None = None,
        alpha: float = 0.1,
        significance: float = 0.1,
        start: float = 0.1,
        prior: float = 0.1,
        conditions: Sequence[int] = (1,),
        accept: str = "all",
        init: str = "both",
        n_init: int = 1,
        restarts: str = "best",
        tol: float = 1e-4,
        max_iter: int = 500,
        validation_fraction: float | None = None,
        binarize: float | None = 0.0,
        warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
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
        self.accept = accept
        self.init = init
        self.n_init = n_init
        self.restarts = restarts
        self.tol = tol
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.binarize = binarize
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        # scikit-learn's check of sparse input asks whatever has a predict_proba for these.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        X_valid: Any = None,
    ) -> Self:
        """Find components, blocks and parameters by structural EM.

        Interrupting it (Ctrl-C) leaves the best model found so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; an entry greater than `binarize` is on. A NaN is not known: EM sums over it.
            Files, other sources of chunks and Dask collections are read a part at a time: see
            ``docs/scaling.md``.
        y : ignored
            Present for scikit-learn's sake.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, 1 by default.
        X_valid : {array-like, sparse matrix}, optional
            Other rows: the run under which they are likeliest is kept. With weighted urns, trees
            or `pooling` a run also ends when their likelihood no longer grows.
        """
        self._check_choices()
        elsewhere = open_rows(self, X, None, sample_weight)
        if elsewhere is not None:
            if X_valid is not None:
                raise ValueError("X_valid goes with X in memory; compare scores of X_valid instead")
            refuse(self, {"validation_fraction": None}, NEEDS_POOLING)
            chunked, begin = open_mixture(self, elsewhere)
            return self._finish(chunked, begin, side_by_side=False)
        observed = self._observed(X, reset=True)
        weight = check_sample_weight(sample_weight, observed.n_rows)
        n_components = check_count(self.n_components, "n_components")
        counting = np.flatnonzero(weight > 0)
        if n_components > counting.size:
            raise ValueError(
                f"n_components={n_components} is more than the rows of X that count, "
                f"n_samples = {counting.size}"
            )
        structure = self._check_structure(observed.n_variables, range(n_components))
        row_weight = weight[counting]
        valid = None if X_valid is None else self._observed(X_valid)
        if not is_papers(self):
            fitted = fit_mixture(self, observed.take(counting), row_weight, valid, structure)
            self._take_over(fitted)
            return self
        refuse(self, {"validation_fraction": None}, NEEDS_POOLING)
        examples, member = merge_equal_rows(observed.take(counting), row_weight)
        begin = partial(MixtureRuns, examples, member, row_weight, n_components, structure)
        return self._finish(InMemory(examples, self.n_jobs), begin, valid=valid)

    def _finish(
        self,
        data: InMemory | ChunkedData,
        begin: Callable[..., Any],
        side_by_side: bool = True,
        valid: Observed | None = None,
    ) -> Self:
        """Run EM from every start and keep the best, or the average of all."""
        states = self._run(data, begin, side_by_side)
        worth = [state.history[-1] for state in states]
        if valid is not None:
            worth = [self._worth(state, valid) for state in states]
        self._keep(states, int(np.argmax(worth)))
        if self.restarts == "average":
            self._average(states, data)
        self.n_samples_weight_ = data.total
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the average log-probability of the rows."""
        return float(self.score_samples(X).mean())

    @by_chunks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the log-probability of each component for every row."""
        return normalize_log(self._joint(X), self._log_prior)[0]

    @by_chunks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each component for every row."""
        return np.exp(self.predict_log_proba(X))

    @by_chunks
    def predict(self, X: Any) -> IntArray:
        """Return the most probable component of every row."""
        return np.asarray(self.predict_log_proba(X).argmax(axis=1))

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> IntArray:
        """Fit, and return the most probable component of every row."""
        return self.fit(X, y, **options).predict(X)

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion on X; the lower the better."""
        log_likelihood = self.score_samples(X)
        return float(-2 * log_likelihood.sum() + self.n_parameters_ * np.log(log_likelihood.size))

    def aic(self, X: Any) -> float:
        """Return the Akaike information criterion on X; the lower the better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self.n_parameters_)

    @classmethod
    def select(
        cls,
        X: Any,
        X_valid: Any = None,
        n_components: Sequence[int] = (1, 2, 5, 10, 20, 50),
        criterion: str | None = None,
        **parameters: Any,
    ) -> Selection:
        """Choose the number of components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples to fit.
        X_valid : {array-like, sparse matrix}, optional
            Other examples, by whose log-likelihood to choose.
        n_components : sequence of int
            Numbers to try.
        criterion : {"valid", "bic", "aic"}, optional
            ``"valid"`` by default if there are validation examples, else ``"bic"``.
        **parameters
            Passed to the constructor.

        Returns
        -------
        Selection
            With the ``best`` model, the ``table`` of what was tried, and a ``plot``.

        Examples
        --------
        >>> import numpy as np
        >>> from exchangeable import ExchangeableMixture
        >>> rng = np.random.default_rng(0)
        >>> kind = rng.integers(0, 2, size=(1500, 1))
        >>> X = rng.random((1500, 8)) < np.where(kind == np.arange(8) % 2, 0.2, 0.8)
        >>> found = ExchangeableMixture.select(X, n_components=[1, 2, 4], random_state=0)
        >>> found.best.n_components
        2
        """
        return select_components(cls, X, X_valid, n_components, criterion, parameters)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        model, k = self._fitted(), self.weights_.size
        if isinstance(model, BlockModel):
            return int(k * self.n_features_in_ + k - 1)
        return int(model.n_parameters + k - 1)

    @property
    def _log_prior(self) -> FloatArray:
        return np.asarray(np.log(self.weights_))

    def _check_choices(self) -> None:
        check_choices(self)
        for name, known in (("accept", ("all", "component")), ("init", STARTS)):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is unknown; expected one of {', '.join(known)}"
                )
        if not self.tol >= 0:
            raise ValueError(f"tol must be at least 0, got {self.tol!r}")

    def _joint(self, X: Any) -> FloatArray:
        return self._fitted().score(self._observed(X), self.n_jobs) + self._log_prior

    def _run(
        self, data: InMemory | ChunkedData, begin: Callable[..., Any], side_by_side: bool
    ) -> list[EMState]:
        """Run EM from every start."""
        before = getattr(self, "_model", None) if self.warm_start else None
        warm = EMState(before, self._log_prior) if isinstance(before, BlockModel) else None
        n_init = check_count(self.n_init, "n_init") if warm is None else 1
        settings = EMSettings(
            check_alpha(self.alpha),
            self.tol,
            check_count(self.max_iter, "max_iter"),
            self.accept,
        )
        runs = begin(settings, self.init, as_generator(self.random_state).spawn(n_init), warm)
        return run_all(
            runs.run,
            n_init,
            settings.max_iter,
            self.n_jobs if side_by_side else 1,
            settings.alpha,
            None if self.checkpoint is None else Path(self.checkpoint),
            self._purpose(data.fingerprint if self.checkpoint else 0, n_init),
        )

    def _worth(self, state: EMState, rows: Observed) -> float:
        """Return the average log-likelihood of other rows under a run's parameters."""
        joint = state.model.score(rows, self.n_jobs) + state.log_prior
        return float(normalize_log(joint, state.log_prior)[1].mean())

    def _purpose(self, fingerprint: int, n_init: int) -> dict[str, Any]:
        """Return what a checkpoint must have been made for, so that going on makes sense."""
        if self.checkpoint is None:
            return {}
        if not isinstance(self.random_state, int | np.integer):
            raise ValueError(
                f"checkpoint needs a whole number as random_state, got {self.random_state!r}: "
                "without one the same starts cannot be had again"
            )
        names = ("n_components", "alpha", "significance", "start", "prior", "accept", "init", "tol")
        return {
            "data": fingerprint,
            "n_init": n_init,
            "structure": str(self.structure),
            "conditions": list(self.conditions),
            "random_state": int(self.random_state),
            **{name: getattr(self, name) for name in names},
        }

    def _average(self, states: list[EMState], data: InMemory | ChunkedData) -> None:
        """Replace the run that was kept by the average of all, one mixture of their components."""
        model = BlockModel.stack([state.model for state in states], check_alpha(self.alpha))
        log_prior = np.concatenate([state.log_prior for state in states]) - np.log(len(states))
        alive = np.flatnonzero(np.exp(log_prior) > NO_MASS / len(states))
        self._model = model.only(alive, check_alpha(self.alpha))
        weights = np.exp(log_prior[alive])
        self.weights_ = weights / weights.sum()
        found = data.expect(self._model, self._log_prior, moments=False)
        self.log_likelihood_ = found.log_likelihood / data.total

    def _take_over(self, fitted: FittedMixture) -> None:
        """Store what was fitted under a pooled prior."""
        kept = fitted.runs[fitted.best]
        self._model, self.weights_ = fitted.model, fitted.weights
        self.history_ = [run.history for run in fitted.runs]
        self.valid_history_ = [run.valid_history for run in fitted.runs]
        self.best_init_, self.n_iter_ = fitted.best, max(kept.n_iter, 1)
        self.converged_, self.log_likelihood_ = kept.converged, fitted.log_likelihood
        self.n_samples_weight_ = fitted.total

    def _keep(self, states: list[EMState], best: int) -> None:
        """Store a run's result, without components that have lost their rows."""
        state = states[best]
        share = state.model.totals / state.model.totals.sum()
        alive = np.flatnonzero(share > NO_MASS)
        if alive.size < share.size:
            warnings.warn(
                f"{share.size - alive.size} of {share.size} components lost all their rows and "
                "were dropped; fewer components would do",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._model = state.model.only(alive, check_alpha(self.alpha))
        weights = np.exp(state.log_prior[alive])
        self.weights_ = weights / weights.sum()
        self.history_ = [entry.history for entry in states]
        self.best_init_, self.n_iter_ = best, max(state.n_iter, 1)
        self.converged_, self.log_likelihood_ = state.converged, state.history[-1]
        if not state.converged and state.n_iter >= self.max_iter:
            warnings.warn(
                f"EM did not converge in {self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
