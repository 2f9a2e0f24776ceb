"""Sums of posteriors over the rows with each variable on, from which blocks are learned."""

import math
from typing import Any

import numpy as np

from exchangeable.arrays import FloatArray, aligned_zeros
from exchangeable.data.examples import Examples
from exchangeable.data.forms import CodeLists
from exchangeable.families.common import moment_kernels
from exchangeable.families.common.log_linear import linear_kernels
from exchangeable.runtime.kernels.lanes import N_LANES
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
    if powers == 2 and (columns is not None or codes is not None):
        in_lanes = _job_in_lanes(examples, by_class, len(parts))
        if in_lanes is not None:
            return in_lanes
    if columns is not None:
        n_tiles = len(columns.first_one)
        parts = row_ranges(n_tiles, -(-n_tiles // len(parts)))

    def one(span: tuple[int, int]) -> FloatArray:
        sums, weights = aligned_zeros(shape), examples.weights
        if codes is not None:
            linear_kernels.add_moments_coded(codes.codes, *span, weights, by_class, sums)
            return codes.fold(sums)
        if columns is not None:
            listed = (columns.first_one, columns.row)
            linear_kernels.add_moments_by_column(*listed, *span, weights, by_class, sums)
        else:
            linear_kernels.add_moments(examples.rows.arrays, *span, weights, by_class, sums)
        return sums

    def finish(parts: list[FloatArray]) -> FloatArray:
        return np.moveaxis(add_parts(parts).reshape(-1, powers, n_classes), 1, 0)

    return Job(one, parts, finish)


def _job_in_lanes(
    examples: Examples, by_class: FloatArray, n_parts: int
) -> Job[Any, Any, FloatArray] | None:
    """Return the job that sums two powers, of eight classes at a time, or none.

    Every task is for some rows and eight classes. The classes are cut first, whose sums are
    separate, then the rows.
    """
    columns, n_variables = examples.columns, examples.rows.n_variables
    n_classes, n_rows = by_class.shape
    firsts = range(0, n_classes, N_LANES)
    n_units = n_rows if columns is None else len(columns.first_one)
    size = max(1, -(-n_units // max(1, n_parts // len(firsts))))
    spans = row_ranges(n_units, size) or [(0, 0)]
    lists = _rows_by_value(examples, spans) if columns is None else {}
    if columns is None and not lists:
        return None

    moments = {span: aligned_zeros((n_variables, 2, len(firsts) * N_LANES)) for span in spans}

    def one(task: tuple[tuple[int, int], int]) -> None:
        span, first = task
        if columns is not None:
            listed = (columns.first_one, columns.row)
            rest = (span, examples.weights, by_class, first, moments[span])
            moment_kernels.add_by_column(listed, *rest)
            return
        n_codes = lists[span].row.shape[1]
        sums = aligned_zeros((n_codes * moment_kernels.VALUES * 2 * N_LANES,))
        moment_kernels.add_by_value(lists[span], span, examples.weights, by_class, first, sums)
        moment_kernels.fold(sums, first, moments[span])

    def finish(_: list[None]) -> FloatArray:
        return np.moveaxis(add_parts(list(moments.values()))[:, :, :n_classes], 1, 0)

    return Job(one, [(span, first) for span in spans for first in firsts], finish)


def _rows_by_value(
    examples: Examples, spans: list[tuple[int, int]]
) -> dict[tuple[int, int], CodeLists]:
    """Return the rows of each span listed by the values of their codes, unless these are many."""
    codes, key = examples.codes, (LISTS, tuple(spans))
    if codes is None or codes.codes.size > MOST_LISTED:
        return {}
    if key not in examples.derived:
        examples.derived[key] = {span: CodeLists.of(codes, span) for span in spans}
    lists: dict[tuple[int, int], CodeLists] = examples.derived[key]
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
