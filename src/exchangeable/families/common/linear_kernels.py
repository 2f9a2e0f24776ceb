"""The inner loops of EM that are sums over ones: naive Bayes scores, and moments.

They come in several forms: over the ones of each row or of each variable (`forms.Columns`), and
over codes (`forms.Codes`). Posteriors are laid out one class a line. Weights count equal rows that
were merged.
"""

import numpy as np
from numba import njit

from exchangeable.data.row_kernels import ones_of
from exchangeable.families.common.posteriors import settle
from exchangeable.runtime.vectors import TILE

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def score_linear(  # type: ignore[no-untyped-def]
    bits, indptr, indices, first, last, weights, clamp, base, slope, log_prior, posterior
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
            ones = ones_of(bits, indptr, indices, row, buffer)
            score[:] = base
            for at in range(ones.size):
                add = slope[ones[at]]
                for y in range(n_classes):
                    score[y] += add[y]
            joint[:, row - begin] = score
        log_likelihood += settle(
            joint,
            end - begin,
            weights[begin:end],
            clamp[begin:end],
            log_prior,
            posterior[:, begin:end],
        )
    return log_likelihood


@_compile
def score_coded(  # type: ignore[no-untyped-def]
    codes, first, last, weights, clamp, base, expanded, log_prior, posterior
):
    """Do the same with a line for every group and code."""
    n_classes = base.size
    joint = np.empty((n_classes, TILE))
    scores = np.empty((TILE, n_classes))
    log_likelihood = 0.0
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        scores[:] = base
        for g in range(codes.shape[0]):
            of_group, code = expanded[g], codes[g, begin:end]
            for r in range(code.size):
                score, add = scores[r], of_group[code[r]]
                for y in range(n_classes):
                    score[y] += add[y]
        joint[:] = scores.T
        log_likelihood += settle(
            joint,
            end - begin,
            weights[begin:end],
            clamp[begin:end],
            log_prior,
            posterior[:, begin:end],
        )
    return log_likelihood


@_compile
def _weigh(weights, posterior, mass):  # type: ignore[no-untyped-def]
    """Write each row's posteriors by its weight, then, if there is room, their squares by it."""
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
    bits, indptr, indices, first, last, weights, posterior, sums
):
    """Add the posteriors, and their squares if there is room, to sums[j] over the rows with j on.

    ``sums[j]`` holds one entry a class, then one more a class for the squares.
    """
    width = sums.shape[1]
    mass = np.empty((TILE, width))
    buffer = np.empty(sums.shape[0], dtype=np.int32)
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        _weigh(weights[begin:end], posterior[:, begin:end], mass)
        for row in range(begin, end):
            add = mass[row - begin]
            ones = ones_of(bits, indptr, indices, row, buffer)
            for at in range(ones.size):
                total = sums[ones[at]]
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
    mass = np.empty((TILE, width))
    for tile in range(first, last):
        begin = tile * TILE
        end = min(begin + TILE, n_rows)
        _weigh(weights[begin:end], posterior[:, begin:end], mass)
        for j in range(sums.shape[0]):
            total, at, stop = sums[j], first_one[tile, j], first_one[tile, j + 1]
            while at + 4 <= stop:
                one, two = mass[row[at]], mass[row[at + 1]]
                three, four = mass[row[at + 2]], mass[row[at + 3]]
                for y in range(width):
                    total[y] += (one[y] + two[y]) + (three[y] + four[y])
                at += 4
            while at < stop:
                one = mass[row[at]]
                for y in range(width):
                    total[y] += one[y]
                at += 1


@_compile
def add_moments_coded(codes, first, last, weights, posterior, sums):  # type: ignore[no-untyped-def]
    """Do the same with a line for every group and code."""
    width = sums.shape[2]
    mass = np.empty((TILE, width))
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        _weigh(weights[begin:end], posterior[:, begin:end], mass)
        # A group at a time: its lines fit the first-level cache.
        for g in range(codes.shape[0]):
            of_group, code = sums[g], codes[g, begin:end]
            for r in range(code.size):
                total, add = of_group[code[r]], mass[r]
                for y in range(width):
                    total[y] += add[y]
