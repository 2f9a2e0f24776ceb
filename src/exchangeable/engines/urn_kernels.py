"""Weighted urns: ratios of elementary symmetric polynomials, and expectations given the count.

With ρ(l) = e_l / e_{l−1} over the first j weights, adding weight t makes ρ(l) into
(ρ(l) + t)·ρ(l−1) / (ρ(l−1) + t): every term is positive, so nothing cancels, and ratios neither
overflow nor underflow however many weights there are. t / (ρ(l) + t) is the probability that the
variable added last is on, given that l are on with it.

Where all ratios over all weights are known, the probability π(l) that a variable of weight t is on
given the count l obeys π(l) = t·(1 − π(l − 1)) / ρ(l). Upwards from π(0) = 0 that forgets errors
while t ≤ ρ(l), downwards it does where t > ρ(l); ρ falls with l, so each variable is followed
upwards to where the two meet, and downwards from above.
"""

import numpy as np
from numba import njit

from exchangeable.engines.tilt_kernels import cover, runs_of_equals

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})

FEW, MANY = 16, 1 << 14
"""Between so many counts tilting is faster than ratios; with more it needs too many tilts."""
STORED = 1 << 15
"""Ratios of all stages are kept up to so many numbers; beyond, some stages are computed twice."""
NARROW = 0.3
"""A kernel narrower than this is not worth having."""
TRACE = 1e-5
"""Mass of a count below this share of the whole is not worth smoothing."""
NEGLIGIBLE = 1e-25
"""Mass of a count below this share of the whole is not followed."""
LOG_FORGOTTEN = -41.0
"""An error that has shrunk by this factor is not seen any more."""


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
    if FEW < out.size <= MANY and cover(weights, out):
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
def _last_with_mass(histogram):  # type: ignore[no-untyped-def]
    """Return the largest count that has any mass to speak of."""
    high, total = histogram.size - 1, histogram.sum()
    while high > 0 and histogram[high] <= NEGLIGIBLE * total:
        high -= 1
    return high


