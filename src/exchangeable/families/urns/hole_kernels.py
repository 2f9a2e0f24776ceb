"""EM's pass over incomplete rows for weighted urns of one block, for all classes at once.

With θ scaled such that c_j = θ_j / (1 + θ_j) is about the frequency of variable j, the number of
hidden ones among missing entries 1..i has "probabilities" f_i(l), f_i(l) = (1 − c_i)·f_{i−1}(l) +
c_i·f_{i−1}(l − 1), and P(known) is Σ_l f_h(l)·r(n + l) times a linear term, where n ones are known
and r is the urn's q divided by that of independent variables. Backwards, g_h(l) = r(n + l) and
g_{i−1}(l) = (1 − c_i)·g_i(l) + c_i·g_i(l + 1); c_i·Σ_l f_{i−1}(l)·g_i(l + 1) is the share of the
rows with missing entry i on. A line has an entry per class; several lines make a loop long enough
for vectors.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray
from exchangeable.data.row_kernels import ones_of
from exchangeable.families.common.posteriors import settle_row
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import copy, fill, inlined

_compile = compiled(fastmath={"contract"})

LEAST = 1e-250
"""Sums smaller than this may have lost digits to underflow."""
TILE_ENTRIES = 128
"""Minimum length of the loops over lines."""


def tile_lines(n_classes: int) -> int:
    """Return the number of lines in a loop."""
    return -(-TILE_ENTRIES // n_classes)


class HoleUrns(NamedTuple):
    """The urns of all classes, for incomplete rows.

    Attributes
    ----------
    base : array of shape (n_classes,)
        The common score of all rows, including log-probabilities of the classes.
    on, hole : arrays of shape (n_variables, n_classes)
        The contributions of a known one and of a missing entry to the score.
    chance, other : arrays of shape (n_variables, tile)
        c_j and 1 − c_j of all classes, repeated to at least `TILE_ENTRIES` entries.
    ratio : array of shape (n_variables + 1, n_classes)
        r by number of ones, up to a factor per class.
    """

    base: FloatArray
    on: FloatArray
    hole: FloatArray
    chance: FloatArray
    other: FloatArray
    ratio: FloatArray


class HoleRoom(NamedTuple):
    """Workspace for one row: f_0, f_1, …, two lines g, and a tile of sums.

    Lines l of f_i and g begin at entry ``(l + 1)·n_classes``: entry 0 stands for l = −1.
    """

    forward: FloatArray
    backward: FloatArray
    total: FloatArray
    ones: npt.NDArray[np.int32]
    holes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, n_variables: int, n_classes: int, most_holes: int) -> "HoleRoom":
        """Return the workspace for rows with at most this many missing entries."""
        tile = n_classes * tile_lines(n_classes)
        line = (most_holes + 2) * n_classes + tile
        return cls(
            np.zeros((most_holes + 1, line)),
            np.zeros((2, line + tile)),
            np.empty(tile),
            np.empty(n_variables, dtype=np.int32),
            np.empty(n_variables, dtype=np.int32),
        )


@inlined
def _add_lines(lines, chosen, out):  # type: ignore[no-untyped-def]
    """Add some lines to another."""
    for i in range(chosen.size):
        line = lines[chosen[i]]
        for y in range(out.size):
            out[y] += line[y]


@_compile
def expect_urns(rows, holes, span, urns, priors, given, posterior, workspace, sums):  # type: ignore[no-untyped-def]
    """Write the posteriors of a span of rows, unless `given`, and add up their sums.

    `sums` are those of ones and counts. Returns the log-likelihood; NaN if digits may be lost.
    """
    base, on, hole, chance, other_chance, ratio = urns
    forward, backward, total, buffer, hole_buffer = workspace
    weights, clamp, log_prior = priors.weights, priors.clamp, priors.log_prior
    ones_sum, count_sum = sums
    k, tile = base.size, total.size
    joint, norm, mass = np.empty(k), np.empty(k), np.empty(k)
    log_likelihood = 0.0
    for row in range(span[0], span[1]):
        known, unknown = ones_of(rows, row, buffer), ones_of(holes, row, hole_buffer)
        n, h = known.size, unknown.size
        for y in range(k):
            forward[0, k + y] = 1.0
        for i in range(h):
            is_on, is_off = chance[unknown[i]], other_chance[unknown[i]]
            before, after = forward[i], forward[i + 1]
            for first in range(0, (i + 2) * k, tile):
                low, same, out = before[first:], before[first + k :], after[first + k :]
                for e in range(tile):
                    out[e] = same[e] * is_off[e] + low[e] * is_on[e]
            fill(after[(i + 3) * k : (i + 4) * k + tile], 0.0)
        fill(norm, 0.0)
        last = forward[h, k:]
        for count in range(h + 1):
            share, line = last[count * k : (count + 1) * k], ratio[n + count]
            for y in range(k):
                norm[y] += share[y] * line[y]
        copy(base, joint)
        _add_lines(on, known, joint)
        _add_lines(hole, unknown, joint)
        for y in range(k):
            if norm[y] < LEAST:
                return np.nan
            joint[y] += np.log(norm[y])
        if not given:
            label = clamp[row] if clamp.size else -1
            log_likelihood += weights[row] * settle_row(joint, log_prior, label)
            copy(joint, posterior[row])
        for y in range(k):
            mass[y] = weights[row] * posterior[row, y]
            norm[y] = mass[y] / norm[y]
        for i in range(n):
            line = ones_sum[known[i]]
            for y in range(k):
                line[y] += mass[y]
        fill(backward[0], 0.0)
        fill(backward[1], 0.0)
        first_line = backward[h % 2, k:]
        for count in range(h + 1):
            line, counted = ratio[n + count], count_sum[n + count]
            share, out = last[count * k : (count + 1) * k], first_line[count * k :]
            for y in range(k):
                out[y] = line[y] * norm[y]
            for y in range(k):
                counted[y] += share[y] * out[y]
        for i in range(h - 1, -1, -1):
            is_on, is_off = chance[unknown[i]], other_chance[unknown[i]]
            fill(total, 0.0)
            for first in range(0, (i + 1) * k, tile):
                same, above = (
                    backward[(i + 1) % 2, first + k :],
                    backward[(i + 1) % 2, first + 2 * k :],
                )
                shares, out = forward[i, first + k :], backward[i % 2, first + k :]
                # Two loops: the compiler compares no more pairs of arrays than each has.
                for e in range(tile):
                    total[e] += shares[e] * above[e]
                for e in range(tile):
                    out[e] = same[e] * is_off[e] + above[e] * is_on[e]
            line = ones_sum[unknown[i]]
            for first in range(0, tile, k):
                part = total[first : first + k]
                for y in range(k):
                    line[y] += is_on[y] * part[y]
    return log_likelihood
