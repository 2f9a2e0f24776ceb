"""Forests with some of their variables known: scores, marginals, draws, completions and sums.

`states` holds 0, 1 or −1 (not known) for every row and node, in the order of the nodes. `table` is
log q(l) less the logarithm of the forest's coefficient for every number of ones l, or without a
count (`counting` false) the score of the empty row alone. `forest` is a `polynomials.Forest`.
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.trees.polynomial_kernels import new_workspace, upward
from exchangeable.families.trees.tilt_kernels import expected, log_coefficients
from exchangeable.runtime.kernel_cache import compiled, for_kernels
from exchangeable.runtime.vectors import log_sum

_compile = compiled()
_helper = for_kernels()


class RowSums(NamedTuple):
    """What `sums_rows` adds to.

    Attributes
    ----------
    ones, pairs : arrays of shape (n,)
        The mass with each node on, and with it and its parent on.
    counts : array of shape (n + 1,)
        That with each number of ones; not written without a count.
    """

    ones: FloatArray
    pairs: FloatArray
    counts: FloatArray


@_helper
def _count_scores(forest, state, table, counting, workspace, tilts):  # type: ignore[no-untyped-def]
    """Return log P(l unknown variables on, the known) for every l, without a count for l = 0."""
    n_ones, n_holes = 0, 0
    for v in range(state.size):
        n_ones += state[v] == 1
        n_holes += state[v] < 0
    top = n_holes if counting else 0
    scores = np.empty(top + 1)
    log_coefficients(forest, state, counting, top, workspace, scores, tilts)
    if counting:
        return scores + table[n_ones : n_ones + top + 1]
    return scores + table[0]


@_compile
def score_rows(states, forest, table, counting, out):  # type: ignore[no-untyped-def]
    """Write log P(known entries) of every row; states are in the order of the nodes."""
    n = forest.parent.size
    workspace, tilts = new_workspace(n, n if counting else 0), np.empty(n + 1)
    for row in range(states.shape[0]):
        state = states[row]
        top = (state < 0).sum() if counting else 0
        scores = _count_scores(forest, state, table, counting, workspace, tilts[: top + 1])
        out[row] = log_sum(scores)


@_compile
def marginal_rows(states, forest, table, counting, out):  # type: ignore[no-untyped-def]
    """Write P(x = 1 | known entries) of every row and node."""
    n = forest.parent.size
    workspace, tilts = new_workspace(n, n if counting else 0), np.empty(n + 1)
    ones, pairs = np.empty(n), np.empty(n)
    for row in range(states.shape[0]):
        state = states[row]
        top = (state < 0).sum() if counting else 0
        scores = _count_scores(forest, state, table, counting, workspace, tilts[: top + 1])
        total = log_sum(scores)
        if total == -np.inf:
            for v in range(n):
                out[row, v] = 1.0 if state[v] == 1 else 0.0
            continue
        mass = np.exp(scores - total)
        expected(forest, state, mass, tilts[: top + 1], counting, workspace, ones, pairs)
        for v in range(n):
            out[row, v] = min(ones[v], 1.0) if state[v] < 0 else state[v]


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
def draw_rows(states, forest, table, counting, uniforms):  # type: ignore[no-untyped-def]
    """Draw the unknown entries of every row, from 2·n + 1 uniform numbers each."""
    parent, pair = forest.parent, forest.pair
    n = parent.size
    workspace, tilts = new_workspace(n, n if counting else 0), np.empty(n + 1)
    off, on = workspace.off, workspace.on
    off_before, on_before = workspace.off_before, workspace.on_before
    degree, degree_before = workspace.degree, workspace.degree_before
    share, counts = np.empty(n + 1), np.empty(n + 1, dtype=np.int64)
    for row in range(states.shape[0]):
        state = states[row]
        top = (state < 0).sum() if counting else 0
        scores = _count_scores(forest, state, table, counting, workspace, tilts[: top + 1])
        total = log_sum(scores)
        counts[n] = 0
        if total > -np.inf:
            counts[n] = _pick(np.exp(scores - total), top + 1, uniforms[row, 2 * n])
        upward(forest, state, tilts[counts[n]], counting, top, workspace)
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
def complete_rows(states, forest, table, counting, out):  # type: ignore[no-untyped-def]
    """Fill in the unknown of every row so that it is most probable; write its score to `out`."""
    parent, pair = forest.parent, forest.pair
    n = parent.size
    workspace = new_workspace(n, n if counting else 0)
    off, on = workspace.off, workspace.on
    off_before, on_before = workspace.off_before, workspace.on_before
    degree, degree_before = workspace.degree, workspace.degree_before
    counts = np.empty(n + 1, dtype=np.int64)
    for row in range(states.shape[0]):
        state = states[row]
        n_ones = (state == 1).sum() if counting else 0
        top = (state < 0).sum() if counting else 0
        _upward_best(forest, state, counting, top, workspace)
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


@_compile
def sums_rows(states, forest, table, counting, mass, sums):  # type: ignore[no-untyped-def]
    """Add each row's mass to the nodes, pairs and counts it has, the unknown by their chances.

    A row that the model says is impossible adds nothing.
    """
    ones, pairs, counts = sums.ones, sums.pairs, sums.counts
    n = forest.parent.size
    workspace, tilts = new_workspace(n, n if counting else 0), np.empty(n + 1)
    row_ones, row_pairs = np.empty(n), np.empty(n)
    for row in range(states.shape[0]):
        if mass[row] <= 0.0:
            continue
        state = states[row]
        n_ones = (state == 1).sum()
        top = (state < 0).sum() if counting else 0
        scores = _count_scores(forest, state, table, counting, workspace, tilts[: top + 1])
        total = log_sum(scores)
        if total == -np.inf:
            continue
        shares = np.exp(scores - total)
        expected(forest, state, shares, tilts[: top + 1], counting, workspace, row_ones, row_pairs)
        ones += mass[row] * row_ones
        pairs += mass[row] * row_pairs
        if counting:
            counts[n_ones : n_ones + top + 1] += mass[row] * shares
