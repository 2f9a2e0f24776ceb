"""Compiled loops over rows, columns and classes of independent parts."""

import math

from exchangeable.families.common.posteriors import settle_row
from exchangeable.runtime.kernel_cache import compiled

_compile = compiled()


@_compile
def settle_rows(joint, log_prior, clamp, weights):  # type: ignore[no-untyped-def]
    """Turn log P(x, y) into posteriors in place, and return the weighted log-likelihood."""
    total = 0.0
    for row in range(joint.shape[0]):
        label = clamp[row] if clamp.size else -1
        total += weights[row] * settle_row(joint[row], log_prior, label)
    return total


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
    """Add log N of known numbers: constants − (x − mean)²·precision / 2, a line per column."""
    for row in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[row, j]
            if value == value:
                for y in range(means.shape[1]):
                    distance = value - means[j, y]
                    out[row, y] += constants[j, y] - 0.5 * distance * distance * precisions[j, y]


@_compile
def sum_normals(values, centres, mass, weight, first, second):  # type: ignore[no-untyped-def]
    """Add up mass, and mass times distance and squared distance from the centres."""
    for row in range(values.shape[0]):
        for j in range(values.shape[1]):
            value = values[row, j]
            if value == value:
                for y in range(mass.shape[1]):
                    share, distance = mass[row, y], value - centres[j, y]
                    weight[j, y] += share
                    first[j, y] += share * distance
                    second[j, y] += share * distance * distance
