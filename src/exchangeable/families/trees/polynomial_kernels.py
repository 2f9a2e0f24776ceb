"""Forests of binary variables, with or without a count: polynomials of subtrees and their uses.

A forest gives a row the weight exp(Σ_j slope_j·x_j + Σ_j pair_j·x_j·x_parent(j)). The polynomial of
a subtree has as its l-th coefficient the weight of all its assignments with l unknown variables on;
without a count (`counting` false) all coefficients are summed and polynomials are numbers. Nodes
are numbered by their place in an order in which parents come first; the parent of a root is node
n, which is always off and stands above all.

Coefficients span hundreds of orders of magnitude. A tilt exp(t·l) brings most stretches of them
near the largest; a few tilts cover all, and each coefficient is taken from the tilt that serves it
best. Where nodes and parents are bound closely, few and many ones are both likelier than what is
between: there the right tilt makes both ends equal, and is found by bisection.
"""

import numpy as np
from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})

WINDOW = 1e-180
"""A coefficient is trusted where it is at least this share of the largest."""
SMALLEST = 1e-220
"""A coefficient that is a smaller share of the largest is taken for zero."""
MOST_TILTS = 1000
CLOSE = 1e-6
"""Two tilts that differ by less have nothing between them."""


@_compile
def workspace(n, top):  # type: ignore[no-untyped-def]
    """Return room for the polynomials of a forest of n nodes, up to degree `top`.

    They are, by node: its own when off and on, those its parent had before it was added, and the
    derivatives of its own. What is in them is written before it is read.
    """
    polynomials, derivatives = np.empty((4, n + 1, top + 1)), np.empty((2, n + 1, top + 1))
    degrees = np.zeros((2, n + 1), dtype=np.int64)
    return polynomials, degrees, np.ones(n + 1), derivatives


@_compile
def _multiply(a, a_degree, b, b_degree, top, out):  # type: ignore[no-untyped-def]
    """Write the product of two polynomials up to degree `top`; return its degree."""
    degree = min(a_degree + b_degree, top)
    out[: degree + 1] = 0.0
    if a_degree < b_degree:  # the longer one in the inner loop
        a, a_degree, b, b_degree = b, b_degree, a, a_degree
    for j in range(min(b_degree, degree) + 1):
        factor = b[j]
        last = min(a_degree, degree - j)
        into, source = out[j : j + last + 1], a[: last + 1]
        for i in range(source.size):
            into[i] += factor * source[i]
    return degree


@_compile
def _begin_node(v, slope, state, tilt, counting, top, room):  # type: ignore[no-untyped-def]
    """Set a node's own polynomials; return the logarithm they were divided by."""
    (off, on, _, _), (degree, _), _, _ = room
    weight = slope[v] + (tilt if state[v] < 0 else 0.0)
    larger = weight if state[v] == 1 else (0.0 if state[v] == 0 else max(weight, 0.0))
    moves = counting and state[v] < 0 and top > 0
    degree[v] = 1 if moves else 0
    off[v, : degree[v] + 1] = 0.0
    on[v, : degree[v] + 1] = 0.0
    if state[v] != 1:
        off[v, 0] = np.exp(-larger)
    if state[v] == 1 or (state[v] < 0 and not (counting and top == 0)):
        on[v, degree[v]] = np.exp(weight - larger)
    return larger


@_compile
def upward(parent, slope, pair, state, tilt, counting, top, room):  # type: ignore[no-untyped-def]
    """Compute all polynomials; node n's is that of the forest. Return the logarithm taken out."""
    (off, on, off_before, on_before), (degree, degree_before), divisors, _ = room
    n = parent.size
    log_scale = 0.0
    for v in range(n):
        log_scale += _begin_node(v, slope, state, tilt, counting, top, room)
    degree[n] = 0
    off[n, 0], on[n, 0] = 1.0, 0.0
    when_off, when_on = np.empty(top + 1), np.empty(top + 1)
    for v in range(n - 1, -1, -1):
        p, d = parent[v], degree[v]
        linked = np.exp(pair[v]) if p < n else 1.0
        when_off[: d + 1] = off[v, : d + 1] + on[v, : d + 1]
        when_on[: d + 1] = off[v, : d + 1] + linked * on[v, : d + 1]
        before = degree[p]
        degree_before[v] = before
        off_before[v, : before + 1] = off[p, : before + 1]
        after = _multiply(off_before[v], before, when_off, d, top, off[p])
        largest = off[p, : after + 1].max()
        if p < n:
            on_before[v, : before + 1] = on[p, : before + 1]
            _multiply(on_before[v], before, when_on, d, top, on[p])
            largest = max(largest, on[p, : after + 1].max())
            on[p, : after + 1] /= largest
        off[p, : after + 1] /= largest
        while after > 0 and off[p, after] < SMALLEST and (p == n or on[p, after] < SMALLEST):
            after -= 1
        degree[p] = after
        divisors[v] = largest
        log_scale += np.log(largest)
    return log_scale


