"""Classes that are mixtures: a fit by EM to the rows of each, and all of them as one model."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import merge_equal_rows
from exchangeable.data.observed import Observed
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.contract import FamilySpec
from exchangeable.families.grouped import GroupedModel
from exchangeable.families.problem import Problem
from exchangeable.fitting.classes import FittedClasses
from exchangeable.fitting.em import StopRule
from exchangeable.fitting.mixtures import FittedMixture, fit_mixture
from exchangeable.fitting.runs import Runs
from exchangeable.structure.learner import BlockLearner

LONGER = 10
"""Runs may take this many times the iterations of classes without components."""


def fit_class_mixtures(
    spec: FamilySpec,
    make: Callable[[int], Problem],
    observed: Observed,
    labels: IntArray,
    weights: FloatArray,
    n_components: int,
    n_init: int,
    rule: StopRule,
    n_jobs: int | None = None,
) -> FittedClasses:
    """Fit a mixture to the rows of each class; if none of them counts, to all of them alike.

    Such a class has probability 0.

    Parameters
    ----------
    spec : FamilySpec
        The family of the components.
    make : callable
        Returns the problem of a number of components.
    observed, labels, weights
        The rows, the number of the class of each, and how much each counts.
    n_components, n_init : int
        Number of components per class, and of starts.
    rule : StopRule
        When a run ends.
    n_jobs : int, optional
        Number of threads.
    """
    longer = replace(rule, max_iter=LONGER * rule.max_iter)
    found = list[FittedMixture]()
    totals = np.bincount(labels, weights).astype(np.float64)
    for y in range(totals.size):
        own = np.where(labels == y, weights if totals[y] > 0 else 1.0, 0.0)
        members = np.flatnonzero(own > 0)
        examples, member = merge_equal_rows(observed.take(members), own[members])
        problem = make(max(1, min(n_components, examples.rows.n_rows)))
        _check_blocks(spec, problem)
        problem = replace(problem, examples=examples)
        data = InMemory(examples, member, own[members], n_jobs)
        generators = np.random.default_rng(0).spawn(n_init)
        runs = Runs(spec, problem, data, longer, "rows", generators)
        found.append(fit_mixture(runs, "best", n_jobs))
    inner = type(found[0].model).stack([each.model for each in found])
    group = np.repeat(np.arange(len(found)), [each.weights.size for each in found])
    log_shares = np.log(np.concatenate([each.weights for each in found]))
    n_iter = max(state.n_iter for each in found for state in each.states)
    return FittedClasses(GroupedModel(inner, group, log_shares), totals, max(n_iter, 1))


def _check_blocks(spec: FamilySpec, problem: Problem) -> None:
    """Refuse blocks that each class would learn, where all components must have the same."""
    structure = problem.structure
    if spec.shared_blocks and isinstance(structure, BlockLearner) and structure.needs_moments:
        raise ValueError(
            f"blocks={structure.name!r} would give each class blocks of its own, but all "
            f"components of family={spec.name!r} have the same; give blocks='independent', "
            "blocks='full' or lists"
        )
