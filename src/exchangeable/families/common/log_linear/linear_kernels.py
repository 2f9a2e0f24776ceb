"""Inner loops of EM that are sums over ones: naive Bayes scores, and moments.

There are several versions: over the ones of each row or of each variable (`forms.Columns`), and
over codes (`forms.Codes`). Posteriors have one line per class. Weights count equal rows that were
merged.
"""

import numpy as np

from exchangeable.data.forms import COLUMN_TILE
from exchangeable.data.row_kernels import ones_of
from exchangeable.families.common.posteriors import settle
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import copy, inlined
from exchangeable.runtime.kernels.vectors import TILE

_compile = compiled()


@_compile
def score_linear(  # type: ignore[no-untyped-def]
    rows, first, last, priors, base, slope, posterior
):
    """Write the posteriors of the rows first..last and return their log-likelihood.

    The scores of independent variables are ``base + Σ_j slope[j]`` over a row's ones.
    """
    n_variables, n_classes = slope.shape
    joint = np.empty((n_classes, TILE))
    score = np.empty(n_classes)
    buffer = np.empty(n_variables, dtype=np.int32)
    log_likelihood = 0.0
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        for row in range(begin, end):
            ones = ones_of(rows, row, buffer)
            copy(base, score)
            for k in range(ones.size):
                add = slope[ones[k]]
                for y in range(n_classes):
                    score[y] += add[y]
            for y in range(n_classes):
                joint[y, row - begin] = score[y]
        log_likelihood += settle(joint, np.int64(0), begin, end, priors, posterior)
    return log_likelihood


@_compile
def score_coded(  # type: ignore[no-untyped-def]
    codes, first, last, priors, base, expanded, posterior
):
    """Do the same with a line for every code and value."""
    n_classes = base.size
    joint = np.empty((n_classes, TILE))
    scores = np.empty((TILE, n_classes))
    log_likelihood = 0.0
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        for r in range(end - begin):
            copy(base, scores[r])
        for g in range(codes.shape[0]):
            of_code, value = expanded[g], codes[g, begin:end]
            for r in range(value.size):
                score, add = scores[r], of_code[value[r]]
                for y in range(n_classes):
                    score[y] += add[y]
        for y in range(n_classes):
            line = joint[y]
            for r in range(end - begin):
                line[r] = scores[r, y]
        log_likelihood += settle(joint, np.int64(0), begin, end, priors, posterior)
    return log_likelihood


@inlined
def _weigh(weights, posterior, mass):  # type: ignore[no-untyped-def]
    """Write each row's posteriors times its weight, and their squares if lines are long enough."""
    n_classes, n_rows = posterior.shape
    for r in range(n_rows):
        line, weight = mass[r], weights[r]
        if line.size == n_classes:
            for y in range(n_classes):
                line[y] = weight * posterior[y, r]
        else:
            for y in range(n_classes):
                share = posterior[y, r]
                line[y] = weight * share
                line[n_classes + y] = weight * share * share


@_compile
def add_moments(  # type: ignore[no-untyped-def]
    rows, first, last, weights, posterior, sums
):
    """Add the posteriors, and possibly their squares, to sums[j] over the rows with j on.

    ``sums[j]`` holds one entry per class, then, if squares are wanted, one more per class.
    """
    width = sums.shape[1]
    mass = np.empty((TILE, width))
    buffer = np.empty(sums.shape[0], dtype=np.int32)
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        _weigh(weights[begin:end], posterior[:, begin:end], mass)
        for row in range(begin, end):
            add = mass[row - begin]
            ones = ones_of(rows, row, buffer)
            for k in range(ones.size):
                total = sums[ones[k]]
                for y in range(width):
                    total[y] += add[y]


@_compile
def add_moments_by_column(  # type: ignore[no-untyped-def]
    first_one, row, first, last, weights, posterior, sums
):
    """Do the same with the ones of tiles of rows listed by variable (`forms.Columns`).

    Here first..last are tiles. Four lines are read for one that is written.
    """
    n_rows, width = posterior.shape[1], sums.shape[1]
    mass = np.empty((COLUMN_TILE, width))
    for tile in range(first, last):
        begin = tile * COLUMN_TILE
        end = min(begin + COLUMN_TILE, n_rows)
        _weigh(weights[begin:end], posterior[:, begin:end], mass)
        for j in range(sums.shape[0]):
            total, k, stop = sums[j], first_one[tile, j], first_one[tile, j + 1]
            while k + 4 <= stop:
                one, two = mass[row[k]], mass[row[k + 1]]
                three, four = mass[row[k + 2]], mass[row[k + 3]]
                for y in range(width):
                    total[y] += (one[y] + two[y]) + (three[y] + four[y])
                k += 4
            while k < stop:
                one = mass[row[k]]
                for y in range(width):
                    total[y] += one[y]
                k += 1


@_compile
def add_moments_coded(codes, first, last, weights, posterior, sums):  # type: ignore[no-untyped-def]
    """Do the same with a line for every code and value."""
    width = sums.shape[2]
    mass = np.empty((TILE, width))
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        _weigh(weights[begin:end], posterior[:, begin:end], mass)
        # One code of all rows at a time: its lines fit the first-level cache.
        for g in range(codes.shape[0]):
            of_code, value = sums[g], codes[g, begin:end]
            for r in range(value.size):
                total, add = of_code[value[r]], mass[r]
                for y in range(width):
                    total[y] += add[y]
