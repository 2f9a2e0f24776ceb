"""Inner loops of queries for one class about rows with missing entries.

Rows are `HoledRows`, tables `HoleTables` with one class.
"""

from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.row_kernels import ones_of
from exchangeable.families.blocks.holes.counters import count_row, forget_row
from exchangeable.families.blocks.holes.kernels import (
    NEGLIGIBLE,
    highest_weight,
    pair_slot,
    remember,
)
from exchangeable.families.blocks.holes.states import n_states
from exchangeable.runtime.kernels.bits import popcount
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import copy, fill, inlined, total
from exchangeable.runtime.kernels.vectors import exponential

_compile = compiled()

MOST_STEPS = 1 << 18
"""Maximum number of cached steps of distributions for draws; others are computed each time."""


class DrawWorkspace(NamedTuple):
    """Workspace for draws of one class, and a cache of the distributions of counts.

    Attributes
    ----------
    wanted, remaining : arrays of shape (n_blocks,)
        Remaining numbers of hidden ones and of missing entries.
    first_state : array of shape (n_blocks,)
        The number of each block's first state (see `holes.states`).
    first_step : array of shape (n_states,)
        The start of the steps of each state in `kept`, −1 if they are not there.
    kept : array
        The steps of the distribution functions of hidden ones, as written by `_write_steps`; the
        last ``n_variables + 4`` entries are for those that are not cached.
    n_kept : array of shape (2,)
        The used and the available size of `kept`.
    """

    wanted: IntArray
    remaining: IntArray
    first_state: IntArray
    first_step: IntArray
    kept: FloatArray
    n_kept: IntArray

    @classmethod
    def of(cls, sizes: IntArray) -> Self:
        """Return the workspace for blocks of these sizes."""
        wanted, remaining = np.zeros((2, sizes.size), dtype=np.int64)
        ends = np.cumsum(n_states(sizes))
        first_state = ends - n_states(sizes)
        if ends[-1] > MOST_STEPS:
            first_state, ends = np.full(sizes.size, -1), np.zeros(1, dtype=np.int64)
        most = min(MOST_STEPS, int((sizes + 4) @ n_states(sizes)))
        return cls(
            wanted,
            remaining,
            first_state,
            np.full(ends[-1], -1),
            np.empty(most + int(sizes.sum()) + 4),
            np.array([0, most]),
        )


# Rows that are written contain their known entries already.
@inlined
def write_chances(rows, row, chance, buffer, out):  # type: ignore[no-untyped-def]
    """Write into every missing entry of a row the probability of its block to be on."""
    holes = ones_of(rows.holes, row, buffer)
    for k in range(holes.size):
        out[holes[k]] = chance[rows.labels[holes[k], 0]]


@inlined
def write_first(rows, row, wanted, buffer, out):  # type: ignore[no-untyped-def]
    """Fill in the holes of a row with the wanted number of ones per block, first entries on."""
    holes = ones_of(rows.holes, row, buffer)
    for k in range(holes.size):
        b = rows.labels[holes[k], 0]
        out[holes[k]] = wanted[b] > 0
        wanted[b] -= 1


@inlined
def write_drawn(rows, row, wanted, remaining, uniform, buffer, out):  # type: ignore[no-untyped-def]
    """Fill in the missing entries of a row with the wanted number of ones per block, at random."""
    holes = ones_of(rows.holes, row, buffer)
    for k in range(holes.size):
        j = holes[k]
        b = rows.labels[j, 0]
        if uniform[j] * remaining[b] < wanted[b]:
            wanted[b] -= 1
            out[j] = 1
        remaining[b] -= 1


@inlined
def pick(shares, uniform):  # type: ignore[no-untyped-def]
    """Return the index selected by a uniform number, in proportion to the shares."""
    rest, last = uniform * total(shares), 0
    for i in range(shares.size):
        if shares[i] > 0.0:
            last = i
            rest -= shares[i]
            if rest < 0.0:
                return i
    return last


@_compile
def hidden_chances(rows, tables, counters, memo, chance, out):  # type: ignore[no-untyped-def]
    """Write P(x_j = 1 | e) into the missing entries of every row, for one class.

    `chance` is workspace for a number per block.
    """
    starts, entry, hidden, touched, buffer = counters
    keys, _, means, _, _, offsets = memo
    sizes, n_entries = tables.sizes, tables.values.size
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        for i in range(n_touched):
            b = touched[i]
            if hidden[b] > 0:
                key, count = entry[b] + hidden[b] * n_entries, entry[b] - starts[b]
                slot = pair_slot(key, hidden[b], count, offsets[b], sizes[b], keys.size)
                if keys[slot] != key:
                    remember(slot, key, tables, memo)
                chance[b] = means[slot] / hidden[b]
        forget_row(n_touched, counters)
        write_chances(rows, row, chance, buffer, out[row])


@_compile
def complete_rows(rows, tables, counters, wanted, out, score):  # type: ignore[no-untyped-def]
    """Write the most probable completion of every row for one class, and its log-probability.

    In a block all completions with the same number of ones are equally likely; the first entries
    are on. `wanted` is workspace for a number per block.
    """
    table, entry, hidden = tables.values, counters.entry, counters.hidden
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        score[row] = 0.0
        for b in range(entry.size):
            wanted[b] = 0
            for s in range(1, hidden[b] + 1):
                if table[entry[b] + s] > table[entry[b] + wanted[b]]:
                    wanted[b] = s
            score[row] += table[entry[b] + wanted[b]]
        forget_row(n_touched, counters)
        write_first(rows, row, wanted, counters.buffer, out[row])


