"""Coefficients of a forest's polynomial, and expectations given the count, by tilts.

Coefficients span hundreds of orders of magnitude. A tilt exp(t·l) brings most stretches of them
near the largest; a few tilts cover all, and each coefficient is taken from the tilt that serves it
best. Where nodes and parents are bound closely, few and many ones are both likelier than what is
between: there the right tilt makes both ends equal, and is found by bisection.

Arguments are as in `polynomial_kernels`.
"""

import numpy as np

from exchangeable.families.trees.polynomial_kernels import downward, new_workspace, upward
from exchangeable.runtime.kernel_cache import compiled, for_kernels
from exchangeable.runtime.loops import fill, inlined, largest, where_largest

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})

WINDOW = 1e-180
"""A coefficient is trusted where it is at least this share of the largest."""
MOST_TILTS = 1000
CLOSE = 1e-6
"""Two tilts that differ by less have nothing between them."""


@inlined
def _take_window(coefficients, log_scale, tilt, best, log_out, tilts):  # type: ignore[no-untyped-def]
    """Take over the coefficients that this tilt serves better than those before."""
    highest = largest(coefficients)
    for count in range(coefficients.size):
        share = coefficients[count] / highest
        if share >= WINDOW and share > best[count]:
            best[count] = share
            log_out[count] = np.log(coefficients[count]) + log_scale - tilt * count
            tilts[count] = tilt


@_helper
def _passes_top(forest, state, tilt, top):  # type: ignore[no-untyped-def]
    """Whether a tilt turns on so many variables that most weight is cut off above `top`.

    The remaining coefficients are then too small to be trusted.
    """
    n, n_unknown = forest.parent.size, 0
    for v in range(n):
        n_unknown += state[v] < 0
    if top >= n_unknown:
        return False
    # Literals would be compiled for once more.
    no_count, none = np.bool_(False), np.int64(0)
    workspace = new_workspace(n, none)
    below, above = 0.0, 0.0
    for side in range(2):
        shifted = tilt + CLOSE * (2 * side - 1)
        below = above
        above = upward(forest, state, shifted, no_count, none, workspace)
        above += np.log(workspace.off[n, 0])
    return above - below > 2 * CLOSE * top


@_compile
def log_coefficients(forest, state, counting, top, workspace, log_out, tilts):  # type: ignore[no-untyped-def]
    """Write the logarithm of every coefficient 0..top of the forest, and the tilt that gave it.

    A coefficient that no tilt brings into sight is −inf, and its tilt is NaN.
    """
    fill(log_out, -np.inf)
    fill(tilts, np.nan)
    best = np.empty(top + 1)
    fill(best, 0.0)
    n = forest.parent.size
    coefficients = workspace.off[n, : top + 1]
    first_tilt = 0.0
    while counting and _passes_top(forest, state, first_tilt, top):
        first_tilt = 2 * first_tilt - 1.0
    for direction in (1, -1):
        goal = top if direction == 1 else 0
        reached = -1  # the last count in sight
        # `low` brought it into sight; `high` is a tilt that passes it over.
        tilt, low, high = first_tilt, first_tilt, np.nan
        for _ in range(MOST_TILTS):
            too_far = tilt > first_tilt and _passes_top(forest, state, tilt, top)
            if not too_far:
                log_scale = upward(forest, state, tilt, counting, top, workspace)
                fill(coefficients[workspace.degree[n] + 1 :], 0.0)
                _take_window(coefficients, log_scale, tilt, best, log_out, tilts)
                peak = where_largest(coefficients)
                before = peak if reached < 0 else reached
                reached = _follow_sight(best, before, direction, goal)
                too_far = reached == before and (peak - reached) * direction > 0
                high = high if reached == before else np.nan
            if reached == goal:
                break
            if too_far:
                high = tilt
            else:
                low = tilt
            if abs(high - low) < CLOSE:  # nothing brings what is between into sight
                while reached != goal and best[reached + direction] == 0.0:
                    reached += direction
                reached = _follow_sight(best, reached, direction, goal)
                if reached == goal:
                    break
                low, high = high, np.nan
            if high == high:
                tilt = 0.5 * (low + high)
            else:
                tilt = low + direction * _step(coefficients, reached, direction)


@_helper
def _follow_sight(best, count, direction, goal):  # type: ignore[no-untyped-def]
    """Return the last count in a direction up to which all are in sight."""
    while count != goal and best[count + direction] > 0.0:
        count += direction
    return count


@inlined
def _step(coefficients, count, direction):  # type: ignore[no-untyped-def]
    """Return by how much to tilt so that the coefficient of a count is as large as the one before.

    Then those beyond come into sight.
    """
    inner = count - direction
    if 0 <= inner < coefficients.size and coefficients[inner] > 0.0 and coefficients[count] > 0.0:
        return max(np.log(coefficients[inner]) - np.log(coefficients[count]), 0.5)
    return 1.0


@_compile
def expected(forest, state, mass, tilts, counting, workspace, ones, pairs):  # type: ignore[no-untyped-def]
    """Write the mass with each node on, and with it and its parent on, given that of each count.

    The tilt that serves each count must be known, from `log_coefficients`; a count that is out of
    sight is passed over.
    """
    n, top = forest.parent.size, mass.size - 1
    fill(ones, 0.0)
    fill(pairs, 0.0)
    seeds, pending = np.empty(top + 1), np.empty(top + 1, np.bool_)
    for count in range(top + 1):
        pending[count] = mass[count] > 0.0 and tilts[count] == tilts[count]
    for first in range(top + 1):
        if not pending[first]:
            continue
        tilt = tilts[first]
        upward(forest, state, tilt, counting, top, workspace)
        fill(seeds, 0.0)
        for count in range(first, top + 1):
            if pending[count] and tilts[count] == tilt:
                seeds[count] = mass[count] / workspace.off[n, count]
                pending[count] = False
        downward(forest, seeds, top, workspace, ones, pairs)
