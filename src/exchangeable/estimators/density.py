"""Automatic search for a density model of binary rows, or of a table."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin
from threadpoolctl import threadpool_limits

from exchangeable.arrays import (
    RandomState,
    as_generator,
    check_alpha,
    check_count,
    check_flag,
    check_number,
    check_sample_weight,
)
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.schema import Schema
from exchangeable.devices.choice import check_device, find_device
from exchangeable.estimators.components import ComponentEstimator
from exchangeable.estimators.kinds import decide_families
from exchangeable.estimators.names import give_names
from exchangeable.families import REGISTRY, WITH_STATISTICS, family_named
from exchangeable.families.contract import FamilySpec
from exchangeable.fitting.compression import Compressor, part_numbers
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.kept_fits import KeptFits
from exchangeable.fitting.lanes import Lanes
from exchangeable.fitting.progress import SearchProgress
from exchangeable.fitting.search import Search
from exchangeable.fitting.tasks import em_device, held_out
from exchangeable.fitting.trials import NO_BLOCKS, STATISTICS, Fitter, NamedBlocks
from exchangeable.runtime.attempts import all_or_nothing
from exchangeable.runtime.clock import Clock
from exchangeable.runtime.interrupts import interrupts
from exchangeable.structure.statistic_blocks import has_statistics, statistic_blocks

NO_MASS = 1e-10
"""A component with a smaller probability is dropped."""
MUCH_TO_TELL, LEAST_PART = 40.0, 0.02
"""Rows with a smaller entropy, if variables were independent, need a smaller tolerance: by the same
factor, within limits."""


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
        clock = self._clock()
        began = clock.now()
        specs, schema = decide_families(self, self._named_families(), X)
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
        families, left_out = self._families(specs, observed.n_variables, schema)
        search = self._search(examples, held, families, left_out, rng, clock)
        search.began = began
        with (
            interrupts() as interrupt,
            threadpool_limits(1, "blas"),
            SearchProgress() as progress,
            self._fits_to_keep(search) as kept,
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

        Components that are needed little are left out, the others are fitted again to rows drawn
        from this density, and so are their weights. Nothing is fitted to X, by which the loss is
        judged. The same `random_state` gives the same result.

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
        """
        if (n_parameters is None) == (loss is None):
            raise ValueError("give either n_parameters or loss, and not both")
        mixture = self._mixture()
        observed = self._observed(X)
        judges = merge_equal_rows(observed, np.ones(observed.n_rows))[0]
        seed = self.random_state if isinstance(self.random_state, int | np.integer) else 0
        families = [member["family"] for member in self.members_]
        compressor = Compressor(mixture, families, judges, int(seed), self.n_jobs)
        with threadpool_limits(1, "blas"):
            if n_parameters is not None:
                found = compressor.to_size(check_count(n_parameters, "n_parameters"))
            else:
                found = compressor.to_loss(check_loss(loss))
        smaller = copy.copy(self)
        smaller._model, smaller.weights_ = found.mixture.model, np.exp(found.mixture.log_prior)
        smaller.n_parameters_ = found.mixture.n_parameters
        shares = np.bincount(part_numbers(smaller._model), smaller.weights_)
        smaller.members_ = [
            {**self.members_[number], "share": float(share)}
            for number, share in zip(found.parts, shares, strict=True)
        ]
        smaller.compression_ = {
            "n_parameters": (self.n_parameters_, smaller.n_parameters_),
            "score": (found.before, found.after),
            "loss": found.loss,
        }
        return smaller

    def _split(self, n_rows: int, rng: np.random.Generator) -> Sequence[Any]:
        if n_rows < 2:
            raise ValueError(
                f"n_samples={n_rows} is too few to hold some out; give at least 2 rows, or X_valid"
            )
        share = check_number(self.validation_fraction, "validation_fraction")
        return held_out(max(share, 1.0 / n_rows) if 0 < share < 1 else share, n_rows, rng)

    def _named_families(self) -> list[FamilySpec]:
        """Return the families that users name."""
        if self.families is None:
            return []
        names = [self.families] if isinstance(self.families, str) else list(self.families)
        if not names or any(name not in REGISTRY for name in names):
            raise ValueError(
                f"families={self.families!r}: expected one or more of {', '.join(REGISTRY)}"
            )
        return [family_named(name) for name in names]

    def _families(
        self, named: Sequence[FamilySpec], n_variables: int, schema: Schema | None
    ) -> tuple[list[str], dict[str, str]]:
        """Return the families to try, and why others are left out.

        Without names these are all that are searched, for such columns, and can be had.
        """
        if named:
            for spec in named:
                spec.check_size(n_variables)
            return [spec.name for spec in named], {}
        names, left_out = list[str](), dict[str, str]()
        for spec in REGISTRY.values():
            if spec.search is None or (len(spec.kinds) > 1) != (schema is not None):
                continue
            if not spec.installed:
                left_out[spec.name] = f"{spec.needs} is not installed"
            elif spec.most_variables is not None and n_variables > spec.most_variables:
                left_out[spec.name] = f"it has room for {spec.most_variables:,} variables"
            else:
                names.append(spec.name)
        return names, left_out

    def _search(
        self,
        examples: Examples,
        held: Examples,
        families: list[str],
        left_out: dict[str, str],
        rng: np.random.Generator,
        clock: Clock,
    ) -> Search:
        if not 0 <= check_number(self.tol, "tol") < np.inf:
            raise ValueError(f"tol must be finite and at least 0, got {self.tol}")
        alpha = check_alpha(self.alpha)
        if alpha == 0:
            raise ValueError(
                "alpha must be > 0: values never seen in training would get probability 0"
            )
        check_device(self.device)
        named = self._named_blocks(examples.rows.n_variables)
        if named.blocks and self.families is None:
            families += [name for name in WITH_STATISTICS if name not in families]
        fitter = Fitter(
            examples,
            held,
            alpha,
            StopRule(self._tolerance(examples, families), check_count(self.max_iter, "max_iter")),
            int(rng.integers(2**31)),
            self.device,
            em_device(self),
            self._accelerator(families),
            named=named,
        )
        most = self.max_components
        return Search(
            fitter,
            Lanes(fitter, self.n_jobs),
            families,
            None if most is None else check_count(most, "max_components"),
            check_count(self.n_init, "n_init"),
            clock,
            notes=left_out,
        )

    def _tolerance(self, examples: Examples, families: Sequence[str]) -> float:
        """Return the least gain that counts as progress, less where rows tell little."""
        if any(len(family_named(name).kinds) > 1 for name in families):
            return float(self.tol)
        return float(self.tol * np.clip(entropy(examples) / MUCH_TO_TELL, LEAST_PART, 1.0))

    def _clock(self) -> Clock:
        """Return when the fit has to end."""
        clock = Clock()
        if self.time_budget is None:
            return clock
        budget = check_number(self.time_budget, "time_budget")
        if not budget > 0:
            raise ValueError(f"time_budget must be positive, got {budget}")
        return replace(clock, deadline=clock.now() + budget)

    def _named_blocks(self, n_variables: int) -> NamedBlocks:
        """Return the blocks with statistics."""
        if self.blocks is None:
            return NO_BLOCKS
        if not has_statistics(self.blocks):
            raise ValueError(
                f"blocks={self.blocks!r}: expected pairs of variables and a statistic; other "
                "blocks are searched, or learned by the families"
            )
        if self.families is not None and not set(WITH_STATISTICS) & set(self.families):
            raise ValueError(
                f"blocks with statistics go with {', '.join(WITH_STATISTICS)}, but "
                f"families={list(self.families)!r}"
            )
        names = getattr(self, "feature_names_in_", None)
        found = NamedBlocks(*statistic_blocks(self.blocks, n_variables, names))
        for number, block in enumerate(found.blocks):
            if len(block.statistics) > 1:
                raise ValueError(
                    f"block {number} has {len(block.statistics)} statistics, of which fits that "
                    "are averaged could choose different ones; give one"
                )
        return found

    def _fits_to_keep(self, search: Search) -> KeptFits:
        """Return where the search finds and leaves its fits, and begin where the last one ended."""
        path, fitter = None if self.checkpoint is None else Path(self.checkpoint), search.fitter
        check_flag(self.warm_start, "warm_start")
        if path is not None and not isinstance(self.random_state, int | np.integer):
            raise ValueError(
                f"checkpoint needs a whole number as random_state, got {self.random_state!r}: "
                "without one the same starts cannot be had again"
            )
        purpose = {
            "data": fitter.examples.fingerprint,
            "held-out rows": fitter.valid.fingerprint,
            "seed": fitter.seed,
            "alpha": fitter.alpha,
            "tol": fitter.rule.tol,
            "max_iter": fitter.rule.max_iter,
            "blocks": repr(self.blocks),
        }
        rows = fitter.valid.rows
        kept = KeptFits(purpose, path, (rows.n_rows, rows.n_variables))
        before = getattr(self, "_fits", None)
        if self.warm_start and before is not None:
            if before.purpose == purpose:
                kept.fits = {**before.fits, **kept.fits}
            else:
                search.starts = before.best_settings()
        if path is not None or self.warm_start:
            fitter.kept = kept
        return kept

    def _accelerator(self, families: Sequence[str]) -> Any:
        """Return what networks are trained on, None where that is the processor."""
        if self.device == "cpu" or not any(family_named(name).needs for name in families):
            return None
        device = find_device(self.device, f"families={list(families)!r}")
        return None if device.platform == "cpu" else device

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
        self.best_params_ = best.settings.parameters()
        for row in (self.best_params_, *self.table_, *self.members_):
            if row.get("blocks") == STATISTICS:
                row["blocks"] = self.blocks
        self.best_score_ = best.first.valid
        self.n_parameters_ = mixture.n_parameters


def entropy(examples: Examples) -> float:
    """Return the entropy of binary rows in nats, their variables taken for independent."""
    everyone = Group(np.arange(examples.rows.n_rows), examples.weights)
    on = group_ones(examples.rows, [everyone], 1)[0] / examples.total
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where((on > 0) & (on < 1), on * np.log(on) + (1 - on) * np.log1p(-on), 0.0)
    return float(-each.sum())


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
