"""The score of the classifier's own family, as a log-linear score."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.groups import Group
from exchangeable.data.observed import Observed
from exchangeable.families.common.log_linear import scores as log_linear
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.contract import FamilySpec
from exchangeable.families.problem import Problem
from exchangeable.fitting.classes.labelled import fit_classes
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.hybrid.design import Design

LARGEST = 4096
"""Maximum number of variables for which scores that are not linear are tried: the time to normalise
look-ups by counts grows quadratically."""
TAIL = 10
"""Number of counts from whose look-ups those of larger counts are extrapolated."""


@dataclass(frozen=True)
class OwnFamily:
    """The family of a classifier, and how it is fitted.

    Attributes
    ----------
    spec : FamilySpec
        The family.
    problem : Problem
        Blocks and priors, without rows.
    rule : StopRule
        When its fit stops.
    """

    spec: FamilySpec
    problem: Problem
    rule: StopRule

    def scores(self, design: Design, n_jobs: int | None = None) -> LogLinear:
        """Fit the family to rows of all classes, and return its scores."""
        spec, problem = self.spec, self.problem
        model: Any
        if spec.direct is not None and problem.pooling is None:
            members = [np.flatnonzero(design.labels == y) for y in range(design.n_classes)]
            groups = [Group(each, design.weights[each]) for each in members]
            model = spec.direct.fit(problem, design.rows, groups, n_jobs)
        else:
            observed = Observed(design.rows)
            rows = (observed, design.labels, design.weights)
            model = fit_classes(spec, problem, *rows, self.rule, n_jobs).model
        scores = model.log_linear()
        assert scores is not None
        return finite(scores)

    def out_of_fold(
        self, design: Design, fold: IntArray, n_folds: int, asked: bool, n_jobs: int | None = None
    ) -> FloatArray | None:
        """Return the scores of each row by fits to the other folds.

        None if these lack a class, or if normalising their scores would take too long, unless the
        scores were requested.
        """
        out = np.empty((design.rows.n_rows, design.n_classes))
        for f in range(n_folds):
            kept, held = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
            if np.unique(design.labels[kept]).size < design.n_classes:
                return None
            scores = self.scores(design.take(kept), n_jobs)
            if not (asked or scores.is_linear or design.n_variables <= LARGEST):
                return None
            out[held] = log_linear.score(design.take(held).rows, scores, n_jobs)
        return out


def finite(scores: LogLinear) -> LogLinear:
    """Return scores without −inf: counts never seen are extrapolated linearly."""
    by_count = scores.by_count
    if not by_count.size or np.isfinite(by_count).all():
        return scores
    filled = by_count.copy()
    for column in filled.T:
        known = np.flatnonzero(np.isfinite(column))
        last = int(known[-1])
        first = int(known[max(0, known.size - TAIL)])
        rise = (column[last] - column[first]) / max(last - first, 1)
        column[:] = np.interp(np.arange(column.size), known, column[known])
        column[last + 1 :] = column[last] + rise * np.arange(1, column.size - last)
    return replace(scores, by_count=filled)
