"""Coefficients of a forest's polynomial, and expectations given the count, by tilts.

Coefficients span hundreds of orders of magnitude. A tilt exp(t·l) brings most stretches of them
near the largest; a few tilts cover all, and each coefficient is taken from the tilt that serves it
best. Where nodes and parents are bound closely, few and many ones are both likelier than what is
between: there the right tilt makes both ends equal, and is found by bisection.

Arguments are as in `polynomial_kernels`.
"""

import numpy as np

from exchangeable.families.trees.polynomial_kernels import downward, new_workspace, upward
from exchangeable.runtime.kernel_cache import compiled

_compile = compiled(fastmath={"reassoc", "contract"})

WINDOW = 1e-180
"""A coefficient is trusted where it is at least this share of the largest."""
MOST_TILTS = 1000
CLOSE = 1e-6
"""Two tilts that differ by less have nothing between them."""


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
def _passes_top(forest, state, tilt, top):  # type: ignore[no-untyped-def]
    """Whether a tilt turns on so many variables that most weight is cut off above `top`.

    The remaining coefficients are then too small to be trusted.
    """
    n, n_unknown = forest.parent.size, (state < 0).sum()
    if top >= n_unknown:
        return False
    workspace = new_workspace(n, 0)
    log_sum = np.empty(2)
    for side in range(2):
        shifted = tilt + CLOSE * (2 * side - 1)
        log_sum[side] = upward(forest, state, shifted, False, 0, workspace)
        log_sum[side] += np.log(workspace.off[n, 0])
    return log_sum[1] - log_sum[0] > 2 * CLOSE * top


@_compile
def log_coefficients(forest, state, counting, top, workspace, log_out, tilts):  # type: ignore[no-untyped-def]
    """Write the logarithm of every coefficient 0..top of the forest, and the tilt that gave it.

    A coefficient that no tilt brings into sight is −inf, and its tilt is NaN.
    """
    log_out[:] = -np.inf
    tilts[:] = np.nan
    best = np.zeros(top + 1)
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
                coefficients[workspace.degree[n] + 1 :] = 0.0
                _take_window(coefficients, log_scale, tilt, best, log_out, tilts)
                peak = int(np.argmax(coefficients))
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


@_compile
def _follow_sight(best, count, direction, goal):  # type: ignore[no-untyped-def]
    """Return the last count in a direction up to which all are in sight."""
    while count != goal and best[count + direction] > 0.0:
        count += direction
    return count


@_compile
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
    ones[:] = 0.0
    pairs[:] = 0.0
    seeds = np.empty(top + 1)
    pending = (mass > 0.0) & (tilts[: top + 1] == tilts[: top + 1])
    while pending.any():
        tilt = tilts[np.argmax(pending)]
        upward(forest, state, tilt, counting, top, workspace)
        seeds[:] = 0.0
        for count in range(top + 1):
            if pending[count] and tilts[count] == tilt:
                seeds[count] = mass[count] / workspace.off[n, count]
                pending[count] = False
        downward(forest, seeds, top, workspace, ones, pairs)


@_compile
def log_count_weights(forest, workspace, log_out, tilts):  # type: ignore[no-untyped-def]
    """Write log Σ exp(score) over the rows with l ones, for l = 0..log_out.size − 1.

    Also writes the tilt that serves each count; the workspace must be large enough for them.
    """
    state = np.full(forest.parent.size, -1, dtype=np.int8)
    log_coefficients(forest, state, True, log_out.size - 1, workspace, log_out, tilts)


@_compile
def expected_of_forest(forest, mass, tilts, workspace, ones, pairs):  # type: ignore[no-untyped-def]
    """Write what `expected` does if no variable is known.

    `tilts` are those that serve each count, as far as they are known.
    """
    top = mass.size - 1
    while top > 0 and mass[top] <= 0.0:
        top -= 1
    state = np.full(forest.parent.size, -1, dtype=np.int8)
    if tilts.size <= top:
        tilts, scratch = np.empty(top + 1), np.empty(top + 1)
        log_coefficients(forest, state, True, top, workspace, scratch, tilts)
    expected(forest, state, mass[: top + 1], tilts, True, workspace, ones, pairs)
