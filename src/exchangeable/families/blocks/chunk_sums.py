"""Sums over a chunk for the passes of a fit; most functions take a `Chunk` first.

They are plain functions of plain data, so that a `functools.partial` can be sent to where the chunk
is. Posteriors are never stored: a recipe computes those of a chunk again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.examples import MAX_PACKED, Examples
from exchangeable.data.forms import Words
from exchangeable.data.groups import Group
from exchangeable.data.rows import Rows, take_rows
from exchangeable.data.stream.chunk import Chunk
from exchangeable.families.blocks import passes
from exchangeable.families.common import table_kernels
from exchangeable.families.common.moments import sum_moments
from exchangeable.families.common.streaming.recipes import PosteriorRecipe
from exchangeable.families.common.tables import group_histograms
from exchangeable.families.sums import Sums
from exchangeable.partitions import Partition
from exchangeable.runtime.threads import run
from exchangeable.structure.intervals import ClassSums, group_sums


def class_sums(chunk: Chunk, n_jobs: int | None = None) -> dict[Any, ClassSums]:
    """Return the sums of each class that occurs, by its label; None for no label."""
    classes = chunk.classes
    summed = group_sums(chunk.rows, chunk.groups(classes), n_jobs) if classes.size else []
    sums: dict[Any, ClassSums] = dict(zip(classes.tolist(), summed, strict=True))
    if chunk.unlabelled_weight:
        sums[None] = (chunk.unlabelled_weight, np.zeros(chunk.rows.n_variables), 0.0, 0.0)
    return sums


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
    examples = Examples(members, weights, words=words.short())
    return passes.soft_histograms(
        examples, np.ones((members.n_rows, 1)), np.zeros(1, int), [partition], 1
    )[0]


def posterior_sums(examples: Examples, posterior: FloatArray, n_jobs: int | None = None) -> Sums:
    """Return the moments of some rows' posteriors, if complete, and the components' weights."""
    if examples.holes is not None:
        return Sums(-np.inf, posterior, examples.weights @ posterior)
    moments = sum_moments(examples, posterior, n_jobs=n_jobs)
    return Sums(-np.inf, posterior, examples.weights @ posterior, moments=moments)


def posterior_histograms(
    chunk: Chunk,
    recipe: PosteriorRecipe,
    classes: IntArray,
    partitions: Sequence[Partition],
    n_jobs: int | None = None,
) -> list[FloatArray]:
    """Return the histograms of some components, given how posteriors are computed."""
    posterior = recipe.posterior(chunk, n_jobs)
    return passes.soft_histograms(chunk.examples, posterior, classes, partitions, n_jobs)
