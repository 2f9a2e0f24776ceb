"""Weighted urns: expectations given the count, as power series in the weights.

With e_l the polynomials of all weights, the chance that a variable of weight t is on given the
count l is

    Σ_{k ≥ 1} (−1)^{k−1}·t^k·e_{l−k} / e_l   =   1 − Σ_{k ≥ 1} (−1)^{k−1}·t^{−k}·e_{l+k} / e_l.

Both sums are finite and exact. Where t is at most the ratio e_l / e_{l−1} the variable is *light*:
the terms of the first sum fall from the start, and nothing cancels. Else it is *heavy*, and those
of the second do. Summed over counts by their mass, e_{l−k} / e_l makes coefficients that all
variables share: expectations cost variables times terms, some tens, instead of variables times
counts.

Neighbouring counts form *groups* for which a variable is light or heavy as for the last of them.
In a group terms may grow by `GROWTH` before they fall, which is what rounding errors grow by.
"""

import numpy as np
from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})

LOG_FORGOTTEN = -38.0
"""A term that has shrunk by this factor is not seen any more."""
LOG_GROWTH = 4.6
LOG_RANGE = 640.0
"""Scaled polynomials stay within this factor of the largest."""
NEGLIGIBLE = 1e-25
"""Mass of a count below this share of the whole is not followed."""
TERM = 1e-17
"""A term below this share of the first is not added."""
BLOCK = 64
"""So many variables are taken together."""
PAD = 4
"""Zeros at both ends of a line, so that four counts can be taken together."""


