"""Proposals of blocks: learned from posteriors, from incomplete rows, or from sums over chunks.

These are only proposals. Whether they are accepted is decided by the likelihood.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.groups import Group
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.moments import sum_moments
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.contract import Family, Model
from exchangeable.families.sums import Sums
from exchangeable.partitions import Partition
from exchangeable.structure import completed
from exchangeable.structure.intervals import EachClass, Pass, of_every_class, recipe_sums
from exchangeable.structure.learner import (
    NEGLIGIBLE,
    BlockLearner,
    Structure,
    learn_partitions,
)
from exchangeable.structure.rounds import learn_from_sums, propose_from_sums


@dataclass(frozen=True)
class Proposal:
    """Blocks for all classes.

    Attributes
    ----------
    partitions : list of Partition
        The blocks of each class.
    count : callable, optional
        Returns the histograms of some of the classes in them, if the proposer knows them.
    drawn : bool
        Whether it counts rows that were drawn anyway; otherwise it draws them when it is called.
    """

    partitions: list[Partition]
    count: Callable[[IntArray], list[FloatArray]] | None = None
    drawn: bool = True


Proposer = Callable[[Model | None, Any], list[Proposal]]
"""Returns one or more proposals, given the parameters so far (if any) and sums under them."""


def proposers(data: InMemory | Streamed, structure: Structure, labelled: bool) -> list[Proposer]:
    """Return the learners that propose blocks in EM, each used until EM has converged with it."""
    if isinstance(structure, list) or not structure.needs_moments:
        return []
    learners = [structure] if labelled else structure.phases()
    return [proposer(data, learner, labelled) for learner in learners]


def learners_of(family: Family, data: Any) -> list[Proposer]:
    """Return the learners that propose blocks in EM of a family, if there are any."""
    own = family.learners(data)
    if own is not None:
        return own
    problem = family.problem
    return proposers(data, problem.structure, problem.labelled) if problem.relearns else []


def proposer(data: InMemory | Streamed, structure: Structure, labelled: bool) -> Proposer:
    """Return the proposer of blocks, learned or given."""
    if data.has_holes:
        return partial(_from_completed_rows, data, structure, labelled)
    if isinstance(structure, list):
        return lambda model, sums: [Proposal(structure)]
    if isinstance(data, Streamed):
        return partial(_from_labelled_chunks if labelled else _from_chunks, data, structure)
    if labelled:
        return partial(_from_classes, data, structure)
    return partial(_from_posteriors, data, structure)


def first_blocks(
    data: InMemory | Streamed,
    structure: Structure,
    labelled: bool,
    relearns: bool,
    model: Model | None,
    sums: Sums,
) -> Proposal:
    """Return the initial blocks of EM.

    If learning continues, they are the first proposal of the first learner; otherwise the final
    result of the learner.
    """
    learners = proposers(data, structure, labelled) if relearns else []
    if learners:
        return learners[0](model, sums)[0]
    return proposer(data, structure, labelled)(model, sums)[-1]


def _from_posteriors(
    data: InMemory, learner: BlockLearner, model: Model | None, sums: Sums
) -> list[Proposal]:
    """Propose blocks learned from complete rows, as in the paper's Algorithm 1."""
    moments = sums.moments
    if learner.needs_moments and not moments.size:
        moments = sum_moments(data.examples, sums.posterior, n_jobs=data.n_jobs)
    found = learner.propose(data.examples, sums.posterior, moments, sums.totals.size, data.n_jobs)
    return [Proposal(partitions) for partitions in found]


def _from_classes(
    data: InMemory, learner: BlockLearner, model: Model | None, sums: Sums
) -> list[Proposal]:
    """Propose blocks learned from the rows of each class, if some labels are known."""
    groups = []
    for y in range(sums.totals.size):
        mass = data.examples.weights * sums.posterior[:, y]
        members = np.flatnonzero(mass > NEGLIGIBLE)
        groups.append(Group(members, mass[members]))
    return [Proposal(learn_partitions(data.examples.rows, groups, learner, data.n_jobs))]


def _from_chunks(
    data: Streamed, learner: BlockLearner, model: Model | None, sums: Sums
) -> list[Proposal]:
    """Propose blocks learned from sums over chunks."""
    moments = sums.moments
    if not learner.needs_moments:
        return [Proposal(learner.without_rows(data.n_variables, sums.totals.size))]
    if not moments.size:
        moments = data.summed(partial(sum_moments, n_jobs=data.n_jobs), sums.shares)
    over = _passes_over(data, sums)
    found = propose_from_sums(learner, moments, sums.totals, data.total, over)
    return [Proposal(partitions) for partitions in found]


def _from_labelled_chunks(
    data: Streamed, learner: BlockLearner, model: Model | None, sums: Sums
) -> list[Proposal]:
    """Propose blocks learned from sums over the rows of each class."""
    by_class = data.passes.total(partial(recipe_sums, recipe=sums.recipe, n_jobs=data.n_jobs))
    over = _passes_over(data, sums)
    return [Proposal(learn_from_sums(learner, by_class, data.n_variables, over))]


def _passes_over(data: Streamed, sums: Sums) -> Pass:
    """Return a function that makes a pass over chunks for every class."""

    def over(function: EachClass) -> list[Any]:
        found: list[Any] = data.passes.total(
            partial(of_every_class, recipe=sums.recipe, function=function, n_jobs=data.n_jobs)
        )
        return found

    return over


def _from_completed_rows(
    data: InMemory | Streamed,
    structure: Structure,
    labelled: bool,
    model: Model | None,
    sums: Sums,
) -> list[Proposal]:
    """Propose blocks learned from incomplete rows, given the current model.

    Given blocks are counted in the same rows. Without a model nothing can be drawn, and only blocks
    that do not depend on the rows can be proposed.
    """
    if model is None:
        if not isinstance(structure, list):
            structure = structure.without_rows(data.n_variables, sums.totals.size)
        return [Proposal(structure)]
    if not labelled and isinstance(structure, BlockLearner) and structure.sweeps_only:
        swept = completed.swept(data, structure, model, sums)
        return [Proposal(*each, drawn=False) for each in swept]
    if isinstance(data, Streamed):
        found = completed.in_chunks(data, structure, labelled, model, sums)
    else:
        found = completed.in_memory(data, structure, labelled, model, sums)
    return [Proposal(*each) for each in found]
