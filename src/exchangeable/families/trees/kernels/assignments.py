"""Draws and most probable completions of the unknown variables of a forest.

Both traverse the forest from the root and decide how many of a subtree's variables are on, so they
need the polynomials that a node's parent had before the node was multiplied to it. Arguments are as
in `queries` and `polynomials`.
"""

from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.trees.kernels.polynomials import SMALLEST
from exchangeable.families.trees.kernels.queries import count_scores
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import copy, divide, fill, inlined, largest
from exchangeable.runtime.kernels.vectors import log_sum

_compile = compiled()
_helper = for_kernels()
_sums = for_kernels(fastmath={"reassoc", "contract"})


class NodeWorkspace(NamedTuple):
    """Memory for the polynomials of a forest of n nodes; everything is written before it is read.

    Attributes
    ----------
    off, on : arrays of shape (n + 1, top + 1)
        The polynomial of each node's subtree when the node is off, and when it is on.
    off_before, on_before : arrays of shape (n + 1, top + 1)
        Those of its parent before the node was added to it.
    degree, degree_before : arrays of shape (n + 1,)
        The degrees of these polynomials.
    """

    off: FloatArray
    on: FloatArray
    off_before: FloatArray
    on_before: FloatArray
    degree: IntArray
    degree_before: IntArray

    @classmethod
    def of(cls, n: int, top: int) -> Self:
        """Return a workspace for forests of n nodes and polynomials up to degree `top`."""
        degrees = np.empty((2, n + 1), dtype=np.int64)
        return cls(*np.empty((4, n + 1, top + 1)), *degrees)


@_sums
def _multiply(a, a_degree, b, b_degree, top, out):  # type: ignore[no-untyped-def]
    """Write the product of two polynomials up to degree `top`; return its degree."""
    degree = min(a_degree + b_degree, top)
    fill(out[: degree + 1], 0.0)
    if a_degree < b_degree:  # the longer one in the inner loop
        a, a_degree, b, b_degree = b, b_degree, a, a_degree
    for j in range(min(b_degree, degree) + 1):
        factor = b[j]
        last = min(a_degree, degree - j)
        into, source = out[j : j + last + 1], a[: last + 1]
        for i in range(source.size):
            into[i] += factor * source[i]
    return degree


@inlined
def _begin_node(v, slope, state, tilt, counting, top, workspace):  # type: ignore[no-untyped-def]
    """Initialise the polynomials of a node alone."""
    off, on, degree = workspace.off, workspace.on, workspace.degree
    weight = slope[v] + (tilt if state[v] < 0 else 0.0)
    larger = weight if state[v] == 1 else (0.0 if state[v] == 0 else max(weight, 0.0))
    moves = counting and state[v] < 0 and top > 0
    degree[v] = 1 if moves else 0
    fill(off[v, : degree[v] + 1], 0.0)
    fill(on[v, : degree[v] + 1], 0.0)
    if state[v] != 1:
        off[v, 0] = np.exp(-larger)
    if state[v] == 1 or (state[v] < 0 and not (counting and top == 0)):
        on[v, degree[v]] = np.exp(weight - larger)


@inlined
def _join(when_off, when_on, factor, out):  # type: ignore[no-untyped-def]
    """Write the sum of a node's polynomials off and, times a factor, on."""
    for count in range(when_off.size):
        out[count] = when_off[count] + factor * when_on[count]


@_sums
def _upward(forest, state, tilt, counting, top, workspace):  # type: ignore[no-untyped-def]
    """Compute all polynomials, each up to a factor; that of node n is the forest's."""
    parent, slope, pair = forest.parent, forest.slope, forest.pair
    off, on = workspace.off, workspace.on
    off_before, on_before = workspace.off_before, workspace.on_before
    degree, degree_before = workspace.degree, workspace.degree_before
    n = parent.size
    for v in range(n):
        _begin_node(v, slope, state, tilt, counting, top, workspace)
    degree[n] = 0
    off[n, 0], on[n, 0] = 1.0, 0.0
    when_off, when_on = np.empty(top + 1), np.empty(top + 1)
    for v in range(n - 1, -1, -1):
        p, d = parent[v], degree[v]
        linked = np.exp(pair[v]) if p < n else 1.0
        _join(off[v, : d + 1], on[v], 1.0, when_off)
        _join(off[v, : d + 1], on[v], linked, when_on)
        before = degree[p]
        degree_before[v] = before
        copy(off[p, : before + 1], off_before[v])
        after = _multiply(off_before[v], before, when_off, d, top, off[p])
        highest = largest(off[p, : after + 1])
        if p < n:
            copy(on[p, : before + 1], on_before[v])
            _multiply(on_before[v], before, when_on, d, top, on[p])
            highest = max(highest, largest(on[p, : after + 1]))
            divide(on[p, : after + 1], highest)
        divide(off[p, : after + 1], highest)
        while after > 0 and off[p, after] < SMALLEST and (p == n or on[p, after] < SMALLEST):
            after -= 1
        degree[p] = after


