"""Sums of posteriors over the rows with each variable on, from which blocks are learned."""

import math
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, aligned_zeros
from exchangeable.data.examples import Examples
from exchangeable.data.forms import CodeLists
from exchangeable.families.common import moment_kernels
from exchangeable.families.common.log_linear import linear_kernels
from exchangeable.runtime.kernels.lanes import padded
from exchangeable.runtime.threads import Job, row_ranges

LISTS = "rows by the values of their codes"
MOST_LISTED = 1 << 25
"""Maximum number of listed codes of all rows, at two bytes each."""


def sum_moments(
    examples: Examples, posterior: FloatArray, powers: int = 2, n_jobs: int | None = None
) -> FloatArray:
    """Return the moments of given posteriors, as in `Sums`, or only those of the first power."""
    return moments_job(examples, posterior, powers).run(n_jobs)


def moments_job(
    examples: Examples, posterior: FloatArray, powers: int
) -> Job[Any, Any, FloatArray]:
    """Return the job that computes them, to be run together with others."""
    by_class = one_class_per_line(posterior)
    n_classes = by_class.shape[0]
    codes, columns, width = examples.codes, examples.columns, powers * n_classes
    shape = (examples.rows.n_variables, width) if codes is None else codes.sums_shape(width)
    parts = examples.parts(lines_per_row(examples) * width / 2, 8 * math.prod(shape))
    if columns is not None:
        n_tiles = len(columns.first_one)
        parts = row_ranges(n_tiles, -(-n_tiles // len(parts)))
    lists = _rows_by_value(examples, parts) if powers == 2 else {}
    in_lanes = powers == 2 and (columns is not None or bool(lists))
    line = padded(n_classes) if in_lanes else n_classes

    def one(span: tuple[int, int]) -> FloatArray:
        sums = aligned_zeros((*shape[:-1], powers * line))
        weights = examples.weights
        if in_lanes and columns is not None:
            listed = (columns.first_one, columns.row)
            moment_kernels.add_by_column(listed, span, weights, by_class, line, sums.reshape(-1))
        elif in_lanes:
            flat, folded = sums.reshape(-1), aligned_zeros((examples.rows.n_variables, 2 * line))
            moment_kernels.add_by_value(lists[span], span, weights, by_class, line, flat)
            moment_kernels.fold(flat, 2 * line, folded.reshape(-1))
            return folded
        elif codes is not None:
            linear_kernels.add_moments_coded(codes.codes, *span, weights, by_class, sums)
        elif columns is not None:
            listed = (columns.first_one, columns.row)
            linear_kernels.add_moments_by_column(*listed, *span, weights, by_class, sums)
        else:
            linear_kernels.add_moments(examples.rows.arrays, *span, weights, by_class, sums)
        return sums if codes is None else codes.fold(sums)

    def finish(parts: list[FloatArray]) -> FloatArray:
        by_power = add_parts(parts).reshape(-1, powers, line)[:, :, :n_classes]
        return np.moveaxis(by_power, 1, 0)

    return Job(one, parts, finish)


def _rows_by_value(
    examples: Examples, parts: list[tuple[int, int]]
) -> dict[tuple[int, int], CodeLists]:
    """Return the rows of each part listed by the values of their codes, if this is worth it.

    It is not where rows are read once, as chunks are, so they are listed when their moments are
    asked for again.
    """
    codes, key = examples.codes, (LISTS, tuple(parts))
    if codes is None or codes.codes.size > MOST_LISTED:
        return {}
    lists: dict[tuple[int, int], CodeLists] | None = examples.derived.get(key)
    if lists is None:
        examples.derived[key] = {}
        return {}
    if not lists:
        lists = {span: CodeLists.of(codes, span) for span in parts}
        examples.derived[key] = lists
    return lists


def one_class_per_line(posterior: FloatArray) -> FloatArray:
    """Return posteriors in the form of the kernels, one line per class."""
    return np.ascontiguousarray(posterior.T)


def lines_per_row(examples: Examples) -> float:
    """Return the number of lines in a row's sum over its ones."""
    return examples.mean_ones if examples.codes is None else examples.codes.codes.shape[0]


def add_parts(parts: list[FloatArray]) -> FloatArray:
    """Add up the results of the parts, in their order."""
    first, *others = parts
    for other in others:
        first += other
    return first
