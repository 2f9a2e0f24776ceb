"""Item parameters of fitted models of any family whose components are Rasch models."""

from typing import Any

import numpy as np

from exchangeable.arrays import check_sample_weight
from exchangeable.data.columns.schema import typed_rows
from exchangeable.families.items import ItemScale
from exchangeable.rasch.answers import Answers, sort_answers
from exchangeable.rasch.conditional import conditional_of, inverse_information
from exchangeable.rasch.errors import class_parameters, warn_of_infinite, with_errors
from exchangeable.rasch.parameters import ItemParameters


def scale_of(model: Any) -> ItemScale:
    """Return the items of a fitted estimator, or raise an error if it has none."""
    scale: ItemScale | None = model._fitted().item_scale()
    if scale is None:
        raise AttributeError(
            "item_parameters_ needs components in which a total says all about a row: one block "
            "of binary columns with weights, or one block of ordinal columns (blocks='full')"
        )
    return scale


def item_names(model: Any, scale: ItemScale) -> tuple[str, ...]:
    """Return the names of the items of a fitted estimator."""
    known = getattr(model, "feature_names_in_", None)
    return tuple(f"x{j}" if known is None else str(known[j]) for j in scale.columns)


def item_parameters(model: Any, X: Any, sample_weight: Any = None) -> ItemParameters:
    """Return the items of a fitted mixture with standard errors.

    Errors are those of a fit to these rows without priors. Smoothing, which shrinks estimates
    towards each other, makes them too large rather than too small.

    Parameters
    ----------
    model : ExchangeableMixture
        A fitted mixture whose components have one block of binary columns with weights, or of
        ordinal columns.
    X : array-like of shape (n_persons, n_columns)
        The rows that it was fitted to.
    sample_weight : array-like of shape (n_persons,), optional
        Weight of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from exchangeable import ExchangeableMixture
    >>> from exchangeable.rasch import item_parameters
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 4)) < 1 / (1 + np.exp(np.arange(4) - rng.normal(size=(500, 1))))
    >>> model = ExchangeableMixture(1, family="urns").fit(X)
    >>> item_parameters(model, X).standard_errors.shape
    (4, 1)
    """
    scale = scale_of(model)
    observed, mixture = model._observed(X), model._mixture()
    weights = check_sample_weight(sample_weight, observed.n_rows)
    values = typed_rows(observed).values[:, scale.columns]
    found = class_parameters(scale, item_names(model, scale))
    warn_of_infinite(found)
    if scale.n_classes == 1 and not np.isnan(found.thresholds).any():
        whole = np.where(np.isnan(values), -1, values).astype(np.int8)
        answers = Answers(found.names, whole, weights, scale.highest)
        answered = sort_answers(answers.only(persons=answers.informative))
        sums = conditional_of(scale.highest)(
            scale.highest, scale.log_credits[:, 0], answered, model.n_jobs
        )
        spread = inverse_information(scale.highest, sums.information)
        return ItemParameters(found.names, found.highest, found.thresholds, spread)
    posterior = np.exp(mixture.log_posterior(observed, model.n_jobs)[0])
    return with_errors(found, scale, np.exp(mixture.log_prior), posterior, values, weights)