@_compile
def above(high, n):  # type: ignore[no-untyped-def]
    """Return up to which count polynomials of n weights are needed for expectations up to one."""
    return min(n, high + high // 4 + 64)


@_compile
def _forgets(log_e, high, n):  # type: ignore[no-untyped-def]
    """Whether a start at the last count known makes no difference at `high` and below.

    Any variable that is followed downwards there weighs more than the ratio at `high`.
    """
    top = log_e.size - 1
    if top == n or high == 0:
        return True
    steepest = log_e[high] - log_e[high - 1]
    return log_e[top] - log_e[high] - (top - high) * steepest <= LOG_FORGOTTEN


@_compile
def _follow(weights, log_e, histogram, high, out):  # type: ignore[no-untyped-def]
    """Write E_j for every variable, given log e_0, log e_1 …, at least up to `high`."""
    order, top = np.arange(weights.size), log_e.size - 1
    if not (weights[1:] >= weights[:-1]).all():
        order = np.argsort(weights)
    starts = runs_of_equals(weights[order])  # what holds for a variable holds for its equals
    weight = weights[order][starts[:-1]]
    n = weight.size
    inverse, ratio = 1.0 / weight, np.empty(top + 1)
    for count in range(1, top + 1):
        ratio[count] = np.exp(log_e[count] - log_e[count - 1])
    share, found = np.zeros(n), np.zeros(n)
    light = n  # the first so many are followed upwards
    for count in range(1, high + 1):
        while light > 0 and weight[light - 1] > ratio[count]:
            light -= 1
        scale, mass = 1.0 / ratio[count], histogram[count]
        up, p, e = weight[:light], share[:light], found[:light]
        for j in range(light):
            value = up[j] * scale * (1.0 - p[j])
            p[j] = value
            e[j] += mass * value
    share[:] = 1.0  # exact if all are on, else soon forgotten
    heavy = 0  # those from here on are followed downwards
    for count in range(top, 0, -1):
        while heavy < n and weight[heavy] <= ratio[count]:
            heavy += 1
        down, p, e = inverse[heavy:], share[heavy:], found[heavy:]
        if count < top:
            scale = ratio[count + 1]
            for j in range(p.size):
                p[j] = 1.0 - p[j] * (scale * down[j])
        if count <= high:
            mass = histogram[count]
            for j in range(p.size):
                e[j] += mass * p[j]
    for j in range(n):
        out[order[starts[j] : starts[j + 1]]] = found[j]


@_compile
def expected_ones(weights, histogram, known, out):  # type: ignore[no-untyped-def]
    """Write E_j = Σ_l histogram[l]·P(x_j = 1 | count = l) for every variable.

    A count above the number of variables must have no mass. `known` are log e_0, log e_1 … of the
    weights as far as they are known, which may be none.
    """
    n, high = weights.size, _last_with_mass(histogram)
    if known.size > high and _forgets(known, high, n):
        _follow(weights, known, histogram, high, out)
        return
    top = above(high, n)
    if top < MANY:
        log_e = np.empty(top + 1)
        log_polynomials(weights, log_e)
        if not _forgets(log_e, high, n) and n < MANY:
            log_e = np.empty(n + 1)
            log_polynomials(weights, log_e)
        if _forgets(log_e, high, n):
            _follow(weights, log_e, histogram, high, out)
            return
    _walk_down(weights, histogram, high, out)


@_compile
def _walk_down(weights, histogram, high, out):  # type: ignore[no-untyped-def]
    """Write the same by ratios alone: variables are taken away one by one, with their shares."""
    n, low, total = weights.size, 0, histogram.sum()
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
def _half_kernel(bandwidth, half):  # type: ignore[no-untyped-def]
    """Write e^{−d² / 2b²} for d = 0, 1 …; the factors from one to the next fall evenly."""
    half[0] = 1.0
    factor, change = np.exp(-0.5 / bandwidth**2), np.exp(-1.0 / bandwidth**2)
    for distance in range(1, half.size):
        half[distance] = half[distance - 1] * factor
        factor *= change


@_compile
def smooth_counts(histogram, width, out, own):  # type: ignore[no-untyped-def]
    """Write the histogram with each count's mass spread by a Gaussian kernel.

    The bandwidth is width·(count + 1); where it is small, or the mass is, the mass stays.
    ``own[count]`` gets the share of a count's mass that stays there.
    """
    out[:] = 0.0
    own[:] = 1.0
    half = np.empty(histogram.size)
    little = TRACE * histogram.sum()
    for count in range(histogram.size):
        if histogram[count] <= 0.0:
            continue
        bandwidth = width * (count + 1)
        if bandwidth < NARROW or histogram[count] < little:
            out[count] += histogram[count]
            continue
        reach = int(np.ceil(3 * bandwidth))
        below, up = min(reach, count), min(reach, histogram.size - 1 - count)
        _half_kernel(bandwidth, half[: max(below, up) + 1])
        own[count] = 1.0 / (half[: below + 1].sum() + half[1 : up + 1].sum())
        mass = histogram[count] * own[count]
        for distance in range(below + 1):
            out[count - distance] += mass * half[distance]
        for distance in range(1, up + 1):
            out[count + distance] += mass * half[distance]


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
def expected_in_blocks(  # type: ignore[no-untyped-def]
    order, sizes, starts, weights, histogram, known, out
):
    """Write E_j for every variable of several urns; `order` lists the variables by block.

    `known` is what `fill_polynomials` has written for the same weights, or empty.
    """
    first = 0
    for b in range(sizes.size):
        members = order[first : first + sizes[b]]
        own = slice(starts[b], starts[b] + sizes[b] + 1)
        found, log_e = np.empty(sizes[b]), known[own]
        n_known = 0
        while n_known < log_e.size and log_e[n_known] < np.inf:
            n_known += 1
        expected_ones(weights[members], histogram[own], log_e[:n_known], found)
        out[members] = found
        first += sizes[b]


@_compile
def fill_polynomials(order, sizes, starts, weights, reach, table):  # type: ignore[no-untyped-def]
    """Write log e_l for every block and the counts up to its reach; +inf for those beyond."""
    first = 0
    for b in range(sizes.size):
        members = order[first : first + sizes[b]]
        found = np.empty(reach[b] + 1)
        log_polynomials(weights[members], found)
        table[starts[b] : starts[b] + sizes[b] + 1] = np.inf
        table[starts[b] : starts[b] + found.size] = found
        first += sizes[b]