@_compile
def margin_above(count, n):  # type: ignore[no-untyped-def]
    """Return up to which count polynomials of n weights are needed for expectations at one.

    Ratios e_l / e_{l−1} fall by at least (l + 1)(n − l + 1) / l(n − l), Newton's inequality; so
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
    """Return down to which count they are needed: ones and zeros change places."""
    return n - margin_above(n - count, n)


@_compile
def _groups(log_e, histogram):  # type: ignore[no-untyped-def]
    """Return the first and last count of each group, and log(e_l / e_{l−1}) of the last.

    Counts without mass are left out. There is no group where a polynomial is not known.
    """
    bounds = np.empty((histogram.size, 2), dtype=np.int64)
    log_ratios = np.empty(histogram.size)
    least, found = NEGLIGIBLE * histogram.sum(), 0
    for count in range(1, histogram.size):
        if histogram[count] <= least:
            continue
        if count >= log_e.size or log_e[count] == np.inf or log_e[count - 1] == np.inf:
            return bounds[:0], log_ratios[:0]
        log_ratio = log_e[count] - log_e[count - 1]
        first = bounds[found - 1, 0] if found else count
        if found == 0 or log_e[count] - log_e[first] - (count - first) * log_ratio > LOG_GROWTH:
            bounds[found, 0] = count
            found += 1
        bounds[found - 1, 1], log_ratios[found - 1] = count, log_ratio
    return bounds[:found], log_ratios[:found]


@_compile
def _last_seen(log_e, first, log_ratio, step, end):  # type: ignore[no-untyped-def]
    """Return the last count from `first` on whose terms are seen; −1 if it is not known."""
    at = first
    while at != end and log_e[at] - log_e[first] - (at - first) * log_ratio > LOG_FORGOTTEN:
        at += step
        if at >= log_e.size or log_e[at] == np.inf:
            return -1
    return at


@_compile
def _terms(weights, log_e, bounds, log_ratios):  # type: ignore[no-untyped-def]
    """Return the lowest and the highest count that the terms of each group need, or −1."""
    needed = bounds.copy()
    for g in range(log_ratios.size):
        ratio, first = np.exp(log_ratios[g]), bounds[g, 0]
        if weights[0] <= ratio:
            needed[g, 0] = _last_seen(log_e, first, log_ratios[g], -1, 0)
        if weights[-1] > ratio:
            needed[g, 1] = _last_seen(log_e, first, log_ratios[g], 1, weights.size)
    return needed


@_compile
def _scale(log_e, low, high):  # type: ignore[no-untyped-def]
    """Return slope and level of a line that touches log e_l, the same distance above both ends.

    The distance is returned as well. log e_l is concave; what is not known is passed over.
    """
    slope = (log_e[high] - log_e[low]) / max(high - low, 1)
    level = log_e[low] - slope * low
    below = level
    for count in range(low, high + 1):
        if log_e[count] < np.inf:
            level = max(level, log_e[count] - slope * count)
    return slope, level, level - below


@_compile
def _scaled_alike(log_e, needed, begun):  # type: ignore[no-untyped-def]
    """Return the last group from `begun` on for which one scale will do, and that scale."""
    last = needed.shape[0] - 1
    while True:
        some = needed[begun : last + 1]
        slope, level, distance = _scale(log_e, some[:, 0].min(), some[:, 1].max())
        if last == begun or distance <= LOG_RANGE:
            return last, slope, level
        last -= 1 + (last - begun) // 8


@_compile
def _add_series(coefficients, x, factor, found):  # type: ignore[no-untyped-def]
    """Add factor·Σ_k (−1)^k·c_k·x^{k+1} for each x; these must be sorted, up or down.

    The last four coefficients must be zero.
    """
    part, value = np.zeros(BLOCK), np.empty(BLOCK)
    for start in range(0, x.size, BLOCK):
        size = min(BLOCK, x.size - start)
        part[:size] = x[start : start + size]
        largest = max(part[0], part[size - 1])
        n_terms, power, least = 0, largest, TERM * largest * coefficients[0]
        while n_terms < coefficients.size and power * coefficients[n_terms] > least:
            power *= largest
            n_terms += 1
        value[:] = 0.0
        for k in range((n_terms - 1) // 4 * 4, -1, -4):
            a, b = coefficients[k], coefficients[k + 1]
            c, d = coefficients[k + 2], coefficients[k + 3]
            for j in range(BLOCK):  # a fixed number of them compiles to a few instructions
                t = part[j]
                value[j] = a - t * (b - t * (c - t * (d - t * value[j])))
        for j in range(size):
            found[start + j] += factor * part[j] * value[j]


@_compile
def _add_terms(shares, line, begin, n_terms, direction, into):  # type: ignore[no-untyped-def]
    """Add Σ_i shares[i]·line[begin − direction·i + k] to into[k], for four shares at a time.

    There are `n_terms` for the first four, and more or fewer in the direction of the others.
    """
    for i in range(0, shares.size, 4):
        a, b, c, d = shares[i], shares[i + 1], shares[i + 2], shares[i + 3]
        at = begin - direction * i
        of_a, of_b = line[at:], line[at - direction :]
        of_c, of_d = line[at - 2 * direction :], line[at - 3 * direction :]
        for k in range(n_terms + direction * i):
            into[k] += (a * of_a[k] + b * of_b[k]) + (c * of_c[k] + d * of_d[k])


@_compile
def _add_scaled_alike(  # type: ignore[no-untyped-def]
    weights, log_e, histogram, bounds, needed, log_ratios, slope, level, found
):
    """Add what some groups expect of every variable, by polynomials e_l / e^{level + slope·l}."""
    low, high = needed[:, 0].min(), needed[:, 1].max()
    size, n_groups = high - low + 1, log_ratios.size
    up, down = np.zeros(size + 2 * PAD), np.zeros(size + 2 * PAD)
    for i in range(size):
        if log_e[low + i] < np.inf:
            value = np.exp(log_e[low + i] - level - slope * (low + i))
            up[PAD + i], down[PAD + size - 1 - i] = value, value
    shares = np.zeros((n_groups, (bounds[:, 1] - bounds[:, 0]).max() // 4 * 4 + 4))
    for g in range(n_groups):
        for count in range(bounds[g, 0], bounds[g, 1] + 1):
            if histogram[count] > 0.0:
                shares[g, count - bounds[g, 0]] = histogram[count] / up[PAD + count - low]
    limits = np.searchsorted(weights, np.exp(log_ratios), side="right")
    x = weights * np.exp(-slope)
    inverse = 1.0 / x

    light, heavy, mass = np.zeros(up.size), np.zeros(up.size), 0.0
    for g in range(n_groups):
        first, last = bounds[g]
        own = shares[g, : (last - first) // 4 * 4 + 4]
        if limits[g] > 0:
            begin = PAD + high - first + 1
            _add_terms(own, down, begin, first + 3 - needed[g, 0], 1, light)
        begin, end = limits[g + 1] if g + 1 < n_groups else 0, limits[g]
        _add_series(light, x[begin:end], 1.0, found[begin:end])
    for g in range(n_groups - 1, -1, -1):
        first, last = bounds[g]
        own = shares[g, : (last - first) // 4 * 4 + 4]
        if limits[g] < weights.size:
            _add_terms(own, up, PAD + first + 1 - low, needed[g, 1] - first, -1, heavy)
        begin, end = limits[g], limits[g - 1] if g > 0 else weights.size
        mass += histogram[first : last + 1].sum()
        found[begin:end] += mass
        _add_series(heavy, inverse[begin:end], -1.0, found[begin:end])


@_compile
def sum_series(weights, log_e, histogram, out):  # type: ignore[no-untyped-def]
    """Write E_j = Σ_l histogram[l]·P(x_j = 1 | count = l); say whether log e_l were enough for it.

    The weights must be sorted. `log_e` has log e_0, log e_1 … as far as they are known, and +inf
    where they are not.
    """
    bounds, log_ratios = _groups(log_e, histogram)
    needed = _terms(weights, log_e, bounds, log_ratios)
    out[:] = 0.0
    if log_ratios.size == 0 or needed.min() < 0:
        return histogram[1:].max() <= 0.0
    begun = 0
    while begun < log_ratios.size:
        last, slope, level = _scaled_alike(log_e, needed, begun)
        some = slice(begun, last + 1)
        _add_scaled_alike(
            weights,
            log_e,
            histogram,
            bounds[some],
            needed[some],
            log_ratios[some],
            slope,
            level,
            out,
        )
        begun = last + 1
    return True
