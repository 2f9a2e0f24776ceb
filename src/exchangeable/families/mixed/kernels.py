"""Compiled loops over rows, columns and classes of independent parts."""

import math

import numpy as np

from exchangeable.families.common.posteriors import settle
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.vectors import TILE

_compile = compiled(fastmath={"contract"})


@_compile
def settle_rows(joint, start, priors, work, posterior, mass):  # type: ignore[no-untyped-def]
    """Write posteriors and weights of a span of rows; return its weighted log-likelihood.

    `joint` is log P(x, y) of the rows from `start`; all arrays have a line per class. The `priors`
    and `posterior` are those of all rows.
    """
    worth, n_rows = 0.0, joint.shape[1]
    for begin in range(0, n_rows, TILE):
        end = min(begin + TILE, n_rows)
        for y in range(joint.shape[0]):
            line, tile = joint[y], work[y]
            for row in range(begin, end):
                tile[row - begin] = line[row]
        worth += settle(work, np.int64(0), start + begin, start + end, priors, posterior)
        weights = priors.weights[start + begin : start + end]
        for y in range(joint.shape[0]):
            share, line = posterior[y, start + begin : start + end], mass[y, begin:end]
            for row in range(end - begin):
                line[row] = weights[row] * share[row]
    return worth


@_compile
def score_few(values, starts, table, out):  # type: ignore[no-untyped-def]
    """Do as `score_levels` where classes are few: `table` and `out` have a line per class.

    The last entry of each line of the table is 0, for missing levels.
    """
    n_rows, nothing = values.shape[0], table.shape[1] - 1
    cell = np.empty(n_rows, dtype=np.int64)
    for j in range(values.shape[1]):
        for row in range(n_rows):
            value = values[row, j]
            cell[row] = starts[j] + int(value) if value == value else nothing
        for y in range(out.shape[0]):
            line, scores = table[y], out[y]
            for row in range(n_rows):
                scores[row] += line[cell[row]]


@_compile
def score_levels(values, starts, table, out):  # type: ignore[no-untyped-def]
    """Add the log-probabilities of known levels: `table` has a line per level of each column."""
    for row in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[row, j]
            if value == value:
                line = table[starts[j] + int(value)]
                for y in range(line.size):
                    out[row, y] += line[y]


@_compile
def sum_levels(values, starts, mass, out):  # type: ignore[no-untyped-def]
    """Add each row's mass to the lines of its known levels."""
    for row in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[row, j]
            if value == value:
                line = out[starts[j] + int(value)]
                for y in range(line.size):
                    line[y] += mass[row, y]


@_compile
def score_entries(indptr, indices, counts, starts, largest, table, out):  # type: ignore[no-untyped-def]
    """Add what stored counts score beyond zeros, as far as the table goes."""
    for row in range(indptr.size - 1):
        for i in range(indptr[row], indptr[row + 1]):
            j = indices[i]
            if counts[i] <= largest[j]:
                line = table[starts[j] + int(counts[i])]
                for y in range(line.size):
                    out[row, y] += line[y]


@_compile
def sum_entries(indptr, indices, counts, starts, mass, out):  # type: ignore[no-untyped-def]
    """Move each row's mass from the lines of zeros to those of its stored counts."""
    for row in range(indptr.size - 1):
        for i in range(indptr[row], indptr[row + 1]):
            zero = out[starts[indices[i]]]
            line = out[starts[indices[i]] + int(counts[i])]
            for y in range(line.size):
                line[y] += mass[row, y]
                zero[y] -= mass[row, y]


@_compile
def fit_sizes(histogram, starts, means, low, high, halvings, sizes):  # type: ignore[no-untyped-def]
    """Write the maximum likelihood size of each column's negative binomial, infinite for Poisson.

    `sizes` holds the means of squares at first. The slope of the likelihood in the logarithm of the
    size is halved; `low` and `high` are where it is looked for.
    """
    for j in range(means.shape[0]):
        begin, end = starts[j], starts[j + 1]
        for y in range(means.shape[1]):
            mean = means[j, y]
            if sizes[j, y] - mean * mean <= mean:
                sizes[j, y] = math.inf
                continue
            total = 0.0
            for cell in range(begin, end):
                total += histogram[cell, y]
            lower, upper = low, high
            for step in range(halvings + 1):
                middle = high if step == 0 else 0.5 * (lower + upper)
                size = math.exp(middle)
                above, slope = 0.0, total * math.log(size / (size + mean))
                for cell in range(end - 1, begin, -1):
                    above += histogram[cell, y]
                    slope += above / (size + (cell - begin - 1))
                if step == 0 and slope > 0.0:
                    lower = math.inf
                    break
                if step > 0:
                    if slope > 0.0:
                        lower = middle
                    else:
                        upper = middle
            sizes[j, y] = math.inf if lower == math.inf else math.exp(0.5 * (lower + upper))


@_compile
def score_normals(columns, means, precisions, constants, joint):  # type: ignore[no-untyped-def]
    """Add log N of known numbers: constants − (x − mean)²·precision / 2.

    `columns` has a line per column and `joint` one per class, so that the loops over rows become
    vector instructions.
    """
    n_rows = columns.shape[1]
    for begin in range(0, n_rows, TILE):
        end = min(begin + TILE, n_rows)
        for y in range(joint.shape[0]):
            line = joint[y, begin:end]
            for j in range(columns.shape[0]):
                column = columns[j, begin:end]
                mean, bend, constant = means[j, y], precisions[j, y], constants[j, y]
                for row in range(column.size):
                    known = column[row] == column[row]
                    distance = column[row] - mean if known else 0.0
                    highest = constant if known else 0.0
                    line[row] += highest - 0.5 * distance * distance * bend


@compiled(fastmath={"contract", "reassoc"})
def sum_normals(columns, centres, mass, weight, first, second):  # type: ignore[no-untyped-def]
    """Add up mass, and mass times distance and squared distance from the centres.

    `columns` has a line per column and `mass` one per class.
    """
    n_rows = columns.shape[1]
    for j in range(columns.shape[0]):
        column = columns[j]
        for y in range(mass.shape[0]):
            line, centre = mass[y], centres[j, y]
            total, once, twice = 0.0, 0.0, 0.0
            for row in range(n_rows):
                known = column[row] == column[row]
                share = line[row] if known else 0.0
                distance = column[row] - centre if known else 0.0
                total += share
                once += share * distance
                twice += share * distance * distance
            weight[j, y] += total
            first[j, y] += once
            second[j, y] += twice


@_compile
def move_normals(sums, rows, pooled, least, means, variances):  # type: ignore[no-untyped-def]
    """Replace means and variances by those of the rows and of pseudo-rows together.

    `sums` are mass and moments around the old means, `pooled` the pseudo-rows' means and variances.
    """
    weight, first, second = sums
    for j in range(means.shape[0]):
        mean, variance = pooled[0][j, 0], pooled[1][j, 0]
        for y in range(means.shape[1]):
            total = weight[j, y] + rows
            if total > 0:
                offset = mean - means[j, y]
                shift = (first[j, y] + rows * offset) / total
                spread = (second[j, y] + rows * (variance + offset * offset)) / total
                means[j, y] += shift
                variances[j, y] = max(spread - shift * shift, least)
            else:
                means[j, y], variances[j, y] = mean, max(variance, least)
