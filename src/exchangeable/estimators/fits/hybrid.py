"""Hybrid training of `ExchangeableClassifier`, and conversion of logistic regressions.

The training code is imported only when needed, since most classifiers do not use it.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray, check_sample_weight
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.estimators.labels import class_factors
from exchangeable.families import normalised
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.contract import FamilySpec
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import fill_by_frequency
from exchangeable.fitting.hybrid.settings import Hybrid, checked
from exchangeable.fitting.tasks import problem_of, rule_of
from exchangeable.runtime.blas import blas_threads
from exchangeable.runtime.interrupts import interrupts

if TYPE_CHECKING:
    from exchangeable.fitting.hybrid.convex import Fit
    from exchangeable.fitting.hybrid.trained import Trained

COARSER, LONGER = 10.0, 10
"""Conditional fits stop when the gradient is below this many times `tol`, which predicts held-out
rows better than stopping later, or after this many times `max_iter` (cheap) iterations."""


def check_hybrid(estimator: Any, spec: FamilySpec) -> None:
    """Reject options that only work with generative training."""
    asked = f"training={estimator.training!r}"
    spec.check("hybrid", asked)
    if spec.normalise is None and spec.features is None:
        raise ValueError(
            f"{asked} does not go with family={spec.name!r}: it has no log-linear scores"
        )
    if estimator.semi_supervised:
        raise ValueError(f"semi_supervised=True does not go with {asked}: every row needs a label")
    if estimator.class_prior is not None:
        raise ValueError(
            f"class_prior does not go with {asked}, which fits P(y | x); use class_weight to weigh "
            "classes"
        )
    if estimator.alpha == 0:
        raise ValueError(f"alpha must be > 0 with {asked}: generative scores must be finite")


def fit_hybrid(
    estimator: Any,
    spec: FamilySpec,
    settings: Hybrid,
    observed: Observed,
    labels: IntArray,
    classes: npt.NDArray[Any],
    sample_weight: npt.ArrayLike | None,
) -> "tuple[Trained, FloatArray]":
    """Train an estimator's classes; return them and the total weight of each class."""
    from exchangeable.fitting.hybrid.components import train_components
    from exchangeable.fitting.hybrid.convex import Solver
    from exchangeable.fitting.hybrid.design import Design, ones_of_rows
    from exchangeable.fitting.hybrid.own import OwnFamily
    from exchangeable.fitting.hybrid.shared_terms import typed_mixture
    from exchangeable.fitting.hybrid.training import train

    asked = checked(settings)
    weights = check_sample_weight(sample_weight, labels.size)
    counting = np.flatnonzero(weights > 0)
    examples, _ = merge_equal_rows(observed.take(counting), weights[counting], labels[counting])
    totals = np.bincount(examples.clamp, examples.weights, classes.size).astype(np.float64)
    by_class = class_factors(estimator.class_weight, classes, totals)
    weighed = examples.weights * by_class[examples.clamp]
    problem = problem_of(estimator, spec, observed.n_variables, classes.tolist(), labelled=True)
    finish = None
    if spec.features is None:
        examples = fill_by_frequency(examples)  # P(y | x) is fitted to complete rows
        rows = ones_of_rows(examples.rows)
        design = Design(rows, examples.clamp, weighed, classes.size)
    else:
        features = spec.features(examples, problem)
        own_rows = features.ones, examples.clamp, weighed, classes.size
        design = Design(*own_rows, features.numbers, features.scored, features.hidden_together)
        finish = partial(typed_mixture, features)
        asked = replace(asked, family=False)
    rule = rule_of(estimator)
    own = OwnFamily(spec, problem, rule)
    start = _last_fits(estimator, design.n_variables) if asked.warm_start else []
    with interrupts() as interrupted, blas_threads(1):
        stop, n_jobs = interrupted.stop, estimator.n_jobs
        if asked.n_components > 1:
            _check_components(settings, spec)
            found = train_components(design, asked.n_components, examples.weights, stop, n_jobs)
        else:
            solver = Solver(COARSER * rule.tol, LONGER * rule.max_iter, stop)
            found = train(design, asked, own, solver, examples.weights, start, n_jobs, finish)
        if interrupted.stop.is_set():
            interrupted.warn("the fit", stacklevel=4)
    return found, totals


def _check_components(settings: Hybrid, spec: FamilySpec) -> None:
    """Reject settings that gradient training does not support."""
    if spec.features is not None:
        raise ValueError(
            f"n_components={settings.n_components} per class is for binary columns, not for "
            f"family={spec.name!r}; leave it out"
        )
    for name in ("penalty", "scales"):
        if getattr(settings, name) is not None:
            raise ValueError(
                f"{name} does not go with n_components > 1, which is trained by gradient; leave it "
                "out"
            )
    if settings.warm_start:
        raise ValueError("warm_start does not go with n_components > 1; leave it out")


def keep_trained(estimator: Any, found: "Trained", settings: Hybrid) -> None:
    """Store the results of training, in addition to the model."""
    estimator.scales_, estimator.loss_ = found.scales, found.loss
    estimator.penalties_ = np.array(checked(settings).penalties)[: found.shares.size]
    estimator.penalty_shares_ = found.shares
    estimator.converged_ = found.converged
    estimator.__dict__.pop("fit_slopes_", None)
    estimator.__dict__.pop("fit_scales_", None)
    if settings.warm_start:
        estimator.fit_slopes_ = np.array([np.vstack([f.base, f.slope]) for f in found.fits])
        longest = max((fit.scales.size for fit in found.fits), default=0)
        estimator.fit_scales_ = np.full((len(found.fits), longest), np.nan)
        for line, fit in zip(estimator.fit_scales_, found.fits, strict=True):
            line[: fit.scales.size] = fit.scales


TRAINED = ("scales_", "loss_", "penalties_", "penalty_shares_", "fit_slopes_", "fit_scales_")
"""Attributes that only training other than generative stores."""


def _last_fits(estimator: Any, n_variables: int) -> "list[Fit]":
    """Return the fits kept by an estimator, if they have the same number of variables."""
    from exchangeable.fitting.hybrid.convex import Fit

    slopes = getattr(estimator, "fit_slopes_", None)
    if slopes is None or slopes.shape[1] != n_variables + 1:
        return []
    return [
        Fit(slope[0], slope[1:], scales[~np.isnan(scales)])
        for slope, scales in zip(slopes, estimator.fit_scales_, strict=True)
    ]


def mixture_of(classifier: Any) -> Mixture:
    """Return a mixture with the predictions of a fitted `LogisticRegression`.

    Its variables are independent given the class, and each is on with probability one half on
    average over the classes: a logistic regression does not know how often variables are on.
    """
    for name in ("coef_", "intercept_", "classes_"):
        if not hasattr(classifier, name):
            raise TypeError(
                f"{type(classifier).__name__} has no {name}; expected a fitted LogisticRegression"
            )
    coefficients = np.asarray(classifier.coef_, dtype=np.float64)
    intercept = np.asarray(classifier.intercept_, dtype=np.float64)
    if coefficients.shape[0] == 1:
        coefficients = np.concatenate([-0.5 * coefficients, 0.5 * coefficients])
        intercept = np.concatenate([-0.5 * intercept, 0.5 * intercept])
    slope = np.ascontiguousarray((coefficients - coefficients.mean(axis=0)).T)
    return normalised(LogLinear(intercept, slope))[0]
