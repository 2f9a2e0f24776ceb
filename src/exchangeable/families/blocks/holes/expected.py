"""Exact expectations for rows with missing entries: moments, and counts in blocks.

A missing entry is on with a probability that depends only on its block's state (see `states`).
Moments of such rows, from which the sweep learns blocks, are sums of these probabilities. Counts in
new blocks are estimated from the rows' states: given the weight of the rows by state, the maximum
likelihood distribution of a block's count takes a few steps of EM, each with a few operations per
state and none per row.
"""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.blocks.holes.states import WIDEST, HoleStates, lengths_of
from exchangeable.families.blocks.row_counts import RowCounts
from exchangeable.families.common.moments import one_class_per_line
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import log_factorials
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import copy, fill, helper
from exchangeable.runtime.kernels.vectors import TILE, exponential
from exchangeable.runtime.threads import row_ranges, run

_compile = compiled()
_sums = for_kernels(fastmath={"reassoc"})
"""For sums that vector instructions may add up in another order."""

CLASSES_TOGETHER = 5
"""Number of classes whose moments are summed by one call."""
ROOM = 768
"""Number of rows of a class that are added at a time, at most: they stay in the nearest cache."""
STEPS = 4
"""Steps of EM in which the counts of new blocks converge."""


class Chances(NamedTuple):
    """The probability of a missing entry being on, for every state of every block.

    Attributes
    ----------
    starts, sizes : array of shape (n_blocks,)
        Start and number of the states of each block.
    of_state : array
        P(a missing entry of the block is on | state).
    """

    starts: IntArray
    sizes: IntArray
    of_state: FloatArray

    @classmethod
    def of(cls, states: HoleStates) -> Self:
        """Return the chances: the next state has one missing entry less and one known one more."""
        before, after = states.chances[:-1], states.chances[1:]
        of_state = np.zeros(states.chances.size)
        np.divide(after, before, out=of_state[:-1], where=before > 0.0)
        return cls(states.tables.starts, lengths_of(states.tables), of_state)


class Members(NamedTuple):
    """The variables of the blocks of all classes, one block after the other.

    Attributes
    ----------
    variable : array of shape (n_classes * n_variables,)
        The variables of all blocks.
    first : array of shape (n_blocks + 1,)
        The variables of block b are ``variable[first[b]:first[b + 1]]``.
    """

    variable: IntArray
    first: IntArray

    @classmethod
    def of(cls, tables: Tables) -> Self:
        """Return the variables of the blocks of tables."""
        block = tables.labels.T.ravel()
        order = np.argsort(block, kind="stable")
        first = np.zeros(tables.starts.size + 1, dtype=np.int64)
        np.cumsum(np.bincount(block, minlength=tables.starts.size), out=first[1:])
        return cls(order % tables.labels.shape[0], first)


class Chosen(NamedTuple):
    """Workspace for some rows that belong to a class.

    Attributes
    ----------
    row : array of shape (ROOM,)
        The rows.
    ones, holes : array of shape (n_words, ROOM)
        Their words of known ones, and of missing entries.
    share, whole, mass : array of shape (ROOM,)
        Their posteriors, these times their weights, and that times the probability of a missing
        entry of a block being on.
    number, digit : array of shape (ROOM,)
        Their numbers in a bundle without the digits that were taken off, and the last of these.
    """

    row: IntArray
    ones: npt.NDArray[np.uint64]
    holes: npt.NDArray[np.uint64]
    share: FloatArray
    whole: FloatArray
    mass: FloatArray
    number: FloatArray
    digit: npt.NDArray[np.int32]

    @classmethod
    def of(cls, n_words: int) -> Self:
        """Return the workspace for rows of so many words."""
        ones, holes = np.empty((2, n_words, ROOM), dtype=np.uint64)
        row, digit = np.empty(ROOM, dtype=np.int64), np.empty(ROOM, dtype=np.int32)
        share, whole, mass, number = np.empty((4, ROOM))
        return cls(row, ones, holes, share, whole, mass, number, digit)


def moments(
    counts: RowCounts, posterior: FloatArray, states: HoleStates, least: float, n_jobs: int | None
) -> FloatArray:
    """Return the moments of packed rows, as in `Sums`, with expectations for missing entries.

    Rows that belong to a class with probability at most `least` are left out of it.
    """
    by_class, examples = one_class_per_line(posterior), counts.counter.examples
    assert examples.holes is not None
    n_variables, n_classes = states.tables.labels.shape
    sums = np.zeros((n_classes, n_variables, 2))
    chances, members = Chances.of(states), Members.of(states.tables)
    words = examples.rows.bits, examples.holes.bits
    shares = examples.weights, by_class, least

    def some(span: tuple[int, int]) -> None:
        chosen, bundles = Chosen.of(words[0].shape[1]), counts.counter.bundles
        for piece in counts.pieces((0, examples.rows.n_rows)):
            _add_rows(piece, words, shares, span, bundles, chances, members, chosen, sums)

    run(some, row_ranges(n_classes, CLASSES_TOGETHER), n_jobs)
    return np.ascontiguousarray(sums.transpose(2, 1, 0))


