"""Automatic search for a density model of binary data."""

import time
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin
from threadpoolctl import threadpool_limits

from exchangeable.arrays import (
    FloatArray,
    RandomState,
    as_generator,
    check_alpha,
    check_count,
    check_number,
    check_sample_weight,
)
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.estimators.base import MixtureEstimator
from exchangeable.families import REGISTRY, family_named
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.em import EMState, StopRule
from exchangeable.fitting.progress import SearchProgress
from exchangeable.fitting.search import Search, Settings, Trial
from exchangeable.fitting.tasks import held_out
from exchangeable.runtime.attempts import all_or_nothing
from exchangeable.runtime.interrupts import interrupts
from exchangeable.runtime.threads import n_threads, run

SEARCH_SHARE = 0.7
"""Part of the time budget that the search may take; the rest is for the fits to be averaged."""
Member = tuple[Trial, list[EMState]]


class ExchangeableDensity(MixtureEstimator, DensityMixin, BaseEstimator):
    """Density of binary rows: finds families, sizes and priors by itself, and averages fits.

    For each family (urns, trees, weighted trees, hidden trees) the number of components
    and the strengths of the priors are searched in stages, each trial compared by the likelihood
    of held-out rows. The best settings of each are fitted again from several starts and averaged.
    The averages of all families, each with the share that suits the held-out rows, are the model,
    which is itself one mixture. All queries are exact; where hidden trees are among the families
    `most_probable` says how far its search has come.

    Parameters
    ----------
    families : sequence of str, optional
        Families to try, as `ExchangeableMixture` names them; by default urns, trees, weighted trees
        and hidden trees, as far as they can have this many variables. Neural families, which are
        trained with JAX, are tried where they are named.
    n_init : int, default=10
        Number of fits of each family that are averaged.
    max_components : int, default=500
        Largest number of components of one fit.
    time_budget : float, optional
        Seconds after which no new fit is begun; at least one trial and one fit are made.
    validation_fraction : float, default=0.1
        Share of the rows to hold out where `fit` gets no ``X_valid``.
    alpha : float, default=0.1
        Smoothing of the training set's own frequencies, which the pooled prior is made of.
    tol : float, default=1e-3
        Least gain in average log-likelihood that counts as progress in a trial.
    max_iter : int, default=500
        Largest number of iterations of a fit.
    binarize : float or None, default=0.0
        Entries greater than this are on. With None all entries must be 0 or 1.
    random_state : int, RandomState, Generator or None
        Seed of the starts.
    n_jobs : int, optional
        Number of threads; all cores by default. It never changes the result, except for how far
        a search gets within `time_budget`.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Probability of each component, of all fits together.
    table_ : list of dict
        What was tried, in order: settings, held-out and training log-likelihood, and
        seconds, which a model file does not keep.
    best_params_ : dict
        The settings that were best, as parameters of `ExchangeableMixture`.
    members_ : list of dict
        The families in the mixture: settings as above, ``n_fits`` and ``share``, which add up to
        1. A family whose share would be less than 0.02 is left out.
    best_score_ : float
        Held-out log-likelihood of the trial with these.
    valid_score_ : float
        That of the mixture of all fits.
    n_fits_ : int
        Number of fits in it.
    n_parameters_ : int
        Number of its free parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableDensity
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, size=600)
    >>> X = rng.random((600, 8)) < np.where(kind[:, None] == 0, 0.2, 0.8)
    >>> density = ExchangeableDensity(n_init=2, max_components=10, random_state=0).fit(X)
    >>> density.score(X) > -5
    True
    >>> density.marginals({0: 1})[1] > density.marginals({0: 0})[1]
    np.True_
    """

    _measured: ClassVar[dict[str, tuple[str, ...]]] = {"table_": ("seconds",)}
    """What is measured, not computed, is left out of model files: equal fits make equal files."""

    def __init__(
        self,
        families: Sequence[str] | None = None,
        *,
        n_init: int = 10,
        max_components: int = 500,
        time_budget: float | None = None,
        validation_fraction: float = 0.1,
        alpha: float = 0.1,
        tol: float = 1e-3,
        max_iter: int = 500,
        binarize: float | None = 0.0,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.families = families
        self.n_init = n_init
        self.max_components = max_components
        self.time_budget = time_budget
        self.validation_fraction = validation_fraction
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.binarize = binarize
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        X_valid: Any = None,
    ) -> Self:
        """Search, fit the best settings of each family from several starts, and average.

        Interrupting it (Ctrl-C) leaves the average of the fits made so far, or the best trial.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; an entry greater than `binarize` is on. A NaN is not known: EM sums over it.
        y : ignored
            Present for scikit-learn's sake.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts, 1 by default; those of X that are held out count by it too.
        X_valid : {array-like, sparse matrix}, optional
            Rows to compare by; by default some of X are held out for that.
        """
        began = time.monotonic()
        observed = self._observed(X, reset=True)
        weight = check_sample_weight(sample_weight, observed.n_rows)
        if not weight.all():
            counting = np.flatnonzero(weight)
            observed, weight = observed.take(counting), weight[counting]
        rng = as_generator(self.random_state)
        if X_valid is None:
            kept, out = self._split(observed.n_rows, rng)
            held = merge_equal_rows(observed.take(out), weight[out])[0]
            observed, weight = observed.take(kept), weight[kept]
        else:
            valid = self._observed(X_valid)
            held = merge_equal_rows(valid, np.ones(valid.n_rows))[0]
        examples = merge_equal_rows(observed, weight)[0]
        search = self._search(examples, held, rng, began)
        families = self._families(observed.n_variables)
        with (
            interrupts() as interrupt,
            threadpool_limits(1, "blas"),
            SearchProgress() as progress,
        ):
            search.stop = interrupt.stop
            search.report = lambda search: progress.show(_summary(search))
            found = [search.climb(family) for family in families]
            trials = sorted(filter(None, found), key=lambda trial: -trial.valid)
            members = self._refit(search, trials, began, progress)
            self._take_over(search, members)
            if interrupt.stop.is_set():
                interrupt.warn("the search", stacklevel=3)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the average log-probability of the rows."""
        return float(self.score_samples(X).mean())

    @property
    def _log_prior(self) -> FloatArray:
        return np.asarray(np.log(self.weights_))

    def _split(self, n_rows: int, rng: np.random.Generator) -> Sequence[Any]:
        if n_rows < 2:
            raise ValueError(
                f"n_samples={n_rows} is too few to hold some out; give at least 2 rows, or X_valid"
            )
        share = check_number(self.validation_fraction, "validation_fraction")
        return held_out(max(share, 1.0 / n_rows) if 0 < share < 1 else share, n_rows, rng)

    def _families(self, n_variables: int) -> Sequence[str]:
        """Return the families to try: those asked for, or all that are searched and can be had."""
        if self.families is None:
            searched = [spec for spec in REGISTRY.values() if spec.search and spec.search.unasked]
            return [
                spec.name
                for spec in searched
                if spec.most_variables is None or n_variables <= spec.most_variables
            ]
        names = [self.families] if isinstance(self.families, str) else list(self.families)
        unknown = [name for name in names if name not in REGISTRY]
        if unknown or not names:
            raise ValueError(
                f"families={self.families!r}: expected one or more of {', '.join(REGISTRY)}"
            )
        for name in names:
            family_named(name).check_size(n_variables)
        return names

    def _search(
        self, examples: Examples, held: Examples, rng: np.random.Generator, began: float
    ) -> Search:
        deadline = np.inf
        if self.time_budget is not None:
            budget = check_number(self.time_budget, "time_budget")
            if not budget > 0:
                raise ValueError(f"time_budget must be positive, got {budget}")
            deadline = began + SEARCH_SHARE * budget
        if not 0 <= check_number(self.tol, "tol") < np.inf:
            raise ValueError(f"tol must be finite and at least 0, got {self.tol}")
        alpha = check_alpha(self.alpha)
        if alpha == 0:
            raise ValueError(
                "alpha must be > 0: values never seen in training would get probability 0"
            )
        return Search(
            examples,
            held,
            alpha,
            StopRule(self.tol, check_count(self.max_iter, "max_iter")),
            int(rng.integers(2**31)),
            check_count(self.max_components, "max_components"),
            deadline,
            self.n_jobs,
        )

    def _refit(
        self, search: Search, trials: Sequence[Trial], began: float, progress: SearchProgress
    ) -> list[Member]:
        """Fit the best settings of each family, the best first, as long as there is time.

        A family whose trial took longer than what is left is passed over. If an interrupt leaves no
        fit at all, the best trial is the only member.
        """
        end = np.inf if self.time_budget is None else began + float(self.time_budget)
        members = list[Member]()
        for place, trial in enumerate(trials):
            now = time.monotonic()
            if members and now + trial.seconds > end:
                continue
            share = now + (end - now) / (len(trials) - place)
            states = self._fits(search, trial.settings, share, progress)
            if states:
                members.append((trial, states))
        if not members:
            assert search.best_state is not None
            members = [(search.best, [search.best_state])]
        return members

    def _fits(
        self, search: Search, settings: Settings, end: float, progress: SearchProgress
    ) -> list[EMState]:
        """Fit some settings from several starts, as many as there is time for.

        Fits that an interrupt has cut short are left out.
        """
        rule = StopRule(self.tol / 5, search.rule.max_iter, patience=5)
        search.n_jobs = 1
        n_init, runs = check_count(self.n_init, "n_init"), list[EMState]()
        workers = n_threads(self.n_jobs)
        while len(runs) < n_init and (not runs or time.monotonic() < end):
            if search.stop.is_set():
                break
            numbers = range(len(runs), min(len(runs) + workers, n_init))
            made = run(
                lambda number: search.fit(
                    settings, search.seed + 1 + number, rule, varied=number > 0
                ),
                numbers,
                self.n_jobs,
            )
            if search.stop.is_set():
                made = [state for state in made if state.ended or state.n_iter >= rule.max_iter]
            runs += made
            progress.show(f"fit {len(runs)} of {n_init} of {settings.family} to be averaged")
        return runs

    def _take_over(self, search: Search, members: list[Member]) -> None:
        """Join the averages of all families, and store what was found."""
        averages = [Mixture.average([state.best for state in states]) for _, states in members]
        joined, shares = Mixture.join(averages, search.valid, self.n_jobs)
        kept = [
            (trial, len(states), float(share))
            for (trial, states), share in zip(members, shares, strict=True)
            if share > 0
        ]
        n_fits = sum(n_fits for _, n_fits, _ in kept)
        log_prior = joined.log_prior
        alive = np.flatnonzero(log_prior > np.log(1e-10 / n_fits))
        weights = np.exp(log_prior[alive])
        weights /= weights.sum()
        model = joined.model.only(alive) if alive.size < log_prior.size else joined.model
        mixture = Mixture(model, np.log(weights))
        self._model, self.weights_, self.n_fits_ = model, weights, n_fits
        self.table_ = [trial.row() for trial in search.trials.values()]
        self.members_ = [
            {**trial.settings.parameters(), "n_fits": n_fits, "share": share}
            for trial, n_fits, share in kept
        ]
        self.best_params_ = search.best.settings.parameters()
        self.best_score_ = search.best.valid
        self.n_parameters_ = mixture.n_parameters
        self.valid_score_ = mixture.log_likelihood(search.valid, self.n_jobs) / search.valid.total


def _summary(search: Search) -> str:
    """Return how far a search is, in a line."""
    best = search.best
    return (
        f"{len(search.trials)} trials, best {best.valid:.4f}: {best.settings.family}, "
        f"{best.settings.n_components} components, pooling {best.settings.pooling:g}"
    )
