"""Exact expectations for rows with missing entries: moments, and counts in blocks.

A missing entry is on with a probability that depends only on its block's state (see `hole_states`).
Moments of such rows, from which the sweep learns blocks, are sums of these probabilities. Counts in
new blocks are estimated from the rows' states: given the weight of the rows by state, the maximum
likelihood distribution of a block's count takes a few steps of EM, each with a few operations per
state and none per row.
"""

from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.blocks.bundles import Bundles
from exchangeable.families.blocks.holes.states import WIDEST, HoleStates
from exchangeable.families.blocks.row_counts import RowCounts
from exchangeable.families.common.moments import one_class_per_line
from exchangeable.families.common.tables import Tables
from exchangeable.partitions import log_factorials
from exchangeable.runtime.kernels.bits import popcount
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import copy, fill
from exchangeable.runtime.kernels.vectors import TILE, exponential
from exchangeable.runtime.threads import row_ranges, run

_compile = compiled()

CLASSES_TOGETHER = 5
"""Number of classes whose moments are summed by one call."""
STEPS = 4
"""Steps of EM in which the counts of new blocks converge."""


class BlocksOfAll(NamedTuple):
    """The blocks of all classes.

    Attributes
    ----------
    first_block : array of shape (n_classes + 1,)
        The blocks of class y are ``first_block[y]..first_block[y + 1] - 1``.
    labels : array of shape (n_classes, n_variables)
        The block of each variable, numbered in its class.
    """

    first_block: IntArray
    labels: IntArray


class Chances(NamedTuple):
    """The probability of a missing entry being on, for every block and number of its bundle.

    Attributes
    ----------
    bundle : array of shape (n_blocks,)
        The bundle of each block.
    starts : array of shape (n_blocks,)
        The start of the probabilities of each block.
    of_number : array
        P(a missing entry of the block is on | number of the bundle).
    """

    bundle: IntArray
    starts: IntArray
    of_number: FloatArray

    @classmethod
    def of(cls, states: HoleStates, bundles: Bundles) -> Self:
        """Return the chances, given the probabilities of states.

        The next state has one missing entry less and one known one more.
        """
        before, after = states.chances[:-1], states.chances[1:]
        of_state = np.zeros(states.chances.size)
        np.divide(after, before, out=of_state[:-1], where=before > 0.0)
        n_blocks = np.diff(bundles.first_block)
        in_order = np.repeat(np.arange(n_blocks.size), n_blocks)
        bundle, starts = np.empty((2, in_order.size), dtype=np.int64)
        bundle[bundles.order] = in_order
        ends = np.cumsum(np.diff(bundles.starts)[in_order])
        starts[bundles.order] = ends - np.diff(bundles.starts)[in_order]
        of_number = np.empty(ends[-1])
        _spread(states.tables.starts, of_state, bundles, starts, of_number)
        return cls(bundle, starts, of_number)


