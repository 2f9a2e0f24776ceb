"""Inner loops that sum posteriors and their squares over the rows with each variable on.

Eight classes are handled at a time. Their posteriors in a tile of rows are turned into lines of
eight numbers, one per row. There are two sums of such lines for each variable, or for each value of
a code: of the posteriors times the weights of the rows, and of these times the posteriors. They
stay in registers while the rows of a variable or value are added.
"""

import numpy as np

from exchangeable.data.forms import CODE_BITS, CODED_TILE, COLUMN_TILE
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.lanes import (
    N_LANES,
    aligned,
    alike,
    load,
    plus,
    plus_product,
    store,
    times,
    transpose,
)
from exchangeable.runtime.kernels.loops import copy, fill, helper, inlined

_compile = compiled()

TURNED = 64
"""Number of rows that are converted to lines at a time."""
VALUES = 1 << CODE_BITS
"""Number of values of a code."""


@helper
def _lines_of(posterior, first_class, begin, end, workspace, lines):  # type: ignore[no-untyped-def]
    """Write the posteriors of the rows begin..end in up to eight classes as lines."""
    last_class = min(first_class + N_LANES, posterior.shape[0])
    for start in range(begin, end, TURNED):
        stop = min(start + TURNED, end)
        for y in range(first_class, last_class):
            copy(posterior[y, start:stop], workspace[(y - first_class) * TURNED :])
        for r in range(0, stop - start, N_LANES):
            transpose(workspace, r, TURNED, lines, (start - begin + r) * N_LANES, N_LANES)


@inlined
def _add_rows(lines, weights, rows, first, last, sums, position, apart):  # type: ignore[no-untyped-def]
    """Add the lines of listed rows to the sum at a position, and their squares to one behind it.

    The sum of four rows is added at a time, so that fewer additions wait for the one before.
    """
    total, square = load(sums, position), load(sums, position + apart)
    some = rows[first:last]
    n_fours = some.size // 4
    for four in range(n_fours):
        i, j, k, m = some[4 * four], some[4 * four + 1], some[4 * four + 2], some[4 * four + 3]
        a, b = load(lines, np.int64(i) * N_LANES), load(lines, np.int64(j) * N_LANES)
        c, d = load(lines, np.int64(k) * N_LANES), load(lines, np.int64(m) * N_LANES)
        mass_a, mass_b = times(alike(weights[i]), a), times(alike(weights[j]), b)
        mass_c, mass_d = times(alike(weights[k]), c), times(alike(weights[m]), d)
        total = plus(total, plus(plus(mass_a, mass_b), plus(mass_c, mass_d)))
        two = plus_product(times(mass_a, a), mass_b, b)
        square = plus(square, plus(two, plus_product(times(mass_c, c), mass_d, d)))
    for left in range(4 * n_fours, some.size):
        a = load(lines, np.int64(some[left]) * N_LANES)
        mass_a = times(alike(weights[some[left]]), a)
        total, square = plus(total, mass_a), plus_product(square, mass_a, a)
    store(sums, position, total)
    store(sums, position + apart, square)


@_compile
def add_by_value(lists, span, weights, posterior, first_class, sums):  # type: ignore[no-untyped-def]
    """Add the rows of a span, listed by the values of their codes (`forms.CodeLists`)."""
    (first, last), (first_row, row) = span, lists
    workspace, lines = aligned(N_LANES * TURNED), aligned((CODED_TILE + 1) * N_LANES)
    weight = np.empty(CODED_TILE + 1)
    fill(lines, 0.0)
    fill(weight, 0.0)  # of the row that there is not
    fill(workspace, 0.0)  # what is added up for classes that there are not must be numbers
    for tile in range(first_row.shape[0]):
        begin = first + tile * CODED_TILE
        end = min(begin + CODED_TILE, last)
        _lines_of(posterior, first_class, begin, end, workspace, lines)
        copy(weights[begin:end], weight)
        position = 0
        for g in range(first_row.shape[1]):
            rows = row[tile, g]
            for value in range(VALUES):
                start = np.int64(first_row[tile, g, value])
                stop = np.int64(first_row[tile, g, value + 1])
                if start < stop:
                    _add_rows(lines, weight, rows, start, stop, sums, position, N_LANES)
                position += 2 * N_LANES


@_compile
def add_by_column(columns, span, weights, posterior, first_class, moments):  # type: ignore[no-untyped-def]
    """Add the rows of a span of tiles, listed by variable (`forms.Columns`), to moments."""
    first_one, row = columns
    n_rows, n_variables, width = posterior.shape[1], moments.shape[0], moments.shape[2]
    sums = moments.reshape(-1)
    workspace, lines = aligned(N_LANES * TURNED), aligned(COLUMN_TILE * N_LANES)
    fill(workspace, 0.0)
    for tile in range(span[0], span[1]):
        begin = tile * COLUMN_TILE
        end = min(begin + COLUMN_TILE, n_rows)
        _lines_of(posterior, first_class, begin, end, workspace, lines)
        weight = weights[begin:end]
        for j in range(n_variables):
            start, stop = first_one[tile, j], first_one[tile, j + 1]
            if start < stop:
                position = 2 * width * j + first_class
                _add_rows(lines, weight, row, start, stop, sums, position, width)


@_compile
def fold(sums, first_class, moments):  # type: ignore[no-untyped-def]
    """Write the moments of the variables of each code: the sums of the values that have them on."""
    flat, width = moments.reshape(-1), moments.shape[2]
    for j in range(moments.shape[0]):
        of_code, bit = 2 * N_LANES * VALUES * (j // CODE_BITS), 1 << j % CODE_BITS
        for power in range(2):
            total = alike(0.0)
            for high in range(bit, VALUES, 2 * bit):
                for value in range(high, high + bit):
                    total = plus(total, load(sums, of_code + N_LANES * (2 * value + power)))
            store(flat, width * (2 * j + power) + first_class, total)
