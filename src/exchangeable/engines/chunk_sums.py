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
from exchangeable.engines import cpu, em, kernels, packed_kernels
from exchangeable.engines.chunk import Chunk
from exchangeable.engines.cpu import Group, Tables
from exchangeable.engines.examples import MAX_PACKED, Examples
from exchangeable.engines.forms import Words
from exchangeable.engines.observed import flags
from exchangeable.engines.rows import Rows, take_rows
from exchangeable.engines.threads import run
from exchangeable.partitions import Labels, Partition

ClassSums = tuple[float, FloatArray, float, float]
"""Of one class: weight, ones of each variable, sums of the rows' counts and of their squares."""


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
        found = []
        for share in self.posterior(chunk, n_jobs).T:
            mass = chunk.examples.weights * share
            members = np.flatnonzero(mass > self.negligible)
            found.append(Group(members, mass[members]))
        return found


@dataclass(frozen=True)
class Scored(_Posterior):
    """Posteriors under some parameters."""

    tables: Tables
    log_prior: FloatArray

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows that count."""
        return em.rescore(chunk.examples, self.tables, self.log_prior, n_jobs).posterior


@dataclass(frozen=True)
class Dealt(_Posterior):
    """Each row dealt to one component."""

    component: npt.NDArray[np.integer[Any]]
    n_components: int

    def posterior(self, chunk: Chunk, n_jobs: int | None) -> FloatArray:
        """Return the posteriors of the rows that count."""
        own = self.component[chunk.first : chunk.first + chunk.n_counting]
        return np.asarray(own[:, None] == np.arange(self.n_components), dtype=np.float64)


def first_look(chunk: Chunk, n_jobs: int | None = None) -> tuple[int, float, FloatArray]:
    """Return the number of rows that count, their weight, and how often each variable is on."""
    group = Group(np.arange(chunk.rows.n_rows), chunk.weights)
    return chunk.n_counting, group.total, cpu.moments(chunk.rows, [group], n_jobs)[0]


def class_sums(chunk: Chunk, n_jobs: int | None = None) -> dict[Any, ClassSums]:
    """Return the sums of each class that occurs, by its label."""
    classes = chunk.classes
    groups = chunk.groups(classes)
    one_block = Partition.from_labels(np.zeros(chunk.rows.n_variables, dtype=np.int32))
    found: dict[Any, ClassSums] = {}
    for label, group, ones in zip(
        classes.tolist(), groups, cpu.moments(chunk.rows, groups, n_jobs), strict=True
    ):
        count = cpu.block_counts(chunk.rows, group, one_block)[0].astype(np.float64)
        weighted = count * group.weights if group.weights.size else count
        found[label] = group.total, ones, float(weighted.sum()), float(weighted @ count)
    return found


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
        return cpu.histograms(rows, groups, partitions, n_jobs)
    return run(
        lambda y: _packed_histogram(rows, groups[y], partitions[y]), range(classes.size), n_jobs
    )


def _packed_histogram(rows: Rows, group: Group, partition: Partition) -> FloatArray:
    """Return the histogram of a class by masks: the variables of a block are put side by side."""
    if partition.n_blocks <= kernels.MASK_COST or partition.n_blocks == rows.n_variables:
        return cpu.histograms(rows, [group], [partition], 1)[0]
    own = take_rows(rows, group.members)
    weights = group.weights if group.weights.size else np.ones(own.n_rows)
    words = Words.in_order(own, np.argsort(partition.labels, kind="stable"))
    examples = Examples(own, weights, words=words)
    return em.soft_histograms(examples, np.ones((own.n_rows, 1)), np.zeros(1, int), [partition], 1)[
        0
    ]


def rows_at(chunk: Chunk, chosen: IntArray) -> npt.NDArray[np.uint8]:
    """Return the chosen rows of all that count, zeros for those that are not in this chunk."""
    found = np.zeros((chosen.size, chunk.rows.n_variables), dtype=np.uint8)
    counting = np.flatnonzero(chunk.weights) if chunk.weights.size else None
    here = np.flatnonzero((chosen >= chunk.first) & (chosen < chunk.first + chunk.n_counting))
    if here.size:
        at = chosen[here] - chunk.first
        found[here] = flags(take_rows(chunk.rows, at if counting is None else counting[at]))
    return found


def posterior_sums(
    chunk: Chunk, recipe: _Posterior, n_jobs: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the moments of the posteriors, as in `Expectation`, and the components' weights."""
    posterior = recipe.posterior(chunk, n_jobs)
    return (
        em.sum_moments(chunk.examples, posterior, n_jobs=n_jobs),
        chunk.examples.weights @ posterior,
    )


