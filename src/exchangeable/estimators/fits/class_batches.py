"""Classes updated in batches: the implementation of the classifier's `partial_fit`."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import IntArray, check_sample_weight
from exchangeable.data.observed import Observed, as_observed
from exchangeable.estimators.fits.chosen import class_mixtures, components_asked
from exchangeable.estimators.kinds import kinds_of_batch, labels_of, observe_typed
from exchangeable.estimators.labels import open_labels, weigh_classes
from exchangeable.estimators.rows import validated_with_labels
from exchangeable.families.contract import Family, FamilySpec
from exchangeable.families.grouped import GroupedModel
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.classes.batches import ClassesSoFar, add_batch_to_mixtures
from exchangeable.fitting.classes.labelled import FittedClasses, class_groups, unique_labels
from exchangeable.fitting.streams import Stream
from exchangeable.fitting.tasks import problem_of, rule_of
from exchangeable.fitting.trainings import Generative, as_training


class Added(NamedTuple):
    """Classes after one more batch.

    Attributes
    ----------
    fitted : FittedClasses
    classes : ndarray of shape (n_classes,)
        Their labels.
    kept : object or None
        State that the next batch needs, in addition to the parameters.
    """

    fitted: FittedClasses
    classes: npt.NDArray[Any]
    kept: Any = None


def add_labelled_batch(
    classifier: Any,
    spec: FamilySpec,
    X: Any,
    y: Any,
    classes: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> Added:
    """Return a classifier's classes after one more batch of rows."""
    first = not hasattr(classifier, "classes_")
    if first and classes is None:
        raise ValueError("classes must be passed on the first call to partial_fit.")
    known = unique_labels(classes, "classes") if first else classifier.classes_
    y = open_labels(y, semi_supervised=False).y
    spec, schema = kinds_of_batch(classifier, spec, X, first)
    if schema is not None:
        observed, y = observe_typed(classifier, X, schema, reset=first), labels_of(X, y)
    else:
        X, y = validated_with_labels(classifier, X, y, reset=first)
        observed = as_observed(X, classifier.binarize, classifier.n_jobs)
    _check_classes(classifier, classes, known, y)
    number = np.searchsorted(known, y)
    weight = weigh_classes(classifier.class_weight, known, number, sample_weight)
    problem = problem_of(classifier, spec, observed.n_variables, known.tolist(), labelled=True)
    before = None if first else classifier._fitted()
    several = components_asked(spec, as_training(classifier.training))
    parts = before.inner if several and isinstance(before, GroupedModel) else before
    if before is not None and (not isinstance(parts, spec.model) or (several and parts is before)):
        raise ValueError(
            f"partial_fit cannot go on from a fit of another family than {spec.name!r}; use fit"
        )
    if several is not None:
        return _go_on_with_mixtures(classifier, spec, several, observed, number, known, weight)
    if spec.direct is None or problem.pooling is not None:
        return _go_on(classifier, spec, problem, observed, number, known, weight)
    groups = class_groups(y, known, weight)
    model = spec.direct.add(problem, before, observed, groups, classifier.n_jobs)
    return Added(FittedClasses(model, model.totals), known)


def _check_classes(
    classifier: Any, classes: npt.ArrayLike | None, known: npt.NDArray[Any], y: npt.NDArray[Any]
) -> None:
    """Reject classes that were not announced in the first batch."""
    if not (classes is None or np.array_equal(known, np.unique(np.asarray(classes)))):
        raise ValueError(f"classes={classes!r} is not the same as on the first call: {known}")
    unknown = np.setdiff1d(y, known)
    if unknown.size:
        raise ValueError(f"y contains {unknown.tolist()}, which are not in {known}")
    if isinstance(classifier.class_weight, str):
        raise ValueError(
            "class_weight='balanced' needs all rows at once; for partial_fit give a dict from "
            "class to weight"
        )


def _go_on(
    classifier: Any,
    spec: FamilySpec,
    problem: Problem,
    observed: Observed,
    labels: IntArray,
    classes: npt.NDArray[Any],
    sample_weight: npt.ArrayLike | None,
) -> Added:
    """Add a batch to the sums from which the family computes its parameters."""
    stream = Stream(spec, problem, rule_of(classifier), classifier.n_jobs)
    weight, before = check_sample_weight(sample_weight, len(labels)), None
    if hasattr(classifier, "_model"):
        before = Mixture(classifier._model, Family.log_shares_of(classifier.class_count_))
    kept = getattr(classifier, "_kept", None)
    if before is not None and kept is None:
        kept = stream.imagine(before, classifier.class_count_)
    mixture, kept = stream.add_labelled(before, kept, observed, labels, weight)
    return Added(FittedClasses(mixture.model, kept.sums.totals), classes, kept)


def _go_on_with_mixtures(
    classifier: Any,
    spec: FamilySpec,
    several: Generative,
    observed: Observed,
    labels: IntArray,
    classes: npt.NDArray[Any],
    sample_weight: npt.ArrayLike | None,
) -> Added:
    """Add a batch to classes that are mixtures."""
    plan = class_mixtures(classifier, spec, several, observed.n_variables, classes.size)
    weight, before = check_sample_weight(sample_weight, len(labels)), None
    if hasattr(classifier, "_model"):
        kept = getattr(classifier, "_kept", [None] * classes.size)
        before = ClassesSoFar(classifier._model, classifier.class_count_, kept)
    after = add_batch_to_mixtures(plan, before, observed, labels, weight, classes.size)
    return Added(FittedClasses(after.model, after.totals), classes, after.kept)
