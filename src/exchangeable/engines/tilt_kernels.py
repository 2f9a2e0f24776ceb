"""Weighted urns by tilting: the fast way to polynomials of a few hundred counts.

With weights tilted to θ·e^t and made into probabilities, the polynomial is the distribution of a
sum of independent variables: additions and multiplications of numbers between 0 and 1, no division.
Far from its mean it underflows; so a few tilts, each with its mean where the last one could no
longer be trusted, cover all counts, and each count is taken from the tilt that serves it best.
"""

import numpy as np
from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})

WINDOW = 1e-180
"""A coefficient is trusted where it is at least this share of the largest."""
SMALLEST = 1e-220
"""A coefficient below this is taken for zero."""
MOST_TILTS = 400
OFTEN = 8
"""Weights that occur more often than this may be added all at once."""
LARGEST_TILT = 300.0


@_compile
def runs_of_equals(weights):  # type: ignore[no-untyped-def]
    """Return where runs of equal neighbours start, and, last, the number of weights.

    Rare words have equal weights by the thousand; sorted they are next to each other.
    """
    starts = np.empty(weights.size + 1, dtype=np.int64)
    found = 0
    for j in range(weights.size):
        if j == 0 or weights[j] != weights[j - 1]:
            starts[found] = j
            found += 1
    starts[found] = weights.size
    return starts[: found + 1]


@_compile
def _solve(weights, times, target, tilt):  # type: ignore[no-untyped-def]
    """Return a tilt under which the expected count is near `target` (Newton, kept in bounds)."""
    low, high = -LARGEST_TILT, LARGEST_TILT
    for _ in range(100):
        factor = np.exp(tilt)
        mean, variance = 0.0, 0.0
        for j in range(weights.size):
            share = weights[j] * factor / (1.0 + weights[j] * factor)
            mean += times[j] * share
            variance += times[j] * share * (1.0 - share)
        if abs(mean - target) <= max(0.25, 0.5 * np.sqrt(variance)):
            break
        if mean < target:
            low = tilt
        else:
            high = tilt
        step = (target - mean) / max(variance, 1e-300)
        tilt += min(max(step, -4.0), 4.0)
        if not low < tilt < high:
            tilt = 0.5 * (low + high)
    return tilt


@_compile
def _binomial(n, on, off, out):  # type: ignore[no-untyped-def]
    """Write the distribution of n equal variables, from `out[0]` on; return first and last count.

    It is followed from its mode to either side, as far as it is not negligible.
    """
    mode = min(int((n + 1) * on), n)
    odds = on / off
    first, value = mode, 1.0
    while first > 0 and value >= SMALLEST:
        value *= first / ((n - first + 1) * odds)
        first -= 1
    last, up = mode, 1.0
    while last < n and up >= SMALLEST:
        up *= (n - last) * odds / (last + 1)
        last += 1
    if last - first >= out.size:
        return first, last
    out[mode - first] = 1.0
    for count in range(mode, first, -1):
        out[count - 1 - first] = out[count - first] * (count / ((n - count + 1) * odds))
    for count in range(mode, last):
        out[count + 1 - first] = out[count - first] * ((n - count) * odds / (count + 1))
    out[: last - first + 1] /= out[: last - first + 1].sum()
    return first, last


@_compile
def _add_one(p, q, low, high, top, before, after):  # type: ignore[no-untyped-def]
    """Write the distribution with one more variable; return its last count."""
    last = min(high + 1, top)
    after[low] = q * before[low]
    ahead, behind, made = before[low + 1 : high + 1], before[low:high], after[low + 1 : high + 1]
    for i in range(made.size):
        made[i] = q * ahead[i] + p * behind[i]
    if last > high:
        after[last] = p * before[high]
    return last


@_compile
def _add_many(kernel, first, low, high, top, before, after):  # type: ignore[no-untyped-def]
    """Write the distribution with as many more as `kernel`, from `first` on, is of."""
    last = min(high + first + kernel.size - 1, top)
    after[low + first : last + 1] = 0.0
    for k in range(kernel.size):
        begin = low + first + k
        source = before[low : high + 1]
        into = after[begin : min(begin + source.size, top + 1)]
        for i in range(into.size):
            into[i] += kernel[k] * source[i]
    return last


@_compile
def _trim(line, low, high):  # type: ignore[no-untyped-def]
    """Return the first and last count that are not negligible."""
    while high > low and line[high] < SMALLEST:
        high -= 1
    while low < high and line[low] < SMALLEST:
        low += 1
    return low, high


@_compile
def _forward(on, off, times, top, before, after):  # type: ignore[no-untyped-def]
    """Find the distribution of the number of ones, up to `top`.

    Returns it, one of two lines that take turns, and the first and last count that are not
    negligible.
    """
    before[0] = 1.0
    low, high = 0, 0
    kernel = np.empty(top + 2)
    for j in range(on.size):
        if times[j] > OFTEN:
            first, last = _binomial(times[j], on[j], off[j], kernel)
            size = last - first + 1
            if size < times[j] and size <= kernel.size and low + first <= top:
                high = _add_many(kernel[:size], first, low, high, top, before, after)
                low, high = _trim(after, low + first, high)
                before, after = after, before
                continue
        for _ in range(times[j]):
            high = _add_one(on[j], off[j], low, high, top, before, after)
            low, high = _trim(after, low, high)
            before, after = after, before
    return before, low, high


@_compile
def _probabilities(weights, tilt, on, off):  # type: ignore[no-untyped-def]
    """Write the probabilities that the tilted weights are the odds of."""
    factor = np.exp(tilt)
    for j in range(weights.size):
        odds = weights[j] * factor
        off[j] = 1.0 / (1.0 + odds)
        on[j] = odds * off[j]


@_compile
def cover(weights, out):  # type: ignore[no-untyped-def]
    """Write log e_l for l = 0..out.size − 1; say whether tilts have covered all of them."""
    n, top = weights.size, out.size - 1
    starts = runs_of_equals(weights)
    distinct, times = weights[starts[:-1]], starts[1:] - starts[:-1]
    on, off = np.empty(distinct.size), np.empty(distinct.size)
    best = np.zeros(top + 1)
    lines = np.empty((2, top + 1))
    begun = _solve(distinct, times, min(max(0.5 * top, 0.5), n - 0.5), 0.0)
    for direction in (1, -1):
        tilt, edge = begun, -1
        for _ in range(MOST_TILTS):
            _probabilities(distinct, tilt, on, off)
            log_scale = -(times * np.log(off)).sum()
            coefficients, low, high = _forward(on, off, times, top, lines[0], lines[1])
            largest = coefficients[low : high + 1].max()
            for count in range(low, high + 1):
                share = coefficients[count] / largest
                if share >= WINDOW and share > best[count]:
                    best[count] = share
                    out[count] = np.log(coefficients[count]) + log_scale - tilt * count
            goal, at = (top, high) if direction == 1 else (0, low)
            while coefficients[at] < WINDOW * largest:
                at -= direction
            if (goal - at) * direction <= 0:
                break
            if at == edge:
                return False
            edge = at
            tilt = _solve(distinct, times, min(max(float(at), 0.5), n - 0.5), tilt)
    return bool((best > 0.0).all())
