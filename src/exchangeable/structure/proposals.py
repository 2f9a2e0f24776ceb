"""Blocks to be tried: learned from posteriors, from rows with holes, or from sums over chunks.

Which blocks to try is a proposal only. Whether they are kept is decided by the likelihood.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data import row_kernels
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.rows import Rows
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.moments import sum_moments
from exchangeable.families.common.streamed import Streamed
from exchangeable.families.common.tables import group_histograms
from exchangeable.families.contract import Family, Model
from exchangeable.families.sums import Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run
from exchangeable.runtime.uniforms import Uniforms
from exchangeable.structure.intervals import Intervals, interval_histograms, recipe_sums
from exchangeable.structure.learner import (
    NEGLIGIBLE,
    BlockLearner,
    Structure,
    learn_partitions,
)
from exchangeable.structure.rounds import Count, learn_from_sums, propose_from_sums

HARDLY = 1e-3
"""Rows that belong to a class with less probability than this do not help to choose its blocks."""
UNIFORMS, MOST_UNIFORMS = "uniform numbers", 3 << 22
"""Under what name the numbers for draws are kept, and how many of them for all classes."""
FEW_ROWS = 256
"""Fewer packed rows are not worth sums for all values of a byte."""


@dataclass(frozen=True)
class Proposal:
    """Blocks for all classes.

    Attributes
    ----------
    partitions : list of Partition
        The blocks of each class.
    count : callable, optional
        Returns the histograms of some of the classes in them, where the proposer knows them.
    """

    partitions: list[Partition]
    count: Callable[[IntArray], list[FloatArray]] | None = None


Proposer = Callable[[Model | None, Any], list[Proposal]]
"""Returns one or more proposals, given the parameters so far (if any) and sums under them."""


def proposers(data: InMemory | Streamed, structure: Structure, labelled: bool) -> list[Proposer]:
    """Return what proposes blocks while EM runs, each to be used until it has converged with it."""
    if isinstance(structure, list) or not structure.needs_moments:
        return []
    learners = [structure] if labelled else structure.phases()
    return [proposer(data, learner, labelled) for learner in learners]


def learners_of(family: Family, data: Any) -> list[Proposer]:
    """Return what proposes blocks while EM of a family runs, if anything does."""
    own = family.learners(data)
    if own is not None:
        return own
    problem = family.problem
    return proposers(data, problem.structure, problem.labelled) if problem.relearns else []


def proposer(data: InMemory | Streamed, structure: Structure, labelled: bool) -> Proposer:
    """Return what proposes blocks, learned or given."""
    if isinstance(data, InMemory) and data.examples.holes is not None:
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
    """Return the blocks that EM begins with.

    Where it goes on learning they are what its first learner proposes first, else what the learner
    ends with.
    """
    learners = proposers(data, structure, labelled) if relearns else []
    if learners:
        return learners[0](model, sums)[0]
    return proposer(data, structure, labelled)(model, sums)[-1]


def _from_posteriors(
    data: InMemory, learner: BlockLearner, model: Model | None, sums: Sums
) -> list[Proposal]:
    """Propose what the learner finds in rows without holes, as in the paper's Algorithm 1."""
    moments = sums.moments
    if learner.needs_moments and not moments.size:
        moments = sum_moments(data.examples, sums.posterior, n_jobs=data.n_jobs)
    found = learner.propose(data.examples, sums.posterior, moments, sums.totals.size, data.n_jobs)
    return [Proposal(partitions) for partitions in found]


def _from_classes(
    data: InMemory, learner: BlockLearner, model: Model | None, sums: Sums
) -> list[Proposal]:
    """Propose what the learner finds in the rows of each class, where some labels are known."""
    groups = []
    for y in range(sums.totals.size):
        mass = data.examples.weights * sums.posterior[:, y]
        members = np.flatnonzero(mass > NEGLIGIBLE)
        groups.append(Group(members, mass[members]))
    return [Proposal(learn_partitions(data.examples.rows, groups, learner, data.n_jobs))]


def _from_chunks(
    data: Streamed, learner: BlockLearner, model: Model | None, sums: Sums
) -> list[Proposal]:
    """Propose what the learner finds in sums over chunks."""
    moments = sums.moments
    if not learner.needs_moments:
        return [Proposal(learner.without_rows(data.n_variables, sums.totals.size))]
    if not moments.size:
        moments = data.summed(partial(sum_moments, n_jobs=data.n_jobs), sums.shares)
    counted = _counts_of_intervals(data, sums)
    found = propose_from_sums(learner, moments, sums.totals, data.total, counted)
    return [Proposal(partitions) for partitions in found]


