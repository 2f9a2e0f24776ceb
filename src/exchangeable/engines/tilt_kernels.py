"""Weighted urns by tilting: the fast way to polynomials and expectations of a few hundred counts.

With weights tilted to θ·e^t and made into probabilities, the polynomial is the distribution of a
sum of independent variables: additions and multiplications of numbers between 0 and 1, no division.
Far from its mean it underflows; so a few tilts, each with its mean where the last one could no
longer be trusted, cover all counts, and each count is taken from the tilt that serves it best.
"""

import numpy as np
from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})

WINDOW = 1e-100
"""A coefficient is trusted where it is at least this share of the largest."""
SMALLEST = 1e-200
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
def _forward(on, off, top, sums, ends):  # type: ignore[no-untyped-def]
    """Write the distribution of the number of ones of the first variables, up to `top`.

    ``sums[j]`` is that of the first j if `sums` has room for all, else the last two take turns;
    ``ends[j]`` are the first and last count that are not negligible.
    """
    n, rows = on.size, sums.shape[0]
    sums[0, 0] = 1.0
    ends[0, 0], ends[0, 1] = 0, 0
    for j in range(n):
        before, after = sums[j % rows], sums[(j + 1) % rows]
        low, high = ends[j, 0], ends[j, 1]
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
        ends[j + 1, 0], ends[j + 1, 1] = low, last
    return sums[n % rows]


@_compile
def _backward(on, off, sums, ends, seeds, out):  # type: ignore[no-untyped-def]
    """Add Σ_l seeds[l]·∂coefficient_l/∂on_j·on_j for every variable; `seeds` is used up."""
    for j in range(on.size - 1, -1, -1):
        low, high = ends[j, 0], ends[j, 1]
        p, q, before = on[j], off[j], sums[j]
        last = min(high, seeds.size - 2)
        total = 0.0
        here, following, known = seeds[low : last + 1], seeds[low + 1 : last + 2], before[low:]
        for i in range(here.size):
            total += known[i] * following[i]
        out[j] += p * total
        for i in range(here.size):
            here[i] = q * here[i] + p * following[i]
        if high > last:
            seeds[high] *= q


@_compile
def _probabilities(weights, tilt, on, off):  # type: ignore[no-untyped-def]
    """Write the probabilities that the tilted weights are the odds of."""
    factor = np.exp(tilt)
    for j in range(weights.size):
        odds = weights[j] * factor
        off[j] = 1.0 / (1.0 + odds)
        on[j] = odds * off[j]


@_compile
def cover(weights, mass, out, with_mass, found):  # type: ignore[no-untyped-def]
    """Write log e_l, or the expected ones given the mass of each count; say whether all is covered.

    Parameters
    ----------
    weights : array of shape (n,)
        The weights θ.
    mass : array of shape (n_counts,)
        With `with_mass`, the mass of each count; those without any are not looked at.
    out : array of shape (n_counts,)
        Where log e_l goes.
    found : array of shape (n,)
        With `with_mass`, where E_j = Σ_l mass_l·P(x_j = 1 | count = l) goes.
    """
    n, top = weights.size, mass.size - 1
    on, off = np.empty(n), np.empty(n)
    best, tilts = np.zeros(top + 1), np.zeros(top + 1)
    ends = np.empty((n + 1, 2), dtype=np.int64)
    sums = np.empty((2, top + 1))
    first, last, middle = 0, top, 0.5 * top
    if with_mass:
        total = mass.sum()
        while last > 0 and mass[last] <= 1e-25 * total:
            last -= 1
        while first < last and mass[first] <= 1e-25 * total:
            first += 1
        middle = (mass * np.arange(top + 1)).sum() / total
    start = min(max(middle, 0.5), n - 0.5)
    begun = _solve(weights, start, 0.0)
    for direction in (1, -1):
        tilt, edge = begun, -1
        for _ in range(MOST_TILTS):
            _probabilities(weights, tilt, on, off)
            log_scale = 0.0 if with_mass else -np.log(off).sum()
            coefficients = _forward(on, off, top, sums, ends)
            low, high = ends[n, 0], ends[n, 1]
            largest = coefficients[low : high + 1].max()
            for count in range(low, high + 1):
                share = coefficients[count] / largest
                if share >= WINDOW and share > best[count]:
                    best[count] = share
                    tilts[count] = tilt
                    if not with_mass:
                        out[count] = np.log(coefficients[count]) + log_scale - tilt * count
            goal, at = (last, high) if direction == 1 else (first, low)
            while coefficients[at] < WINDOW * largest:
                at -= direction
            if (goal - at) * direction <= 0:
                break
            if at == edge:
                return False
            edge = at
            tilt = _solve(weights, min(max(float(at), 0.5), n - 0.5), tilt)
    if not with_mass:
        return bool((best > 0.0).all())
    found[:] = 0.0
    left = mass > 1e-25 * mass.sum()
    if not (best[left] > 0.0).all():
        return False
    seeds, stages = np.zeros(top + 2), np.empty((n + 1, top + 1))
    while left.any():
        tilt = tilts[np.argmax(left)]
        _probabilities(weights, tilt, on, off)
        coefficients = _forward(on, off, top, stages, ends)
        seeds[:] = 0.0
        for count in range(first, last + 1):
            if left[count] and tilts[count] == tilt:
                seeds[count] = mass[count] / coefficients[count]
                left[count] = False
        _backward(on, off, stages, ends, seeds, found)
    return True
