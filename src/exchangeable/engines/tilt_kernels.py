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
LARGEST_TILT = 300.0


@_compile
def _solve(weights, target, tilt):  # type: ignore[no-untyped-def]
    """Return a tilt under which the expected count is near `target` (Newton, kept in bounds)."""
    low, high = -LARGEST_TILT, LARGEST_TILT
    for _ in range(100):
        factor = np.exp(tilt)
        mean, variance = 0.0, 0.0
        for j in range(weights.size):
            share = weights[j] * factor / (1.0 + weights[j] * factor)
            mean += share
            variance += share * (1.0 - share)
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
def _forward(on, off, top, before, after):  # type: ignore[no-untyped-def]
    """Find the distribution of the number of ones, up to `top`.

    Returns it, one of two lines that take turns, and the first and last count that are not
    negligible.
    """
    before[0] = 1.0
    low, high = 0, 0
    for j in range(on.size):
        last = min(high + 1, top)
        p, q = on[j], off[j]
        after[low] = q * before[low]
        ahead, behind, made = (
            before[low + 1 : high + 1],
            before[low:high],
            after[low + 1 : high + 1],
        )
        for i in range(made.size):
            made[i] = q * ahead[i] + p * behind[i]
        if last > high:
            after[last] = p * before[high]
        while last > low and after[last] < SMALLEST:
            last -= 1
        while low < last and after[low] < SMALLEST:
            low += 1
        high = last
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
    on, off = np.empty(n), np.empty(n)
    best = np.zeros(top + 1)
    lines = np.empty((2, top + 1))
    begun = _solve(weights, min(max(0.5 * top, 0.5), n - 0.5), 0.0)
    for direction in (1, -1):
        tilt, edge = begun, -1
        for _ in range(MOST_TILTS):
            _probabilities(weights, tilt, on, off)
            log_scale = -np.log(off).sum()
            coefficients, low, high = _forward(on, off, top, lines[0], lines[1])
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
            tilt = _solve(weights, min(max(float(at), 0.5), n - 0.5), tilt)
    return bool((best > 0.0).all())
