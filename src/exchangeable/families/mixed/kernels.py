"""Compiled loops over rows, columns and classes of independent parts."""

import math

import numpy as np

from exchangeable.families.common.posteriors import settle
from exchangeable.runtime.kernel_cache import compiled
from exchangeable.runtime.vectors import TILE

_compile = compiled(fastmath={"contract"})


@_compile
def settle_rows(joint, priors, work, posterior):  # type: ignore[no-untyped-def]
    """Write the posteriors of log P(x, y), a line per class; return the weighted log-likelihood."""
    worth, n_rows = 0.0, joint.shape[1]
    for begin in range(0, n_rows, TILE):
        end = min(begin + TILE, n_rows)
        for y in range(joint.shape[0]):
            line, tile = joint[y], work[y]
            for row in range(begin, end):
                tile[row - begin] = line[row]
        worth += settle(work, begin, end, priors, posterior)
    return worth


@_compile
def score_few(values, starts, table, out):  # type: ignore[no-untyped-def]
    """Do as `score_levels` where classes are few: `table` and `out` have a line per class.

    The last entry of each line of the table is 0, for holes.
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
    """Write the size of the likeliest negative binomial of each column, infinite for Poisson's.

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
def score_normals(values, means, precisions, constants, out):  # type: ignore[no-untyped-def]
    """Add log N of known numbers: constants − (x − mean)²·precision / 2, a line per column.

    `out` has a line per class, so that the loop over rows becomes vector instructions.
    """
    n_rows = values.shape[0]
    column = np.empty(n_rows)
    for j in range(values.shape[1]):
        for row in range(n_rows):
            column[row] = values[row, j]
        for y in range(out.shape[0]):
            line, mean, bend, constant = out[y], means[j, y], precisions[j, y], constants[j, y]
            for row in range(n_rows):
                distance = column[row] - mean
                score = constant - 0.5 * distance * distance * bend
                line[row] += score if column[row] == column[row] else 0.0


@compiled(fastmath={"contract", "reassoc"})
def sum_normals(values, centres, mass, weight, first, second):  # type: ignore[no-untyped-def]
    """Add up mass, and mass times distance and squared distance from the centres.

    `mass` has a line per class.
    """
    n_rows = values.shape[0]
    column = np.empty(n_rows)
    for j in range(values.shape[1]):
        for row in range(n_rows):
            column[row] = values[row, j]
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
