"""Standard errors of the items of Rasch models by the bootstrap, or by replicate weights."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import (
    FloatArray,
    RandomState,
    as_generator,
    check_number,
    check_sample_weight,
)
from exchangeable.classes.uncertainty.draws import run_draws
from exchangeable.classes.uncertainty.matching import match_classes
from exchangeable.classes.uncertainty.sampling import Sampling, check_replicates, row_multipliers
from exchangeable.data.examples import merge_equal_rows
from exchangeable.queries.answers import class_posterior
from exchangeable.rasch.conditional import fit_conditional
from exchangeable.rasch.errors import class_parameters
from exchangeable.rasch.parameters import ItemParameters
from exchangeable.rasch.questions import RaschQuestions

KNOWN = 0.9
"""A threshold gets a standard error if it has finite estimates in at least this share of draws."""


@dataclass(frozen=True)
class ItemErrors:
    """Items with standard errors from draws, and how well classes were matched.

    Attributes
    ----------
    parameters : ItemParameters
        The items of the model, with the covariances of their estimates in the draws.
    switched : float
        Share of draws whose classes came in another order and were reordered.
    agreement : float
        Average share of the persons whose most probable class is the same after matching.
    draws : array of shape (n_draws, n_steps, n_classes)
        Thresholds in each draw, matched; NaN if there was no finite estimate.
    """

    parameters: ItemParameters
    switched: float = 0.0
    agreement: float = 1.0
    draws: FloatArray = field(default_factory=lambda: np.empty((0, 0, 0)), repr=False)


class _Draw(NamedTuple):
    thresholds: FloatArray
    switched: bool = False
    agreement: float = 1.0


Refit = Callable[[FloatArray, np.random.Generator], _Draw]


def item_errors(
    model: Any,
    X: Any,
    *,
    n_draws: int = 200,
    restarts: int = 0,
    sample_weight: npt.ArrayLike | None = None,
    strata: npt.ArrayLike | None = None,
    clusters: npt.ArrayLike | None = None,
    replicate_weights: npt.ArrayLike | None = None,
    replicate_scale: float | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> ItemErrors:
    """Return the items of a Rasch model with bootstrap standard errors.

    Persons are drawn with replacement and the items are refitted; classes are matched with those of
    the model by the agreement of posteriors. Unlike the errors in `item_parameters_`, which treat
    weights as numbers of persons, these are valid for sampling weights, strata and clusters.

    Parameters
    ----------
    model : RaschModel or ExchangeableMixture
        A fitted Rasch model, or a mixture with `item_parameters_`.
    X : array-like of shape (n_persons, n_items)
        The answers that it was fitted to.
    n_draws : int, default=200
        Number of bootstrap draws.
    restarts : int, default=0
        Random starts in each draw, in addition to one from the fitted classes.
    sample_weight : array-like of shape (n_persons,), optional
        The weights used in the fit.
    strata, clusters : array-like of shape (n_persons,), optional
        The sampling design, as in `standard_errors`.
    replicate_weights : array-like of shape (n_persons, n_replicates), optional
        Replicate weights, used instead of draws.
    replicate_scale : float, optional
        The factor of the sum of squared deviations, as in `standard_errors`.
    random_state : int, RandomState, Generator or None
        Seed of the draws.
    n_jobs : int, optional
        Number of threads; it does not change the result.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import RaschModel
    >>> from exchangeable.classes import item_errors
    >>> rng = np.random.default_rng(0)
    >>> chance = 1 / (1 + np.exp(np.arange(4) - rng.normal(size=(400, 1))))
    >>> X = (rng.random((400, 4)) < chance).astype(float)
    >>> model = RaschModel().fit(X)
    >>> found = item_errors(model, X, n_draws=50, random_state=0).parameters
    >>> ratio = found.standard_errors / model.item_parameters_.standard_errors
    >>> bool((ratio > 0.7).all() and (ratio < 1.4).all())
    True
    """
    n_rows = np.shape(X)[0]
    weight = check_sample_weight(sample_weight, n_rows)
    sampling = Sampling.of(strata, clusters, n_rows)
    plain = isinstance(model, RaschQuestions) and not hasattr(model, "mixture_")
    refit = _conditional(model, X) if plain else _mixed(model, X, weight, restarts)
    rng = as_generator(random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of single draws; there is a common one below
        if replicate_weights is not None:
            columns = check_replicates(replicate_weights, n_rows, sampling).T
            sources = rng.spawn(len(columns))
            drawn = [refit(w, source) for w, source in zip(columns, sources, strict=True)]
        else:

            def one(source: np.random.Generator) -> _Draw:
                return refit(weight * row_multipliers(n_rows, sampling, source), source)

            drawn = run_draws(one, rng, n_draws, n_jobs, "bootstrap of items")
    scale = None
    if replicate_weights is not None:
        scale = 1 / len(drawn) if replicate_scale is None else replicate_scale
        scale = check_number(scale, "replicate_scale")
    draws = np.stack([draw.thresholds for draw in drawn])
    return ItemErrors(
        _with_covariance(model.item_parameters_, draws, scale),
        float(np.mean([draw.switched for draw in drawn])),
        float(np.mean([draw.agreement for draw in drawn])),
        draws,
    )


def _conditional(model: Any, X: Any) -> Refit:
    """Return a function that refits one class by conditional maximum likelihood."""
    answers = model._answers(X)
    n_steps = int(answers.highest.sum())

    def refit(weights: FloatArray, source: np.random.Generator) -> _Draw:
        try:
            return _Draw(
                fit_conditional(replace(answers, weights=weights), 1).parameters.thresholds
            )
        except ValueError:  # no finite estimate for these persons
            return _Draw(np.full((n_steps, 1), np.nan))

    return refit


def _mixed(model: Any, X: Any, weight: FloatArray, restarts: int) -> Refit:
    """Return a function that refits a mixture, starting from the classes of the model."""
    items, mixture = model.item_parameters_, model
    steps = np.arange(len(items.thresholds))
    if hasattr(model, "mixture_"):  # only items that have estimates
        mixture, answers = model.mixture_, model._answers(X)
        X = answers.only(items=model._in_mixture).numbers
        steps = np.flatnonzero(np.repeat(model._in_mixture, items.highest))
    examples, member = merge_equal_rows(mixture._observed(X), weight)
    reference = class_posterior(mixture._mixture(), examples.observed)
    refits = mixture._refits()

    def refit(weights: FloatArray, source: np.random.Generator) -> _Draw:
        own = np.bincount(member, weights, minlength=examples.weights.size).astype(np.float64)
        found = refits.fit(replace(examples, weights=own), source, reference, restarts).mixture
        scale = found.model.item_scale()
        assert scale is not None
        order, agreement = match_classes(
            reference, class_posterior(found, examples.observed, 1), examples.weights
        )
        thresholds = np.full(items.thresholds.shape, np.nan)
        names = tuple(map(str, range(scale.highest.size)))
        thresholds[steps] = class_parameters(scale, names).thresholds[:, order]
        return _Draw(thresholds, bool((order != np.arange(order.size)).any()), agreement)

    return refit


def _with_covariance(
    parameters: ItemParameters, draws: FloatArray, scale: float | None
) -> ItemParameters:
    """Return the items with covariances over draws, NaN for those without finite estimates."""
    flat = draws.transpose(0, 2, 1).reshape(len(draws), -1)
    centre = parameters.thresholds.T.ravel()
    known = np.isfinite(centre) & (np.isfinite(flat).mean(axis=0) >= KNOWN)
    complete = np.isfinite(flat[:, known]).all(axis=1)
    if not complete.all():
        warnings.warn(
            f"in {np.count_nonzero(~complete)} of {complete.size} draws an item had no finite "
            "estimate; they are left out, which makes standard errors a little too small",
            stacklevel=3,
        )
    covariance = np.full((centre.size, centre.size), np.nan)
    used = flat[np.ix_(complete, known)]
    if scale is None:
        found = np.atleast_2d(np.cov(used, rowvar=False))
    else:
        found = scale * (used - centre[known]).T @ (used - centre[known])
    covariance[np.ix_(known, known)] = found
    return replace(parameters, covariance=covariance)
