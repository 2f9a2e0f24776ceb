"""Mixtures of any family, for density estimation and clustering."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.metaestimators import available_if

from exchangeable.arrays import (
    IntArray,
    RandomState,
    as_generator,
    check_count,
    check_flag,
    check_sample_weight,
)
from exchangeable.classes.choice import select_components
from exchangeable.classes.selection import Selection
from exchangeable.classes.uncertainty.refits import Refits
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.data.stream.gathering import gathered
from exchangeable.data.stream.passes import Passes
from exchangeable.devices.choice import check_device
from exchangeable.estimators.described import lists_families
from exchangeable.estimators.fits.batches import add_batch
from exchangeable.estimators.fits.covariates import (
    CovariatePredictions,
    add_covariates,
    forget_covariates,
)
from exchangeable.estimators.kinds import kinds_of_batch, spec_for
from exchangeable.estimators.rows import check_width, open_rows, take_names
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import FamilySpec
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.mixtures import FittedMixture, fit_mixture
from exchangeable.fitting.runs import Runs
from exchangeable.fitting.tasks import (
    COMBINE,
    STARTS,
    check_choice,
    check_warm,
    components_of,
    em_device,
    hold_out,
    hold_out_chunks,
    problem_of,
    purpose_of,
    rule_of,
    spec_of,
)
from exchangeable.runtime.attempts import all_or_nothing


def _takes_batches(mixture: Any) -> bool:
    """Whether rows may come in batches, so that `partial_fit` is available."""
    try:
        spec = spec_of(mixture)
        spec.check("partial_fit", "partial_fit")
    except (TypeError, ValueError) as error:
        raise AttributeError(str(error)) from None
    if mixture.combine != "best":
        raise AttributeError("partial_fit goes on from one fit; use combine='best'")
    return True


def _merged(observed: Observed) -> Examples:
    """Return the distinct rows, weighted by how often each occurs."""
    return merge_equal_rows(observed, np.ones(observed.n_rows))[0]


@lists_families()
class ExchangeableMixture(CovariatePredictions, DensityMixin, BaseEstimator):
    """Mixture of components whose variables form exchangeable blocks.

    P(x) = Σ_y p(y) · Π_b q_b(n_b(x) | y) / C(m_b, n_b(x)). The component is latent, each component
    has its own blocks, and blocks and parameters are fitted by structural EM (Algorithm 1 of the
    paper). If every variable is a block of its own, this is latent class analysis, a mixture of
    independent Bernoulli variables. Other families go beyond the paper.

    Parameters
    ----------
    n_components : int, optional
        Number of components, or, for families with hidden states, of states of each block. The
        default is 20, or the number of rows if that is smaller; 8,192 for neural families.
    family : str or Neural, default="blocks"
        What each component is made of, with the default blocks and prior of each family:

        {families}

        Networks are trained with JAX (the extra ``neural``), stopped by held-out rows, and
        discarded after training; `Neural` holds their settings.
    blocks : {"auto", "evidence", "welch", "independent", "full"}, Blocks, list or dict
        How the variables of each component are grouped into blocks: the name of a method, or
        `Blocks` with a method and its settings. ``"evidence"`` runs the paper's sweep until
        convergence and then continues with proposals of evidence merging. A list of lists of
        variables (numbers or feature names) sets the blocks of all components, a dict from
        component (0, 1, …) to such a list the blocks of each. ``"auto"``, the default, is the
        family's default.
    pooling : float, optional
        Strength of the pooled prior: each component, or state of a hidden tree, gets this many
        pseudo-rows distributed as the whole training set. The default depends on the family and may
        be Laplace smoothing alone.
    alpha : float, default=0.1
        Laplace smoothing: added to the weight of the rows with each count in a block. Under a
        pooled prior it smooths the training set's overall frequencies.
    init : {"rows", "random", "both"}, default="both"
        How EM starts. ``"random"`` assigns rows to components at random, as in the paper. With
        ``"rows"`` each component starts close to one row of the data. ``"both"`` alternates (hidden
        trees always start from rows).
    n_init : int, default=1
        Number of runs from different starts.
    combine : {"best", "average"}, default="best"
        Whether to keep the run with the highest log-likelihood (of held-out rows, if there are
        some), or the average of all runs, which is itself a mixture with the components of all.
    tol : float, default=1e-4
        EM stops when the average penalised log-likelihood improves by less than this.
    max_iter : int, default=500
        Maximum number of iterations of a run; when training networks, of epochs.
    validation_fraction : float, optional
        Share of the rows of `fit` to hold out: a run stops when their likelihood no longer
        increases, and keeps the best parameters. It cannot be combined with ``X_valid``. Neural
        families hold out a tenth by default, others none.
    binarize : float or None, default=0.0
        Entries greater than this are on. With None, all entries must be 0 or 1.
    kinds : {"binary", "nominal", "ordinal", "count", "continuous"}, dict, Kinds or None
        Kinds of the columns: one name for all, a dict from column to kind, or `Kinds` with further
        settings. By default kinds are inferred from the types of a table, and columns of arrays are
        binary. If a column is not binary, ``family="blocks"`` is replaced by ``"mixed"``.
    warm_start : bool, default=False
        Whether `fit` continues from the parameters of the previous fit, which must have had the
        same number of columns and components and, if blocks are not learned, the same blocks.
        Neural families continue by EM from the components that training left, of which there may be
        fewer.
    checkpoint : path-like, optional
        A file that is written about once a second and at the end; a fit that finds it continues
        from there, in EM or in training.
    random_state : int, RandomState, Generator or None
        Seed of the starts.
    n_jobs : int, optional
        Number of threads; all cores by default. It does not change the result.
    device : {"auto", "cpu", "gpu"}, default="auto"
        Where to fit. ``"auto"`` trains neural families on a GPU if JAX finds one, and runs EM on
        the CPU; ``"gpu"`` runs the passes of EM on the GPU as well.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Probability of each component.
    kinds_ : dict
        Kind of each column.
    n_blocks_ : ndarray of shape (n_components,)
        Number of blocks of each component.
    partitions_ : list of lists of ndarray
        The variables of each block of each component.
    count_probabilities_ : list of lists of ndarray
        The probabilities q(l | y) of l = 0, 1, … ones, for each component and block.
    log_likelihood_ : float
        Average log-likelihood of the training rows; in single precision if the rows are complete
        and the family is trained by JAX.
    history_ : list of lists of float
        Average log-likelihood after every iteration, for each run.
    best_init_ : int
        Index of the run that was kept.
    n_iter_ : int
        Its number of iterations.
    converged_ : bool
        Whether it converged.
    n_parameters_ : int
        Number of free parameters: k·n + k − 1 for ``"blocks"``, whatever the blocks are.
    urn_weights_ : ndarray of shape (n_components, n_features)
        Weight θ of each variable in each component; only ratios within a block matter.
    item_parameters_ : ItemParameters
        Difficulties of items in each component, if these are Rasch or partial credit models: a
        single block of binary columns with weights, or of ordinal columns.
    edges_ : list of ndarray of shape (n_edges, 2)
        Edges of the tree of each component, one row (variable, parent) each, or (block, parent) if
        the tree is over counts or hidden.
    valid_history_ : list of lists of float
        The same for held-out rows, if there were some.
    coefficients_ : ndarray of shape (n_components, n_terms)
        Logits of the components relative to the first, if there were covariates: intercepts, then
        one column per number or category. `exchangeable.classes.covariate_effects` lists them.
    covariates_ : list of dict
        Name and categories of each covariate, if there were some.

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
        n_components: int | None = None,
        *,
        family: Any = "blocks",
        blocks: Any = "auto",
        pooling: float | None = None,
        alpha: float = 0.1,
        init: str = "both",
        n_init: int = 1,
        combine: str = "best",
        tol: float = 1e-4,
        max_iter: int = 500,
        validation_fraction: float | None = None,
        binarize: float | None = 0.0,
        kinds: Any = None,
        warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.family = family
        self.blocks = blocks
        self.pooling = pooling
        self.alpha = alpha
        self.init = init
        self.n_init = n_init
        self.combine = combine
        self.tol = tol
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.binarize = binarize
        self.kinds = kinds
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        X_valid: Any = None,
        feature_names: Any = None,
        covariates: Any = None,
    ) -> Self:
        """Fit components, blocks and parameters by structural EM.

        Interrupting it (Ctrl-C) keeps the best model found so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; an entry greater than `binarize` is on. NaN is a missing entry, which EM sums
            out. Files, other sources of chunks and Dask collections are read in parts: see
            ``docs/scaling.md``.
        y : ignored
            Ignored, present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, 1 by default.
        X_valid : {array-like, sparse matrix}, optional
            Held-out rows: a run stops when their likelihood no longer increases, and the run with
            the highest held-out likelihood is kept. They may also come in chunks.
        feature_names : array-like of str or transformer, optional
            Names of the columns if X has none, or a transformer with ``get_feature_names_out``: in
            a pipeline, the vectorizer before this step.
        covariates : table or array of shape (n_samples, n_covariates), optional
            Covariates on which the probabilities of the components depend, by a multinomial
            logistic regression fitted together with them: see ``docs/guide/latent_classes.md``.
        """
        forget_covariates(self)
        if covariates is not None:
            self.fit(X, None, sample_weight, X_valid, feature_names)
            add_covariates(self, X, covariates, sample_weight)
            return self
        spec = self._check_options()
        elsewhere = open_rows(self, spec, X, None, sample_weight)
        if elsewhere is not None and not elsewhere[0].draws_rows:
            return self._fit_chunks(*elsewhere, X_valid, feature_names)
        if elsewhere is not None:
            spec, passes = elsewhere
            observed, weight, _ = gathered(passes)
            take_names(self, passes, feature_names)
        else:
            spec, observed = self._rows_to_fit(spec, X, feature_names)
            weight = check_sample_weight(sample_weight, observed.n_rows)
        counting = np.flatnonzero(weight > 0)
        n_components = components_of(self, spec, counting.size)
        problem = problem_of(self, spec, observed.n_variables, range(n_components), labelled=False)
        valid = self._held_out(spec, X_valid)
        rng = as_generator(self.random_state)
        generators = rng.spawn(self._n_runs())
        counted = observed.take(counting), weight[counting]
        rows, weight, held = hold_out(self, spec, *counted, valid, rng)
        examples, member = merge_equal_rows(rows, weight)
        problem = replace(problem, examples=examples, valid=held)
        data = InMemory(examples, member, weight, self.n_jobs, em_device(self))
        return self._fit(spec, problem, data, generators)

    def _held_out(self, spec: FamilySpec, X_valid: Any) -> Examples | Streamed | None:
        """Return the given held-out rows, in memory or not."""
        elsewhere = None if X_valid is None else open_rows(self, spec, X_valid, fitted=True)
        if elsewhere is None:
            return None if X_valid is None else _merged(self._observed(X_valid))
        if spec.draws_rows:
            return _merged(self._observed(gathered(elsewhere[1]).observed))
        valid = Streamed.of(elsewhere[1])
        check_width(self, valid.n_variables)
        return valid

    def _fit_chunks(
        self, spec: FamilySpec, passes: Passes, X_valid: Any, feature_names: Any
    ) -> Self:
        """Fit to rows in chunks or on a cluster, by passes that compute sums."""
        data = Streamed.of(passes)
        n_components = components_of(self, spec, data.n_rows)
        take_names(self, passes, feature_names)
        problem = problem_of(self, spec, data.n_variables, range(n_components), labelled=False)
        valid = self._held_out(spec, X_valid)
        rng = as_generator(self.random_state)
        generators = rng.spawn(self._n_runs())
        data, held = hold_out_chunks(self, spec, data, valid, rng)
        return self._fit(spec, replace(problem, chunks=data, valid=held), data, generators)

    def _fit(
        self,
        spec: FamilySpec,
        problem: Problem,
        data: InMemory | Streamed,
        generators: Sequence[np.random.Generator],
    ) -> Self:
        """Run EM from every start, and keep the best run or the average of all."""
        warm = self._warm(spec, problem, data.n_variables)
        runs = Runs(spec, problem, data, rule_of(self), self.init, generators, warm)
        path = None if self.checkpoint is None else Path(self.checkpoint)
        purpose = {} if path is None else purpose_of(self, problem, data, len(generators))
        fitted = fit_mixture(runs, self.combine, self.n_jobs, path, purpose)
        self._keep(fitted, data.total)
        return self

    @available_if(_takes_batches)
    @all_or_nothing
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Update the fit with a batch of rows, by stochastic EM.

        The first batch is fitted as by `fit`, and should have a few thousand rows; later batches
        update the sums over all rows with decreasing steps. Blocks and trees are revised now and
        then, on a sample of up to 4,096 rows. `fit` and `load` keep no sample: after them, blocks
        stay as they are; in other families, rows drawn from the model replace the missing sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples of this batch, with NaN for missing entries.
        y : ignored
            Ignored, present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, 1 by default.
        """
        spec, first = self._check_options(), not hasattr(self, "_model")
        spec = kinds_of_batch(self, spec, X, first)[0]
        if first:
            self.fit(X, sample_weight=sample_weight)
        observed = self._observed(X)
        weight = check_sample_weight(sample_weight, observed.n_rows)
        mixture, kept = add_batch(self, spec, observed, weight, first)
        self._model, self.weights_ = mixture.model, np.exp(mixture.log_prior)
        if kept is not None:
            self._kept = kept
        before = 0.0 if first else self.n_samples_weight_
        self.n_samples_weight_: float = before + float(weight.sum())
        return self

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> IntArray:
        """Fit, and return the most probable component of every row."""
        return self.fit(X, y, **options).predict(X)

    @classmethod
    def select(
        cls,
        X: Any,
        X_valid: Any = None,
        n_components: Sequence[int] = (1, 2, 5, 10, 20, 50),
        criterion: str | None = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        param_grid: Any = None,
        bootstrap: int = 0,
        **parameters: Any,
    ) -> Selection:
        """Choose the number of components, and the family and blocks if several are given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples to fit.
        X_valid : {array-like, sparse matrix}, optional
            Other examples, whose log-likelihood decides.
        n_components : sequence of int
            Numbers of components to try.
        criterion : {"valid", "bic", "aic", "abic", "icl", "blrt"}, optional
            The default is ``"valid"`` if there are validation examples, else ``"bic"``. ``"blrt"``
            adds components while the bootstrap likelihood-ratio test finds them significant.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, 1 by default.
        param_grid : dict or list of dict, optional
            Other parameters to try: dicts from name to a list of values, whose combinations are all
            fitted, such as ``[{"blocks": ["independent", "full"]}, {"family": ["urns"]}]``.
        bootstrap : int, default=0
            Number of draws of the bootstrap likelihood-ratio test of each number of components
            against the next smaller one; 0 for no test.
        **parameters
            Passed to the constructor.

        Returns
        -------
        Selection
            With the ``best`` model, the ``table`` of all models tried, a ``plot``, and the table as
            a data frame, Markdown, LaTeX or CSV (``to_frame``, …).

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
        asked = sample_weight, param_grid, bootstrap
        return select_components(cls, X, X_valid, n_components, criterion, *asked, parameters)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters."""
        slopes = vars(self).get("coefficients_", np.zeros((1, 1)))[1:, 1:]
        return self._mixture().n_parameters + int(slopes.size)

    def _check_options(self) -> FamilySpec:
        """Reject invalid values of parameters that only some fits would notice."""
        spec = spec_of(self)
        check_choice(self.init, "init", STARTS)
        check_choice(self.combine, "combine", COMBINE)
        check_flag(self.warm_start, "warm_start")
        rule_of(self)
        check_device(self.device)
        if self.n_components is not None:
            check_count(self.n_components, "n_components")
        if self.checkpoint is not None:
            spec.check("checkpoint", "checkpoint")
        if self.warm_start:
            spec.check("warm_start", "warm_start=True")
        return spec

    def _n_runs(self) -> int:
        """Return the number of runs."""
        n_init = check_count(self.n_init, "n_init")
        if self.warm_start and n_init > 1:
            raise ValueError(
                f"n_init={n_init} does not go with warm_start=True, which goes on from one fit; "
                "give n_init=1"
            )
        return n_init

    def _warm(self, spec: FamilySpec, problem: Problem, n_variables: int) -> Mixture | None:
        """Return the parameters to continue from, None for a new fit."""
        if not self.warm_start or not isinstance(getattr(self, "_model", None), spec.model):
            return None
        check_warm(spec, self._model, problem, n_variables)
        return self._mixture()

    def _refits(self) -> Refits:
        """Return how this mixture was fitted, for refits to other rows."""
        if hasattr(self, "coefficients_"):
            raise ValueError(
                "the mixture was fitted with covariates, whose standard errors are those of "
                "covariate_effects(method='one-step'); fit without covariates for tests and errors "
                "of its classes"
            )
        if self.combine != "best":
            raise ValueError(
                f"combine={self.combine!r} is an average of fits, which has no classes of its own; "
                "fit with combine='best'"
            )
        k, n_variables = self._mixture().log_prior.size, self.n_features_in_
        schema, spec = self._schema(), spec_of(self)
        if schema is not None:
            spec = spec_for(spec, schema, self.blocks)
        problem = problem_of(self, spec, n_variables, range(k), labelled=False)
        return Refits.of(spec, problem, rule_of(self), self.init, n_variables)

    def _keep(self, fitted: FittedMixture, total: float) -> None:
        """Store all results of a fit at once, so that a fit that fails changes nothing."""
        kept = fitted.states[fitted.best]
        self.__dict__.pop("_kept", None)
        self._model, self.weights_ = fitted.model, fitted.weights
        self.history_ = [state.history for state in fitted.states]
        self.__dict__.pop("valid_history_", None)
        if kept.valid_history:
            self.valid_history_ = [state.valid_history for state in fitted.states]
        self.best_init_, self.n_iter_ = fitted.best, max(kept.n_iter, 1)
        self.converged_, self.log_likelihood_ = kept.converged, fitted.log_likelihood
        self.n_samples_weight_ = total
