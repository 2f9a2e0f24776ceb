"""Standard errors and confidence intervals of class sizes and answers."""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import (
    FloatArray,
    RandomState,
    as_generator,
    check_count,
    check_number,
    check_sample_weight,
)
from exchangeable.classes.profiles import Profiles, profile_values, profiles_of
from exchangeable.classes.uncertainty.draws import run_draws
from exchangeable.classes.uncertainty.information import information_errors, row_count
from exchangeable.classes.uncertainty.intervals import with_errors
from exchangeable.classes.uncertainty.matching import match_classes
from exchangeable.classes.uncertainty.sampling import Sampling, check_replicates, row_multipliers
from exchangeable.data.examples import Examples, merge_equal_rows
from exchangeable.fitting.tasks import check_choice
from exchangeable.queries.answers import class_posterior

METHODS = ("bootstrap", "information", "replicates")
WEIGHTING = ("sampling", "frequency")
EMPTY = 1e-4
"""A class with less than this share of a draw's rows is not used for its answers."""
SWITCHED = 0.05
"""With at least this share of draws with switched labels, there is a warning."""


@dataclass(frozen=True)
class StandardErrors:
    """Profiles with standard errors, and how these were estimated.

    Attributes
    ----------
    profiles : Profiles
        Estimates with standard errors and intervals.
    method : {"bootstrap", "information", "replicates"}
        The method of estimating errors.
    switched : float
        Share of draws whose classes came in another order and were reordered.
    agreement : float
        Average share of the rows whose most probable class, after matching, is the same as under
        the fitted model. Low values mean that classes are not stable.
    empty : int
        Number of draws in which a class lost its rows; they are not used for its answers.
    size_draws, draws : arrays of shape (n_draws, …)
        Estimates in each draw, matched; empty for ``method="information"``.
    """

    profiles: Profiles
    method: str
    switched: float = 0.0
    agreement: float = 1.0
    empty: int = 0
    size_draws: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    draws: FloatArray = field(default_factory=lambda: np.empty((0, 0, 0)), repr=False)


class _Draw(NamedTuple):
    sizes: FloatArray
    values: FloatArray
    switched: bool
    agreement: float


