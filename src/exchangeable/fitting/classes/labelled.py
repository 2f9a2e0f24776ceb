"""Classes from labels: a direct fit if everything is known, EM otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import (
    FloatArray,
    IntArray,
    as_numbers,
    check_sample_weight,
    unique_labels,
)
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.groups import Group
from exchangeable.data.observed import Observed
from exchangeable.data.stream.passes import Passes
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.recipes import Labelled
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Family, FamilySpec, Model
from exchangeable.families.mixture import Mixture
from exchangeable.families.problem import Problem
from exchangeable.fitting.em import EMState, StopRule, run_em
from exchangeable.fitting.progress import FitProgress
from exchangeable.fitting.runs import begin, families_of
from exchangeable.structure.proposals import learners_of

UNIFORM = "uniform"
"""The prior under which all classes are equally probable."""

__all__ = [
    "FittedClasses",
    "check_class_prior",
    "class_groups",
    "fit_classes",
    "fit_classes_in_chunks",
    "log_prior",
    "unique_labels",
    "with_prior",
]


@dataclass(frozen=True)
class FittedClasses:
    """The result of fitting classes.

    Attributes
    ----------
    model : Model
        One distribution per class.
    totals : array of shape (n_classes,)
        Weight of the rows of each class.
    n_iter : int
        How many times parameters were estimated.
    state : EMState, optional
        The final state of EM, if it was needed.
    """

    model: Model
    totals: FloatArray
    n_iter: int = 1
    state: EMState | None = None


def fit_classes(
    spec: FamilySpec,
    problem: Problem,
    observed: Observed,
    labels: IntArray,
    weights: FloatArray,
    rule: StopRule,
    n_jobs: int | None = None,
) -> FittedClasses:
    """Fit classes to rows with labels 0..k − 1, or −1 if the label is unknown.

    Known labels are fixed posteriors; posteriors of missing labels and entries are computed by EM.
    It starts from the labelled rows alone, whose posteriors do not change.
    """
    counting = np.flatnonzero(weights > 0)
    if (labels[counting] < 0).all():
        raise ValueError("sample_weight is zero for every labelled row; one must count")
    examples, _ = merge_equal_rows(observed.take(counting), weights[counting], labels[counting])
    problem = replace(problem, examples=examples, labelled=True)
    families = families_of(spec, problem)
    data = InMemory(examples, n_jobs=n_jobs)
    known = (examples.clamp[:, None] == np.arange(problem.n_components)).astype(np.float64)
    if examples.holes is None and (labels[counting] >= 0).all():
        return _settled(families, data, known, examples.weights @ known, rule)
    return _by_em(families, data, known, rule)


def fit_classes_in_chunks(
    spec: FamilySpec,
    problem: Problem,
    passes: Passes,
    classes: npt.NDArray[Any],
    totals: FloatArray,
    rule: StopRule,
    partly: bool = False,
) -> FittedClasses:
    """Fit classes to rows in chunks, all labelled, or partly labelled if `partly`.

    `totals` are the weights of the labelled rows of each class.
    """
    data = Streamed.of(passes, classes, partly)
    problem = replace(problem, chunks=data, labelled=True)
    families = families_of(spec, problem)
    if partly or data.has_holes:
        return _by_em(families, data, Labelled(classes), rule)
    return _settled(families, data, Labelled(classes), totals, rule)


def _by_em(
    families: Sequence[Family], data: InMemory | Streamed, known: Any, rule: StopRule
) -> FittedClasses:
    """Fit rows with missing labels or entries, starting from the known labels."""
    state: EMState | None = None
    with FitProgress(1, rule.max_iter) as progress:
        for family in families:
            sums: Any = family.held(data, known) if state is None else data.expect(state.best)
            state = begin(data, family, sums, before=None if state is None else state.best)
            state = run_em(
                data,
                family,
                state,
                rule,
                learners=learners_of(family, data),
                report=lambda state: progress.update(0, state),
            )
    assert state is not None
    return FittedClasses(state.best.model, state.totals, state.n_iter, state)


def _settled(
    families: Sequence[Family],
    data: InMemory | Streamed,
    known: Any,
    totals: FloatArray,
    rule: StopRule,
) -> FittedClasses:
    """Fit complete, labelled rows: sums are computed once, and steps repeated.

    Families whose step is not the full M-step repeat it until the parameters hardly change. `known`
    are the posteriors given by the labels, or a function that returns them.
    """
    steps = 0
    log_prior = np.zeros(totals.size)
    before: Mixture | None = None
    for family in families:
        sums: Any = family.held(data, known) if before is None else data.expect(before)
        before = begin(data, family, sums, before=before).mixture
        before = Mixture(before.model, log_prior)
        if family.closed_form:
            continue
        held = data.expect(before)
        for step in range(1, rule.max_iter + 1):
            after = family.following(data, before.model, held, step)[0]
            moved = family.distance(before.model, after)
            before, steps = Mixture(after, log_prior), steps + 1
            if moved < rule.tol:
                break
    assert before is not None
    return FittedClasses(before.model.whole(), totals, max(steps, 1))


def class_groups(
    y: npt.NDArray[Any], classes: npt.NDArray[Any], sample_weight: npt.ArrayLike | None
) -> list[Group]:
    """Return the rows of each class, with their weights."""
    small = np.uint16 if classes.size < 1 << 16 else np.int64  # sorted by counting
    number = np.searchsorted(classes, y).astype(small)
    order = np.argsort(number, kind="stable")
    cuts = np.cumsum(np.bincount(number, minlength=classes.size))[:-1]
    members = np.split(order, cuts)
    if sample_weight is None:
        return [Group(rows) for rows in members]
    weight = check_sample_weight(sample_weight, y.size)
    return [Group(rows, weight[rows]) for rows in members]


def check_class_prior(class_prior: Any) -> None:
    """Reject an unknown name; numbers are checked once the classes are known."""
    if isinstance(class_prior, str | bool) and class_prior != UNIFORM:
        raise ValueError(
            f"class_prior={class_prior!r} is unknown; expected None (learned), {UNIFORM!r}, or one "
            "probability per class"
        )


def log_prior(totals: FloatArray, class_prior: str | npt.ArrayLike | None = None) -> FloatArray:
    """Return the log-probability of each class: given, proportional to its weight, or equal."""
    if class_prior is not None and not isinstance(class_prior, str):
        prior = as_numbers(class_prior, "class_prior").astype(np.float64)
        if prior.shape != totals.shape:
            raise ValueError(
                f"class_prior has shape {prior.shape}, expected {totals.shape}, one per class"
            )
        if not ((prior >= 0).all() and np.isclose(prior.sum(), 1.0)):
            raise ValueError(f"class_prior must hold probabilities that add up to 1, got {prior}")
    elif class_prior is None and totals.sum() > 0:
        prior = totals / totals.sum()
    else:
        prior = np.full(totals.size, 1 / totals.size)
    with np.errstate(divide="ignore"):
        return np.log(prior)


def with_prior(problem: Problem, class_prior: str | npt.ArrayLike | None) -> Problem:
    """Return the problem with the probabilities of the classes, if they are not learned."""
    if class_prior is None:
        return problem
    return replace(problem, log_prior=log_prior(np.ones(problem.n_components), class_prior))
