"""Sums of posteriors over the rows with each variable on: what blocks are learned from."""

import math
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, aligned_zeros
from exchangeable.data.examples import Examples
from exchangeable.families.common import linear_kernels
from exchangeable.runtime.threads import Job, row_ranges


def sum_moments(
    examples: Examples, posterior: FloatArray, powers: int = 2, n_jobs: int | None = None
) -> FloatArray:
    """Return the moments of given posteriors, as in `Sums`, or only the first power's."""
    return moments_job(examples, posterior, powers).run(n_jobs)


def moments_job(
    examples: Examples, posterior: FloatArray, powers: int
) -> Job[Any, Any, FloatArray]:
    """Return the job that sums them, to be run together with others."""
    by_class = one_class_per_line(posterior)
    n_classes = by_class.shape[0]
    codes, columns, width = examples.codes, examples.columns, powers * n_classes
    shape = (examples.rows.n_variables, width) if codes is None else codes.sums_shape(width)
    parts = examples.parts(lines_per_row(examples) * width / 2, 8 * math.prod(shape))
    if columns is not None:
        n_tiles = len(columns.first_one)
        parts = row_ranges(n_tiles, -(-n_tiles // len(parts)))

    def one(span: tuple[int, int]) -> FloatArray:
        sums = aligned_zeros(shape)
        rest = (*span, examples.weights, by_class, sums)
        if codes is not None:
            linear_kernels.add_moments_coded(codes.codes, *rest)
            return codes.fold(sums)
        if columns is not None:
            linear_kernels.add_moments_by_column(columns.first_one, columns.row, *rest)
        else:
            linear_kernels.add_moments(examples.rows.arrays, *rest)
        return sums

    def finish(parts: list[FloatArray]) -> FloatArray:
        return np.moveaxis(add_parts(parts).reshape(-1, powers, n_classes), 1, 0)

    return Job(one, parts, finish)


def one_class_per_line(posterior: FloatArray) -> FloatArray:
    """Return posteriors as the kernels read them, one class a line."""
    return np.ascontiguousarray(posterior.T)


def lines_per_row(examples: Examples) -> float:
    """Return how many lines a row's sum over its ones has."""
    return examples.mean_ones if examples.codes is None else examples.codes.codes.shape[0]


def add_parts(parts: list[FloatArray]) -> FloatArray:
    """Add up what the parts have given, in their order."""
    first, *others = parts
    for other in others:
        first += other
    return first
