"""Compiled loops over rows, columns and classes of independent parts."""

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
