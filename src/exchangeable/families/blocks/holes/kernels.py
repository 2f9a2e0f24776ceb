"""Inner loops over rows with missing entries: sums over hidden ones, scores and the E-step.

In a block of m variables of which h are unknown and c are known to be on, the number s of hidden
ones has weight C(h, s)·exp(table[c + s]): P = Σ_t q(t)·C(m − o, t − c)/C(m, t) with o = m − h. Such
a sum is identified by an entry of the table and a number of unknown variables; each is computed
once and memoised.
"""

from typing import NamedTuple, Self

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.row_kernels import ones_of
from exchangeable.families.blocks.holes.counters import Counters, HoledRows, count_row, forget_row
from exchangeable.families.common.posteriors import settle_row
from exchangeable.runtime.kernels.bits import wrapping_product
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import copy, inlined
from exchangeable.runtime.kernels.vectors import exponential

_compile = compiled()
_helper = for_kernels()
_compile_no_nan = for_kernels(fastmath={"nnan", "nsz"})

LARGEST_MEMO = 1 << 17
"""The memo holds this many sums. If there can be more, a pair may displace another one."""
NEGLIGIBLE = 37.0
"""Terms smaller than the largest by this much, in logarithms, are lost in rounding."""


class HoleTables(NamedTuple):
    """The tables of all classes in the form of the kernels for rows with missing entries.

    Attributes
    ----------
    first_block : array of shape (n_classes + 1,)
        The blocks of class y are ``first_block[y]..first_block[y + 1] - 1``.
    starts, sizes : arrays of shape (n_blocks,)
        The start of each block's entries, and its number of variables.
    values : array
        log q(l) − log C(m, l) for every block and count.
    log_factorial : array
        ln l! for l up to the number of variables.
    """

    first_block: IntArray
    starts: IntArray
    sizes: IntArray
    values: FloatArray
    log_factorial: FloatArray


class Memo(NamedTuple):
    """Sums over hidden ones that have been computed.

    Attributes
    ----------
    keys : array of shape (n_slots,)
        The pair of entry and number of unknown variables in each slot, −1 for none.
    values, means : arrays of shape (n_slots,)
        The logarithm of the pair's sum, and its expected number of hidden ones.
    waiting, owner : arrays of shape (n_slots,)
        Mass of rows still to be added to a histogram, and the key of its pair.
    offsets : array of shape (n_blocks,)
        The first slot of each block's pairs, −1 if pairs share slots.
    """

    keys: IntArray
    values: FloatArray
    means: FloatArray
    waiting: FloatArray
    owner: IntArray
    offsets: IntArray

    @classmethod
    def of(cls, n_rows: int, sizes: IntArray) -> Self:
        """Return an empty memo for this many rows and blocks of these sizes."""
        ends = np.cumsum((sizes + 1) ** 2)
        offsets, size = ends - (sizes + 1) ** 2, int(ends[-1])
        if size > LARGEST_MEMO:
            offsets, size = np.full(sizes.size, -1), 64
            while size < 2 * n_rows * sizes.size and size < LARGEST_MEMO:
                size *= 2
        keys, owner = np.full((2, size), -1)
        return cls(keys, np.empty(size), np.empty(size), np.zeros(size), owner, offsets)


class HoleScores(NamedTuple):
    """State that is kept from row to row when scoring rows with missing entries.

    Attributes
    ----------
    counters : Counters
        For the current row.
    memo : Memo
        Sums over hidden ones.
    class_of : array of shape (n_blocks,)
        The class of each block.
    base, forbidden : arrays of shape (n_classes,)
        Each class's score of a row of known zeros, and the number of blocks that exclude it.
    missing : array of shape (n_classes,)
        The number of blocks that exclude the current row.
    """

    counters: Counters
    memo: Memo
    class_of: IntArray
    base: FloatArray
    forbidden: IntArray
    missing: IntArray

    @classmethod
    def of(cls, rows: HoledRows, n_rows: int, tables: HoleTables) -> Self:
        """Return the state for scoring this many rows."""
        lengths = np.diff(tables.first_block)
        class_of = np.repeat(np.arange(lengths.size), lengths)
        zero = tables.values[tables.starts]
        impossible = zero == -np.inf
        forbidden = np.bincount(class_of[impossible], minlength=lengths.size)
        possible = np.where(impossible, 0.0, zero)
        base = np.bincount(class_of, possible, minlength=lengths.size).astype(np.float64)
        counters, memo = Counters.of(rows, tables.starts), Memo.of(n_rows, tables.sizes)
        return cls(counters, memo, class_of, base, forbidden, np.empty(lengths.size, np.int64))