class MomentWorkspace(NamedTuple):
    """Workspace for the moments of some classes.

    Attributes
    ----------
    row : array of shape (TILE,)
        The rows of a tile that belong to a class.
    mass : array of shape (TILE, n_blocks)
        How much of each has a hole of each block on.
    by_value : array of shape (n_classes, n_bytes, 256, 2)
        Sums by the values of bytes.
    """

    row: IntArray
    mass: FloatArray
    by_value: FloatArray

    @classmethod
    def of(cls, n_classes: int, n_variables: int, n_blocks: int) -> Self:
        """Return the workspace for classes with up to this many blocks."""
        row, mass = np.empty(TILE, dtype=np.int64), np.empty((TILE, n_blocks))
        return cls(row, mass, np.zeros((n_classes, (n_variables + 7) // 8, 256, 2)))


def moments(
    counts: RowCounts, posterior: FloatArray, states: HoleStates, least: float, n_jobs: int | None
) -> FloatArray:
    """Return the moments of packed rows, as in `Sums`, with expectations for missing entries.

    Rows that belong to a class with probability at most `least` are left out of it.
    """
    by_class, examples = one_class_per_line(posterior), counts.counter.examples
    assert examples.holes is not None
    first_block = states.tables.first_block
    n_variables, n_classes = states.tables.labels.shape
    labels = states.tables.labels.T.astype(np.int64) - first_block[:-1, None]
    blocks = BlocksOfAll(first_block, np.ascontiguousarray(labels))
    sums = np.zeros((n_classes, n_variables, 2))
    chances = Chances.of(states, counts.counter.bundles)
    holes, packed = examples.holes.bits, examples.rows.bits.view(np.uint8)

    most_blocks = int(np.diff(first_block).max())

    def some(span: tuple[int, int]) -> None:
        workspace = MomentWorkspace.of(span[1] - span[0], n_variables, most_blocks)
        for piece in counts.pieces((0, examples.rows.n_rows)):
            _add_rows(
                piece,
                (holes, packed),
                examples.weights,
                (by_class, least),
                span,
                blocks,
                chances,
                workspace,
                sums,
            )
        _add_bytes(workspace.by_value, span[0], sums)

    run(some, row_ranges(n_classes, CLASSES_TOGETHER), n_jobs)
    return np.ascontiguousarray(sums.transpose(2, 1, 0))


@_compile
def _spread(first_state, of_state, bundles, starts, of_number):  # type: ignore[no-untyped-def]
    """Write the values for a block's states, for every number of its bundle."""
    order, first_block, first = bundles.order, bundles.first_block, bundles.starts
    for g in range(first_block.size - 1):
        below = 1  # numbers that differ only in the blocks before this one
        for i in range(first_block[g], first_block[g + 1]):
            b = order[i]
            end = first_state[b + 1] if b + 1 < order.size else of_state.size
            own, n_numbers = of_state[first_state[b] : end], first[g + 1] - first[g]
            out = of_number[starts[b] : starts[b] + n_numbers]
            for begin in range(0, n_numbers, below * own.size):
                for state in range(own.size):
                    for k in range(below):
                        out[begin + state * below + k] = own[state]
            below *= own.size


@_compile
def _add_rows(piece, rows, weights, shares, classes, blocks, chances, workspace, sums):  # type: ignore[no-untyped-def]
    """Add to sums[y, j] how much of a piece's rows has the hole j on, and that times the share.

    `rows` are the words of holes, and the bytes of ones; `shares` are the posteriors, and the least
    that counts. Ones are added eight variables at a time to the room's sums by values of bytes.
    """
    first, last, offset, numbers = piece
    bundle, starts, of_number = chances
    (holes, packed), (by_class, least) = rows, shares
    first_block, labels = blocks.first_block, blocks.labels
    row, mass, values = workspace
    nothing, unit = np.uint64(0), np.uint64(1)
    for y in range(classes[0], classes[1]):
        share, begin_block, by_value = by_class[y], first_block[y], values[y - classes[0]]
        n_blocks, of_class = first_block[y + 1] - begin_block, sums[y]
        for begin in range(first, last, TILE):
            n_rows = 0
            for r in range(begin, min(begin + TILE, last)):
                row[n_rows] = r
                n_rows += share[r] > least
            for b in range(n_blocks):
                start, of_bundle = starts[begin_block + b], numbers[bundle[begin_block + b]]
                for i in range(n_rows):
                    own = weights[row[i]] * share[row[i]]
                    mass[i, b] = own * of_number[start + of_bundle[row[i] - offset]]
            for i in range(n_rows):
                own = share[row[i]]
                for w in range(holes.shape[1]):
                    word = holes[row[i], w]
                    while word != nothing:
                        lowest = word & (~word + unit)
                        j = 64 * w + np.int64(popcount(lowest - unit))
                        add = mass[i, labels[y, j]]
                        of_class[j, 0] += add
                        of_class[j, 1] += add * own
                        word ^= lowest
                whole = weights[row[i]] * own
                for byte in range(by_value.shape[0]):
                    value = packed[row[i], byte]
                    by_value[byte, value, 0] += whole
                    by_value[byte, value, 1] += whole * own


@_compile
def _add_bytes(by_value, first, sums):  # type: ignore[no-untyped-def]
    """Add sums by the values of bytes to those of the variables, from the first class on."""
    for i in range(by_value.shape[0]):
        of_class = sums[first + i]
        for byte in range(by_value.shape[1]):
            for value in range(1, 256):
                whole, square = by_value[i, byte, value, 0], by_value[i, byte, value, 1]
                if whole == 0.0:
                    continue
                for bit in range(8):
                    if value >> bit & 1:
                        of_class[8 * byte + bit, 0] += whole
                        of_class[8 * byte + bit, 1] += square


def settled_counts(layout: Tables, states: Tables, by_state: FloatArray) -> FloatArray:
    """Return the weight of the rows by count in blocks with unknown parameters.

    `by_state` is their weight by state; both are laid out as the tables.
    """
    counts = np.zeros(layout.values.size)
    longest = int(np.diff(states.starts, append=states.values.size).max(initial=1))
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