@_helper
def _pick(weights, size, uniform):  # type: ignore[no-untyped-def]
    """Return an index below `size` drawn by weight."""
    target = uniform * weights[:size].sum()
    for index in range(size):
        target -= weights[index]
        if target < 0.0:
            return index
    index = size - 1
    while index > 0 and weights[index] <= 0.0:
        index -= 1
    return index


@_compile
def draw_rows(states, forest, table, counting, uniforms, workspace, by_node):  # type: ignore[no-untyped-def]
    """Draw the unknown entries of every row, from 2·n + 1 uniform numbers each."""
    parent, pair = forest.parent, forest.pair
    n = parent.size
    tilts = np.empty(n + 1)
    off, on, off_before, on_before, degree, degree_before = by_node
    share, counts = np.empty(n + 1), np.empty(n + 1, dtype=np.int64)
    for row in range(states.shape[0]):
        state = states[row]
        top = (state < 0).sum() if counting else 0
        scores = count_scores(forest, state, table, counting, workspace, tilts[: top + 1])
        total = log_sum(scores)
        counts[n] = 0
        if total > -np.inf:
            counts[n] = _pick(np.exp(scores - total), top + 1, uniforms[row, 2 * n])
        _upward(forest, state, tilts[counts[n]], counting, top, by_node)
        for v in range(n):
            p = parent[v]
            parent_on = p < n and state[p] == 1
            linked = np.exp(pair[v]) if parent_on else 1.0
            low, high = max(0, counts[p] - degree_before[v]), min(degree[v], counts[p])
            for i in range(low, high + 1):
                rest = on_before[v, counts[p] - i] if parent_on else off_before[v, counts[p] - i]
                share[i - low] = rest * (off[v, i] + linked * on[v, i])
            counts[v] = low + _pick(share, max(high - low + 1, 1), uniforms[row, 2 * v])
            counts[p] -= counts[v]
            if state[v] < 0:
                share[0], share[1] = off[v, counts[v]], linked * on[v, counts[v]]
                state[v] = _pick(share, 2, uniforms[row, 2 * v + 1])


@_helper
def _upward_best(forest, state, counting, top, workspace):  # type: ignore[no-untyped-def]
    """Compute, as `upward` does, the logarithm of the heaviest assignment for every count."""
    parent, slope, pair = forest.parent, forest.slope, forest.pair
    off, on = workspace.off, workspace.on
    off_before, on_before = workspace.off_before, workspace.on_before
    degree, degree_before = workspace.degree, workspace.degree_before
    n = parent.size
    for v in range(n):
        moves = counting and state[v] < 0
        degree[v] = 1 if moves else 0
        off[v, : degree[v] + 1] = -np.inf
        on[v, : degree[v] + 1] = -np.inf
        if state[v] != 1:
            off[v, 0] = 0.0
        if state[v] != 0:
            on[v, degree[v]] = slope[v]
    degree[n] = 0
    off[n, 0], on[n, 0] = 0.0, -np.inf
    for v in range(n - 1, -1, -1):
        p, d = parent[v], degree[v]
        before = degree[p]
        degree_before[v] = before
        degree[p] = min(before + d, top)
        off_before[v, : before + 1] = off[p, : before + 1]
        on_before[v, : before + 1] = on[p, : before + 1]
        off[p, : degree[p] + 1] = -np.inf
        on[p, : degree[p] + 1] = -np.inf
        for i in range(before + 1):
            for j in range(min(d, degree[p] - i) + 1):
                weight = off_before[v, i] + max(off[v, j], on[v, j])
                off[p, i + j] = max(off[p, i + j], weight)
                if p < n:
                    weight = on_before[v, i] + max(off[v, j], on[v, j] + pair[v])
                    on[p, i + j] = max(on[p, i + j], weight)


@_compile
def complete_rows(states, forest, table, counting, out, by_node):  # type: ignore[no-untyped-def]
    """Write the most probable completion of every row, and its score to `out`."""
    parent, pair = forest.parent, forest.pair
    n = parent.size
    off, on, off_before, on_before, degree, degree_before = by_node
    counts = np.empty(n + 1, dtype=np.int64)
    for row in range(states.shape[0]):
        state = states[row]
        n_ones = (state == 1).sum() if counting else 0
        top = (state < 0).sum() if counting else 0
        _upward_best(forest, state, counting, top, by_node)
        totals = off[n, : top + 1] + table[n_ones : n_ones + top + 1]
        counts[n] = np.argmax(totals)
        out[row] = totals[counts[n]]
        for v in range(n):
            p = parent[v]
            parent_on = p < n and state[p] == 1
            link = pair[v] if parent_on else 0.0
            best, chosen = -np.inf, max(0, counts[p] - degree_before[v])
            for i in range(chosen, min(degree[v], counts[p]) + 1):
                rest = on_before[v, counts[p] - i] if parent_on else off_before[v, counts[p] - i]
                weight = rest + max(off[v, i], on[v, i] + link)
                if weight > best:
                    best, chosen = weight, i
            counts[v] = chosen
            counts[p] -= chosen
            if state[v] < 0:
                state[v] = 1 if on[v, chosen] + link > off[v, chosen] else 0