@_compile
def draw_rows(rows, tables, counters, workspace, of_block, of_entry, out):  # type: ignore[no-untyped-def]
    """Fill in the missing entries of every row at random for one class, by uniform numbers.

    ``of_block[row, b]`` chooses the number of hidden ones of a block, ``of_entry[row, j]`` whether
    the next missing entry is one of them. `workspace` is `DrawWorkspace`.
    """
    starts, entry, hidden, touched, buffer = counters
    wanted, remaining, first_state, first_step, kept, _ = workspace
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        for i in range(n_touched):
            b = touched[i]
            holes = hidden[b]
            remaining[b] = holes
            if holes > 0:
                state = _state(first_state[b], entry[b] - starts[b], holes)
                begin = first_step[state] if state >= 0 else -1
                if begin < 0:
                    begin = _write_steps(tables, entry[b], holes, state, workspace)
                wanted[b] = _count_steps(kept, begin, holes, of_block[row, b])
        forget_row(n_touched, counters)
        write_drawn(rows, row, wanted, remaining, of_entry[row], buffer, out[row])


@_compile
def draw_bits(rows, span, tables, counters, workspace, of_block, of_entry, out):  # type: ignore[no-untyped-def]
    """Do the same for packed rows and blocks with masks, and pack the completions of a span."""
    ones, unknown, masks, labels = rows.ones.bits, rows.holes.bits, rows.masks, rows.labels
    starts, entry, hidden, _, _ = counters
    wanted, _, first_state, first_step, kept, _ = workspace
    nothing, unit = np.uint64(0), np.uint64(1)
    # Rows are not taken out of their arrays: reference counting would cost more than the draws.
    for row in range(span[0], span[1]):
        r = row - span[0]
        copy(starts, entry)
        fill(hidden, 0)
        for w in range(masks.shape[0]):
            known, holes_there = ones[row, w], unknown[row, w]
            for b in range(hidden.size):
                entry[b] += np.int64(popcount(known & masks[w, b]))
                hidden[b] += np.int64(popcount(holes_there & masks[w, b]))
        for b in range(hidden.size):
            holes = hidden[b]
            if holes > 0:
                state = _state(first_state[b], entry[b] - starts[b], holes)
                begin = first_step[state] if state >= 0 else -1
                if begin < 0:
                    begin = _write_steps(tables, entry[b], holes, state, workspace)
                wanted[b] = _count_steps(kept, begin, holes, of_block[r, b])
        for w in range(out.shape[1]):
            word, drawn = unknown[row, w], ones[row, w]
            while word != nothing:
                lowest = word & (~word + unit)
                j = 64 * w + np.int64(popcount(lowest - unit))
                b = labels[j, 0]
                on = of_entry[r, j] * hidden[b] < wanted[b]
                drawn |= lowest if on else nothing
                wanted[b] -= on
                hidden[b] -= 1
                word ^= lowest
            out[row, w] = drawn
    copy(starts, entry)
    fill(hidden, 0)


@inlined
def _state(first_state, count, holes):  # type: ignore[no-untyped-def]
    """Return the number of a block's state, −1 if states are not numbered."""
    at_most = count + holes
    return first_state + at_most * (at_most + 1) // 2 + count if first_state >= 0 else -1


@_compile
def _write_steps(tables, entry, holes, state, workspace):  # type: ignore[no-untyped-def]
    """Write P(hidden ones ≤ s) for s < holes, and 2 if there cannot be more than s.

    Steps are written by fours, so that counting them has few branches; those left over are 2. They
    are cached for their state while there is space. Returns their start.
    """
    table, log_factorial, kept = tables.values, tables.log_factorial, workspace.kept
    size, n_kept = (holes + 3) // 4 * 4, workspace.n_kept
    begin = n_kept[1]
    if state >= 0 and n_kept[0] + size <= n_kept[1]:
        begin = n_kept[0]
        workspace.first_step[state] = begin
        n_kept[0] += size
    highest = highest_weight(table, entry, holes, log_factorial)
    total, most = 0.0, 0
    for s in range(holes + 1):
        share = 0.0
        if highest > -np.inf:
            term = table[entry + s] - log_factorial[s] - log_factorial[holes - s] - highest
            share = exponential(term) if term > -NEGLIGIBLE else 0.0
        total += share
        most = s if share > 0.0 else most
        if s < holes:
            kept[begin + s] = total
    for s in range(size):
        kept[begin + s] = kept[begin + s] / total if s < most else 2.0
    return begin


@inlined
def _count_steps(steps, begin, holes, uniform):  # type: ignore[no-untyped-def]
    """Return the number of hidden ones selected by a uniform number."""
    count = 0
    for s in range(begin, begin + holes, 4):
        # NumPy's truth values do not add up, which matters without the compiler.
        low = int(uniform >= steps[s]) + int(uniform >= steps[s + 1])
        count += low + int(uniform >= steps[s + 2]) + int(uniform >= steps[s + 3])
    return count