@_compile
def _correlate(d, d_degree, a, a_degree, scale, out, out_degree):  # type: ignore[no-untyped-def]
    """Write Σ_i d[i + j]·a[i] / scale for j = 0..out_degree."""
    out[: out_degree + 1] = 0.0
    if a_degree <= out_degree:  # the longer sum in the inner loop
        for i in range(min(a_degree, d_degree) + 1):
            factor = a[i] / scale
            last = min(out_degree, d_degree - i)
            into, source = out[: last + 1], d[i : i + last + 1]
            for j in range(source.size):
                into[j] += factor * source[j]
        return
    for j in range(min(out_degree, d_degree) + 1):
        last = min(a_degree, d_degree - j)
        first, second = d[j : j + last + 1], a[: last + 1]
        total = 0.0
        for i in range(first.size):
            total += first[i] * second[i]
        out[j] = total / scale


@_compile
def downward(parent, pair, seeds, top, room, ones, pairs):  # type: ignore[no-untyped-def]
    """Add to `ones` and `pairs` the probabilities of each node, and of it and its parent, on.

    `seeds[l]` is the mass of count l by the forest's coefficient for l; reverse mode differentiates
    Σ_l mass_l·log(coefficient_l) with respect to every node's polynomials.
    """
    (off, on, off_before, on_before), (degree, degree_before), divisors, (d_off, d_on) = room
    n = parent.size
    d_off[n, : seeds.size] = seeds
    g_off, g_on = np.zeros(top + 1), np.zeros(top + 1)
    when_off, when_on, kept = np.empty(top + 1), np.empty(top + 1), np.empty(top + 1)
    whole = degree.copy()
    for v in range(n):
        p, d, before, scale = parent[v], degree[v], degree_before[v], divisors[v]
        linked = np.exp(pair[v]) if p < n else 1.0
        when_off[: d + 1] = off[v, : d + 1] + on[v, : d + 1]
        _correlate(d_off[p], whole[p], off_before[v], before, scale, g_off, d)
        _correlate(d_off[p], whole[p], when_off, d, scale, kept, before)
        d_off[p, : before + 1] = kept[: before + 1]
        g_on[: d + 1] = 0.0
        if p < n:
            when_on[: d + 1] = off[v, : d + 1] + linked * on[v, : d + 1]
            _correlate(d_on[p], whole[p], on_before[v], before, scale, g_on, d)
            _correlate(d_on[p], whole[p], when_on, d, scale, kept, before)
            d_on[p, : before + 1] = kept[: before + 1]
        whole[p] = before
        for count in range(d + 1):
            d_off[v, count] = g_off[count] + g_on[count]
            d_on[v, count] = g_off[count] + linked * g_on[count]
            ones[v] += d_on[v, count] * on[v, count]
            pairs[v] += linked * g_on[count] * on[v, count]


@_compile
def _take_window(coefficients, log_scale, tilt, best, log_out, tilts):  # type: ignore[no-untyped-def]
    """Take over the coefficients that this tilt serves better than those before."""
    largest = coefficients.max()
    for count in range(coefficients.size):
        share = coefficients[count] / largest
        if share >= WINDOW and share > best[count]:
            best[count] = share
            log_out[count] = np.log(coefficients[count]) + log_scale - tilt * count
            tilts[count] = tilt


