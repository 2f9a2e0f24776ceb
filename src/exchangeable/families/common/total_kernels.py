"""Compiled loops over totals, for known and missing levels.

Shares are those of independent columns; `ratio` is the factor of a row's probability that depends
on its total, q(t) / F(t), where F is the distribution of the total of independent columns.
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernels.cache import compiled, for_kernels

_compile = compiled()
_helper = for_kernels()


class Scale(NamedTuple):
    """The levels of a block's columns, and their parameters in one class.

    Attributes
    ----------
    starts, sizes : array of shape (n_columns,)
        The start of each column's levels in `shares`, and their number.
    shares : array of shape (n_levels,)
        Probabilities of the levels of independent columns.
    ratio : array of shape (n_totals,)
        The factor of each total.
    """

    starts: IntArray
    sizes: IntArray
    shares: FloatArray
    ratio: FloatArray


@_compile
def independent_totals(starts, sizes, shares, out):  # type: ignore[no-untyped-def]
    """Write the distribution of the total of independent columns: a product of polynomials."""
    out[:] = 0.0
    out[0] = 1.0
    degree = 0
    for j in range(sizes.size):
        for t in range(degree + sizes[j] - 1, -1, -1):
            value = 0.0
            for v in range(min(sizes[j], t + 1)):
                if t - v <= degree:
                    value += shares[starts[j] + v] * out[t - v]
            out[t] = value
        degree += sizes[j] - 1


@_helper
def look_back(row, scale):  # type: ignore[no-untyped-def]
    """Return the row's missing columns, its known total, and sums over the remaining columns.

    Line i of these sums holds, for a total of s in the first i missing columns, the sum over all
    levels of the others of their shares times the ratio of the total.
    """
    holes = np.empty(row.size, dtype=np.int64)
    n_holes, known = 0, 0
    for j in range(row.size):
        if row[j] == row[j]:
            known += int(row[j])
        else:
            holes[n_holes] = j
            n_holes += 1
    width = scale.ratio.size - known
    later = np.zeros((n_holes + 1, width))
    later[n_holes] = scale.ratio[known:]
    for i in range(n_holes - 1, -1, -1):
        j = holes[i]
        for s in range(width):
            value = 0.0
            for v in range(min(scale.sizes[j], width - s)):
                value += scale.shares[scale.starts[j] + v] * later[i + 1, s + v]
            later[i, s] = value
    return holes[:n_holes], known, later


@_compile
def score_rows(values, scale, out):  # type: ignore[no-untyped-def]
    """Write the log-probabilities of the known levels of every row."""
    for r in range(values.shape[0]):
        holes, _, later = look_back(values[r], scale)
        score = np.log(later[0, 0])
        if holes.size < values.shape[1]:
            for j in range(values.shape[1]):
                value = values[r, j]
                if value == value:
                    score += np.log(scale.shares[scale.starts[j] + int(value)])
        out[r] = score


@_helper
def add_row(row, weight, scale, levels, totals):  # type: ignore[no-untyped-def]
    """Add a row's weight to its levels and total, with expectations for missing ones."""
    holes, known, later = look_back(row, scale)
    whole = later[0, 0]
    if not whole > 0:
        return
    for j in range(row.size):
        if row[j] == row[j]:
            levels[scale.starts[j] + int(row[j])] += weight
    width = later.shape[1]
    reached = np.zeros(width)
    reached[0] = 1.0
    degree = 0
    for i in range(holes.size):
        j = holes[i]
        after = np.zeros(width)
        for v in range(scale.sizes[j]):
            share = scale.shares[scale.starts[j] + v]
            mass = 0.0
            for s in range(min(degree + 1, width - v)):
                after[s + v] += share * reached[s]
                mass += reached[s] * later[i + 1, s + v]
            levels[scale.starts[j] + v] += weight * share * mass / whole
        reached = after
        degree = min(degree + scale.sizes[j] - 1, width - 1)
    for s in range(degree + 1):
        totals[known + s] += weight * reached[s] * scale.ratio[known + s] / whole


@_compile
def sum_rows(values, mass, scale, levels, totals):  # type: ignore[no-untyped-def]
    """Add up the weight of levels and totals over all rows."""
    for r in range(values.shape[0]):
        if mass[r] > 0:
            add_row(values[r], mass[r], scale, levels, totals)


@_compile
def level_shares(row, column, scale, out):  # type: ignore[no-untyped-def]
    """Write the probability of each level of a missing column, given the known levels."""
    n_levels = scale.shares.size
    levels, totals = np.zeros(n_levels), np.zeros(scale.ratio.size)
    add_row(row, 1.0, scale, levels, totals)
    out[:] = levels[scale.starts[column] : scale.starts[column] + scale.sizes[column]]


@_compile
def fill_by_draw(row, uniform, scale):  # type: ignore[no-untyped-def]
    """Draw the missing levels of a row in place, one after another."""
    holes, _, later = look_back(row, scale)
    so_far = 0
    for i in range(holes.size):
        j = holes[i]
        aim, level = uniform[j] * later[i, so_far], 0
        reached = 0.0
        for v in range(min(scale.sizes[j], later.shape[1] - so_far)):
            step = scale.shares[scale.starts[j] + v] * later[i + 1, so_far + v]
            if step > 0:
                level = v
                reached += step
                if reached > aim:
                    break
        row[j] = level
        so_far += level


@_compile
def fill_by_best(row, scale):  # type: ignore[no-untyped-def]
    """Write the jointly most probable levels of the missing columns of a row in place."""
    holes, known, _ = look_back(row, scale)
    width = scale.ratio.size - known
    best = np.zeros((holes.size + 1, width))
    best[holes.size] = scale.ratio[known:]
    choice = np.zeros((holes.size, width), dtype=np.int64)
    for i in range(holes.size - 1, -1, -1):
        j = holes[i]
        for s in range(width):
            for v in range(min(scale.sizes[j], width - s)):
                value = scale.shares[scale.starts[j] + v] * best[i + 1, s + v]
                if value > best[i, s]:
                    best[i, s] = value
                    choice[i, s] = v
    so_far = 0
    for i in range(holes.size):
        level = choice[i, so_far]
        row[holes[i]] = level
        so_far += level


@_compile
def expect_rows(values, scale, levels, totals):  # type: ignore[no-untyped-def]
    """Add the probabilities of levels and totals, given the known ones, to each row's own line."""
    for r in range(values.shape[0]):
        add_row(values[r], 1.0, scale, levels[r], totals[r])
