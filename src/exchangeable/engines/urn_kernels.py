"""Weighted urns: ratios of elementary symmetric polynomials, and expectations given the count.

With ρ(l) = e_l / e_{l−1} over the first j weights, adding weight t makes ρ(l) into
(ρ(l) + t)·ρ(l−1) / (ρ(l−1) + t): every term is positive, so nothing cancels, and ratios neither
overflow nor underflow however many weights there are. t / (ρ(l) + t) is the probability that the
variable added last is on, given that l are on with it.
"""

import numpy as np
from numba import njit

from exchangeable.engines.tilt_kernels import cover

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})

FEW, MANY = 16, 4096
"""Between so many counts tilting is faster than ratios; with more it needs too many tilts."""
ROOM = 1 << 20
"""Tilting is used where all stages of an expectation take no more numbers than this."""
STORED = 1 << 15
"""Ratios of all stages are kept up to so many numbers; beyond, some stages are computed twice."""
NARROW = 0.3
"""A kernel narrower than this is not worth having."""
TRACE = 1e-5
"""Mass of a count below this share of the whole is not worth smoothing."""
NEGLIGIBLE = 1e-25
"""Mass of a count below this share of the whole is not followed."""


@_compile
def _add_weight(weight, before, after, top):  # type: ignore[no-untyped-def]
    """Write the ratios 1..top with one more weight; those above the number of weights are 0."""
    for count in range(2, top + 1):
        after[count] = (before[count] + weight) * (before[count - 1] / (before[count - 1] + weight))
    if top >= 1:
        after[1] = before[1] + weight


@_compile
def log_polynomials(weights, out):  # type: ignore[no-untyped-def]
    """Write log e_l(weights) for l = 0..out.size − 1, which is at most the number of weights."""
    if FEW < out.size <= MANY and cover(weights, out, out, False, out):
        return
    reach = out.size - 1
    before, after = np.zeros(reach + 1), np.zeros(reach + 1)
    for j in range(weights.size):
        _add_weight(weights[j], before, after, min(j + 1, reach))
        before, after = after, before
    out[0] = 0.0
    for count in range(1, reach + 1):
        out[count] = out[count - 1] + np.log(before[count])


@_compile
def _take_weight(weight, ratios, mass, moved, low, high):  # type: ignore[no-untyped-def]
    """Move each count's share with the last variable on one down; return how much that was."""
    total = 0.0
    for count in range(max(low, 1), high + 1):
        share = mass[count] / (ratios[count] + weight)
        moved[count] = share * weight
        mass[count] = share * ratios[count]
        total += moved[count]
    for count in range(max(low, 1), high + 1):
        mass[count - 1] += moved[count]
    return total


