"""Classes fitted to rows in chunks or on a cluster, by passes that compute sums."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.data.stream.passes import Passes
from exchangeable.data.stream.views import WatchedPasses
from exchangeable.estimators.fits.chosen import class_mixtures, components_asked
from exchangeable.estimators.labels import UNLABELLED
from exchangeable.estimators.rows import take_names
from exchangeable.families.common.streaming.recipes import class_weights
from exchangeable.families.contract import FamilySpec
from exchangeable.fitting.classes.chunks import ChunkRows
from exchangeable.fitting.classes.labelled import (
    FittedClasses,
    fit_classes_in_chunks,
    unique_labels,
    with_prior,
)
from exchangeable.fitting.tasks import problem_of, rule_of
from exchangeable.fitting.trainings import as_training
from exchangeable.structure.blocks import as_blocks, kind_of

Classes = npt.NDArray[Any]


def fit_class_chunks(
    classifier: Any, spec: FamilySpec, data: Passes, feature_names: Any
) -> tuple[FittedClasses, Classes]:
    """Return the classes fitted to rows that are read in passes, and their labels."""
    if classifier.class_weight is not None:
        raise ValueError(
            f"class_weight={classifier.class_weight!r} needs X in memory; for rows in chunks give "
            "sample_weight, or class_prior"
        )
    several = components_asked(spec, as_training(classifier.training))
    direct = spec.direct is not None and classifier.pooling is None and several is None
    watched = WatchedPasses(data)
    by_label = _sums_by_label(classifier, spec if direct else None, watched)
    marks = (None, UNLABELLED) if classifier.semi_supervised else ()
    unlabelled = sum(by_label.pop(mark)[0] for mark in marks if mark in by_label)
    classes = _checked_classes(by_label, unlabelled)
    sums = [by_label[label] for label in classes.tolist()]
    take_names(classifier, data, feature_names)
    if several is not None:
        sizes = data.n_variables, classes.size
        rows = ChunkRows(data, classes, np.array([total for total, *_ in sums]), unlabelled)
        return class_mixtures(classifier, spec, several, *sizes).fit(rows), classes
    problem = problem_of(classifier, spec, data.n_variables, classes.tolist(), labelled=True)
    totals = np.array([total for total, *_ in sums])
    partly = unlabelled > 0
    if direct and not partly and not watched.has_holes:
        model = spec.direct.fit_chunks(problem, data, classes, sums)
        return FittedClasses(model, totals), classes
    problem = with_prior(problem, classifier.class_prior)
    rule = rule_of(classifier)
    return fit_classes_in_chunks(spec, problem, data, classes, totals, rule, partly), classes


def _sums_by_label(
    classifier: Any, direct: FamilySpec | None, data: WatchedPasses
) -> dict[Any, Any]:
    """Return the weight of each class, and the sums that a direct fit needs."""
    if direct is None:
        weights: dict[Any, float] = data.total(class_weights)
        return {label: (weight,) for label, weight in weights.items()}
    early = None
    if kind_of(as_blocks(classifier.blocks)[1]) != "given":
        early = problem_of(classifier, direct, 1, [], labelled=True).structure
    sums: dict[Any, Any] = direct.direct.sums(data, early)
    return sums


def _checked_classes(by_label: dict[Any, Any], unlabelled: float) -> Classes:
    """Return the labels that occur, which must be class labels."""
    if None in by_label:
        raise ValueError(
            "Input y contains NaN or None, but every row needs a class; leave out such rows, "
            "or learn from them with semi_supervised=True"
        )
    if not by_label:
        raise ValueError("all rows are unlabelled: y holds -1 or None only; one needs a class")
    classes: Classes = unique_labels(list(by_label), "y")
    if not sum(total for total, *_ in by_label.values()) > 0:
        which = "labelled row; one" if unlabelled else "row; at least one"
        raise ValueError(f"sample_weight is zero for every {which} must count")
    if classes.dtype.kind == "f" and (classes != np.floor(classes)).any():
        odd = classes[classes != np.floor(classes)][0]
        raise ValueError(
            f"Unknown label type: continuous. y holds {odd}, which is no class; use a "
            "regressor, or integers"
        )
    return classes
