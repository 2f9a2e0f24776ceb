"""Inner loops of conditional fits: softmax residuals by row, gradients by variable.

Both read and write each line once, so that threads share nothing and results do not depend on their
number. For two classes a single column of slopes is enough: the classes score 0 and that column.
"""

import numpy as np

from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import inlined, largest
from exchangeable.runtime.kernels.vectors import logarithm, scaled_power

_compile = compiled(fastmath={"contract", "reassoc"})
LOG_LEAST = -700.0
"""Smaller exponents are treated as this one."""
NARROW = np.uint64(8)
"""With at most this many columns, four are summed at a time; wider lines are read as a whole."""
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
"""Unsigned, because negative indices would need a test for each access."""


@for_kernels(fastmath={"reassoc"}, forceinline=True)
def _sum_of(values, chosen, begin, end):  # type: ignore[no-untyped-def]
    """Return the sum of some values."""
    total = 0.0
    for k in range(begin, end):
        total += values[chosen[k]]
    return total


@compiled(fastmath={"contract"})
def add_lines(indptr, chosen, first, last, lines, out):  # type: ignore[no-untyped-def]
    """Add the selected `lines` to each line of `out`.

    In the forward pass these are the slopes of a row's ones, in the backward pass the residuals of
    a variable's rows.
    """
    flat, width = lines.ravel(), np.uint64(lines.shape[1])
    for i in range(first, last):
        begin, end, total = indptr[i], indptr[i + 1], out[i]
        if width == ONE:
            total[0] += _sum_of(flat, chosen, begin, end)
            continue
        if width > NARROW:
            for k in range(begin, end):
                line = lines[chosen[k]]
                for z in range(line.size):
                    total[z] += line[z]
            continue
        y = np.uint64(0)
        while y + FOUR <= width:
            one, two, three, four = 0.0, 0.0, 0.0, 0.0
            for k in range(begin, end):
                entry = np.uint64(chosen[k]) * width + y
                one += flat[entry]
                two += flat[entry + ONE]
                three += flat[entry + TWO]
                four += flat[entry + THREE]
            total[y] += one
            total[y + ONE] += two
            total[y + TWO] += three
            total[y + THREE] += four
            y += FOUR
        while y < width:
            one = 0.0
            for k in range(begin, end):
                one += flat[np.uint64(chosen[k]) * width + y]
            total[y] += one
            y += ONE


@inlined
def _settle_two(margins, first, last, labels, weights):  # type: ignore[no-untyped-def]
    """Do the same as `settle` for the scores of the second of two classes relative to the first."""
    loss = 0.0
    for row in range(first, last):
        margin = margins[row] if labels[row] else -margins[row]
        small = scaled_power(max(-abs(margin), LOG_LEAST))
        loss += weights[row] * (logarithm(1.0 + small) + max(-margin, 0.0))
        wrong = weights[row] * (small if margin > 0 else 1.0) / (1.0 + small)
        margins[row] = -wrong if labels[row] else wrong
    return loss


@_compile
def settle(scores, first, last, labels, weights):  # type: ignore[no-untyped-def]
    """Turn scores into weighted residuals P(y | x) − [y is the label]; return the summed loss."""
    width, flat, loss = scores.shape[1], scores.ravel(), 0.0
    if width == 1:
        return _settle_two(flat, first, last, labels, weights)
    for row in range(first, last):
        line = scores[row]
        highest = largest(line)
        loss += weights[row] * (highest - line[labels[row]])
        for y in range(width):
            line[y] = max(line[y] - highest, LOG_LEAST)
    for i in range(first * width, last * width):
        flat[i] = scaled_power(flat[i])
    for row in range(first, last):
        line, weight, total = scores[row], weights[row], 0.0
        for y in range(width):
            total += line[y]
        loss += weight * np.log(total)
        factor = weight / total
        for y in range(width):
            line[y] *= factor
        line[labels[row]] -= weight
    return loss


@_compile
def unscale(z, per_unit, ridge, lines, gradient):  # type: ignore[no-untyped-def]
    """Write lines of parameters and the gradient of their penalty; return their summed squares.

    The first line, the scores for the empty row, is not penalised.
    """
    width, squares = lines.shape[1], 0.0
    for i in range(lines.shape[0]):
        for y in range(width):
            value = z[i * width + y] * per_unit[i]
            lines[i, y] = value
            gradient[i, y] = ridge * value if i else 0.0
            squares += value * value if i else 0.0
    return squares


@_compile
def rescale(gradient, per_sum, roots):  # type: ignore[no-untyped-def]
    """Multiply each line of a gradient by its factor; return the largest entry over the root."""
    highest = 0.0
    for i in range(gradient.shape[0]):
        for y in range(gradient.shape[1]):
            gradient[i, y] *= per_sum[i]
            highest = max(highest, abs(gradient[i, y]) / roots[i])
    return highest
