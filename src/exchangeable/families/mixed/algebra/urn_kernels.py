"""Compiled loops of Pólya's urn: weights from how often counts were exceeded; unknown totals.

A weight a from which k units have been drawn counts as a + k, so a count of x contributes the log
of the rising factorial (a)_x = a·(a + 1)⋯(a + x − 1) to a score. `above` has a line for every
column and k = 0, 1, …: the mass of the rows whose count exceeds k.
"""

import math

from exchangeable.runtime.kernels.cache import compiled

_compile = compiled()


@_compile
def rising_table(weights, starts, table):  # type: ignore[no-untyped-def]
    """Write log (a)_x of x = 1, 2, … for every column, one column after another."""
    for j in range(weights.shape[0]):
        for y in range(weights.shape[1]):
            total = 0.0
            for cell in range(starts[j], starts[j + 1]):
                total += math.log(weights[j, y] + (cell - starts[j]))
                table[cell, y] = total


@_compile
def sum_above(indptr, indices, counts, starts, mass, above):  # type: ignore[no-untyped-def]
    """Add each row's mass to the lines that its counts exceed."""
    for row in range(indptr.size - 1):
        for i in range(indptr[row], indptr[row + 1]):
            j = indices[i]
            for cell in range(starts[j], min(starts[j] + int(counts[i]), starts[j + 1])):
                line = above[cell]
                for y in range(line.size):
                    line[y] += mass[row, y]


@_compile
def score_rising(indptr, indices, counts, starts, table, out):  # type: ignore[no-untyped-def]
    """Add log (a)_x of the counts that are not 0 and that the table has."""
    for row in range(indptr.size - 1):
        for i in range(indptr[row], indptr[row + 1]):
            j, x = indices[i], int(counts[i])
            if 0 < x <= starts[j + 1] - starts[j]:
                line = table[starts[j] + x - 1]
                for y in range(line.size):
                    out[row, y] += line[y]


@_compile
def urn_step(above, fixed, below, starts, weights, after):  # type: ignore[no-untyped-def]
    """Write the weights after one step of Minka's fixed point, which cannot lower the objective.

    `fixed` is what unknown counts add to the numerator of each column, and `below` the denominator
    of each class: the sum over totals of their mass times 1 / A + 1 / (A + 1) + ….
    """
    for j in range(weights.shape[0]):
        weight, line = weights[j], after[j]
        for y in range(line.size):
            line[y] = 0.0
        for cell in range(starts[j], starts[j + 1]):
            seen, drawn = above[cell], float(cell - starts[j])
            for y in range(line.size):
                line[y] += seen[y] / (weight[y] + drawn)
        for y in range(line.size):
            line[y] = (weight[y] * line[y] + fixed[j, y]) / below[y]


@_compile
def open_totals(known, weight, whole, mean, size, least, shares):  # type: ignore[no-untyped-def]
    """Write the probability of each total of the unknown counts; return the log of their sum.

    The sum is over r of q(known + r)·(known + r)! / r!·(weight)_r / (whole)_(known + r), where q is
    the negative binomial or Poisson distribution. Each term follows from the one before by their
    ratio. At least `least` of them are summed, if there is space, and further ones until they are
    negligible; the number of terms is the second result.
    """
    poisson = size == math.inf
    p = mean if poisson else mean / (size + mean)
    t = float(known)
    first = math.lgamma(whole) - math.lgamma(whole + t)
    if poisson:
        first += t * math.log(mean) - mean
    else:
        first += math.lgamma(size + t) - math.lgamma(size)
        first += size * math.log(size / (size + mean)) + t * math.log(p)
    scale, term, total, n = 0.0, 1.0, 1.0, 1
    shares[0] = 1.0
    for r in range(shares.size - 1):
        ratio = p * (weight + r) / ((r + 1.0) * (whole + t + r))
        if not poisson:
            ratio *= size + t + r
        term *= ratio
        if term > 1e200:
            for i in range(n):
                shares[i] *= 1e-200
            term, total, scale = term * 1e-200, total * 1e-200, scale + 200.0 * math.log(10.0)
        shares[n] = term
        total += term
        n += 1
        if r >= least and term < 1e-18 * total:
            break
    for i in range(n):
        shares[i] /= total
    return first + scale + math.log(total), n
