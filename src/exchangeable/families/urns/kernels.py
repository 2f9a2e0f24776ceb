"""Weighted urns: elementary symmetric polynomials, and expectations given the count.

With ρ(l) = e_l / e_{l−1} over the first j weights, adding weight t turns ρ(l) into (ρ(l) +
t)·ρ(l−1) / (ρ(l−1) + t): every term is positive, so nothing cancels, and ratios neither overflow
nor underflow however many weights there are. t / (ρ(l) + t) is the probability that the last
variable is on, given that l are on including it.

If there are not too many counts, tilts (`tilt_kernels`) compute the same polynomials faster, and
power series (`series_kernels`) the same expectations.
"""

import numpy as np

from exchangeable.families.urns.series_kernels import NEGLIGIBLE, margin_above, sum_series
from exchangeable.families.urns.tilt_kernels import cover
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import copy, fill, inlined, total

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})

FEW, MANY = 16, 1 << 14
"""Range of the number of counts in which tilts are faster than ratios; with more, too many tilts
are needed."""
STORED = 1 << 15
"""Ratios of all stages are stored up to this many numbers; beyond, most stages are computed
twice."""


@inlined
def add_weight(weight, before, after, top):  # type: ignore[no-untyped-def]
    """Write the ratios 1..top with one more weight; those above the number of weights are 0."""
    for count in range(2, top + 1):
        after[count] = (before[count] + weight) * (before[count - 1] / (before[count - 1] + weight))
    if top >= 1:
        after[1] = before[1] + weight


@_helper
def log_polynomials(weights, out):  # type: ignore[no-untyped-def]
    """Write log e_l(weights) for l = 0..out.size − 1, which is at most the number of weights."""
    if FEW < out.size <= MANY and cover(weights, out):
        return
    reach = out.size - 1
    before, after = np.empty(reach + 1), np.empty(reach + 1)
    fill(before, 0.0)
    fill(after, 0.0)
    for j in range(weights.size):
        add_weight(weights[j], before, after, min(j + 1, reach))
        before, after = after, before
    out[0] = 0.0
    for count in range(1, reach + 1):
        out[count] = out[count - 1] + np.log(before[count])


@inlined
def _take_weight(weight, ratios, mass, moved, low, high):  # type: ignore[no-untyped-def]
    """Move each count's share with the last variable on one down; return the total moved."""
    taken = 0.0
    for count in range(max(low, 1), high + 1):
        share = mass[count] / (ratios[count] + weight)
        moved[count] = share * weight
        mass[count] = share * ratios[count]
        taken += moved[count]
    for count in range(max(low, 1), high + 1):
        mass[count - 1] += moved[count]
    return taken


@inlined
def _last_with_mass(histogram):  # type: ignore[no-untyped-def]
    """Return the largest count with non-negligible mass."""
    high, least = histogram.size - 1, NEGLIGIBLE * total(histogram)
    while high > 0 and histogram[high] <= least:
        high -= 1
    return high


@inlined
def _expected_of_sorted(weights, histogram, log_e, out):  # type: ignore[no-untyped-def]
    """Do the same as `expected_ones`, for weights in ascending order."""
    if sum_series(weights, log_e, histogram, out):
        return
    high = _last_with_mass(histogram)
    top = margin_above(high, weights.size)
    if top < MANY:
        all_log_e = np.empty(top + 1)
        log_polynomials(weights, all_log_e)
        if sum_series(weights, all_log_e, histogram, out):
            return
    _walk_down(weights, histogram, high, out)


@_helper
def expected_ones(weights, histogram, log_e, out):  # type: ignore[no-untyped-def]
    """Write E_j = Σ_l histogram[l]·P(x_j = 1 | count = l) for every variable.

    Counts above the number of variables must have no mass. `log_e` holds log e_0, log e_1 … of the
    weights, +inf if unknown, and may end early.
    """
    order, rising = np.empty(weights.size, np.int64), True
    for j in range(weights.size):
        order[j] = j
        rising = rising and (j == 0 or weights[j] >= weights[j - 1])
    if not rising:
        order = np.argsort(weights)
    in_order, expected = np.empty(weights.size), np.empty(weights.size)
    for j in range(weights.size):
        in_order[j] = weights[order[j]]
    _expected_of_sorted(in_order, histogram, log_e, expected)
    for j in range(weights.size):
        out[order[j]] = expected[j]


