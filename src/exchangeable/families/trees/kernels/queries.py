"""Forests with some of their variables known: scores, marginals and sums.

`states` holds 0, 1 or −1 (unknown) for every row and node, in the order of the nodes. `table` is
log q(l) minus the logarithm of the forest's coefficient for every number of ones l, or without a
count (`counting` false) only the score of the empty row. `forest` is a `polynomials.Forest`,
`workspace` a `Workspace`.
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.trees.kernels.tilts import expected, log_coefficients
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.vectors import log_sum

_compile = compiled()
_helper = for_kernels()


class RowSums(NamedTuple):
    """The sums to which `sums_rows` adds.

    Attributes
    ----------
    ones, pairs : arrays of shape (n,)
        The mass with each node on, and with it and its parent on.
    counts : array of shape (n + 1,)
        The mass with each number of ones; not written without a count.
    """

    ones: FloatArray
    pairs: FloatArray
    counts: FloatArray


@_helper
def count_scores(forest, state, table, counting, workspace, tilts):  # type: ignore[no-untyped-def]
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
def score_rows(states, forest, table, counting, out, workspace):  # type: ignore[no-untyped-def]
    """Write log P(known entries) of every row; states are in the order of the nodes."""
    n = forest.parent.size
    tilts = np.empty(n + 1)
    for row in range(states.shape[0]):
        state = states[row]
        top = (state < 0).sum() if counting else 0
        scores = count_scores(forest, state, table, counting, workspace, tilts[: top + 1])
        out[row] = log_sum(scores)


@_compile
def marginal_rows(states, forest, table, counting, out, workspace):  # type: ignore[no-untyped-def]
    """Write P(x = 1 | known entries) of every row and node."""
    n = forest.parent.size
    tilts = np.empty(n + 1)
    ones, pairs = np.empty(n), np.empty(n)
    for row in range(states.shape[0]):
        state = states[row]
        top = (state < 0).sum() if counting else 0
        scores = count_scores(forest, state, table, counting, workspace, tilts[: top + 1])
        total = log_sum(scores)
        if total == -np.inf:
            for v in range(n):
                out[row, v] = 1.0 if state[v] == 1 else 0.0
            continue
        mass = np.exp(scores - total)
        expected(forest, state, mass, tilts[: top + 1], counting, workspace, ones, pairs)
        for v in range(n):
            out[row, v] = min(ones[v], 1.0) if state[v] < 0 else state[v]


@_compile
def sums_rows(states, forest, table, counting, mass, sums, workspace):  # type: ignore[no-untyped-def]
    """Add each row's mass to its nodes, pairs and counts, with expectations for unknown ones.

    A row that is impossible under the model adds nothing.
    """
    ones, pairs, counts = sums.ones, sums.pairs, sums.counts
    n = forest.parent.size
    tilts = np.empty(n + 1)
    row_ones, row_pairs = np.empty(n), np.empty(n)
    for row in range(states.shape[0]):
        if mass[row] <= 0.0:
            continue
        state = states[row]
        n_ones = (state == 1).sum()
        top = (state < 0).sum() if counting else 0
        scores = count_scores(forest, state, table, counting, workspace, tilts[: top + 1])
        total = log_sum(scores)
        if total == -np.inf:
            continue
        shares = np.exp(scores - total)
        expected(forest, state, shares, tilts[: top + 1], counting, workspace, row_ones, row_pairs)
        ones += mass[row] * row_ones
        pairs += mass[row] * row_pairs
        if counting:
            counts[n_ones : n_ones + top + 1] += mass[row] * shares