@_compile
def _add_rows(piece, words, shares, classes, bundles, chances, members, chosen, sums):  # type: ignore[no-untyped-def]
    """Add to sums[y, j] how much of a piece's rows has the entry j on, and that times the share.

    `words` are those of known ones and of missing entries; `shares` are the weights of the rows,
    their posteriors, and the least that counts.
    """
    first, last = piece[0], piece[1]
    ones, holes = words
    weights, by_class, least = shares
    row = chosen.row
    for y in range(classes[0], classes[1]):
        share, n_rows = by_class[y], 0
        for begin in range(first, last, TILE):
            end = min(begin + TILE, last)
            for r in range(begin, end):
                row[n_rows] = r
                n_rows += share[r] > least
            if n_rows <= ROOM - TILE and end < last:
                continue
            for i in range(n_rows):
                chosen.share[i] = share[row[i]]
                chosen.whole[i] = weights[row[i]] * share[row[i]]
            for w in range(ones.shape[1]):
                for i in range(n_rows):
                    chosen.ones[w, i] = ones[row[i], w]
                    chosen.holes[w, i] = holes[row[i], w]
            _add_chosen(n_rows, piece, y, bundles, chances, members, chosen, sums[y])
            n_rows = 0


@helper
def _add_chosen(n_rows, piece, y, bundles, chances, members, chosen, sums):  # type: ignore[no-untyped-def]
    """Add the chosen rows to the sums of a class."""
    offset, numbers = piece[2], piece[3]
    order, first_bundle, first_block = bundles.order, bundles.first_bundle, bundles.first_block
    row, number, digit, mass = chosen.row, chosen.number, chosen.digit, chosen.mass
    for g in range(first_bundle[y], first_bundle[y + 1]):
        of_bundle = numbers[g]
        for i in range(n_rows):
            number[i] = of_bundle[row[i] - offset]
        for k in range(first_block[g], first_block[g + 1]):
            b = order[k]
            of_state, size = chances.of_state[chances.starts[b] :], np.float64(chances.sizes[b])
            part = 1.0 / size
            for i in range(n_rows):  # half more, so that rounding cannot change the whole part
                left = np.floor((number[i] + 0.5) * part)
                digit[i] = np.int32(number[i] - left * size)
                number[i] = left
            for i in range(n_rows):
                mass[i] = chosen.whole[i] * of_state[digit[i]]
            for m in range(members.first[b], members.first[b + 1]):
                j = members.variable[m]
                _add_variable(j, n_rows, chosen, sums[j])


@_sums
def _add_variable(j, n_rows, chosen, sums):  # type: ignore[no-untyped-def]
    """Add the chosen rows to the sums of a variable: all of a one, the mass of a hole."""
    whole, mass, share = chosen.whole, chosen.mass, chosen.share
    ones, holes, bit = chosen.ones[j >> 6], chosen.holes[j >> 6], np.uint64(1) << np.uint64(j & 63)
    once, squared, nothing = 0.0, 0.0, np.uint64(0)
    for i in range(n_rows):
        added = mass[i] if holes[i] & bit != nothing else 0.0
        added = whole[i] if ones[i] & bit != nothing else added
        once += added
        squared += added * share[i]
    sums[0] += once
    sums[1] += squared


def settled_counts(layout: Tables, states: Tables, by_state: FloatArray) -> FloatArray:
    """Return the weight of the rows by count in blocks with unknown parameters.

    `by_state` is their weight by state; both are laid out as the tables.
    """
    counts = np.zeros(layout.values.size)
    longest = int(lengths_of(states).max(initial=1))
    workspace = np.empty((3, longest))
    log_factorial = log_factorials(layout.labels.shape[0])
    _settle(layout.starts, states.starts, by_state, log_factorial, workspace, counts)
    return counts


@_compile
def _settle(starts, first_state, by_state, log_factorial, workspace, counts):  # type: ignore[no-untyped-def]
    """Fit the counts of every block by EM, starting from equal probabilities of all counts.

    `workspace` has three lines for the states of a block. If the probability of a state underflows,
    its missing entries are on as often as its known ones.
    """
    chances, ratio, mass = workspace[0], workspace[1], workspace[2]
    for b in range(starts.size):
        end = starts[b + 1] if b + 1 < starts.size else counts.size
        last = first_state[b + 1] if b + 1 < starts.size else by_state.size
        count, seen = counts[starts[b] : end], by_state[first_state[b] : last]
        total, size = 0.0, count.size - 1
        for state in range(seen.size):
            total += seen[state]
        if total <= 0.0:
            continue
        fill(count, 1.0)
        for _ in range(STEPS):
            line, before = 0, 0
            for n in range(size + 1):
                ways = log_factorial[size] - log_factorial[n] - log_factorial[size - n]
                chances[line + n] = count[n] * (exponential(-ways) if ways < WIDEST else 0.0)
                for c in range(n - 1, -1, -1):
                    chances[line + c] = chances[line + c + 1] + chances[before + c]
                before, line = line, line + n + 1
            copy(seen, mass[: seen.size])
            for n in range(size, -1, -1):
                line -= n + 1
                for c in range(n):
                    own = chances[line + c]
                    known = (c + 0.5) / (size - n + c + 1.0)
                    ratio[c] = chances[line + c + 1] / own if own > 0.0 else known
                for c in range(n):
                    moved = mass[line + c] * ratio[c]
                    mass[line + c + 1] += moved
                    mass[line - n + c] += mass[line + c] - moved
                count[n] = mass[line + n]