@_compile
def _passes_top(parent, slope, pair, state, tilt, top):  # type: ignore[no-untyped-def]
    """Whether so many are on under a tilt that what is cut off above `top` would be the most.

    What is left of the polynomials then is too little to be trusted.
    """
    free = (state < 0).sum()
    if top >= free:
        return False
    room = workspace(parent.size, 0)
    log_sum = np.empty(2)
    for at in range(2):
        shifted = tilt + CLOSE * (2 * at - 1)
        log_sum[at] = upward(parent, slope, pair, state, shifted, False, 0, room)
        log_sum[at] += np.log(room[0][0, parent.size, 0])
    return log_sum[1] - log_sum[0] > 2 * CLOSE * top


@_compile
def log_coefficients(  # type: ignore[no-untyped-def]
    parent, slope, pair, state, counting, top, room, log_out, tilts
):
    """Write the logarithm of every coefficient 0..top of the forest, and the tilt that gave it.

    A coefficient that no tilt brings into sight is −inf, and its tilt is NaN.
    """
    log_out[:] = -np.inf
    tilts[:] = np.nan
    best = np.zeros(top + 1)
    coefficients = room[0][0, parent.size, : top + 1]
    begun = 0.0
    while counting and _passes_top(parent, slope, pair, state, begun, top):
        begun = 2 * begun - 1.0
    for direction in (1, -1):
        goal = top if direction == 1 else 0
        at = -1  # the last count in sight
        tilt, low, high = begun, begun, np.nan  # it came into sight by `low`; `high` passes it over
        for _ in range(MOST_TILTS):
            too_far = tilt > begun and _passes_top(parent, slope, pair, state, tilt, top)
            if not too_far:
                log_scale = upward(parent, slope, pair, state, tilt, counting, top, room)
                coefficients[room[1][0, parent.size] + 1 :] = 0.0
                _take_window(coefficients, log_scale, tilt, best, log_out, tilts)
                peak = int(np.argmax(coefficients))
                before = peak if at < 0 else at
                at = _follow_sight(best, before, direction, goal)
                too_far = at == before and (peak - at) * direction > 0
                high = high if at == before else np.nan
            if at == goal:
                break
            if too_far:
                high = tilt
            else:
                low = tilt
            if abs(high - low) < CLOSE:  # nothing brings what is between into sight
                while at != goal and best[at + direction] == 0.0:
                    at += direction
                at = _follow_sight(best, at, direction, goal)
                if at == goal:
                    break
                low, high = high, np.nan
            if high == high:
                tilt = 0.5 * (low + high)
            else:
                tilt = low + direction * _step(coefficients, at, direction)


@_compile
def _follow_sight(best, at, direction, goal):  # type: ignore[no-untyped-def]
    """Return the last count in a direction up to which all are in sight."""
    while at != goal and best[at + direction] > 0.0:
        at += direction
    return at


@_compile
def _step(coefficients, at, direction):  # type: ignore[no-untyped-def]
    """Return by how much to tilt so that the coefficient at the edge is as large as its neighbour.

    Then those beyond come into sight.
    """
    inner = at - direction
    if 0 <= inner < coefficients.size and coefficients[inner] > 0.0 and coefficients[at] > 0.0:
        return max(np.log(coefficients[inner]) - np.log(coefficients[at]), 0.5)
    return 1.0


@_compile
def expected(parent, slope, pair, state, mass, tilts, counting, room, ones, pairs):  # type: ignore[no-untyped-def]
    """Write the mass with each node on, and with it and its parent on, given that of each count.

    The tilt that serves each count must be known, from `log_coefficients`.
    """
    n, top = parent.size, mass.size - 1
    ones[:] = 0.0
    pairs[:] = 0.0
    seeds = np.empty(top + 1)
    left = (mass > 0.0) & (tilts[: top + 1] == tilts[: top + 1])  # but for those out of sight
    while left.any():
        tilt = tilts[np.argmax(left)]
        upward(parent, slope, pair, state, tilt, counting, top, room)
        seeds[:] = 0.0
        for count in range(top + 1):
            if left[count] and tilts[count] == tilt:
                seeds[count] = mass[count] / room[0][0, n, count]
                left[count] = False
        downward(parent, pair, seeds, top, room, ones, pairs)
