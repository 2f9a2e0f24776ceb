"""Learning blocks from rows with missing entries, given a model: in memory, or in chunks.

Each function returns one or more proposals: the blocks of all classes, and a function that counts
the rows of some classes in them. The sweep only needs moments, for which missing entries have
expectations; other learners, and the counts, use rows whose missing entries are drawn from the
model.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import group_ones
from exchangeable.families.common.class_rows import ClassRows, Completion, class_rows
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.common.tables import group_histograms
from exchangeable.families.contract import Model
from exchangeable.families.sums import Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run
from exchangeable.structure.intervals import ClassSums, EachClass, group_sums
from exchangeable.structure.learner import BlockLearner, Structure
from exchangeable.structure.rounds import learn_from_sums, propose_from_sums

HARDLY = 1e-3
"""Rows that belong to a class with a smaller probability are not used to choose its blocks."""
Found = tuple[list[Partition], Callable[[IntArray], list[FloatArray]]]


def swept(
    data: InMemory | Streamed, learner: BlockLearner, model: Model, sums: Sums
) -> list[Found]:
    """Return what a learner that only sweeps finds; rows are drawn if they are to be counted."""
    if isinstance(data, Streamed):
        function = partial(_expected_moments, model=model, n_jobs=data.n_jobs)
        moments = data.summed(function, sums.shares)
    else:
        moments = model.expected_moments(data, sums.posterior, HARDLY)
    return [
        (partitions, partial(_count_drawn, data, partitions, model, sums))
        for partitions in learner.sweeps(moments, data.total, data.n_jobs)
    ]


def _expected_moments(
    examples: Examples, posterior: FloatArray, model: Model, n_jobs: int | None
) -> FloatArray:
    return model.expected_moments(InMemory(examples, n_jobs=n_jobs), posterior, HARDLY)


def _count_drawn(
    data: InMemory | Streamed,
    partitions: list[Partition],
    model: Model,
    sums: Sums,
    classes: IntArray,
) -> list[FloatArray]:
    """Return the histograms of some classes in given blocks, for rows drawn for this purpose."""
    if isinstance(data, Streamed):
        ((_, count),) = in_chunks(data, partitions, False, model, sums)
    else:
        ((_, count),) = in_memory(data, partitions, False, model, sums)
    return count(classes)


def in_memory(
    data: InMemory, structure: Structure, labelled: bool, model: Model, sums: Sums
) -> list[Found]:
    """Return the blocks learned from the rows of each class."""

    def choose(completed: ClassRows, y: int) -> list[Partition]:
        if isinstance(structure, list):
            return [structure[y]]
        rows, group = completed.rows, completed.group
        if labelled or not structure.needs_moments:
            ones = np.empty(0)
            if structure.needs_moments:
                ones = group_ones(rows, [group], 1)[0]
            return [structure.learn(rows, group, ones)]
        return structure.propose_one(rows, group.weights, completed.moments, data.examples.total)

    classes = range(sums.totals.size)
    completed = run(
        lambda y: class_rows(data.examples, sums.posterior, y, model, HARDLY), classes, data.n_jobs
    )
    found = run(lambda y: choose(completed[y], y), classes, data.n_jobs)
    return [
        (list(partitions), partial(_count, list(partitions), completed, sums))
        for partitions in zip(*found, strict=True)
    ]


def in_chunks(
    data: Streamed, structure: Structure, labelled: bool, model: Model, sums: Sums
) -> list[Found]:
    """Return the same from sums over chunks."""
    n_variables, n_classes = data.n_variables, sums.totals.size
    completion = data.completion(model, sums.shares, HARDLY)

    def over(function: EachClass) -> list[Any]:
        each: list[Any] = data.completed(partial(_of_every_class, function=function), completion)
        return each

    if isinstance(structure, list):
        found = [structure]
    elif not structure.needs_moments:
        found = [structure.without_rows(n_variables, n_classes)]
    elif labelled:
        by_class = data.completed(_class_sums, completion)
        found = [learn_from_sums(structure, by_class, n_variables, over)]
    else:
        moments, totals = data.completed(_class_moments, completion)
        found = propose_from_sums(structure, moments, totals, data.total, over)
    return [
        (partitions, partial(_count_in_chunks, partitions, data, completion, sums))
        for partitions in found
    ]


def _count(
    partitions: list[Partition], completed: Sequence[ClassRows], sums: Sums, classes: IntArray
) -> list[FloatArray]:
    """Return the histograms of some classes in the blocks proposed."""
    counted = _class_histograms(completed, partitions, classes)
    return _scaled_up(counted, sums.totals[classes])


def _count_in_chunks(
    partitions: list[Partition],
    data: Streamed,
    completion: Completion,
    sums: Sums,
    classes: IntArray,
) -> list[FloatArray]:
    """Return the histograms of some classes in the blocks proposed, by a pass."""
    function = partial(_class_histograms, partitions=partitions, classes=classes)
    return _scaled_up(data.completed(function, completion), sums.totals[classes])


def _class_histograms(
    completed: Sequence[ClassRows], partitions: Sequence[Partition], classes: IntArray
) -> list[tuple[FloatArray, float]]:
    """Return the weight of some classes' rows by count in each block, and in all."""
    return [
        (
            group_histograms(completed[y].rows, [completed[y].group], [partitions[y]], 1)[0],
            completed[y].group.total,
        )
        for y in classes
    ]


def _scaled_up(counted: Sequence[tuple[FloatArray, float]], totals: FloatArray) -> list[FloatArray]:
    """Return histograms scaled to the weights of the classes.

    The rows that were left out belong to a class too, if only a little.
    """
    pairs = zip(counted, totals, strict=True)
    return [h * (total / seen if seen > 0 else 0.0) for (h, seen), total in pairs]


def _of_every_class(completed: Sequence[ClassRows], function: EachClass) -> list[Any]:
    return [function(found.rows, found.group, y) for y, found in enumerate(completed)]


def _class_sums(completed: Sequence[ClassRows]) -> list[ClassSums]:
    return [group_sums(found.rows, [found.group], 1)[0] for found in completed]


def _class_moments(completed: Sequence[ClassRows]) -> tuple[FloatArray, FloatArray]:
    moments = np.stack([found.moments for found in completed], axis=2)
    return moments, np.array([found.group.total for found in completed])