@_helper
def stage_starts(weights, high):  # type: ignore[no-untyped-def]
    """Return the ratios 0..high before each stage of weights, and the number of weights per stage.

    There is one stage if all ratios can be stored, otherwise about as many stages as weights per
    stage.
    """
    n = weights.size
    stage = n if n * (high + 1) <= STORED else int(np.sqrt(n)) + 1
    starts = np.empty(((n + stage - 1) // stage, high + 1))
    ratios = np.empty((2, high + 1))
    fill(starts[0], 0.0)
    fill(ratios[1], 0.0)
    for s in range(starts.shape[0] - 1):
        copy(starts[s], ratios[0])
        for j in range(stage):
            top = min(s * stage + j + 1, high)
            add_weight(weights[s * stage + j], ratios[j % 2], ratios[1 - j % 2], top)
        copy(ratios[stage % 2], starts[s + 1])
    return starts, stage


@_helper
def fill_stage(weights, first, last, high, start, ratios):  # type: ignore[no-untyped-def]
    """Write the ratios of one stage: ``ratios[j − first]`` are those of the weights before j."""
    copy(start, ratios[0])
    for j in range(first, last - 1):
        fill(ratios[j - first + 1], 0.0)
        add_weight(weights[j], ratios[j - first], ratios[j - first + 1], min(j + 1, high))


@_helper
def _walk_down(weights, histogram, high, out):  # type: ignore[no-untyped-def]
    """Write the same by ratios alone: variables are removed one by one, with their shares."""
    n, low, least = weights.size, 0, NEGLIGIBLE * total(histogram)
    while low < high and histogram[low] <= least:
        low += 1
    starts, stage = stage_starts(weights, high)
    ratios = np.empty((stage + 1, high + 1))
    mass, moved = np.empty(high + 1), np.empty(high + 1)
    copy(histogram[: high + 1], mass)
    for s in range(starts.shape[0] - 1, -1, -1):
        first = s * stage
        last = min(first + stage, n)
        fill_stage(weights, first, last, high, starts[s], ratios)
        for j in range(last - 1, first - 1, -1):
            out[j] = _take_weight(weights[j], ratios[j - first], mass, moved, low, high)
            low = max(low - 1, 0)
            high = min(high, j)
            while high > 0 and mass[high] <= least:
                high -= 1
            while low < high and mass[low] <= least:
                low += 1


@_compile
def expected_in_blocks(polynomials, sizes, starts, histogram, out):  # type: ignore[no-untyped-def]
    """Write E_j for every variable of several urns.

    `polynomials` is a `polynomials.UrnPolynomials`; `sizes` and `starts` are those of the blocks.
    """
    order, weights, log_e = polynomials.order, polynomials.weights, polynomials.log_e
    first = 0
    for b in range(sizes.size):
        members, counts = slice(first, first + sizes[b]), slice(starts[b], starts[b] + sizes[b] + 1)
        of_block, variables = np.empty(sizes[b]), order[members]
        _expected_of_sorted(weights[members], histogram[counts], log_e[counts], of_block)
        for i in range(variables.size):
            out[variables[i]] = of_block[i]
        first += sizes[b]


@_compile
def fill_polynomials(sizes, starts, weights, reach, table):  # type: ignore[no-untyped-def]
    """Write log e_l for every block and the counts up to its reach; +inf for those beyond.

    `weights` are listed block by block.
    """
    fill(table, np.inf)
    first = 0
    for b in range(sizes.size):
        out = table[starts[b] : starts[b] + reach[b] + 1]
        log_polynomials(weights[first : first + sizes[b]], out)
        first += sizes[b]
