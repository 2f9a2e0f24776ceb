"""Blocks of classes with complete, labelled rows: sums are sufficient, no EM is needed."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from exchangeable.data.groups import Group
from exchangeable.data.observed import Observed
from exchangeable.data.rows import Rows
from exchangeable.data.sketch import Sketch
from exchangeable.data.stream.passes import Passes
from exchangeable.families.blocks import chunk_sums
from exchangeable.families.blocks.family import BlockFamily
from exchangeable.families.blocks.holes.batches import drawn_rows, with_expected
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.common.streaming.recipes import Labelled, class_weights
from exchangeable.families.common.tables import group_histograms
from exchangeable.families.problem import Problem
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run
from exchangeable.structure.intervals import EachClass, of_every_class
from exchangeable.structure.learner import BlockLearner, learn_partitions
from exchangeable.structure.rounds import learn_from_sums


class BlockClasses:
    """Blocks of classes with complete, labelled rows: no EM is needed."""

    @staticmethod
    def fit(
        problem: Problem, rows: Rows, groups: Sequence[Group], n_jobs: int | None = None
    ) -> BlockModel:
        """Return the model with blocks and parameters fitted to each group of rows."""
        partitions = learn_partitions(rows, groups, problem.structure, n_jobs)
        histograms = group_histograms(rows, groups, partitions, n_jobs)
        model = BlockModel(partitions, histograms, np.array([group.total for group in groups]))
        BlockFamily(problem).tabulate(model, n_jobs)
        return model

    @staticmethod
    def add(
        problem: Problem,
        before: Any,
        observed: Observed,
        groups: Sequence[Group],
        n_jobs: int | None = None,
    ) -> BlockModel:
        """Return the model with a batch added.

        As classes grow, blocks are learned again from a sample of all batches. Without a sample, as
        after `fit` or from a file, blocks stay. Rows with missing entries enter the sample
        completed by a draw; parameters use the model's expectations.
        """
        structure = problem.structure
        started = before is not None
        if before is None:
            before = BlockModel.blank(observed.n_variables, len(groups))
        rows = observed.ones
        if observed.holes is not None:
            rows = drawn_rows(before, observed, groups, problem.alpha)
        partitions, histograms = list(before.partitions), list(before.histograms)
        sketch = before.sketch
        if not started and isinstance(structure, BlockLearner) and structure.needs_moments:
            sketch = Sketch.empty(rows.n_variables, len(groups))
        learned: dict[int, Partition] = {}
        if sketch is not None:
            sketch = sketch.add(rows, groups, n_jobs)
            learned = relearned(sketch, structure, partitions, n_jobs)
            moved = sketch.learned.copy()
            grown = sketch.outgrown()
            moved[grown] = sketch.totals[grown]
            sketch = replace(sketch, learned=moved)
        else:
            learned = _of_new_classes(before, structure, rows, groups, n_jobs)
        for y, partition in learned.items():
            partitions[y] = partition
            histograms[y] = np.zeros(partition.table_size)
        batch = drawn = group_histograms(rows, groups, partitions, n_jobs)
        if sketch is not None and learned:
            batch = list(drawn)
            kept = [sketch.group(y) for y in learned]
            own = [partitions[y] for y in learned]
            known = group_histograms(sketch.rows, kept, own, n_jobs)
            for y, histogram in zip(learned, known, strict=True):
                batch[y] = histogram  # which contains the batch as well
        model = BlockModel(
            partitions,
            [old + added for old, added in zip(histograms, batch, strict=True)],
            before.totals + [group.total for group in groups],
            sketch=sketch,
        )
        model.set_tables(problem.alpha, n_jobs)
        if observed.holes is not None:
            model = with_expected(model, drawn, observed, groups, problem.alpha, n_jobs)
        return model

    @staticmethod
    def sums(data: Passes, structure: Any) -> dict[Any, Any]:
        """Return the sums over the rows of each class, by label: the first pass over chunks."""
        if isinstance(structure, BlockLearner) and structure.needs_moments:
            by_label: dict[Any, Any] = data.total(
                partial(chunk_sums.class_sums, n_jobs=data.n_jobs)
            )
            return by_label
        weights = data.total(class_weights)
        return {label: (weight, np.empty(0), 0.0, 0.0) for label, weight in weights.items()}

    @staticmethod
    def fit_chunks(problem: Problem, data: Passes, classes: Any, sums: Sequence[Any]) -> BlockModel:
        """Return the blocks and parameters of each class; the histograms take a second pass.

        Evidence merging takes a few more in between: see `structure.rounds`.
        """
        structure = problem.structure
        if isinstance(structure, list):
            partitions = structure
        else:

            def over(function: EachClass) -> list[Any]:
                own = partial(of_every_class, recipe=Labelled(classes), function=function)
                found: list[Any] = data.total(partial(own, n_jobs=data.n_jobs))
                return found

            partitions = learn_from_sums(structure, sums, data.n_variables, over)
        histograms = data.total(
            partial(
                chunk_sums.class_histograms,
                classes=classes,
                partitions=partitions,
                n_jobs=data.n_jobs,
            )
        )
        model = BlockModel(partitions, histograms, np.array([total for total, *_ in sums]))
        model.set_tables(problem.alpha, data.n_jobs)
        return model


def relearned(
    sketch: Sketch, structure: Any, partitions: Sequence[Partition], n_jobs: int | None
) -> dict[int, Partition]:
    """Return the blocks that have changed, of the classes that have grown."""
    grown = sketch.outgrown()

    def learn(y: int) -> Partition:
        learned: Partition = structure.learn(sketch.rows, sketch.group(y), sketch.ones[y])
        return learned

    found = dict(zip(grown.tolist(), run(learn, grown.tolist(), n_jobs), strict=True))
    first = sketch.learned == 0
    return {
        y: partition
        for y, partition in found.items()
        if first[y] or not partition.same_as(partitions[y])
    }


def _of_new_classes(
    before: BlockModel,
    structure: Any,
    rows: Rows,
    groups: Sequence[Group],
    n_jobs: int | None,
) -> dict[int, Partition]:
    """Return the blocks of new classes."""
    needs_rows = isinstance(structure, BlockLearner) and structure.needs_moments
    new = [
        y
        for y, group in enumerate(groups)
        if before.totals[y] == 0 and (group.total > 0 or not needs_rows)
    ]
    if isinstance(structure, list):
        return {y: structure[y] for y in new}
    learned = learn_partitions(rows, [groups[y] for y in new], structure, n_jobs)
    return dict(zip(new, learned, strict=True))
