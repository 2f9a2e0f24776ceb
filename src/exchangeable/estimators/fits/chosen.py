"""How `ExchangeableClassifier(training="chosen")` selects settings by cross-validation."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from exchangeable.arrays import FloatArray, IntArray, check_count, normalize_log
from exchangeable.data.observed import Observed
from exchangeable.families.contract import FamilySpec
from exchangeable.families.problem import Problem
from exchangeable.fitting.classes.labelled import FittedClasses, with_prior
from exchangeable.fitting.classes.mixtures import ClassMixtures, InMemoryRows
from exchangeable.fitting.folds import make_folds
from exchangeable.fitting.hybrid.settings import Hybrid
from exchangeable.fitting.tasks import problem_of, rule_of
from exchangeable.fitting.trainings import GENERATIVE, Chosen, Generative
from exchangeable.runtime.interrupts import stopping

LEARNED = (
    "classes_",
    "class_count_",
    "class_log_prior_",
    "n_iter_",
    "history_",
    "log_likelihood_",
    "converged_",
)
"""Attributes that every fit stores, in addition to the model."""
CHOSEN = ("chosen_", "choice_losses_")
"""Attributes that only a choice stores."""
COMPONENTS = "components"
"""What families call the number of components per class."""
SURELY = -100.0
"""Smaller log-probabilities are replaced by this."""


def check_generative(estimator: Any, settings: Generative | Chosen) -> None:
    """Reject options that only work with one component per class."""
    asked = f"training={estimator.training!r}"
    if isinstance(settings, Generative):
        check_count(settings.n_components, "n_components")
        check_count(settings.n_init, "n_init")
    elif estimator.semi_supervised:
        raise ValueError(f"semi_supervised=True does not go with {asked}: every row needs a label")
    elif estimator.class_prior is not None:
        raise ValueError(
            f"class_prior does not go with {asked}, which is judged by P(y | x); use class_weight "
            "to weigh classes"
        )


def components_asked(
    spec: FamilySpec, settings: Hybrid | Generative | Chosen | None
) -> Generative | None:
    """Return the number of components of each class, None if it is one or set by training."""
    if isinstance(settings, Generative):
        return settings
    if settings is None and spec.class_components is not None:
        return Generative(spec.class_components, n_init=1)
    return None


def class_mixtures(
    estimator: Any, spec: FamilySpec, settings: Generative, n_variables: int, n_classes: int
) -> ClassMixtures:
    """Return the settings for fitting classes that are mixtures."""

    def make(n_components: int) -> Problem:
        return problem_of(estimator, spec, n_variables, range(n_components), labelled=False)

    fixed = with_prior(make(n_classes), estimator.class_prior).log_prior
    sizes = settings.n_components, settings.n_init
    return ClassMixtures(spec, make, *sizes, rule_of(estimator), estimator.n_jobs, fixed)


def fit_components(
    estimator: Any,
    spec: FamilySpec,
    settings: Generative,
    observed: Observed,
    labels: IntArray,
    weights: FloatArray,
) -> FittedClasses:
    """Fit classes that are mixtures."""
    rows = InMemoryRows(observed, labels, weights, estimator.n_jobs)
    sizes = observed.n_variables, rows.totals.size
    return class_mixtures(estimator, spec, settings, *sizes).fit(rows)


def candidates_of(settings: Chosen, spec: FamilySpec, estimator: Any) -> list[dict[str, Any]]:
    """Return the candidates, as parameters of a classifier."""
    if settings.candidates is None:
        return [_named(each) for each in spec.candidates if _possible(spec, each)]
    known = estimator.get_params(deep=False)
    candidates = [{"training": GENERATIVE} | dict(each) for each in settings.candidates]
    if not candidates:
        raise ValueError("Chosen(candidates=[]) holds nothing to try; leave it out, or name some")
    for each in candidates:
        unknown = sorted(set(each) - set(known))
        if unknown:
            raise ValueError(
                f"Chosen(candidates=...) names {unknown[0]!r}, which is not a parameter of "
                f"{type(estimator).__name__}; expected some of {', '.join(sorted(known))}"
            )
        if isinstance(each.get("training"), Chosen) or each.get("training") == "chosen":
            raise ValueError("Chosen(candidates=...) holds training='chosen' itself; leave it out")
    return candidates


def _possible(spec: FamilySpec, candidate: Mapping[str, Any]) -> bool:
    """Whether a family supports a kind of training."""
    if candidate.get("training", GENERATIVE) == GENERATIVE:
        return True
    linear = spec.normalise is not None or spec.features is not None
    return linear and spec.why_not("hybrid") is None


def _named(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the names that a family uses to parameters of a classifier."""
    own = dict(candidate)
    if COMPONENTS in own:
        own["training"] = Generative(n_components=own.pop(COMPONENTS))
    return {"training": GENERATIVE} | own


def choose(
    estimator: Any,
    spec: FamilySpec,
    settings: Chosen,
    observed: Observed,
    y: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    weights: FloatArray,
) -> tuple[Any, dict[str, Any], FloatArray]:
    """Return the classifier that predicts held-out rows best, its settings, and all log-losses.

    Parameters
    ----------
    estimator : ExchangeableClassifier
        The estimator whose other parameters all candidates share.
    spec : FamilySpec
        The family, as it suits the columns.
    settings : Chosen
        The candidates.
    observed, y, weights
        The rows, their labels and their weights.
    classes : array
        The classes.
    """
    n_folds = check_count(settings.n_folds, "n_folds", minimum=2)
    candidates = candidates_of(settings, spec, estimator)
    losses = np.full(len(candidates), np.nan)
    chosen = 0
    if len(candidates) > 1 and classes.size > 1 and observed.n_rows >= 2 * n_folds:
        fold = make_folds(np.searchsorted(classes, y), n_folds)
        with stopping():
            for number, each in enumerate(candidates):
                losses[number] = _loss(estimator, each, spec, observed, y, weights, fold)
        chosen = int(np.argmin(losses))
    best = _fit(estimator, candidates[chosen], spec, observed, y, weights)
    return best, candidates[chosen], losses


def _fit(
    estimator: Any,
    candidate: Mapping[str, Any],
    spec: FamilySpec,
    observed: Observed,
    y: npt.NDArray[Any],
    weights: FloatArray,
) -> Any:
    """Return a classifier with the given settings, fitted to rows."""
    model = clone(estimator).set_params(**candidate)
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(estimator, name):
            setattr(model, name, getattr(estimator, name))
    model._check_options()
    return model._fit_rows(spec, observed, y, weights)


def _loss(
    estimator: Any,
    candidate: Mapping[str, Any],
    spec: FamilySpec,
    observed: Observed,
    y: npt.NDArray[Any],
    weights: FloatArray,
    fold: IntArray,
) -> float:
    """Return the log-loss of held-out rows, over the classes that the candidate has seen."""
    total = counted = 0.0
    for each in range(int(fold.max()) + 1):
        inside, held = np.flatnonzero(fold != each), np.flatnonzero(fold == each)
        if not (weights[inside] > 0).any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = _fit(
                estimator, candidate, spec, observed.take(inside), y[inside], weights[inside]
            )
        held = held[np.isin(y[held], model.classes_)]
        if not held.size:
            continue
        joint = model._mixture().joint(observed.take(held), model.n_jobs)
        log_posterior = normalize_log(joint, model.class_log_prior_)[0]
        right = log_posterior[np.arange(held.size), np.searchsorted(model.classes_, y[held])]
        total -= float(weights[held] @ np.maximum(right, SURELY))
        counted += float(weights[held].sum())
    return total / counted if counted > 0 else np.inf
