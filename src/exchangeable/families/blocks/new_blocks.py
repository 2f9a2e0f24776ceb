"""Counting the rows in new blocks: in memory, or by a pass over chunks."""

from functools import partial
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.blocks import chunk_sums, passes
from exchangeable.families.blocks.holes import passes as holes
from exchangeable.families.blocks.holes.expected import settled_counts
from exchangeable.families.blocks.holes.states import state_layout
from exchangeable.families.blocks.model import COUNTS
from exchangeable.families.blocks.row_counts import RowCounts
from exchangeable.families.common.em_data import InMemory
from exchangeable.families.common.streaming.streamed import Streamed
from exchangeable.families.common.tables import Tables
from exchangeable.structure.proposals import Proposal


def histograms_in(
    data: InMemory | Streamed, sums: Any, blocks: Proposal, layout: Tables, classes: IntArray
) -> list[FloatArray]:
    """Return the histograms of some classes in new blocks with a given layout."""
    if blocks.count is not None and (blocks.drawn or not holes.few_states(layout)):
        return blocks.count(classes)
    if data.has_holes:
        return _holed_histograms(data, sums, blocks, layout, classes)
    if isinstance(data, Streamed):
        return _streamed_histograms(data, sums, blocks, classes)
    if passes.all_single(layout):
        every = passes.single_histograms(data.examples, sums.posterior, layout, data.n_jobs)
        return [every[y] for y in classes]
    return _counted_histograms(data, sums, blocks, layout, classes)


def _holed_histograms(
    data: InMemory | Streamed, sums: Any, blocks: Proposal, layout: Tables, classes: IntArray
) -> list[FloatArray]:
    """Do the same for rows with missing entries, by their states in the blocks."""
    of_classes = Tables.layout([blocks.partitions[y] for y in classes])
    if isinstance(data, Streamed):
        by_state = _streamed_histograms(data, sums, blocks, classes)
    else:
        by_state = _counted_histograms(data, sums, blocks, layout, classes)
    states = state_layout(of_classes)
    return of_classes.split(settled_counts(of_classes, states, np.concatenate(by_state)))


def _streamed_histograms(
    data: Streamed, sums: Any, blocks: Proposal, classes: IntArray
) -> list[FloatArray]:
    """Return the weight of the rows by count or state in new blocks, by a pass over chunks."""
    histograms: list[FloatArray] = data.passes.total(
        partial(
            chunk_sums.posterior_histograms,
            recipe=sums.recipe,
            classes=classes,
            partitions=[blocks.partitions[y] for y in classes],
            n_jobs=data.n_jobs,
        )
    )
    return histograms


def _counted_histograms(
    data: InMemory, sums: Any, blocks: Proposal, layout: Tables, classes: IntArray
) -> list[FloatArray]:
    """Return the same in memory, where counts are cached."""
    kept: list[RowCounts] = data.memo.setdefault(COUNTS, [])
    counted, left = RowCounts.begin(data.examples, blocks.partitions, layout, kept)
    kept.append(counted)
    wanted = np.zeros(len(blocks.partitions), dtype=np.bool_)
    wanted[classes] = wanted[left] = True
    every = passes.histograms(counted, sums.posterior, np.flatnonzero(wanted), left, data.n_jobs)
    return [every[y] for y in classes]