def _from_labelled_chunks(
    data: Streamed, learner: BlockLearner, model: Model | None, sums: Sums
) -> list[Proposal]:
    """Propose what the learner finds in sums over the rows of each class."""
    by_class = data.passes.total(partial(recipe_sums, recipe=sums.recipe, n_jobs=data.n_jobs))
    counted = _counts_of_intervals(data, sums)
    return [Proposal(learn_from_sums(learner, by_class, data.n_variables, counted))]


def _counts_of_intervals(data: Streamed, sums: Sums) -> Count:
    """Return what counts intervals of blocks in a pass over chunks."""

    def count(wanted: list[Intervals]) -> list[FloatArray]:
        histograms: list[FloatArray] = data.passes.total(
            partial(interval_histograms, recipe=sums.recipe, wanted=wanted, n_jobs=data.n_jobs)
        )
        return histograms

    return count


@dataclass(frozen=True)
class CompletedRows:
    """The rows of one class, completed: how much each counts, and how probable its class is."""

    rows: Rows
    weights: FloatArray
    posterior: FloatArray

    @property
    def group(self) -> Group:
        """All the rows, with their weights."""
        return Group(np.arange(self.rows.n_rows), self.weights)

    @property
    def moments(self) -> FloatArray:
        """Sums over the rows with each variable on, as in `Sums`, of this one class."""
        moments = np.zeros((2, self.rows.n_variables))
        if self.rows.indptr.size or self.rows.n_rows < FEW_ROWS:
            row_kernels.sum_powers(self.rows.arrays, self.weights, self.posterior, moments)
            return moments
        by_value = np.zeros(((self.rows.n_variables + 7) // 8, 256, 2))
        packed = self.rows.bits.view(np.uint8)
        row_kernels.sum_powers_of_bytes(packed, self.weights, self.posterior, by_value, moments)
        return moments


def _from_completed_rows(
    data: InMemory, structure: Structure, labelled: bool, model: Model | None, sums: Sums
) -> list[Proposal]:
    """Propose what the learner finds in rows whose holes are drawn from the model so far.

    Blocks that are given are counted in the same rows. Without a model nothing can be drawn, and
    only blocks that do not depend on the rows can be proposed.
    """
    if model is None:
        if not isinstance(structure, list):
            structure = structure.without_rows(data.n_variables, sums.totals.size)
        return [Proposal(structure)]

    def choose(completed: CompletedRows, y: int) -> list[Partition]:
        if isinstance(structure, list):
            return [structure[y]]
        learner = structure
        if labelled or not learner.needs_moments:
            ones = np.empty(0)
            if learner.needs_moments:
                ones = group_ones(completed.rows, [completed.group], 1)[0]
            return [learner.learn(completed.rows, completed.group, ones)]
        return learner.propose_one(
            completed.rows, completed.weights, completed.moments, data.examples.total
        )

    classes = range(sums.totals.size)
    completed = run(lambda y: _complete(data.examples, model, sums, y), classes, data.n_jobs)
    found = run(lambda y: choose(completed[y], y), classes, data.n_jobs)
    return [
        Proposal(list(partitions), partial(_count_completed, list(partitions), completed, sums))
        for partitions in zip(*found, strict=True)
    ]


def _complete(examples: Examples, model: Model, sums: Sums, y: int) -> CompletedRows:
    """Draw the holes of a class's rows, always from the same random numbers.

    So the proposals change only with the parameters, and settle when these do.
    """
    members = np.flatnonzero(sums.posterior[:, y] > HARDLY)
    observed = examples.observed.take(members)
    uniforms = examples.derived.setdefault(UNIFORMS, Uniforms(MOST_UNIFORMS))
    drawn = model.drawn_rows(observed, y, uniforms)
    posterior = sums.posterior[members, y]
    return CompletedRows(drawn, examples.weights[members] * posterior, posterior)


def _count_completed(
    partitions: list[Partition], completed: Sequence[CompletedRows], sums: Sums, classes: IntArray
) -> list[FloatArray]:
    """Return the histograms of some classes in the blocks proposed, from the completed rows."""
    histograms = []
    for y in classes:
        rows, group = completed[y].rows, completed[y].group
        histogram = group_histograms(rows, [group], [partitions[y]], 1)[0]
        # The rows left out belong to the class too, if only by little.
        scale = sums.totals[y] / group.total if group.total > 0 else 0.0
        histograms.append(histogram * scale)
    return histograms
