"""Weighted urns with some variables known: the unknown ones form a smaller weighted urn.

`states` holds 0, 1 or −1 (unknown) for every row and variable, `members` the variables of the urn,
`table` log q(l) − log e_l(weights) for every count l of ones in the urn.
"""

import numpy as np

from exchangeable.families.urns.kernels import (
    expected_ones,
    fill_stage,
    log_polynomials,
    stage_starts,
)
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.vectors import log_sum

_compile = compiled()
_helper = for_kernels()
_compile_fast = compiled(fastmath={"reassoc", "contract"})


@_helper
def _split(state, members, log_weights, holes, weights):  # type: ignore[no-untyped-def]
    """List the unknown variables and their weights; return how many, the known ones, their term."""
    n_holes, n_ones, linear = 0, 0, 0.0
    for j in members:
        if state[j] == 1:
            n_ones += 1
            linear += log_weights[j]
        elif state[j] != 0:
            holes[n_holes] = j
            weights[n_holes] = np.exp(log_weights[j])
            n_holes += 1
    return n_holes, n_ones, linear


@_helper
def _count_scores(weights, n_ones, table):  # type: ignore[no-untyped-def]
    """Return log P(l of the unknown are on, the known) for all l, without the term of the known.

    Also returns the polynomials log e_l of the unknown, as far as they are needed.
    """
    last = weights.size  # impossible counts have no mass: their polynomials are not needed
    while last > 0 and table[n_ones + last] == -np.inf:
        last -= 1
    log_e = np.empty(last + 1)
    log_polynomials(weights, log_e)
    scores = np.full(weights.size + 1, -np.inf)
    scores[: last + 1] = log_e + table[n_ones : n_ones + last + 1]
    return scores, log_e


@_compile
def score_urn(states, members, log_weights, table, out):  # type: ignore[no-untyped-def]
    """Add log P(known entries) of every row to `out`."""
    holes = np.empty(members.size, dtype=np.int64)
    weights = np.empty(members.size)
    for row in range(states.shape[0]):
        n_holes, n_ones, linear = _split(states[row], members, log_weights, holes, weights)
        scores, _ = _count_scores(weights[:n_holes], n_ones, table)
        out[row] += linear + log_sum(scores)


@_compile
def marginals_urn(states, members, log_weights, table, out):  # type: ignore[no-untyped-def]
    """Write P(x_j = 1 | known entries) of every row for the unknown variables of the urn."""
    holes = np.empty(members.size, dtype=np.int64)
    weights = np.empty(members.size)
    expected = np.empty(members.size)
    for row in range(states.shape[0]):
        n_holes, n_ones, _ = _split(states[row], members, log_weights, holes, weights)
        if n_holes == 0:
            continue
        scores, log_e = _count_scores(weights[:n_holes], n_ones, table)
        total = log_sum(scores)
        if total == -np.inf:
            out[row, holes[:n_holes]] = 0.0
            continue
        shares = np.exp(scores - total)
        expected_ones(weights[:n_holes], shares, log_e, expected[:n_holes])
        for i in range(n_holes):
            out[row, holes[i]] = min(expected[i], 1.0)


@_compile
def complete_urn(states, ranked, log_weights, table, out):  # type: ignore[no-untyped-def]
    """Write the most probable completion of every row; add its score to `out`.

    Whatever their number, the heaviest are on: `ranked` lists the urn's variables by descending
    weight.
    """
    for row in range(states.shape[0]):
        state = states[row]
        n_ones, linear = 0, 0.0
        for j in ranked:
            if state[j] == 1:
                n_ones += 1
                linear += log_weights[j]
        best, best_score, gathered, taken = 0, linear + table[n_ones], linear, 0
        for j in ranked:
            if state[j] < 0:
                taken += 1
                gathered += log_weights[j]
                if gathered + table[n_ones + taken] > best_score:
                    best, best_score = taken, gathered + table[n_ones + taken]
        out[row] += best_score
        for j in ranked:
            if state[j] < 0:
                state[j] = 1 if best > 0 else 0
                best -= 1


@_compile
def draw_counts(state, members, log_weights, table, uniforms, out):  # type: ignore[no-untyped-def]
    """Write how many of a row's unknown variables are on, one draw for each uniform number."""
    holes = np.empty(members.size, dtype=np.int64)
    weights = np.empty(members.size)
    n_holes, n_ones, _ = _split(state, members, log_weights, holes, weights)
    scores, _ = _count_scores(weights[:n_holes], n_ones, table)
    total = log_sum(scores)
    shares = np.exp(scores - total) if total > -np.inf else np.full(n_holes + 1, 1.0)
    shares = np.cumsum(shares)
    for row in range(uniforms.size):
        drawn = np.searchsorted(shares, uniforms[row] * shares[-1], side="right")
        out[row] = min(drawn, n_holes)  # if the shares are NaN it is behind the last


@_compile_fast
def draw_members(weights, counts, uniforms, out):  # type: ignore[no-untyped-def]
    """Set which variables are on, given how many: out[row, j] from uniforms[row, j].

    Going down from the last variable, each is on with its probability given how many of it and
    those before it are still to be on. `counts` is modified.
    """
    n, high = weights.size, counts.max()
    starts, stage = stage_starts(weights, high)
    ratios = np.zeros((stage + 1, high + 1))
    for s in range(starts.shape[0] - 1, -1, -1):
        first = s * stage
        last = min(first + stage, n)
        fill_stage(weights, first, last, high, starts[s], ratios)
        for j in range(last - 1, first - 1, -1):
            for row in range(counts.size):
                count = counts[row]
                on = (
                    count > 0
                    and uniforms[row, j] * (ratios[j - first, count] + weights[j]) < weights[j]
                )
                out[row, j] = on
                counts[row] -= on


@_compile
def sums_urn(states, members, log_weights, table, mass, ones, histogram):  # type: ignore[no-untyped-def]
    """Add each row's mass to its variables and counts, with expectations for unknown ones.

    A row that is impossible under the urn adds only its known ones.
    """
    holes = np.empty(members.size, dtype=np.int64)
    weights = np.empty(members.size)
    expected = np.empty(members.size)
    for row in range(states.shape[0]):
        if mass[row] <= 0.0:
            continue
        n_holes, n_ones, _ = _split(states[row], members, log_weights, holes, weights)
        for j in members:
            if states[row, j] == 1:
                ones[j] += mass[row]
        if n_holes == 0:
            histogram[n_ones] += mass[row]
            continue
        scores, log_e = _count_scores(weights[:n_holes], n_ones, table)
        total = log_sum(scores)
        if total == -np.inf:
            continue
        shares = np.exp(scores - total)
        expected_ones(weights[:n_holes], shares, log_e, expected[:n_holes])
        for i in range(n_holes):
            ones[holes[i]] += mass[row] * expected[i]
        histogram[n_ones : n_ones + n_holes + 1] += mass[row] * shares