def standard_errors(
    model: Any,
    X: Any,
    *,
    method: str = "bootstrap",
    n_draws: int = 200,
    restarts: int = 2,
    sample_weight: npt.ArrayLike | None = None,
    weighting: str = "sampling",
    strata: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
    replicate_weights: npt.ArrayLike | None = None,
    replicate_scale: float | None = None,
    level: float = 0.95,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> StandardErrors:
    """Return class profiles with standard errors and confidence intervals.

    Parameters
    ----------
    model : ExchangeableMixture
        A fitted mixture.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows that it was fitted to.
    method : {"bootstrap", "information", "replicates"}, default="bootstrap"
        ``"bootstrap"``: rows are drawn with replacement and the model is refitted; classes are
        matched with those of the model by the agreement of posteriors; intervals are percentiles.
        It works for all families and kinds of columns. ``"information"``: from the observed
        information, fast, for columns with levels that are independent within classes.
        ``"replicates"``: from `replicate_weights`, as supplied by statistical offices.
    n_draws : int, default=200
        Number of bootstrap draws; use 1,000 for published percentiles.
    restarts : int, default=2
        Random starts in each draw, in addition to one from the fitted classes.
    sample_weight : array-like of shape (n_samples,), optional
        The weights used in the fit.
    weighting : {"sampling", "frequency"}, default="sampling"
        What the weights are: sampling weights of respondents, or how often equal rows occur.
    strata, clusters : array-like of shape (n_samples,), optional
        The stratum of each respondent, and the cluster sampled within it, such as a school or a
        block of houses. The bootstrap then draws clusters, and the sandwich estimator sums over
        them.
    replicate_weights : array-like of shape (n_samples, n_replicates), optional
        Replicate weights.
    replicate_scale : float, optional
        The factor of the sum of squared deviations: 1/R for bootstrap and balanced repeated
        replication, the default; (R − 1)/R for the jackknife that leaves one out; 1/(R(1 − ρ)²) for
        Fay's method.
    level : float, default=0.95
        The confidence level.
    random_state : int, RandomState, Generator or None
        Seed of the draws.
    n_jobs : int, optional
        Number of threads; it does not change the result.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.classes import standard_errors
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 6)) < np.where(rng.random((500, 1)) < 0.4, 0.2, 0.8)
    >>> model = ExchangeableMixture(2, blocks="independent", n_init=3, random_state=0).fit(X)
    >>> found = standard_errors(model, X, n_draws=50, random_state=0)
    >>> bool((found.profiles.size_errors < 0.04).all())
    True
    """
    check_choice(method, "method", METHODS)
    check_choice(weighting, "weighting", WEIGHTING)
    level = check_number(level, "level")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    refits, observed = model._refits(), model._observed(X)
    weight = check_sample_weight(sample_weight, observed.n_rows)
    sampling = Sampling.of(strata, clusters, observed.n_rows)
    _check_frequencies(sampling, weighting)
    robust = weighting == "sampling"
    n_rows, n_parameters = row_count(weight, robust), model.n_parameters_
    if n_rows <= n_parameters:
        warnings.warn(
            f"{n_rows:,.0f} rows are too few for standard errors of {n_parameters:,} parameters; "
            "use fewer classes, or collect more rows",
            stacklevel=2,
        )
    if method == "information":
        return _from_information(model, observed, weight, robust, sampling, level)
    examples, member = merge_equal_rows(observed, weight)
    reference = class_posterior(model._mixture(), examples.observed)
    schema, restarts = model._schema(), check_count(restarts, "restarts", minimum=0)

    def fitted(weights: FloatArray, source: np.random.Generator) -> _Draw:
        rows = replace(examples, weights=weights)
        mixture = refits.fit(rows, source, reference, restarts).mixture
        posterior = class_posterior(mixture, examples.observed, 1)
        order, agreement = match_classes(reference, posterior, examples.weights)
        sizes = np.exp(mixture.log_prior)[order]
        values = profile_values(mixture.model, schema)[:, order]
        values[:, sizes < EMPTY] = np.nan
        switched = bool((order != np.arange(order.size)).any())
        return _Draw(sizes, values, switched, agreement)

    rng = as_generator(random_state)
    if method == "replicates":
        given, size = check_replicates(replicate_weights, observed.n_rows, sampling), len(reference)
        replicates = [np.bincount(member, w, minlength=size).astype(np.float64) for w in given.T]
        sources = rng.spawn(len(replicates))
        drawn = [fitted(w, source) for w, source in zip(replicates, sources, strict=True)]
        scale = 1 / len(drawn) if replicate_scale is None else replicate_scale
        return _from_replicates(model, drawn, check_number(scale, "replicate_scale"), level)

    def one(source: np.random.Generator) -> _Draw:
        if weighting == "frequency":
            return fitted(_drawn_again(examples, source), source)
        multipliers = row_multipliers(member.size, sampling, source)
        drawn = np.bincount(member, multipliers * weight, minlength=examples.weights.size)
        return fitted(drawn.astype(np.float64), source)

    drawn = run_draws(one, rng, n_draws, n_jobs, "bootstrap")
    return _from_draws(model, drawn, level)


def _check_frequencies(sampling: Sampling | None, weighting: str) -> None:
    if sampling is not None and weighting == "frequency":
        raise ValueError(
            "strata and clusters are of respondents, one row for each; they do not go with "
            "weighting='frequency'"
        )


def _drawn_again(examples: Examples, rng: np.random.Generator) -> FloatArray:
    """Return how often each distinct row is drawn, with weights as frequencies."""
    share = examples.weights / examples.total
    return rng.multinomial(max(1, round(examples.total)), share).astype(np.float64)


def _stacked(drawn: list[_Draw]) -> tuple[FloatArray, FloatArray, dict[str, Any]]:
    sizes = np.stack([draw.sizes for draw in drawn])
    values = np.stack([draw.values for draw in drawn])
    switched = float(np.mean([draw.switched for draw in drawn]))
    empty = int(sum(bool((draw.sizes < EMPTY).any()) for draw in drawn))
    agreement = float(np.mean([draw.agreement for draw in drawn]))
    if empty:
        warnings.warn(
            f"a class lost its rows in {empty} of {len(drawn)} draws: it may not exist; compare "
            "with fewer classes",
            stacklevel=4,
        )
    if switched >= SWITCHED and agreement < 0.8:
        warnings.warn(
            f"labels were switched in {switched:.0%} of the draws, and after matching the fits "
            f"agree about {agreement:.0%} of the rows: classes overlap so much that their standard "
            "errors mean little",
            stacklevel=4,
        )
    facts = {"switched": switched, "agreement": agreement, "empty": empty}
    return sizes, values, {**facts, "size_draws": sizes, "draws": values}


def _from_draws(model: Any, drawn: list[_Draw], level: float) -> StandardErrors:
    sizes, values, facts = _stacked(drawn)
    ends = [(1 - level) / 2, (1 + level) / 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # from classes that are empty in all draws
        profiles = replace(
            profiles_of(model),
            size_errors=sizes.std(axis=0, ddof=1),
            errors=np.nanstd(values, axis=0, ddof=1),
            size_interval=np.quantile(sizes, ends, axis=0),
            interval=np.nanquantile(values, ends, axis=0),
            level=level,
            note=f"Standard errors in brackets, from {len(drawn)} bootstrap draws.",
        )
    return StandardErrors(profiles, "bootstrap", **facts)


def _from_replicates(model: Any, drawn: list[_Draw], scale: float, level: float) -> StandardErrors:
    if not scale > 0:
        raise ValueError(f"replicate_scale must be positive, got {scale}")
    sizes, values, facts = _stacked(drawn)
    whole = profiles_of(model)
    size_errors = np.sqrt(scale * ((sizes - whole.sizes) ** 2).sum(axis=0))
    errors = np.sqrt(scale * ((values - whole.values) ** 2).sum(axis=0))
    note = f"Standard errors in brackets, from {len(drawn)} replicate weights."
    profiles = with_errors(whole, size_errors, errors, level, note)
    return StandardErrors(profiles, "replicates", **facts)


def _from_information(
    model: Any,
    observed: Any,
    weight: FloatArray,
    robust: bool,
    sampling: Sampling | None,
    level: float,
) -> StandardErrors:
    size_errors, errors = information_errors(model, observed, weight, robust, sampling)
    note = "Standard errors in brackets, from the observed information."
    if np.isnan(errors).any() and not np.isnan(errors).all():
        note += " A dash: the estimate lies on the boundary of what is possible."
    profiles = with_errors(profiles_of(model), size_errors, errors, level, note)
    return StandardErrors(profiles, "information")
