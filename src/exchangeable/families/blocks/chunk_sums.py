"""What the passes of a fit sum over chunks; every function takes a `Chunk` first.

They are plain functions of plain data, so that `functools.partial` of one can be sent to where the
chunk is. Posteriors are never stored: a `Recipe` says how to compute those of a chunk again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import MAX_PACKED, Examples
from exchangeable.data.forms import Words
from exchangeable.data.groups import Group, group_ones
from exchangeable.data.observed import flags
from exchangeable.data.rows import Rows, take_rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.blocks import passes
from exchangeable.families.common import table_kernels
from exchangeable.families.common.tables import Tables, block_counts, group_histograms
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run
from exchangeable.structure.intervals import ClassSums, Intervals


class Recipe(Protocol):
    """How the responsibilities of a chunk's rows are found."""

    def groups(self, chunk: Chunk, n_jobs: int | None) -> list[Group]:
        """Return the rows of each class, by what share of them is the class's."""


@dataclass(frozen=True)
class Labelled:
    """Rows belong to the class of their label."""

    classes: npt.NDArray[Any]

    def groups(self, chunk: Chunk, n_jobs: int | None) -> list[Group]:
        """Return the rows of each class."""
        return chunk.groups(self.classes)


class _Posterior:
    """Rows belong to components by their posteriors, unless next to nothing of them does."""

    negligible = 1e-8

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows that count."""
        raise NotImplementedError

    def groups(self, chunk: Chunk, n_jobs: int | None) -> list[Group]:
        """Return the rows of each component."""
        groups = []
        for share in self.posterior(chunk, n_jobs).T:
            mass = chunk.examples.weights * share
            members = np.flatnonzero(mass > self.negligible)
            groups.append(Group(members, mass[members]))
        return groups


@dataclass(frozen=True)
class Scored(_Posterior):
    """Posteriors under some parameters."""

    tables: Tables
    log_prior: FloatArray

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows that count."""
        return passes.rescore(chunk.examples, self.tables, self.log_prior, n_jobs).posterior


@dataclass(frozen=True)
class Dealt(_Posterior):
    """Each row dealt to one component."""

    component: npt.NDArray[np.integer[Any]]
    n_components: int

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows that count."""
        component = self.component[chunk.first : chunk.first + chunk.n_counting]
        return np.asarray(component[:, None] == np.arange(self.n_components), dtype=np.float64)


def first_look(chunk: Chunk, n_jobs: int | None = None) -> tuple[int, float, FloatArray]:
    """Return the number of rows that count, their weight, and how often each variable is on."""
    group = Group(np.arange(chunk.rows.n_rows), chunk.weights)
    return chunk.n_counting, group.total, group_ones(chunk.rows, [group], n_jobs)[0]


def class_sums(chunk: Chunk, n_jobs: int | None = None) -> dict[Any, ClassSums]:
    """Return the sums of each class that occurs, by its label."""
    classes = chunk.classes
    groups = chunk.groups(classes)
    one_block = Partition.from_labels(np.zeros(chunk.rows.n_variables, dtype=np.int32))
    sums: dict[Any, ClassSums] = {}
    for label, group, ones in zip(
        classes.tolist(), groups, group_ones(chunk.rows, groups, n_jobs), strict=True
    ):
        count = block_counts(chunk.rows, group, one_block)[0].astype(np.float64)
        weighted = count * group.weights if group.weights.size else count
        sums[label] = group.total, ones, float(weighted.sum()), float(weighted @ count)
    return sums


def class_weights(chunk: Chunk) -> dict[Any, float]:
    """Return the weight of each class that occurs, by its label."""
    classes = chunk.classes
    return {
        label: group.total
        for label, group in zip(classes.tolist(), chunk.groups(classes), strict=True)
    }


def class_histograms(
    chunk: Chunk,
    classes: npt.NDArray[Any],
    partitions: Sequence[Partition],
    n_jobs: int | None = None,
) -> list[FloatArray]:
    """Return the histograms of each class."""
    groups, rows = chunk.groups(classes), chunk.rows
    if not rows.bits.size or rows.n_variables > MAX_PACKED:
        return group_histograms(rows, groups, partitions, n_jobs)
    return run(
        lambda y: _packed_histogram(rows, groups[y], partitions[y]), range(classes.size), n_jobs
    )


def _packed_histogram(rows: Rows, group: Group, partition: Partition) -> FloatArray:
    """Return the histogram of a class by masks: the variables of a block are put side by side."""
    if partition.n_blocks <= table_kernels.MASK_COST or partition.n_blocks == rows.n_variables:
        return group_histograms(rows, [group], [partition], 1)[0]
    members = take_rows(rows, group.members)
    weights = group.weights if group.weights.size else np.ones(members.n_rows)
    words = Words.in_order(members, np.argsort(partition.labels, kind="stable"))
    examples = Examples(members, weights, words=words)
    return passes.soft_histograms(
        examples, np.ones((members.n_rows, 1)), np.zeros(1, int), [partition], 1
    )[0]


def rows_at(chunk: Chunk, chosen: IntArray) -> npt.NDArray[np.uint8]:
    """Return the chosen rows of all that count, zeros for those that are not in this chunk."""
    matrix = np.zeros((chosen.size, chunk.rows.n_variables), dtype=np.uint8)
    counting = np.flatnonzero(chunk.weights) if chunk.weights.size else None
    here = np.flatnonzero((chosen >= chunk.first) & (chosen < chunk.first + chunk.n_counting))
    if here.size:
        number = chosen[here] - chunk.first
        row = number if counting is None else counting[number]
        matrix[here] = flags(take_rows(chunk.rows, row))
    return matrix


def posterior_sums(
    chunk: Chunk, recipe: _Posterior, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the moments of the posteriors, as in `Expectation`, and the components' weights."""
    posterior = recipe.posterior(chunk, n_jobs)
    return (
        passes.sum_moments(chunk.examples, posterior, n_jobs=n_jobs),
        chunk.examples.weights @ posterior,
    )


def posterior_histograms(
    chunk: Chunk,
    recipe: _Posterior,
    classes: IntArray,
    partitions: Sequence[Partition],
    n_jobs: int | None = None,
) -> list[FloatArray]:
    """Return the histograms of some components, given how posteriors are computed."""
    posterior = recipe.posterior(chunk, n_jobs)
    return passes.soft_histograms(chunk.examples, posterior, classes, partitions, n_jobs)


def expectations(
    chunk: Chunk,
    candidates: Sequence[tuple[Sequence[Partition], Tables]],
    log_prior: FloatArray,
    moments: bool,
    n_jobs: int | None = None,
) -> list[tuple[float, list[FloatArray], FloatArray, FloatArray]]:
    """Return, under each of several parameters, what `expect` sums, without posteriors."""
    sums = []
    for partitions, table in candidates:
        e = passes.expect(
            chunk.examples, partitions, table, log_prior, moments=moments, n_jobs=n_jobs
        )
        sums.append((e.log_likelihood, e.histograms, e.moments, e.totals))
    return sums


def interval_histograms(
    chunk: Chunk, recipe: Recipe, wanted: Sequence[Intervals], n_jobs: int | None = None
) -> list[FloatArray]:
    """Return for each class the histograms of its intervals of blocks."""
    rows = chunk.rows if isinstance(recipe, Labelled) else chunk.examples.rows
    groups = recipe.groups(chunk, n_jobs)
    return run(lambda y: wanted[y].histogram(rows, groups[y]), range(len(wanted)), n_jobs)
