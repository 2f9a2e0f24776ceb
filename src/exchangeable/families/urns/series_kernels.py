"""Weighted urns: expectations given the count, as power series in the weights.

With e_l the polynomials of all weights, the probability that a variable of weight t is on given the
count l is

    Σ_{k ≥ 1} (−1)^{k−1}·t^k·e_{l−k} / e_l   =   1 − Σ_{k ≥ 1} (−1)^{k−1}·t^{−k}·e_{l+k} / e_l.

Both sums are finite and exact. If t is at most the ratio e_l / e_{l−1} the variable is *light*: the
terms of the first sum decrease from the start, and nothing cancels. Otherwise it is *heavy*, and
those of the second decrease. Summed over counts with their mass, e_{l−k} / e_l gives coefficients
that all variables share: expectations cost variables times terms, some tens, instead of variables
times counts.

Neighbouring counts form *groups* for which a variable is light or heavy as for the last of them.
Within a group terms may grow by exp(`LOG_GROWTH`) before they decrease; rounding errors grow as
much.
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import copy, fill, inlined, largest, total

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})

LOG_FORGOTTEN = -38.0
"""Terms that have decreased by this factor are not added."""
LOG_GROWTH = 4.6
LOG_RANGE = 640.0
"""Scaled polynomials stay within this factor of the largest."""
NEGLIGIBLE = 1e-25
"""Counts with less than this share of the whole mass are skipped."""
TERM = 1e-17
"""Terms below this share of the first are not added."""
BLOCK = 64
"""Number of variables that are processed together."""
PAD = 4
"""Number of zeros at both ends of a line, so that four counts can be processed together."""


@_compile
def margin_above(count, n):  # type: ignore[no-untyped-def]
    """Return the highest count whose polynomial is needed for expectations given a count.

    Ratios e_l / e_{l−1} decrease by at least (l + 1)(n − l + 1) / l(n − l), Newton's inequality; so
    what is enough for equal weights is enough for all.
    """
    fallen, log_ratio, top = 0.0, 0.0, count
    while top < n and fallen > LOG_FORGOTTEN - LOG_GROWTH - 1.0:
        if top > 0:
            log_ratio -= np.log((top + 1) * (n - top + 1) / (top * (n - top)))
        fallen += log_ratio
        top += 1
    return top


@_compile
def margin_below(count, n):  # type: ignore[no-untyped-def]
    """Return the lowest count whose polynomial is needed: ones and zeros change places."""
    return n - margin_above(n - count, n)


class Groups(NamedTuple):
    """Groups of neighbouring counts, in ascending order.

    Attributes
    ----------
    first, last : arrays of shape (n_groups,)
        The first and the last count of each group that has mass.
    log_ratio : array of shape (n_groups,)
        log(e_l / e_{l−1}) of the last.
    lowest, highest : arrays of shape (n_groups,)
        The lowest and the highest count whose polynomials its terms need; −1 if one is unknown.
    """

    first: IntArray
    last: IntArray
    log_ratio: FloatArray
    lowest: IntArray
    highest: IntArray


@inlined
def _group_counts(log_e, histogram):  # type: ignore[no-untyped-def]
    """Return the first and the last count of each group, and log(e_l / e_{l−1}) of the last.

    Counts without mass are left out. There is no group if a polynomial is unknown.
    """
    first = np.empty(histogram.size, dtype=np.int64)
    last = np.empty(histogram.size, dtype=np.int64)
    log_ratios = np.empty(histogram.size)
    least, n_groups = NEGLIGIBLE * total(histogram), 0
    for count in range(1, histogram.size):
        if histogram[count] <= least:
            continue
        if count >= log_e.size or log_e[count] == np.inf or log_e[count - 1] == np.inf:
            return first[:0], last[:0], log_ratios[:0]
        log_ratio = log_e[count] - log_e[count - 1]
        begin = first[n_groups - 1] if n_groups else count
        grown = log_e[count] - log_e[begin] - (count - begin) * log_ratio
        if n_groups == 0 or grown > LOG_GROWTH:
            first[n_groups] = count
            n_groups += 1
        last[n_groups - 1], log_ratios[n_groups - 1] = count, log_ratio
    return first[:n_groups], last[:n_groups], log_ratios[:n_groups]


@_helper
def _last_needed(log_e, first, log_ratio, step, end):  # type: ignore[no-untyped-def]
    """Return the last count from `first` on whose terms matter; −1 if it is unknown."""
    count = first
    while (
        count != end and log_e[count] - log_e[first] - (count - first) * log_ratio > LOG_FORGOTTEN
    ):
        count += step
        if count >= log_e.size or log_e[count] == np.inf:
            return -1
    return count


@inlined
def _make_groups(weights, log_e, histogram):  # type: ignore[no-untyped-def]
    """Return the groups of the counts that have mass."""
    first, last, log_ratio = _group_counts(log_e, histogram)
    lowest, highest = np.empty(first.size, np.int64), np.empty(first.size, np.int64)
    # Literals would be compiled for once more each.
    down, up, none = np.int64(-1), np.int64(1), np.int64(0)
    for g in range(first.size):
        lowest[g], highest[g] = first[g], last[g]
        ratio = np.exp(log_ratio[g])
        if weights[0] <= ratio:
            lowest[g] = _last_needed(log_e, first[g], log_ratio[g], down, none)
        if weights[-1] > ratio:
            highest[g] = _last_needed(log_e, first[g], log_ratio[g], up, weights.size)
    return Groups(first, last, log_ratio, lowest, highest)


@inlined
def _scale(log_e, low, high):  # type: ignore[no-untyped-def]
    """Return slope and level of a line that touches log e_l, the same distance above both ends.

    The distance is returned as well. log e_l is concave; unknown values are skipped.
    """
    slope = (log_e[high] - log_e[low]) / max(high - low, 1)
    level = log_e[low] - slope * low
    below = level
    for count in range(low, high + 1):
        if log_e[count] < np.inf:
            level = max(level, log_e[count] - slope * count)
    return slope, level, level - below


@inlined
def _range(lowest, highest):  # type: ignore[no-untyped-def]
    low, high = lowest[0], highest[0]
    for g in range(lowest.size):
        low, high = min(low, lowest[g]), max(high, highest[g])
    return low, high


@_helper
def _scaled_alike(log_e, lowest, highest, begin):  # type: ignore[no-untyped-def]
    """Return the end of the groups from `begin` on that can share one scale, and that scale."""
    end = lowest.size
    while True:
        low, high = _range(lowest[begin:end], highest[begin:end])
        slope, level, distance = _scale(log_e, low, high)
        if end == begin + 1 or distance <= LOG_RANGE:
            return end, slope, level
        end -= 1 + (end - 1 - begin) // 8


@_helper
def _add_series(coefficients, x, factor, out):  # type: ignore[no-untyped-def]
    """Add factor·Σ_k (−1)^k·c_k·x^{k+1} to `out` for each x; these must be sorted, up or down.

    The last four coefficients must be zero.
    """
    part, value = np.empty(BLOCK), np.empty(BLOCK)
    fill(part, 0.0)
    for start in range(0, x.size, BLOCK):
        size = min(BLOCK, x.size - start)
        copy(x[start : start + size], part)
        top = max(part[0], part[size - 1])
        n_terms, power, least = 0, top, TERM * top * coefficients[0]
        while n_terms < coefficients.size and power * coefficients[n_terms] > least:
            power *= top
            n_terms += 1
        fill(value, 0.0)
        for k in range((n_terms - 1) // 4 * 4, -1, -4):
            a, b = coefficients[k], coefficients[k + 1]
            c, d = coefficients[k + 2], coefficients[k + 3]
            for j in range(BLOCK):  # a fixed number of them compiles to a few instructions
                t = part[j]
                value[j] = a - t * (b - t * (c - t * (d - t * value[j])))
        for j in range(size):
            out[start + j] += factor * part[j] * value[j]


@_helper
def _add_terms(shares, line, begin, n_terms, direction, into):  # type: ignore[no-untyped-def]
    """Add Σ_i shares[i]·line[begin − direction·i + k] to into[k], for four shares at a time.

    There are `n_terms` for the first four, and more or fewer in the direction of the others.
    """
    for i in range(0, shares.size, 4):
        a, b, c, d = shares[i], shares[i + 1], shares[i + 2], shares[i + 3]
        of_a = line[begin - direction * i :]
        of_b = line[begin - direction * (i + 1) :]
        of_c = line[begin - direction * (i + 2) :]
        of_d = line[begin - direction * (i + 3) :]
        for k in range(n_terms + direction * i):
            into[k] += (a * of_a[k] + b * of_b[k]) + (c * of_c[k] + d * of_d[k])


@inlined
def _first_above(weights, limit):  # type: ignore[no-untyped-def]
    """Return how many of the sorted weights are at most a limit."""
    low, high = 0, weights.size
    while low < high:
        middle = (low + high) // 2
        if weights[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return low


@_helper
def _add_scaled_alike(weights, log_e, histogram, groups, slope, level, out):  # type: ignore[no-untyped-def]
    """Add the expectations from some groups, by polynomials e_l / e^{level + slope·l}."""
    low, high = _range(groups.lowest, groups.highest)
    size, n_groups = high - low + 1, groups.first.size
    up, down = np.empty(size + 2 * PAD), np.empty(size + 2 * PAD)
    fill(up, 0.0)
    fill(down, 0.0)
    for i in range(size):
        if log_e[low + i] < np.inf:
            value = np.exp(log_e[low + i] - level - slope * (low + i))
            up[PAD + i], down[PAD + size - 1 - i] = value, value
    widest = 0
    for g in range(n_groups):
        widest = max(widest, groups.last[g] - groups.first[g])
    shares, limits = np.empty((n_groups, widest // 4 * 4 + 4)), np.empty(n_groups, np.int64)
    for g in range(n_groups):
        fill(shares[g], 0.0)
        limits[g] = _first_above(weights, np.exp(groups.log_ratio[g]))
        first = groups.first[g]
        for count in range(first, groups.last[g] + 1):
            if histogram[count] > 0.0:
                shares[g, count - first] = histogram[count] / up[PAD + count - low]
    x, inverse, factor = np.empty(weights.size), np.empty(weights.size), np.exp(-slope)
    for j in range(weights.size):
        x[j] = weights[j] * factor
        inverse[j] = 1.0 / x[j]
    light, heavy, mass = np.empty(up.size), np.empty(up.size), 0.0
    fill(light, 0.0)
    fill(heavy, 0.0)
    forward, backward = np.int64(1), np.int64(-1)  # literals would be compiled for once more each
    for g in range(n_groups):
        first, last = groups.first[g], groups.last[g]
        of_group = shares[g, : (last - first) // 4 * 4 + 4]
        if limits[g] > 0:
            begin = PAD + high - first + 1
            _add_terms(of_group, down, begin, first + 3 - groups.lowest[g], forward, light)
        begin, end = limits[g + 1] if g + 1 < n_groups else 0, limits[g]
        _add_series(light, x[begin:end], 1.0, out[begin:end])
    for g in range(n_groups - 1, -1, -1):
        first, last = groups.first[g], groups.last[g]
        of_group = shares[g, : (last - first) // 4 * 4 + 4]
        if limits[g] < weights.size:
            begin = PAD + first + 1 - low
            _add_terms(of_group, up, begin, groups.highest[g] - first, backward, heavy)
        begin, end = limits[g], limits[g - 1] if g > 0 else weights.size
        mass += total(histogram[first : last + 1])
        for j in range(begin, end):
            out[j] += mass
        _add_series(heavy, inverse[begin:end], -1.0, out[begin:end])


@_helper
def sum_series(weights, log_e, histogram, out):  # type: ignore[no-untyped-def]
    """Write E_j = Σ_l histogram[l]·P(x_j = 1 | count = l); return whether log e_l was sufficient.

    The weights must be sorted. `log_e` holds log e_0, log e_1 … as far as they are known, and
    otherwise +inf.
    """
    groups = _make_groups(weights, log_e, histogram)
    fill(out, 0.0)
    n_groups = groups.first.size
    known = n_groups > 0
    for g in range(n_groups):
        known = known and groups.lowest[g] >= 0 and groups.highest[g] >= 0
    if not known:
        return largest(histogram[1:]) <= 0.0
    begin = np.int64(0)  # as above
    while begin < n_groups:
        end, slope, level = _scaled_alike(log_e, groups.lowest, groups.highest, begin)
        alike = Groups(
            groups.first[begin:end],
            groups.last[begin:end],
            groups.log_ratio[begin:end],
            groups.lowest[begin:end],
            groups.highest[begin:end],
        )
        _add_scaled_alike(weights, log_e, histogram, alike, slope, level, out)
        begin = end
    return True