@_compile
def expected_ones(weights, histogram, out):  # type: ignore[no-untyped-def]
    """Write E_j = Σ_l histogram[l]·P(x_j = 1 | count = l) for every variable.

    A count above the number of variables must have no mass.
    """
    n = weights.size
    total = histogram.sum()
    low, high = 0, histogram.size - 1
    while high > 0 and histogram[high] <= NEGLIGIBLE * total:
        high -= 1
    tilting = high > FEW and n * (high + 1) <= ROOM
    if tilting and cover(weights, histogram[: high + 1], out, True, out):
        return
    while low < high and histogram[low] <= NEGLIGIBLE * total:
        low += 1
    stage = n if n * (high + 1) <= STORED else int(np.sqrt(n)) + 1
    starts = np.zeros(((n + stage - 1) // stage, high + 1))
    ratios = np.zeros((stage + 1, high + 1))
    for s in range(starts.shape[0] - 1):  # the ratios before each stage
        ratios[0] = starts[s]
        for j in range(stage):
            top = min(s * stage + j + 1, high)
            _add_weight(weights[s * stage + j], ratios[j % 2], ratios[1 - j % 2], top)
        starts[s + 1] = ratios[stage % 2]
    mass, moved = histogram[: high + 1].copy(), np.zeros(high + 1)
    for s in range(starts.shape[0] - 1, -1, -1):
        first = s * stage
        last = min(first + stage, n)
        ratios[0] = starts[s]
        for j in range(first, last - 1):
            at = j - first
            ratios[at + 1] = 0.0
            _add_weight(weights[j], ratios[at], ratios[at + 1], min(j + 1, high))
        for j in range(last - 1, first - 1, -1):
            out[j] = _take_weight(weights[j], ratios[j - first], mass, moved, low, high)
            low = max(low - 1, 0)
            high = min(high, j)
            while high > 0 and mass[high] <= NEGLIGIBLE * total:
                high -= 1
            while low < high and mass[low] <= NEGLIGIBLE * total:
                low += 1


@_compile
def smooth_counts(histogram, width, out, own):  # type: ignore[no-untyped-def]
    """Write the histogram with each count's mass spread by a Gaussian kernel.

    The bandwidth is width·(count + 1); where it is small, or the mass is, the mass stays.
    ``own[count]`` gets the share of a count's mass that stays there.
    """
    out[:] = 0.0
    own[:] = 1.0
    little = TRACE * histogram.sum()
    for count in range(histogram.size):
        if histogram[count] <= 0.0:
            continue
        bandwidth = width * (count + 1)
        if bandwidth < NARROW or histogram[count] < little:
            out[count] += histogram[count]
            continue
        reach = int(np.ceil(3 * bandwidth))
        first, last = max(count - reach, 0), min(count + reach, histogram.size - 1)
        kernel = np.exp(-0.5 * ((np.arange(first, last + 1) - count) / bandwidth) ** 2)
        out[first : last + 1] += (histogram[count] / kernel.sum()) * kernel
        own[count] = 1.0 / kernel.sum()


@_compile
def best_smoothing(histogram, prior, widths, out):  # type: ignore[no-untyped-def]
    """Write the smoothed histogram plus the prior, by the width that predicts left-out rows best.

    A row is left out by taking one unit of mass, or all there is if that is less, from its count.
    """
    weight, known = histogram.sum(), prior.sum()
    tried, own = np.empty(histogram.size), np.empty(histogram.size)
    best = -np.inf
    out[:] = histogram + prior
    if weight <= 0.0:
        return
    for width in widths:
        smooth_counts(histogram, width, tried, own)
        worth = 0.0
        for count in range(histogram.size):
            h = histogram[count]
            if h > 0.0:
                unit = min(h, 1.0)
                left = max(tried[count] - unit * own[count], 0.0) + prior[count]
                worth += h * np.log(max(left, 1e-300) / (weight - unit + known))
        if worth > best:
            best = worth
            out[:] = tried + prior


@_compile
def expected_in_blocks(order, sizes, starts, weights, histogram, out):  # type: ignore[no-untyped-def]
    """Write E_j for every variable of several urns; `order` lists the variables by block."""
    first = 0
    for b in range(sizes.size):
        members = order[first : first + sizes[b]]
        found = np.empty(sizes[b])
        expected_ones(weights[members], histogram[starts[b] : starts[b] + sizes[b] + 1], found)
        out[members] = found
        first += sizes[b]


@_compile
def fill_urn_tables(order, sizes, starts, weights, log_q, table):  # type: ignore[no-untyped-def]
    """Write log q(l) − log e_l for every block and count; where q is zero, −inf."""
    first = 0
    for b in range(sizes.size):
        members = order[first : first + sizes[b]]
        last = sizes[b]
        while last > 0 and log_q[starts[b] + last] == -np.inf:
            last -= 1
        found = np.empty(last + 1)
        log_polynomials(weights[members], found)
        table[starts[b] : starts[b] + sizes[b] + 1] = -np.inf
        for count in range(last + 1):
            table[starts[b] + count] = log_q[starts[b] + count] - found[count]
        first += sizes[b]