def posterior_histograms(
    chunk: Chunk,
    recipe: _Posterior,
    classes: IntArray,
    partitions: Sequence[Partition],
    n_jobs: int | None = None,
) -> list[FloatArray]:
    """Return the histograms of some components, given what makes the posteriors."""
    posterior = recipe.posterior(chunk, n_jobs)
    return em.soft_histograms(chunk.examples, posterior, classes, partitions, n_jobs)


def expectations(
    chunk: Chunk,
    candidates: Sequence[tuple[Sequence[Partition], Tables]],
    log_prior: FloatArray,
    moments: bool,
    n_jobs: int | None = None,
) -> list[tuple[float, list[FloatArray], FloatArray, FloatArray]]:
    """Return, under each of several parameters, what `em.expect` sums: all but the posteriors."""
    found = []
    for partitions, tables in candidates:
        e = em.expect(chunk.examples, partitions, tables, log_prior, moments=moments, n_jobs=n_jobs)
        found.append((e.log_likelihood, e.histograms, e.moments, e.totals))
    return found


@dataclass(frozen=True)
class Runs:
    """Runs of neighbouring blocks of one class, each counted as if it were one block.

    Run i holds the blocks ``begins[i]..ends[i] - 1``, and its counts stand from ``starts[i]`` on.
    """

    labels: Labels
    n_blocks: int
    begins: IntArray
    ends: IntArray
    starts: IntArray
    table_size: int

    @classmethod
    def of(cls, partition: Partition, runs: Sequence[tuple[int, int]]) -> "Runs":
        """Return the runs given by their first blocks and the blocks behind their last."""
        begins, ends = np.array(runs, dtype=np.int64).reshape(-1, 2).T
        before = np.concatenate([[0], np.cumsum(partition.sizes)])
        lengths = before[ends] - before[begins] + 1
        stops = np.cumsum(lengths)
        return cls(
            partition.labels,
            partition.n_blocks,
            np.ascontiguousarray(begins),
            np.ascontiguousarray(ends),
            stops - lengths,
            int(stops[-1]) if stops.size else 0,
        )

    def split(self, histogram: FloatArray) -> list[FloatArray]:
        """Cut a histogram over all runs into theirs."""
        return np.split(histogram, self.starts[1:])


def run_histograms(
    chunk: Chunk, recipe: Recipe, wanted: Sequence[Runs], n_jobs: int | None = None
) -> list[FloatArray]:
    """Return for each class the histograms of its runs of blocks."""
    rows = chunk.rows if isinstance(recipe, Labelled) else chunk.examples.rows
    groups = recipe.groups(chunk, n_jobs)

    def one(y: int) -> FloatArray:
        runs, group = wanted[y], groups[y]
        histogram = np.zeros(runs.table_size)
        if runs.begins.size:
            packed_kernels.add_intervals(
                *rows.arrays,
                group.members,
                group.weights,
                runs.labels,
                runs.n_blocks,
                runs.begins,
                runs.ends,
                runs.starts,
                histogram,
            )
        return histogram

    return run(one, range(len(wanted)), n_jobs)
