"""Inner loops that sum posteriors and their squares over the rows with each variable on.

The posteriors of a tile of rows are turned into lines, one per row, padded to whole lanes. Sums
have two such lines for each variable, or for each value of a code: of the posteriors times the
weights of the rows, and of these times the posteriors. They stay in registers while the rows of a
variable or value are added, in the order of the rows.

Where all rows of a tile have weight 1, their lines are multiplied by themselves; else every row has
a second line, without its weight, in the room behind the first ones.
"""

import numpy as np

from exchangeable.data.forms import CODE_BITS, CODED_TILE
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.lanes import N_LANES, aligned, load, plus, store, times, transpose
from exchangeable.runtime.kernels.loops import copy, fill, helper, inlined
from exchangeable.runtime.kernels.vectors import TILE

_compile = compiled()

TURNED = 64
"""Number of rows that are converted to lines at a time."""
VALUES = 1 << CODE_BITS
"""Number of values of a code."""


@inlined
def _turn(workspace, n_rows, width, mass, position):  # type: ignore[no-untyped-def]
    """Write the columns of the workspace, one per row, as lines from a position on."""
    for y in range(0, width, N_LANES):
        for r in range(0, n_rows, N_LANES):
            transpose(workspace, y * TURNED + r, TURNED, mass, position + r * width + y, width)


@helper
def _lines_of(weights, posterior, begin, end, width, workspace, mass):  # type: ignore[no-untyped-def]
    """Write the lines of the rows begin..end, and return how far behind them the second ones are.

    Those of rows that all have weight 1 are the first lines themselves.
    """
    n_classes, apart = posterior.shape[0], 0
    for r in range(begin, end):
        if weights[r] != 1.0:
            apart = mass.size // 2
    for start in range(begin, end, TURNED):
        stop = min(start + TURNED, end)
        weight, position = weights[start:stop], (start - begin) * width
        for y in range(n_classes):
            share, line = posterior[y, start:stop], workspace[y * TURNED : (y + 1) * TURNED]
            for r in range(share.size):
                line[r] = weight[r] * share[r]
        _turn(workspace, stop - start, width, mass, position)
        if apart:
            for y in range(n_classes):
                copy(posterior[y, start:stop], workspace[y * TURNED : (y + 1) * TURNED])
            _turn(workspace, stop - start, width, mass, position + apart)
    return apart


@inlined
def _four(mass, one, two, three, four):  # type: ignore[no-untyped-def]
    """Return the sum of four times eight numbers, two and two of them first."""
    first = plus(load(mass, one), load(mass, two))
    return plus(first, plus(load(mass, three), load(mass, four)))


@inlined
def _square(mass, line, apart):  # type: ignore[no-untyped-def]
    """Return eight numbers of a row's line times those of its second one."""
    return times(load(mass, line), load(mass, line + apart))


@inlined
def _four_squares(mass, one, two, three, four, apart):  # type: ignore[no-untyped-def]
    """Return the same sum of products with the second lines."""
    first = plus(_square(mass, one, apart), _square(mass, two, apart))
    return plus(first, plus(_square(mass, three, apart), _square(mass, four, apart)))


