"""Coefficients of a forest's polynomial, and expectations given the count, by tilts.

Coefficients span hundreds of orders of magnitude. A tilt exp(t·l) brings most ranges of them near
the largest; a few tilts cover all, and each coefficient is taken from the tilt under which it is
most accurate. If nodes and parents are strongly coupled, few and many ones can both be more
probable than counts in between: the right tilt then makes both ends equal, and is found by
bisection.

Arguments are as in `polynomials`.
"""

import numpy as np

from exchangeable.families.trees.kernels.polynomials import downward, upward
from exchangeable.families.trees.kernels.weights import weigh_nodes
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import copy, fill, inlined, largest, where_largest

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})

WINDOW = 1e-270
"""A coefficient is trusted if it is at least this share of the largest."""
MANY, MIDDLE, HIGHER, NEAR, LEAST_SHARE = 128, 0.33, 0.25, 0.3, 1e-3
"""For polynomials of this degree or more, the first tilt turns on a share of MIDDLE + HIGHER·s² of
the variables that can be on together, where s is their share of all; it may be wrong by the share
of NEAR. Shares are at least `LEAST_SHARE`."""
MOST_TILTS = 1000
CLOSE = 1e-6
"""There is nothing between two tilts that differ by less than this."""


@inlined
def _take_window(coefficients, log_scale, tilt, best, log_out, tilts):  # type: ignore[no-untyped-def]
    """Take over the coefficients that are more accurate under this tilt than before."""
    highest = largest(coefficients)
    for count in range(coefficients.size):
        share = coefficients[count] / highest
        if share >= WINDOW and share > best[count]:
            best[count] = share
            log_out[count] = np.log(coefficients[count]) + log_scale - tilt * count
            tilts[count] = tilt


@_helper
def _mean_count(forest, state, tilt, workspace):  # type: ignore[no-untyped-def]
    """Return the mean number of unknown variables that are on under a tilt.

    The chances of everything below a node, given the node off and on, and the means there, are
    passed up the forest; chances are relative to the larger one.
    """
    parent, nodes, n = forest.parent, workspace.nodes, forest.parent.size
    means, chances = workspace.sums[: n + 1], workspace.sums[n + 1 :]
    weigh_nodes(forest, state, tilt, nodes)
    for v in range(n + 1):
        chances[v, 0], chances[v, 1], means[v, 0], means[v, 1] = 1.0, 1.0, 0.0, 0.0
    for v in range(n - 1, -1, -1):
        p = parent[v]
        is_off, is_on = nodes[0, v] * chances[v, 0], nodes[1, v] * chances[v, 1]
        linked = is_on * nodes[2, v]
        mean_off, mean_on = means[v, 0], means[v, 1] + (1.0 if state[v] < 0 else 0.0)
        off, on = is_off + is_on, is_off + linked
        means[p, 0] += (is_off * mean_off + is_on * mean_on) / off
        means[p, 1] += (is_off * mean_off + linked * mean_on) / on
        off, on = off * chances[p, 0], on * chances[p, 1]
        larger = 1.0 / max(off, on)
        chances[p, 0], chances[p, 1] = off * larger, on * larger
    return means[n, 0]


@_helper
def _passes_top(forest, state, tilt, top, workspace):  # type: ignore[no-untyped-def]
    """Whether a tilt turns on so many variables that most weight is cut off above `top`.

    The remaining coefficients are then too small to be trusted.
    """
    return top < _n_unknown(state) and _mean_count(forest, state, tilt, workspace) > top


@inlined
def _n_unknown(state):  # type: ignore[no-untyped-def]
    """Return the number of unknown variables."""
    n_unknown = 0
    for v in range(state.size):
        n_unknown += state[v] < 0
    return n_unknown


@inlined
def _towards(share, wanted):  # type: ignore[no-untyped-def]
    """Return the tilt that changes the share of independent, identical variables to another one."""
    share = min(max(share, LEAST_SHARE), 1.0 - LEAST_SHARE)
    return np.log(wanted / (1.0 - wanted)) - np.log(share / (1.0 - share))


