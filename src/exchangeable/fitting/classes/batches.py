"""Classes that are mixtures, updated in batches by stochastic EM for each class."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.observed import Observed
from exchangeable.families.grouped import GroupedModel
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.batches import parts_of
from exchangeable.fitting.classes.mixtures import (
    ClassMixtures,
    InMemoryRows,
    grouped,
    mixture_of_class,
)
from exchangeable.fitting.streams import Kept, Stream
from exchangeable.runtime.interrupts import stopping


class ClassesSoFar(NamedTuple):
    """Classes after some batches.

    Attributes
    ----------
    model : GroupedModel
        The classes.
    totals : array of shape (n_classes,)
        Weight of the rows of each class so far.
    kept : sequence of Kept or None
        The state that the next batch needs, for each class; None for classes without rows so far,
        and for all classes after a fit to all rows at once or from a file.
    """

    model: GroupedModel
    totals: FloatArray
    kept: Sequence[Kept | None]


def add_batch_to_mixtures(
    plan: ClassMixtures,
    before: ClassesSoFar | None,
    observed: Observed,
    labels: IntArray,
    weights: FloatArray,
    n_classes: int,
) -> ClassesSoFar:
    """Return classes after one more batch of labelled rows.

    The first rows of a class are fitted as usual; later ones update its sums. Ctrl-C ends the fits
    of all classes.
    """
    with stopping():
        return _add_batch(plan, before, observed, labels, weights, n_classes)


def _add_batch(
    plan: ClassMixtures,
    before: ClassesSoFar | None,
    observed: Observed,
    labels: IntArray,
    weights: FloatArray,
    n_classes: int,
) -> ClassesSoFar:
    totals = np.bincount(labels, weights, minlength=n_classes).astype(np.float64)
    rows = InMemoryRows(observed, labels, weights, plan.n_jobs)
    mixtures, kept = list[Mixture](), list[Kept | None]()
    for y in range(n_classes):
        own = np.flatnonzero((labels == y) & (weights > 0))
        parts = parts_of(observed.take(own), weights[own], 0)
        if before is not None and before.totals[y] > 0:
            mixture, known = mixture_of_class(before.model, y), before.kept[y]
            if own.size:
                stream = _stream(plan, mixture)
                if known is None:
                    known = stream.imagine(mixture, np.exp(mixture.log_prior) * before.totals[y])
                mixture, known = stream.add(mixture, known, parts)
        elif before is not None and not own.size:
            mixture, known = mixture_of_class(before.model, y), None
        else:
            mixture = plan.first(rows.of_class(y, None)).mixture
            known = _stream(plan, mixture).begin(mixture, parts) if own.size else None
        mixtures.append(mixture)
        kept.append(known)
    sums = totals if before is None else before.totals + totals
    return ClassesSoFar(grouped(mixtures), sums, kept)


def _stream(plan: ClassMixtures, mixture: Mixture) -> Stream:
    """Return the object that accepts batches of one class."""
    return Stream(plan.spec, plan.make(mixture.log_prior.size), plan.rule, plan.n_jobs)