@inlined
def _add_rows(mass, apart, rows, first, last, by_four, width, sums, position):  # type: ignore[no-untyped-def]
    """Add the lines of listed rows to the sums at a position, four rows at a time or one by one.

    Twenty-four numbers are added at a time while there are as many, then eight.
    """
    c = 0
    while c + 3 * N_LANES <= width:
        of_values, of_squares, i = position + c, position + width + c, first
        one, two, three = (
            load(sums, of_values),
            load(sums, of_values + 8),
            load(sums, of_values + 16),
        )
        square_one, square_two = load(sums, of_squares), load(sums, of_squares + 8)
        square_three = load(sums, of_squares + 16)
        while by_four and i + 4 <= last:
            a, b = np.int64(rows[i]) * width + c, np.int64(rows[i + 1]) * width + c
            d, e = np.int64(rows[i + 2]) * width + c, np.int64(rows[i + 3]) * width + c
            one = plus(one, _four(mass, a, b, d, e))
            two = plus(two, _four(mass, a + 8, b + 8, d + 8, e + 8))
            three = plus(three, _four(mass, a + 16, b + 16, d + 16, e + 16))
            square_one = plus(square_one, _four_squares(mass, a, b, d, e, apart))
            square_two = plus(square_two, _four_squares(mass, a + 8, b + 8, d + 8, e + 8, apart))
            square_three = plus(
                square_three, _four_squares(mass, a + 16, b + 16, d + 16, e + 16, apart)
            )
            i += 4
        while i < last:
            line = np.int64(rows[i]) * width + c
            one, two = plus(one, load(mass, line)), plus(two, load(mass, line + 8))
            three = plus(three, load(mass, line + 16))
            square_one = plus(square_one, _square(mass, line, apart))
            square_two = plus(square_two, _square(mass, line + 8, apart))
            square_three = plus(square_three, _square(mass, line + 16, apart))
            i += 1
        store(sums, of_values, one)
        store(sums, of_values + 8, two)
        store(sums, of_values + 16, three)
        store(sums, of_squares, square_one)
        store(sums, of_squares + 8, square_two)
        store(sums, of_squares + 16, square_three)
        c += 3 * N_LANES
    while c < width:
        one, square_one, i = load(sums, position + c), load(sums, position + width + c), first
        while by_four and i + 4 <= last:
            a, b = np.int64(rows[i]) * width + c, np.int64(rows[i + 1]) * width + c
            d, e = np.int64(rows[i + 2]) * width + c, np.int64(rows[i + 3]) * width + c
            one = plus(one, _four(mass, a, b, d, e))
            square_one = plus(square_one, _four_squares(mass, a, b, d, e, apart))
            i += 4
        while i < last:
            line = np.int64(rows[i]) * width + c
            one = plus(one, load(mass, line))
            square_one = plus(square_one, _square(mass, line, apart))
            i += 1
        store(sums, position + c, one)
        store(sums, position + width + c, square_one)
        c += N_LANES


@_compile
def add_by_value(lists, span, weights, posterior, width, sums):  # type: ignore[no-untyped-def]
    """Add the rows of a span, listed by the values of their codes (`forms.CodeLists`)."""
    (first, last), (first_row, row) = span, lists
    workspace, mass = aligned(width * TURNED), aligned(2 * CODED_TILE * width)
    fill(workspace, 0.0)  # arithmetic with what happens to be in the padding might be slow
    for tile in range(first_row.shape[0]):
        begin = first + tile * CODED_TILE
        end = min(begin + CODED_TILE, last)
        apart = _lines_of(weights, posterior, begin, end, width, workspace, mass)
        for g in range(first_row.shape[1]):
            rows, position = row[g, begin - first : end - first], 2 * width * VALUES * g
            for value in range(VALUES):
                start = np.int64(first_row[tile, g, value])
                stop = np.int64(first_row[tile, g, value + 1])
                if start < stop:
                    _add_rows(mass, apart, rows, start, stop, False, width, sums, position)
                position += 2 * width


@_compile
def add_by_column(columns, span, weights, posterior, width, sums):  # type: ignore[no-untyped-def]
    """Add the rows of a span of tiles, listed by variable (`forms.Columns`)."""
    first_one, row = columns
    n_rows, n_variables = posterior.shape[1], first_one.shape[1] - 1
    workspace, mass = aligned(width * TURNED), aligned(2 * TILE * width)
    fill(workspace, 0.0)
    for tile in range(span[0], span[1]):
        begin = tile * TILE
        end = min(begin + TILE, n_rows)
        apart = _lines_of(weights, posterior, begin, end, width, workspace, mass)
        for j in range(n_variables):
            start, stop = first_one[tile, j], first_one[tile, j + 1]
            if start < stop:
                _add_rows(mass, apart, row, start, stop, True, width, sums, 2 * width * j)


@_compile
def fold(sums, width, lines):  # type: ignore[no-untyped-def]
    """Add the sums of the values of each code, in their order, to the lines of its variables.

    Both have lines of `width` numbers, in whole lanes.
    """
    for j in range(lines.size // width):
        of_code, bit = VALUES * width * (j // CODE_BITS), 1 << j % CODE_BITS
        for c in range(0, width, N_LANES):
            total = load(lines, width * j + c)
            for high in range(bit, VALUES, 2 * bit):
                for value in range(high, high + bit):
                    total = plus(total, load(sums, of_code + width * value + c))
            store(lines, width * j + c, total)
