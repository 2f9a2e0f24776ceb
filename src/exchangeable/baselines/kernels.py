"""Inner loops of trees over binary variables, some of them hidden.

Nodes come in an order in which parents precede their children, so one walk backwards sends all
messages up and one walk forwards gives all posteriors. Rows are taken in tiles, so that every
step is a loop over rows.
"""

import numpy as np
from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
TILE = 64
FLUSH = 8  # nodes between two looks at the scale: one factor is hardly ever less than 1e-12
SMALL = 1e-100


@_compile
def _open_tile(variable, columns, first, width, up):  # type: ignore[no-untyped-def]
    """Let every node say which of its states the rows allow."""
    for v in range(variable.size):
        c = variable[v]
        if c < 0:
            for r in range(width):
                up[v, 0, r] = 1.0
                up[v, 1, r] = 1.0
        else:
            for r in range(width):
                on = float(columns[c, first + r])
                up[v, 1, r] = on
                up[v, 0, r] = 1.0 - on


@_compile
def _upward(parent, p_on, width, up, message, scale, logs):  # type: ignore[no-untyped-def]
    """Send messages from children to parents, and gather the rows' log-probabilities."""
    for r in range(width):
        scale[r] = 1.0
        logs[r] = 0.0
    for v in range(parent.size - 1, -1, -1):
        p, a, b = parent[v], p_on[v, 0], p_on[v, 1]
        if p < 0:
            for r in range(width):
                scale[r] *= (1.0 - a) * up[v, 0, r] + a * up[v, 1, r]
        else:
            for r in range(width):
                m0 = (1.0 - a) * up[v, 0, r] + a * up[v, 1, r]
                m1 = (1.0 - b) * up[v, 0, r] + b * up[v, 1, r]
                message[v, 0, r] = m0
                message[v, 1, r] = m1
                u0, u1 = up[p, 0, r] * m0, up[p, 1, r] * m1
                total = u0 + u1
                up[p, 0, r] = u0 / total
                up[p, 1, r] = u1 / total
                scale[r] *= total
        if v % FLUSH == 0:
            for r in range(width):
                if scale[r] < SMALL:
                    logs[r] += np.log(scale[r])
                    scale[r] = 1.0
    for r in range(width):
        logs[r] += np.log(scale[r])


@_compile
def _downward(parent, p_on, weight, width, up, message, joint):  # type: ignore[no-untyped-def]
    """Turn what comes from below into posteriors; add up those of each node and its parent."""
    for v in range(parent.size):
        p, a, b = parent[v], p_on[v, 0], p_on[v, 1]
        s00, s01, s10, s11 = 0.0, 0.0, 0.0, 0.0
        if p < 0:
            for r in range(width):
                u0, u1 = (1.0 - a) * up[v, 0, r], a * up[v, 1, r]
                total = u0 + u1
                up[v, 0, r] = u0 / total
                up[v, 1, r] = u1 / total
                s00 += weight[r] * up[v, 0, r]
                s10 += weight[r] * up[v, 1, r]
        else:
            for r in range(width):
                q0, q1 = up[p, 0, r] / message[v, 0, r], up[p, 1, r] / message[v, 1, r]
                j00, j01 = q0 * (1.0 - a) * up[v, 0, r], q1 * (1.0 - b) * up[v, 0, r]
                j10, j11 = q0 * a * up[v, 1, r], q1 * b * up[v, 1, r]
                up[v, 0, r] = j00 + j01
                up[v, 1, r] = j10 + j11
                s00 += weight[r] * j00
                s01 += weight[r] * j01
                s10 += weight[r] * j10
                s11 += weight[r] * j11
        joint[v, 0, 0] += s00
        joint[v, 0, 1] += s01
        joint[v, 1, 0] += s10
        joint[v, 1, 1] += s11


@_compile
def log_probabilities(parent, variable, p_on, columns, start, stop, out):  # type: ignore[no-untyped-def]
    """Write the log-probability of the rows from start to stop."""
    n = parent.size
    up, message = np.empty((n, 2, TILE)), np.empty((n, 2, TILE))
    scale = np.empty(TILE)
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        _open_tile(variable, columns, first, width, up)
        _upward(parent, p_on, width, up, message, scale, out[first:])


@_compile
def expected_counts(parent, variable, p_on, columns, weight, start, stop, out, joint):  # type: ignore[no-untyped-def]
    """Write log-probabilities, and add up how often each node and its parent have which states.

    ``joint[v, s, t]`` is the expected weight of the rows with node v in state s and its parent in
    state t; a root has t = 0.
    """
    n = parent.size
    up, message = np.empty((n, 2, TILE)), np.empty((n, 2, TILE))
    scale = np.empty(TILE)
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        _open_tile(variable, columns, first, width, up)
        _upward(parent, p_on, width, up, message, scale, out[first:])
        _downward(parent, p_on, weight[first:], width, up, message, joint)
