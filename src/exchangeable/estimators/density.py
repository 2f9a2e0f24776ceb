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
from exchangeable.fitting.search.compression import Compressor, found_by
from exchangeable.fitting.search.parts import part_numbers
from exchangeable.fitting.search.searching import Search
from exchangeable.fitting.search.trials import STATISTICS
from exchangeable.fitting.tasks import held_out
from exchangeable.runtime.attempts import all_or_nothing
from exchangeable.runtime.blas import blas_threads
from exchangeable.runtime.interrupts import interrupts

NO_MASS = 1e-10
"""Components with a smaller probability are dropped."""


class ExchangeableDensity(ComponentEstimator, DensityMixin, BaseEstimator):
    """Automatic search for a density: tries families, sizes and priors, and joins the best fits.

    First, every family is fitted once, the fast ones first. Then follow rounds, each of about twice
    the effort of the one before: the number of components, the strengths of priors and other
    settings are varied, and settings that are already part of the mixture are fitted again from
    other starts and averaged. All fits are joined into one mixture, with the weights that maximise
    the held-out likelihood. The search ends when a round improves the held-out log-likelihood by
    less than 0.05 %, or when `time_budget` is spent. All queries are exact, with one exception: if
    the mixture contains hidden trees, `most_probable` reports how far its search got.

    Parameters
    ----------
    families : sequence of str, optional
        Families to try, by the names that `ExchangeableMixture` uses. By default all that support a
        search and this many variables and are installed (neural families need JAX); for columns
        that are not binary, the families that accept them.
    blocks : list of pairs of variables and a statistic, optional
        Blocks with statistics, as in `ExchangeableMixture`, for ``family="blocks"``, which is then
        tried in addition to the other families.
    n_init : int, default=64
        Maximum number of fits with the same settings that are averaged.
    max_components : int, optional
        Maximum number of components of one fit; the default depends on the family.
    time_budget : float, optional
        Maximum duration of `fit` in seconds, including the final join: running fits are cut short,
        and fits that would take longer are not started. Every family for which there is time is
        tried at least briefly; `left_out_` names the others. By default the search decides when to
        stop.
    validation_fraction : float, default=0.1
        Share of the rows to hold out if `fit` gets no ``X_valid``.
    alpha : float, default=0.1
        Smoothing of the training set's overall frequencies, on which the pooled prior is based.
    tol : float, default=1e-3
        Minimum improvement in average log-likelihood that counts as progress in a first fit. For
        binary rows whose entropy under independence is below 40 nats it is reduced in proportion.
    max_iter : int, default=500
        Maximum number of iterations of a fit.
    binarize : float or None, default=0.0
        Entries greater than this are on. With None, all entries must be 0 or 1.
    warm_start : bool, default=False
        Whether `fit` continues from the previous fit. On the same rows with the same seed no fit is
        repeated, so the search can be given more time; on other rows it begins with the settings
        that were best.
    checkpoint : path-like, optional
        A file with all fits so far, written every ten seconds and at the end; a search that finds
        it continues from there.
    kinds : {"binary", "nominal", "ordinal", "count", "continuous"}, dict, Kinds or None
        Kinds of the columns: one name for all, a dict from column to kind, or `Kinds` with further
        settings. By default kinds are inferred from the types of a table, and columns of arrays are
        binary.
    random_state : int, RandomState, Generator or None
        Seed of the starts. The same seed gives the same density unless there is a `time_budget`,
        since how far the search then gets depends on the machine.
    n_jobs : int, optional
        Number of threads; all cores by default. It does not change the result, except for how far a
        search gets within `time_budget`.
    device : {"auto", "cpu", "gpu"}, default="auto"
        Where networks are trained: by default on a GPU if JAX finds one, while other families are
        fitted on the CPU, except for hidden trees, which use the GPU too. With ``"gpu"`` all
        families run their EM passes there.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Probability of each component, over all fits.
    kinds_ : dict
        Kind of each column.
    table_ : list of dict
        What was tried, in order: settings, the ``round`` in which each was started, held-out and
        training log-likelihood of the first fit, ``n_fits``, ``share`` (weight in the density) and
        ``seconds``, which are not saved to model files. It can be passed to `pandas.DataFrame`.
    rounds_ : list of dict
        Progress after each round: ``n_fits`` so far, and ``valid``, the cross-validated
        log-likelihood of held-out rows (the weights are fitted to the other held-out rows).
    left_out_ : dict
        Families that were not tried or failed, with the reason.
    best_params_ : dict
        The best single settings, as parameters of `ExchangeableMixture`.
    members_ : list of dict
        The members of the mixture: settings as above, ``n_fits`` and ``share``; shares add up to 1.
        Members with a share below 0.02 are left out.
    best_score_ : float
        Held-out log-likelihood of the first fit with the best settings.
    valid_score_ : float
        Held-out log-likelihood of the mixture of all fits.
    n_fits_ : int
        Number of fits in the mixture.
    n_parameters_ : int
        Number of free parameters of the mixture.
    compression_ : dict
        After `compress`: number of parameters, score on the validation rows, and loss.

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
    """Measured times are left out of model files, so that equal fits give equal files."""

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
        """Run the search, and join the best fits.

        Interrupting it (Ctrl-C) keeps the join of the fits made so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Examples; an entry greater than `binarize` is on. NaN is a missing entry, which EM sums
            out.
        y : ignored
            Ignored, present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, 1 by default; also of the rows of X that are held out.
        X_valid : {array-like, sparse matrix}, optional
            Held-out rows for comparing fits; by default part of X is held out.
        feature_names : array-like of str or transformer, optional
            Names of the columns if X has none, or a transformer with ``get_feature_names_out``: in
            a pipeline, the vectorizer before this step.
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
        """Return a smaller density that is nearly as good and still one exact mixture.

        Similar components of neural mixtures are merged, and their log-odds are factorised at low
        rank. Other families keep their most probable components, or none; these are also refitted
        to rows drawn from this density. Nothing is fitted to X, which only measures the loss, and
        with it how far to go. The same `random_state` gives the same result. Ctrl-C keeps the best
        result so far.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that were not used for fitting, such as held-out rows.
        n_parameters : int, optional
            Maximum number of parameters.
        loss : float, optional
            Maximum relative loss in log-likelihood of X: 0.001 is 0.1 %. The smallest density found
            within this loss is returned, or this one if no smaller one is good enough.

        Returns
        -------
        ExchangeableDensity
            Fitted; ``compression_`` compares its size and score with the original.

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
        """Join the averages of all settings, and store the results."""
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
    """Return a valid loss, or raise an error."""
    checked = check_number(loss, "loss")
    if not 0 <= checked < 1:
        raise ValueError(f"loss must lie in [0, 1), a part of the log-likelihood, got {checked}")
    return checked


def _summary(search: Search) -> str:
    """Return the progress of a search, in one line."""
    best = search.portfolio.best_of()
    assert best is not None
    return (
        f"{search.n_made} fits, log-likelihood of held-out rows {search.portfolio.worth:.4f}; "
        f"best by itself: {best.settings.family}, {best.first.valid:.4f}"
    )
