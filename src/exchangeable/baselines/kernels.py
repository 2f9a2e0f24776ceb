"""Inner loops of trees over binary variables, some of which may be hidden.

Parents precede their children in the order of the nodes, so one backward pass sends all messages
upwards and one forward pass computes all posteriors. Rows are processed in tiles, so that every
step is a loop over rows.
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernels.cache import compiled, for_kernels

_compile = compiled(fastmath={"reassoc", "contract"})
_helper = for_kernels(fastmath={"reassoc", "contract"})
TILE = 64
FLUSH = 8  # nodes between two checks of the scale; a single factor is rarely below 1e-12
SMALL = 1e-100


class TreeArrays(NamedTuple):
    """A tree as kernels take it.

    Attributes
    ----------
    parent : array of shape (n_nodes,)
        The position of each node's parent, −1 for a root.
    variable : array of shape (n_nodes,)
        The variable of each node, −1 for a hidden node.
    p_on : array of shape (n_nodes, 2)
        P(on | parent off) and P(on | parent on).
    """

    parent: IntArray
    variable: IntArray
    p_on: FloatArray


class _Messages(NamedTuple):
    """Messages about a tile of rows.

    Attributes
    ----------
    up, message : arrays of shape (n_nodes, 2, TILE)
        Weight of each node's states given all nodes below it, and its message to its parent.
    scale : array of shape (TILE,)
        Product of the factors by which messages have been divided.
    """

    up: FloatArray
    message: FloatArray
    scale: FloatArray


@_helper
def _new_messages(tree):  # type: ignore[no-untyped-def]
    n = tree.parent.size
    return _Messages(np.empty((n, 2, TILE)), np.empty((n, 2, TILE)), np.empty(TILE))


@_helper
def _open_tile(variable, columns, first, width, up):  # type: ignore[no-untyped-def]
    """Write which states of each node agree with the rows."""
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


@_helper
def _upward(tree, width, messages, logs):  # type: ignore[no-untyped-def]
    """Send messages from children to parents, and compute the rows' log-probabilities."""
    parent, _, p_on = tree
    up, message, scale = messages
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
                divisor = total if total > 0.0 else 1.0  # a row that cannot be has nothing to share
                up[p, 0, r] = u0 / divisor
                up[p, 1, r] = u1 / divisor
                scale[r] *= total
        if v % FLUSH == 0:
            for r in range(width):
                if scale[r] < SMALL:
                    logs[r] += np.log(scale[r])
                    scale[r] = 1.0
    for r in range(width):
        logs[r] += np.log(scale[r])


@_helper
def _downward(tree, weight, width, messages, joint):  # type: ignore[no-untyped-def]
    """Turn upward messages into posteriors, and sum those of each node and its parent."""
    parent, _, p_on = tree
    up, message, _ = messages
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
def log_probabilities(tree, columns, start, stop, out):  # type: ignore[no-untyped-def]
    """Write the log-probability of the rows from start to stop."""
    messages = _new_messages(tree)
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        _open_tile(tree.variable, columns, first, width, messages.up)
        _upward(tree, width, messages, out[first:])


@_compile
def expected_counts(tree, columns, weight, start, stop, out, joint):  # type: ignore[no-untyped-def]
    """Write log-probabilities, and add up how often each node and its parent have which states.

    ``joint[v, s, t]`` is the expected weight of the rows with node v in state s and its parent in
    state t; a root has t = 0.
    """
    messages = _new_messages(tree)
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        _open_tile(tree.variable, columns, first, width, messages.up)
        _upward(tree, width, messages, out[first:])
        _downward(tree, weight[first:], width, messages, joint)
