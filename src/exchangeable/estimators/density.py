"""Automatic search for a density model of binary rows, or of a table."""

import copy
from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin

from exchangeable.arrays import (
    RandomState,
    as_generator,
    check_count,
    check_number,
    check_sample_weight,
)
from exchangeable.data.examples import merge_equal_rows
from exchangeable.estimators.components import ComponentEstimator
from exchangeable.estimators.fits.density_search import (
    clock_of,
    families_to_try,
    fits_to_keep,
    named_blocks,
    named_families,
    new_search,
)
from exchangeable.estimators.kinds import decide_families
from exchangeable.estimators.names import give_names
from exchangeable.fitting.progress import SearchProgress
from exchangeable.fitting.search.compression import Compressor, found_by, part_numbers
from exchangeable.fitting.search.searching import Search
from exchangeable.fitting.search.trials import STATISTICS
from exchangeable.fitting.tasks import held_out
from exchangeable.runtime.attempts import all_or_nothing
from exchangeable.runtime.blas import blas_threads
from exchangeable.runtime.interrupts import interrupts

NO_MASS = 1e-10
"""A component with a smaller probability is dropped."""


class ExchangeableDensity(ComponentEstimator, DensityMixin, BaseEstimator):
    """Density of rows: finds families, sizes and priors by itself, and joins what it finds.

    Every family is fitted once, the quick ones first. Then come rounds of about twice the effort
    each: the number of components, the strengths of priors and other settings are varied, and
    what counts is fitted again from other starts and averaged. All of it is joined by the shares
    that suit held-out rows, which is itself one mixture. The search ends when a round gains less
    than 0.05 % of the held-out log-likelihood, or when `time_budget` is spent. All queries are
    exact; where hidden trees are among the families `most_probable` says how far its search has
    come.

    Parameters
    ----------
    families : sequence of str, optional
        Families to try, as `ExchangeableMixture` names them; by default all that are made for a
        search, have room for this many variables and are installed (neural families need JAX), and
        where columns are of other kinds than binary, those that take these.
    blocks : list of pairs of variables and a statistic, optional
        Blocks with statistics, as `ExchangeableMixture` takes them, for ``family="blocks"``, which
        is then tried beside the others.
    n_init : int, default=64
        Largest number of fits of the same settings that are averaged.
    max_components : int, optional
        Largest number of components of one fit; by default what suits the family.
    time_budget : float, optional
        Seconds that `fit` may take, with the join at its end: fits that go on are cut short, and
        those that would take longer are not begun. Every family for which there is time is tried at
        least briefly; `left_out_` names the others. By default the search ends by itself.
    validation_fraction : float, default=0.1
        Share of the rows to hold out where `fit` gets no ``X_valid``.
    alpha : float, default=0.1
        Smoothing of the training set's own frequencies, which the pooled prior is made of.
    tol : float, default=1e-3
        Least gain in average log-likelihood that counts as progress in a first fit. Of binary rows
        whose entropy is below 40 nats, if their variables are taken for independent, a smaller gain
        counts, in the same proportion.
    max_iter : int, default=500
        Largest number of iterations of a fit.
    binarize : float or None, default=0.0
        Entries greater than this are on. With None all entries must be 0 or 1.
    warm_start : bool, default=False
        Whether `fit` goes on from the fit before: of the same rows with the same seed it makes no
        fit twice, so that it may be given more time; of others it begins with the settings that
        were best.
    checkpoint : path-like, optional
        A file that holds all fits so far, written every ten seconds and at the end; a search that
        finds it goes on from there.
    kinds : {"binary", "nominal", "ordinal", "count", "continuous"}, dict, Kinds or None
        What the columns are: one word for all, a dict from column to kind, or `Kinds` with its
        settings. By default the types of a table decide, and columns of arrays are binary.
    random_state : int, RandomState, Generator or None
        Seed of the starts. The same seed gives the same density, unless there is a `time_budget`:
        how far a search gets then depends on the machine.
    n_jobs : int, optional
        Number of threads; all cores by default. It never changes the result, except for how far
        a search gets within `time_budget`.
    device : {"auto", "cpu", "gpu"}, default="auto"
        Where networks are trained: by default on a GPU if JAX finds one, and then beside the fits
        of other families, which stay on the processor, except for hidden trees, whose passes are
        made on the GPU too. With ``"gpu"`` all EM makes its passes there.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Probability of each component, of all fits together.
    kinds_ : dict
        What each column was taken to be.
    table_ : list of dict
        What was tried, in order: settings, ``round`` in which it was begun, held-out and training
        log-likelihood of the first fit, ``n_fits``, ``share`` in the density, and seconds, which a
        model file does not keep. `pandas.DataFrame` takes it.
    rounds_ : list of dict
        What the search was worth after each round: ``n_fits`` so far, and ``valid``, the
        log-likelihood of held-out rows under shares that were fitted to the others of them.
    left_out_ : dict
        Families that were not tried, or gave up, and why.
    best_params_ : dict
        The settings that were best by themselves, as parameters of `ExchangeableMixture`.
    members_ : list of dict
        What is in the mixture: settings as above, ``n_fits`` and ``share``; these add up to 1.
        What would count for less than 0.02 is left out.
    best_score_ : float
        Held-out log-likelihood of the first fit of the best settings.
    valid_score_ : float
        That of the mixture of all fits.
    n_fits_ : int
        Number of fits in it.
    n_parameters_ : int
        Number of its free parameters.
    compression_ : dict
        After `compress`: parameters, score of the rows that judge, and loss.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableDensity
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.integers(0, 2, size=600)
    >>> X = rng.random((600, 8)) < np.where(kind[:, None] == 0, 0.2, 0.8)
    >>> density = ExchangeableDensity(["urns", "tree"], n_init=2, random_state=0).fit(X)
    >>> density.score(X) > -5
    True
    >>> density.marginals({0: 1})[1] > density.marginals({0: 0})[1]
    np.True_
    """

    _measured: ClassVar[dict[str, tuple[str, ...]]] = {
        "table_": ("seconds",),
        "rounds_": ("seconds",),
    }
    """What is measured, not computed, is left out of model files: equal fits make equal files."""

    def __init__(
        self,
        families: Sequence[str] | None = None,
        *,
        blocks: Any = None,
        n_init: int = 64,
        max_components: int | None = None,
        time_budget: float | None = None,
        validation_fraction: float = 0.1,
        alpha: float = 0.1,
        tol: float = 1e-3,
        max_iter: int = 500,
        binarize: float | None = 0.0,
        warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        kinds: Any = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.families = families
        self.blocks = blocks
        self.n_init = n_init
        self.max_components = max_components
        self.time_budget = time_budget
        self.validation_fraction = validation_fraction
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.binarize = binarize
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.kinds = kinds
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
    ) -> Self:
        """Search, and join what is found.

        Interrupting it (Ctrl-C) leaves the join of the fits made so far.

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
        feature_names : array-like of str or transformer, optional
            Names of the columns, where X has none, or what has ``get_feature_names_out``: in a
            pipeline the vectorizer before this step.
        """
        clock = clock_of(self)
        began = clock.now()
        specs, schema = decide_families(self, named_families(self), X)
        observed = self._rows_of(X, schema)
        give_names(self, feature_names)
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
        families, left_out = families_to_try(specs, observed.n_variables, schema)
        search = new_search(self, examples, held, families, left_out, rng, clock)
        search.began = began
        with (
            interrupts() as interrupt,
            blas_threads(1),
            SearchProgress() as progress,
            fits_to_keep(self, search) as kept,
        ):
            search.fitter.stop = interrupt.stop
            search.report = lambda search: progress.show(_summary(search))
            search.run()
            self._take_over(search)
            self.__dict__.pop("_fits", None)
            if self.warm_start:
                self._fits = kept
            if interrupt.stop.is_set():
                interrupt.warn("the search", stacklevel=3)
        return self

    def compress(
        self, X: Any, *, n_parameters: int | None = None, loss: float | None = None
    ) -> "ExchangeableDensity":
        """Return a smaller density that is nearly as good, still one exact mixture.

        Components of networks that are alike are merged, and their log-odds made of factors of low
        rank. Of other families those that are needed little are left out, and the others are fitted
        again to rows drawn from this density. Nothing is fitted to X, by which the loss is judged:
        it only chooses among such ways. The same `random_state` gives the same result. Ctrl-C
        leaves the best so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that were not fitted, such as those held out.
        n_parameters : int, optional
            The largest number of parameters.
        loss : float, optional
            The largest loss in log-likelihood of X, as a part of it: 0.001 is 0.1 %. The smallest
            density that is found is returned, this one if no smaller one is good enough.

        Returns
        -------
        ExchangeableDensity
            Fitted; its ``compression_`` says how large and how good it was before and is now.

        Examples
        --------
        >>> import numpy as np
        >>> from exchangeable import ExchangeableDensity
        >>> rng = np.random.default_rng(0)
        >>> X = rng.random((600, 6)) < np.where(rng.random((600, 1)) < 0.5, 0.2, 0.8)
        >>> density = ExchangeableDensity(["urns"], n_init=4, random_state=0).fit(X[:500])
        >>> small = density.compress(X[500:], loss=0.001)
        >>> small.n_parameters_ < density.n_parameters_, small.compression_["loss"] <= 0.001
        (True, True)
        """
        if (n_parameters is None) == (loss is None):
            raise ValueError("give either n_parameters or loss, and not both")
        mixture = self._mixture()
        observed = self._observed(X)
        judges = merge_equal_rows(observed, np.ones(observed.n_rows))[0]
        seed = self.random_state if isinstance(self.random_state, int | np.integer) else 0
        families = [member["family"] for member in self.members_]
        named = named_blocks(self, observed.n_variables)
        size = None if n_parameters is None else check_count(n_parameters, "n_parameters")
        most = None if loss is None else check_loss(loss)
        with (
            interrupts() as interrupt,
            blas_threads(1),
            SearchProgress() as progress,
        ):
            compressor = Compressor(
                mixture,
                families,
                judges,
                int(seed),
                self.n_jobs,
                named,
                progress.show,
                interrupt.stop,
            )
            compressed = found_by(compressor, size, most)
            if interrupt.stop.is_set():
                interrupt.warn("the compression", stacklevel=3)
        smaller = copy.copy(self)
        smaller._model, smaller.weights_ = (
            compressed.mixture.model,
            np.exp(compressed.mixture.log_prior),
        )
        smaller.n_parameters_ = compressed.mixture.n_parameters
        shares = np.bincount(part_numbers(smaller._model), smaller.weights_)
        smaller.members_ = [
            {**self.members_[number], "share": float(share)}
            for number, share in zip(compressed.parts, shares, strict=True)
        ]
        smaller.compression_ = {
            "n_parameters": (self.n_parameters_, smaller.n_parameters_),
            "score": (compressed.before, compressed.after),
            "loss": compressed.loss,
        }
        return smaller

    def _split(self, n_rows: int, rng: np.random.Generator) -> Sequence[Any]:
        if n_rows < 2:
            raise ValueError(
                f"n_samples={n_rows} is too few to hold some out; give at least 2 rows, or X_valid"
            )
        share = check_number(self.validation_fraction, "validation_fraction")
        return held_out(max(share, 1.0 / n_rows) if 0 < share < 1 else share, n_rows, rng)

    def _take_over(self, search: Search) -> None:
        """Join the averages of all settings, and store what was found."""
        joined, groups, valid = search.portfolio.join()
        n_fits = sum(group.n_used for group in groups)
        alive = np.flatnonzero(joined.log_prior > np.log(NO_MASS / n_fits))
        mixture = joined.only(alive)
        best = search.portfolio.best_of()
        assert best is not None
        self._model, self.weights_ = mixture.model, np.exp(mixture.log_prior)
        self.n_fits_, self.valid_score_ = n_fits, valid
        self.table_ = [group.row() for group in search.portfolio.groups.values()]
        self.rounds_ = search.rounds
        self.left_out_ = search.notes
        self.members_ = [
            {**group.settings.row(), "n_fits": group.n_used, "share": group.share}
            for group in groups
        ]
        self.best_params_ = best.settings.parameters(self.blocks)
        for row in (*self.table_, *self.members_):
            if row.get("blocks") == STATISTICS:
                row["blocks"] = self.blocks
        self.best_score_ = best.first.valid
        self.n_parameters_ = mixture.n_parameters


def check_loss(loss: Any) -> float:
    """Return a loss, refusing what is none."""
    checked = check_number(loss, "loss")
    if not 0 <= checked < 1:
        raise ValueError(f"loss must lie in [0, 1), a part of the log-likelihood, got {checked}")
    return checked


def _summary(search: Search) -> str:
    """Return how far a search is, in a line."""
    best = search.portfolio.best_of()
    assert best is not None
    return (
        f"{search.n_made} fits, log-likelihood of held-out rows {search.portfolio.worth:.4f}; "
        f"best by itself: {best.settings.family}, {best.first.valid:.4f}"
    )