@_compile_no_nan
def highest_weight(table, entry, holes, log_factorial):  # type: ignore[no-untyped-def]
    """Return the largest log-weight of a number of hidden ones, leaving out log h!."""
    highest = -np.inf
    for s in range(holes + 1):
        term = table[entry + s] - log_factorial[s] - log_factorial[holes - s]
        highest = max(highest, term)
    return highest


@_helper
def hidden_ones(table, entry, holes, log_factorial):  # type: ignore[no-untyped-def]
    """Return the log of the sum over the hidden ones, and their expected number."""
    highest = highest_weight(table, entry, holes, log_factorial)
    if highest == -np.inf:
        return -np.inf, 0.0
    total, ones = 0.0, 0.0
    for s in range(holes + 1):
        term = table[entry + s] - log_factorial[s] - log_factorial[holes - s] - highest
        if term > -NEGLIGIBLE:
            share = exponential(term)
            total += share
            ones += s * share
    return highest + np.log(total) + log_factorial[holes], ones / total


@inlined
def pair_slot(key, holes, count, offset, size, n_slots):  # type: ignore[no-untyped-def]
    """Return the slot of a pair: its own (`offset` ≥ 0), or one that it may share."""
    if offset >= 0:
        return offset + holes * (size + 1) + count
    mixed = wrapping_product(np.uint64(key), np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return np.int64(mixed) & (n_slots - 1)


@_helper
def remember(slot, key, tables, memo):  # type: ignore[no-untyped-def]
    """Compute the sum of a key, and put it into a slot."""
    entry, holes = key % tables.values.size, key // tables.values.size
    value, mean = hidden_ones(tables.values, entry, holes, tables.log_factorial)
    memo.keys[slot] = key
    memo.values[slot] = value
    memo.means[slot] = mean


# The loops over blocks are short: taking an array out of its tuple there would cost more than they
# do. So arrays are taken out before, and the functions are inlined.
@inlined
def _add_scores(n_touched, counters, class_of, tables, memo, joint, missing):  # type: ignore[no-untyped-def]
    """Add the difference of blocks' scores from those without ones and missing entries."""
    starts, entry, hidden, touched, _ = counters
    _, _, sizes, table, _ = tables
    keys, values, _, _, _, offsets = memo
    for i in range(n_touched):
        b = touched[i]
        if hidden[b] == 0:
            if entry[b] == starts[b]:
                continue
            value = table[entry[b]]
        elif hidden[b] == sizes[b]:
            value = 0.0
        else:
            key, count = entry[b] + hidden[b] * table.size, entry[b] - starts[b]
            slot = pair_slot(key, hidden[b], count, offsets[b], sizes[b], keys.size)
            if keys[slot] != key:
                remember(slot, key, tables, memo)
            value = values[slot]
        zero = table[starts[b]]
        if zero == -np.inf:
            missing[class_of[b]] -= 1
            zero = 0.0
        joint[class_of[b]] += value - zero


@inlined
def _add_counts(n_touched, counters, class_of, tables, memo, mass, histogram):  # type: ignore[no-untyped-def]
    """Move the row's mass from the counts of zero to the expected counts."""
    starts, entry, hidden, touched, _ = counters
    _, _, sizes, table, _ = tables
    keys, _, _, waiting, owner, offsets = memo
    for i in range(n_touched):
        b = touched[i]
        share = mass[class_of[b]]
        if share <= 0.0:
            continue
        histogram[starts[b]] -= share
        if hidden[b] == 0:
            histogram[entry[b]] += share
            continue
        key, count = entry[b] + hidden[b] * table.size, entry[b] - starts[b]
        slot = pair_slot(key, hidden[b], count, offsets[b], sizes[b], keys.size)
        if keys[slot] != key:
            remember(slot, key, tables, memo)
        if owner[slot] != key:
            _spread(owner[slot], waiting[slot], tables, histogram)
            owner[slot], waiting[slot] = key, 0.0
        waiting[slot] += share


@_helper
def _spread(key, mass, tables, histogram):  # type: ignore[no-untyped-def]
    """Add mass to a block's histogram in proportion to the hidden counts' probabilities."""
    if key < 0 or mass <= 0.0:
        return
    table, log_factorial = tables.values, tables.log_factorial
    entry, holes = key % table.size, key // table.size
    value = hidden_ones(table, entry, holes, log_factorial)[0]
    for s in range(holes + 1):
        term = table[entry + s] - log_factorial[s] - log_factorial[holes - s]
        if term > -np.inf and value > -np.inf:
            histogram[entry + s] += mass * np.exp(term + log_factorial[holes] - value)


@inlined
def _score_row(rows, row, counters, memo, class_of, zeros, missing, tables, joint):  # type: ignore[no-untyped-def]
    """Write a row's log P(e | y), and return the number of touched blocks.

    `zeros` are the scores of a row of known zeros, and the number of blocks that exclude it.
    """
    base, forbidden = zeros
    n_touched = count_row(rows, row, counters)
    for y in range(base.size):
        joint[y], missing[y] = base[y], forbidden[y]
    _add_scores(n_touched, counters, class_of, tables, memo, joint, missing)
    for y in range(base.size):
        if missing[y] > 0:
            joint[y] = -np.inf
    return n_touched


@_compile
def score_with_holes(rows, first, last, tables, scores, out):  # type: ignore[no-untyped-def]
    """Write log P(e | y) of some rows; `scores` are `HoleScores`."""
    counters, memo, class_of, base, forbidden, missing = scores
    zeros = (base, forbidden)
    for row in range(first, last):
        n_touched = _score_row(
            rows, row, counters, memo, class_of, zeros, missing, tables, out[row]
        )
        forget_row(n_touched, counters)


@_compile
def expect_with_holes(rows, first, last, tables, priors, scores, posterior, mass, histogram):  # type: ignore[no-untyped-def]
    """Return the log-likelihood of some rows; write posteriors, add expected histograms.

    The `priors` are `RowPriors`, `scores` are `HoleScores`; `mass` is workspace for a number per
    class.
    """
    counters, memo, class_of, base, forbidden, missing = scores
    zeros = (base, forbidden)
    weights, clamp, log_prior = priors.weights, priors.clamp, priors.log_prior
    log_likelihood = 0.0
    for row in range(first, last):
        joint = posterior[row]
        n_touched = _score_row(rows, row, counters, memo, class_of, zeros, missing, tables, joint)
        for y in range(joint.size):
            joint[y] += log_prior[y]
        known = clamp[row] if clamp.size else -1
        log_likelihood += weights[row] * settle_row(joint, log_prior, known)
        for y in range(joint.size):
            mass[y] = weights[row] * joint[y]
        _add_counts(n_touched, counters, class_of, tables, memo, mass, histogram)
        forget_row(n_touched, counters)
    for slot in range(memo.keys.size):
        _spread(memo.owner[slot], memo.waiting[slot], tables, histogram)
    return log_likelihood


@_compile
def score_singles(rows, first, last, base, on, hole, out):  # type: ignore[no-untyped-def]
    """Write scores where every variable is a block: base + Σ on[j] over ones + Σ hole[j]."""
    n_variables, n_classes = on.shape
    buffer = np.empty(n_variables, dtype=np.int32)
    for row in range(first, last):
        score = out[row]
        copy(base, score)
        ones = ones_of(rows.ones, row, buffer)
        for k in range(ones.size):
            add = on[ones[k]]
            for y in range(n_classes):
                score[y] += add[y]
        holes = ones_of(rows.holes, row, buffer)
        for k in range(holes.size):
            add = hole[holes[k]]
            for y in range(n_classes):
                score[y] += add[y]
