"""Weighted urns by tilting: the fast way to polynomials of a few hundred counts.

With weights tilted to θ·e^t and converted to probabilities, the polynomial is the distribution of a
sum of independent variables: additions and multiplications of numbers between 0 and 1, without
division. Far from its mean it underflows; so a few tilts, each with its mean where the previous one
became inaccurate, cover all counts, and each count is taken from the tilt under which it is most
accurate.
"""

import numpy as np

from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import divide, fill, inlined, largest, total

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})

WINDOW = 1e-270
"""A coefficient is trusted if it is at least this share of the largest."""
SMALLEST = 1e-20
"""Coefficients below this share of the trusted ones are set to zero."""
TOGETHER = 8
"""Number of variables that are added at once."""
PAD = 2 * TOGETHER
"""Padding at both ends of a line that the variables added at once may read and write."""
MIDDLE = 0.45
"""Position of the mean of the first tilt, between the first count and the last."""
OFTEN = 8
"""Weights that occur more often than this may be added all at once."""
LARGEST_TILT = 300.0


@inlined
def runs_of_equals(weights):  # type: ignore[no-untyped-def]
    """Return where runs of equal neighbours start, and, last, the number of weights.

    Rare words have equal weights by the thousand; sorted they are next to each other.
    """
    starts = np.empty(weights.size + 1, dtype=np.int64)
    n_runs = 0
    for j in range(weights.size):
        if j == 0 or weights[j] != weights[j - 1]:
            starts[n_runs] = j
            n_runs += 1
    starts[n_runs] = weights.size
    return starts[: n_runs + 1]


@_helper
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


@inlined
def _binomial(n, on, off, smallest, out):  # type: ignore[no-untyped-def]
    """Write the distribution of n equal variables, from `out[0]` on; return first and last count.

    It is computed from its mode to either side, as far as it is not below the smallest.
    """
    mode = max(min(int((n + 1) * on), n), 0)  # a NaN is no count
    odds = on / off
    first, value = mode, 1.0
    while first > 0 and value >= smallest:
        value *= first / ((n - first + 1) * odds)
        first -= 1
    last, up = mode, 1.0
    while last < n and up >= smallest:
        up *= (n - last) * odds / (last + 1)
        last += 1
    if last - first >= out.size:
        return first, last
    out[mode - first] = 1.0
    for count in range(mode, first, -1):
        out[count - 1 - first] = out[count - first] * (count / ((n - count + 1) * odds))
    for count in range(mode, last):
        out[count + 1 - first] = out[count - first] * ((n - count) * odds / (count + 1))
    divide(out[: last - first + 1], total(out[: last - first + 1]))
    return first, last


@inlined
def _kernels(on, off):  # type: ignore[no-untyped-def]
    """Return the distribution of the number of ones of every few variables, one line each.

    Lines that lack variables are padded with some that are always off.
    """
    n_lines = (on.size + TOGETHER - 1) // TOGETHER
    chances = np.empty((TOGETHER + 1, n_lines))
    for count in range(TOGETHER + 1):
        fill(chances[count], 1.0 if count == 0 else 0.0)
    for i in range(TOGETHER):
        first = i * n_lines  # lines take every n_lines-th variable
        size = min(max(on.size - first, 0), n_lines)
        p, q = on[first : first + size], off[first : first + size]
        for count in range(i + 1, 0, -1):
            line, before = chances[count], chances[count - 1]
            for j in range(size):
                line[j] = q[j] * line[j] + p[j] * before[j]
        for j in range(size):
            chances[0, j] *= q[j]
    lines = np.empty((n_lines, TOGETHER + 1))
    for j in range(n_lines):
        for count in range(TOGETHER + 1):
            lines[j, count] = chances[count, j]
    return lines


@inlined
def _add_few(kernel, low, high, before, after):  # type: ignore[no-untyped-def]
    """Write the distribution with a few more variables, from `low` on and beyond `high`."""
    fill(before[PAD + low - TOGETHER : PAD + low], 0.0)
    fill(before[PAD + high + 1 : PAD + high + 1 + TOGETHER], 0.0)
    k0, k1, k2, k3, k4 = kernel[0], kernel[1], kernel[2], kernel[3], kernel[4]
    k5, k6, k7, k8 = kernel[5], kernel[6], kernel[7], kernel[8]
    b, into = before[PAD + low - TOGETHER :], after[PAD + low :]
    for i in range(high + TOGETHER + 1 - low):
        into[i] = (
            (k0 * b[i + 8] + k1 * b[i + 7] + k2 * b[i + 6])
            + (k3 * b[i + 5] + k4 * b[i + 4] + k5 * b[i + 3])
            + (k6 * b[i + 2] + k7 * b[i + 1] + k8 * b[i])
        )


@inlined
def _add_many(kernel, first, low, high, top, before, after):  # type: ignore[no-untyped-def]
    """Write the distribution with a sum added; `kernel` is its distribution, from `first` on.

    Returns the last count that was written.
    """
    last = min(high + first + kernel.size - 1, top)
    fill(after[PAD + low + first : PAD + last + 1], 0.0)
    source = before[PAD + low : PAD + high + 1]
    for k in range(kernel.size):
        begin = low + first + k
        into = after[PAD + begin : PAD + min(begin + source.size, top + 1)]
        for i in range(into.size):
            into[i] += kernel[k] * source[i]
    return last


