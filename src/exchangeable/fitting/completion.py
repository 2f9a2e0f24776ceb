"""Blocks for rows with holes: learned from rows completed by draws from the model so far.

Which blocks to try is a proposal only. Their parameters are then fitted by exact EM over the hidden
counts, and whether they are kept is decided by the exact likelihood of what is known.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import Examples
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.rows import Rows, as_rows
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.blocks.passes import Expectation
from exchangeable.families.common.tables import group_histograms
from exchangeable.fitting.structural_em import Proposal, Relearn
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run

HARDLY = 1e-3
"""Rows that belong to a class with less probability than this do not help to choose its blocks."""


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
        """Sums over the rows with each variable on, as in `Expectation`, of this one class."""
        squares = Group(np.arange(self.rows.n_rows), self.weights * self.posterior)
        return np.stack(group_ones(self.rows, [self.group, squares], 1))


def completed_proposals(
    examples: Examples,
    choose: Callable[[CompletedRows, int], list[Partition]],
    n_jobs: int | None = None,
) -> Relearn:
    """Return what proposes the blocks that `choose` finds in the completed rows of each class."""

    def relearn(model: BlockModel | None, current: Expectation) -> list[Proposal]:
        assert model is not None
        classes = range(current.totals.size)
        completed = run(lambda y: _complete(examples, model, current, y), classes, n_jobs)
        found = run(lambda y: choose(completed[y], y), classes, n_jobs)
        return [_proposal(list(p), completed, current) for p in zip(*found, strict=True)]

    return relearn


def _complete(examples: Examples, model: BlockModel, current: Expectation, y: int) -> CompletedRows:
    """Draw the holes of a class's rows, always from the same random numbers.

    So the proposals change only with the parameters, and settle when these do.
    """
    members = np.flatnonzero(current.posterior[:, y] > HARDLY)
    observed = examples.observed.take(members)
    drawn = model.draw(observed, y, np.random.default_rng(y))
    posterior = current.posterior[members, y]
    return CompletedRows(as_rows(drawn, None, 1), examples.weights[members] * posterior, posterior)


def _proposal(
    partitions: list[Partition], completed: list[CompletedRows], current: Expectation
) -> Proposal:
    def count(classes: IntArray) -> list[FloatArray]:
        histograms = []
        for y in classes:
            rows, group = completed[y].rows, completed[y].group
            histogram = group_histograms(rows, [group], [partitions[y]], 1)[0]
            # The rows left out belong to the class too, if only by little.
            scale = current.totals[y] / group.total if group.total > 0 else 0.0
            histograms.append(histogram * scale)
        return histograms

    return Proposal(partitions, count)