@_helper
def _first_tilt(forest, state, top, workspace):  # type: ignore[no-untyped-def]
    """Return a tilt that makes as many coefficients accurate as a single tilt can.

    With many variables it turns on about a third to half of those that can be on together.
    """
    nodes, n_unknown, tilt, step = workspace.nodes, _n_unknown(state), 0.0, 1.0
    if top >= MANY:
        wanted, share = top / n_unknown, 0.0
        wanted *= MIDDLE + HIGHER * wanted**2
        weigh_nodes(forest, state, 0.0, nodes)
        for v in range(state.size):
            share += nodes[1, v] / (nodes[0, v] + nodes[1, v]) if state[v] < 0 else 0.0
        tilt = _towards(share / n_unknown, wanted)
        for _ in range(2):
            share = _mean_count(forest, state, tilt, workspace) / n_unknown
            if abs(share / wanted - 1.0) < NEAR:
                return tilt
            tilt += _towards(share, wanted)
    while _passes_top(forest, state, tilt, top, workspace):
        tilt -= step
        step *= 2.0
    return tilt


@_compile
def log_coefficients(forest, state, counting, top, workspace, log_out, tilts):  # type: ignore[no-untyped-def]
    """Write the logarithm of every coefficient 0..top of the forest, and the tilt that gave it.

    A coefficient that no tilt makes accurate is −inf, and its tilt is NaN.
    """
    fill(log_out, -np.inf)
    fill(tilts, np.nan)
    best, at_first = np.empty(top + 1), np.empty(top + 1)
    fill(best, 0.0)
    coefficients = workspace.coefficients[: top + 1]
    first_tilt = _first_tilt(forest, state, top, workspace) if counting else 0.0
    log_scale = upward(forest, state, first_tilt, counting, top, workspace)
    _take_window(coefficients, log_scale, first_tilt, best, log_out, tilts)
    first_peak = where_largest(coefficients)
    copy(coefficients, at_first)
    for direction in (1, -1):
        goal = top if direction == 1 else 0
        reached = _follow_sight(best, first_peak, direction, goal)  # the last accurate coefficient
        copy(at_first, coefficients)
        # it is accurate under `low`; `high` is a tilt that passes over it
        low, high = first_tilt, np.nan
        for _ in range(MOST_TILTS):
            if reached != goal and abs(high - low) < CLOSE:
                # No tilt makes the coefficients in between accurate.
                while reached != goal and best[reached + direction] == 0.0:
                    reached += direction
                reached = _follow_sight(best, reached, direction, goal)
                low, high = high, np.nan
            if reached == goal:
                break
            if high == high:
                tilt = 0.5 * (low + high)
            else:
                tilt = low + direction * _step(coefficients, reached, direction)
            too_far = tilt > first_tilt and _passes_top(forest, state, tilt, top, workspace)
            if not too_far:
                log_scale = upward(forest, state, tilt, counting, top, workspace)
                _take_window(coefficients, log_scale, tilt, best, log_out, tilts)
                peak, before = where_largest(coefficients), reached
                reached = _follow_sight(best, before, direction, goal)
                too_far = reached == before and (peak - reached) * direction > 0
                high = high if reached == before else np.nan
            if too_far:
                high = tilt
            else:
                low = tilt


@_helper
def _follow_sight(best, count, direction, goal):  # type: ignore[no-untyped-def]
    """Return the last count in a direction up to which all coefficients are accurate."""
    while count != goal and best[count + direction] > 0.0:
        count += direction
    return count


@inlined
def _step(coefficients, count, direction):  # type: ignore[no-untyped-def]
    """Return the tilt that makes the coefficient of a count as large as the one before.

    Then those beyond become accurate.
    """
    inner = count - direction
    if 0 <= inner < coefficients.size and coefficients[inner] > 0.0 and coefficients[count] > 0.0:
        return max(np.log(coefficients[inner]) - np.log(coefficients[count]), 0.5)
    return 1.0


@_compile
def expected(forest, state, mass, tilts, counting, workspace, ones, pairs):  # type: ignore[no-untyped-def]
    """Write the mass with each node on, and with it and its parent on, given that of each count.

    The tilt of each count must be known, from `log_coefficients`; counts without one are skipped.
    """
    top = mass.size - 1
    fill(ones, 0.0)
    fill(pairs, 0.0)
    seeds, pending = np.empty(top + 1), np.empty(top + 1, np.bool_)
    for count in range(top + 1):
        pending[count] = mass[count] > 0.0 and tilts[count] == tilts[count]
    for first in range(top + 1):
        if not pending[first]:
            continue
        tilt, last = tilts[first], first
        for count in range(first, top + 1):
            if pending[count] and tilts[count] == tilt:
                last = count
        upward(forest, state, tilt, counting, last, workspace)
        for count in range(last + 1):
            served = pending[count] and tilts[count] == tilt
            seeds[count] = mass[count] / workspace.coefficients[count] if served else 0.0
            pending[count] = pending[count] and not served
        downward(forest, state, seeds, counting, last, workspace, ones, pairs)