@_helper
def _trim(line, low, high, smallest):  # type: ignore[no-untyped-def]
    """Return the first and last count that are not below the smallest."""
    while high > low and line[PAD + high] < smallest:
        high -= 1
    while low < high and line[PAD + low] < smallest:
        low += 1
    return low, high


@_helper
def _forward(on, off, times, top, smallest, before, after):  # type: ignore[no-untyped-def]
    """Compute the distribution of the number of ones, up to `top`.

    Returns it, in one of two lines that take turns, count 0 at index `PAD`, and the first and last
    count that are not below the smallest.
    """
    before[PAD] = 1.0
    low, high = np.int64(0), np.int64(0)  # literals would be compiled for once more
    kernel = np.empty(top + 2)
    n_times, n_ones = 0, 0
    for j in range(times.size):
        n_times += times[j]
    one_on, one_off = np.empty(n_times), np.empty(n_times)
    for j in range(on.size):
        if times[j] > OFTEN:
            first, last = _binomial(times[j], on[j], off[j], smallest, kernel)
            size = last - first + 1
            if size < times[j] and size <= kernel.size and low + first <= top:
                high = _add_many(kernel[:size], first, low, high, top, before, after)
                low, high = _trim(after, low + first, high, smallest)
                before, after = after, before
                continue
        for _ in range(times[j]):
            one_on[n_ones], one_off[n_ones] = on[j], off[j]
            n_ones += 1
    kernels = _kernels(one_on[:n_ones], one_off[:n_ones])
    for j in range(kernels.shape[0]):
        _add_few(kernels[j], low, high, before, after)
        low, high = _trim(after, low, min(high + TOGETHER, top), smallest)
        before, after = after, before
    return before, low, high


@inlined
def _probabilities(weights, times, tilt, on, off):  # type: ignore[no-untyped-def]
    """Write the probabilities whose odds are the tilted weights; return mean and variance."""
    factor, mean, variance = np.exp(tilt), 0.0, 0.0
    for j in range(weights.size):
        odds = weights[j] * factor
        off[j] = 1.0 / (1.0 + odds)
        on[j] = odds * off[j]
        mean += times[j] * on[j]
        variance += times[j] * on[j] * off[j]
    return mean, variance


@inlined
def _log_product(values, times):  # type: ignore[no-untyped-def]
    """Return Σ_j times_j·log(values_j) for values between 0 and 1, with few logarithms."""
    result, product = 0.0, 1.0
    for j in range(values.size):
        if times[j] == 1 and values[j] > 1e-100:
            product *= values[j]
            if product < 1e-200:
                result += np.log(product)
                product = 1.0
        else:
            result += times[j] * np.log(values[j])
    return result + np.log(product)


@_helper
def _cover_around(weights, times, tilt, first, last, best, out):  # type: ignore[no-untyped-def]
    """Write log e_l for the l = first..last that one tilt gives accurately; return their range.

    ``best[l]`` is the largest coefficient any tilt has had for a count.
    """
    on, off = np.empty(weights.size), np.empty(weights.size)
    mean, variance = _probabilities(weights, times, tilt, on, off)
    # The square of what a normal distribution has at the farther end: tails may decrease faster.
    distance = max(mean - first, last - mean)
    trusted = max(1e-9 * np.exp(-(distance**2) / max(variance, 1e-300)), WINDOW)
    lines = np.empty((2, last + 1 + 2 * PAD))
    line, low, high = _forward(on, off, times, last, SMALLEST * trusted, lines[0], lines[1])
    coefficients = line[PAD:]
    trusted *= largest(coefficients[low : high + 1])
    while low < high and coefficients[low] < trusted:
        low += 1
    while low < high and coefficients[high] < trusted:
        high -= 1
    log_scale = -_log_product(off, times)
    for count in range(max(low, first), high + 1):
        if coefficients[count] > best[count]:
            best[count] = coefficients[count]
            out[count] = np.log(coefficients[count]) + log_scale - tilt * count
    return max(low, first), high


@inlined
def cover(weights, out):  # type: ignore[no-untyped-def]
    """Write log e_l for l = 0..out.size − 1; return whether tilts have covered all of them.

    Weights near the largest numbers overflow when they are tilted: then they have not.

    The first tilt has its mean in the middle, or slightly below, since distributions have the
    shorter tail there; others follow where the previous ones became inaccurate.
    """
    starts = runs_of_equals(weights)
    n_runs = starts.size - 1
    distinct, times = np.empty(n_runs), np.empty(n_runs, np.int64)
    for i in range(n_runs):
        distinct[i], times[i] = weights[starts[i]], starts[i + 1] - starts[i]
    last, most = out.size - 1, weights.size - 0.5
    best, zero = np.empty(last + 1), np.int64(0)  # a literal 0 would be compiled for once more
    fill(best, 0.0)
    middle = _solve(distinct, times, min(max(MIDDLE * last, 0.5), most), 0.0)
    low, high = _cover_around(distinct, times, middle, zero, last, best, out)
    tilt = middle
    while high < last:
        tilt, edge = _solve(distinct, times, min(max(float(high), 0.5), most), tilt), high
        high = _cover_around(distinct, times, tilt, edge, last, best, out)[1]
        if high <= edge:
            return False
    tilt = middle
    while low > 0:
        tilt, edge = _solve(distinct, times, min(max(float(low), 0.5), most), tilt), low
        low = _cover_around(distinct, times, tilt, zero, edge, best, out)[0]
        if low >= edge:
            return False
    for count in range(last + 1):
        if not best[count] > 0.0 or not np.isfinite(out[count]):
            return False
    return True
