"""Inner loops that answer for one class about rows with holes: marginals, completions, draws.

Rows are `HoledRows`, tables `HoleTables` with one class.
"""

from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.row_kernels import ones_of
from exchangeable.families.blocks.hole_counters import count_row, forget_row
from exchangeable.families.blocks.hole_kernels import (
    NEGLIGIBLE,
    highest_weight,
    pair_slot,
    remember,
)
from exchangeable.runtime.kernel_cache import compiled
from exchangeable.runtime.loops import fill, helper, inlined, total
from exchangeable.runtime.vectors import exponential

_compile = compiled()


class DrawRoom(NamedTuple):
    """Room for the numbers of hidden ones and of holes left per block, and for shares of counts."""

    wanted: IntArray
    remaining: IntArray
    shares: FloatArray

    @classmethod
    def of(cls, n_blocks: int, n_variables: int) -> Self:
        """Return room for one class."""
        wanted, remaining = np.zeros((2, n_blocks), dtype=np.int64)
        return cls(wanted, remaining, np.empty(n_variables + 1))


@helper
def _write_known(rows, row, buffer, out):  # type: ignore[no-untyped-def]
    """Write the known ones of a row, and zeros elsewhere."""
    fill(out, 0)
    ones = ones_of(rows.ones, row, buffer)
    for k in range(ones.size):
        out[ones[k]] = 1


@inlined
def write_chances(rows, row, chance, buffer, out):  # type: ignore[no-untyped-def]
    """Write a row in which every hole has the probability of its block to be on."""
    _write_known(rows, row, buffer, out)
    holes = ones_of(rows.holes, row, buffer)
    for k in range(holes.size):
        out[holes[k]] = chance[rows.labels[holes[k], 0]]


@inlined
def write_first(rows, row, wanted, buffer, out):  # type: ignore[no-untyped-def]
    """Write a row whose blocks have this many hidden ones, the first holes being on."""
    _write_known(rows, row, buffer, out)
    holes = ones_of(rows.holes, row, buffer)
    for k in range(holes.size):
        b = rows.labels[holes[k], 0]
        out[holes[k]] = wanted[b] > 0
        wanted[b] -= 1


@inlined
def write_drawn(rows, row, wanted, remaining, uniform, buffer, out):  # type: ignore[no-untyped-def]
    """Write a row whose blocks have this many hidden ones among the remaining holes, drawn."""
    _write_known(rows, row, buffer, out)
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
    """Return the index that a uniform number stands for, in proportion to the shares."""
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
    """Write P(x_j = 1 | e) of every variable of every row, for one class.

    `chance` is room for a number per block.
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

    In a block all completions with the same number of ones are equally likely; the first are on.
    `wanted` is room for a number per block.
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
def draw_rows(rows, tables, counters, room, of_block, of_entry, out):  # type: ignore[no-untyped-def]
    """Write a random completion of every row for one class, made of uniform numbers.

    ``of_block[row, b]`` chooses the number of hidden ones of a block, ``of_entry[row, j]`` whether
    the next hole is one of them. `room` is `DrawRoom`.
    """
    table, log_factorial = tables.values, tables.log_factorial
    entry, hidden, touched = counters.entry, counters.hidden, counters.touched
    wanted, remaining, shares = room
    for row in range(out.shape[0]):
        n_touched = count_row(rows, row, counters)
        for i in range(n_touched):
            b = touched[i]
            remaining[b] = hidden[b]
            if hidden[b] > 0:
                uniform = of_block[row, b]
                wanted[b] = _draw_count(table, entry[b], hidden[b], log_factorial, uniform, shares)
        forget_row(n_touched, counters)
        write_drawn(rows, row, wanted, remaining, of_entry[row], counters.buffer, out[row])


@helper
def _draw_count(table, entry, holes, log_factorial, uniform, shares):  # type: ignore[no-untyped-def]
    """Return the number of hidden ones that a uniform number stands for."""
    highest = highest_weight(table, entry, holes, log_factorial)
    if highest == -np.inf:
        return 0
    for s in range(holes + 1):
        term = table[entry + s] - log_factorial[s] - log_factorial[holes - s] - highest
        shares[s] = exponential(term) if term > -NEGLIGIBLE else 0.0
    return pick(shares[: holes + 1], uniform)
