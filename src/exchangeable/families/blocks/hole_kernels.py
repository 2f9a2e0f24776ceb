"""The inner loops over rows with holes.

In a block of m variables of which h are not known and c are known to be on, the number s of hidden
ones has weight C(h, s)·exp(table[c + s]): P = Σ_t q(t)·C(m − o, t − c)/C(m, t) with o = m − h. A
place in `table` and a number of holes name such a sum; each is computed once and remembered.

Rows come as a pair of (bits, indptr, indices) for the known ones and another for the holes. Where
`masks` is not empty blocks are counted by popcount, otherwise by walking ones and holes.
"""

import numpy as np
from numba import njit

from exchangeable.data.row_kernels import ones_of
from exchangeable.families.common.posteriors import settle_row
from exchangeable.runtime.bits import popcount
from exchangeable.runtime.vectors import exponential

_compile = njit(cache=True, nogil=True, error_model="numpy")
_compile_no_nan = njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})

LARGEST_MEMO = 1 << 17
"""The memo holds so many sums. If there can be more, a pair may drive another one out."""
NEGLIGIBLE = 37.0
"""Terms smaller than the largest by this much, in logarithms, are lost in rounding."""


@_compile_no_nan
def highest_weight(table, place, holes, log_factorial):  # type: ignore[no-untyped-def]
    """Return the largest log-weight of a number of hidden ones, but for log h!."""
    highest = -np.inf
    for s in range(holes + 1):
        term = table[place + s] - log_factorial[s] - log_factorial[holes - s]
        highest = max(highest, term)
    return highest


@_compile
def hidden_ones(table, place, holes, log_factorial):  # type: ignore[no-untyped-def]
    """Return the log of the sum over the hidden ones, and their expected number."""
    highest = highest_weight(table, place, holes, log_factorial)
    if highest == -np.inf:
        return -np.inf, 0.0
    total, ones = 0.0, 0.0
    for s in range(holes + 1):
        term = table[place + s] - log_factorial[s] - log_factorial[holes - s] - highest
        if term > -NEGLIGIBLE:
            share = exponential(term)
            total += share
            ones += s * share
    return highest + np.log(total) + log_factorial[holes], ones / total


@_compile
def new_memo(n_rows, sizes):  # type: ignore[no-untyped-def]
    """Return an empty memo: keys, and what is known of the pair with that key.

    Two of its arrays hold what rows with a pair weigh together, and whose weight that is; the last
    says where each block's pairs stand, −1 if they have no places of their own.
    """
    offsets = np.zeros(sizes.size, dtype=np.int64)
    size = np.int64(0)
    for b in range(sizes.size):
        offsets[b] = size
        size += (sizes[b] + 1) ** 2
    if size > LARGEST_MEMO:
        offsets[:] = -1
        size = np.int64(64)
        while size < 2 * n_rows * sizes.size and size < LARGEST_MEMO:
            size *= 2
    keys, owner = np.full(size, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    return keys, np.empty(size), np.empty(size), np.zeros(size), owner, offsets


@_compile
def pair_slot(key, holes, at, offset, size, n_slots):  # type: ignore[no-untyped-def]
    """Return the place of a pair in the memo: its own (`offset` ≥ 0), or one it may share."""
    if offset >= 0:
        return offset + holes * (size + 1) + at
    mixed = (np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
    return np.int64(mixed) & (n_slots - 1)


@_compile
def _touch(listed, labels, starts, place, hidden, blocks, n_touched, on):  # type: ignore[no-untyped-def]
    """Count some variables, ones or holes, and list the blocks that have any."""
    for at in range(listed.size):
        block = labels[listed[at]]
        for y in range(block.size):
            b = block[y]
            if place[b] == starts[b] and hidden[b] == 0:
                blocks[n_touched] = b
                n_touched += 1
            place[b] += on
            hidden[b] += 1 - on
    return n_touched


@_compile
def count_row(ones, gaps, row, masks, labels, starts, place, hidden, blocks, buffer):  # type: ignore[no-untyped-def]
    """Count a row's known ones and holes in every block; return how many blocks were touched.

    `place` is each block's start moved on by its ones, `hidden` its holes. Both are as without any
    before, and again after `forget_row`. The touched blocks are listed in `blocks`.
    """
    if masks.size:
        known, unknown = ones[0][row], gaps[0][row]
        for w in range(masks.shape[0]):
            word, gap, mask = known[w], unknown[w], masks[w]
            for b in range(starts.size):
                place[b] += np.int64(popcount(word & mask[b]))  # type: ignore[call-arg]
                hidden[b] += np.int64(popcount(gap & mask[b]))
        return starts.size
    listed = ones_of(ones[0], ones[1], ones[2], row, buffer)
    n_touched = _touch(listed, labels, starts, place, hidden, blocks, 0, 1)
    listed = ones_of(gaps[0], gaps[1], gaps[2], row, buffer)
    return _touch(listed, labels, starts, place, hidden, blocks, n_touched, 0)


@_compile
def forget_row(n_touched, starts, place, hidden, blocks):  # type: ignore[no-untyped-def]
    """Undo `count_row`."""
    for at in range(n_touched):
        b = blocks[at]
        place[b], hidden[b] = starts[b], 0


@_compile
def new_counters(labels, first_block, starts):  # type: ignore[no-untyped-def]
    """Return what `count_row` writes to, and the class of each block."""
    class_of = np.empty(starts.size, dtype=np.int64)
    for y in range(first_block.size - 1):
        class_of[first_block[y] : first_block[y + 1]] = y
    hidden = np.zeros(starts.size, dtype=np.int64)
    buffer = np.empty(labels.shape[0], dtype=np.int32)
    return starts.copy(), hidden, np.arange(starts.size), buffer, class_of


@_compile
def _zero_scores(first_block, starts, table):  # type: ignore[no-untyped-def]
    """Return each class's score of a row of known zeros, and how many blocks forbid such a row."""
    n_classes = first_block.size - 1
    base = np.zeros(n_classes)
    forbidden = np.zeros(n_classes, dtype=np.int64)
    for y in range(n_classes):
        for b in range(first_block[y], first_block[y + 1]):
            if table[starts[b]] == -np.inf:
                forbidden[y] += 1
            else:
                base[y] += table[starts[b]]
    return base, forbidden


@_compile
def _add_scores(  # type: ignore[no-untyped-def]
    blocks, class_of, starts, sizes, table, log_factorial, place, hidden, memo, joint, missing
):
    """Add what blocks are worth more than they would be without ones and holes."""
    keys, values, means, _, _, offsets = memo
    for at in range(blocks.size):
        b = blocks[at]
        if hidden[b] == 0:
            if place[b] == starts[b]:
                continue
            value = table[place[b]]
        elif hidden[b] == sizes[b]:
            value = 0.0
        else:
            key, at_count = place[b] + hidden[b] * table.size, place[b] - starts[b]
            slot = pair_slot(key, hidden[b], at_count, offsets[b], sizes[b], keys.size)
            if keys[slot] != key:
                keys[slot] = key
                values[slot], means[slot] = hidden_ones(table, place[b], hidden[b], log_factorial)
            value = values[slot]
        zero = table[starts[b]]
        if zero == -np.inf:
            missing[class_of[b]] -= 1
            zero = 0.0
        joint[class_of[b]] += value - zero


@_compile
def _add_counts(  # type: ignore[no-untyped-def]
    blocks, class_of, starts, sizes, table, log_factorial, place, hidden, memo, mass, histogram
):
    """Move the row's mass from the counts of zero to the counts that are expected."""
    keys, values, means, waiting, owner, offsets = memo
    for at in range(blocks.size):
        b = blocks[at]
        share = mass[class_of[b]]
        if share <= 0.0:
            continue
        histogram[starts[b]] -= share
        if hidden[b] == 0:
            histogram[place[b]] += share
            continue
        key, at_count = place[b] + hidden[b] * table.size, place[b] - starts[b]
        slot = pair_slot(key, hidden[b], at_count, offsets[b], sizes[b], keys.size)
        if keys[slot] != key:
            keys[slot] = key
            values[slot], means[slot] = hidden_ones(table, place[b], hidden[b], log_factorial)
        if owner[slot] != keys[slot]:
            _spread(owner[slot], waiting[slot], table, log_factorial, histogram)
            owner[slot], waiting[slot] = keys[slot], 0.0
        waiting[slot] += share


@_compile
def _spread(key, mass, table, log_factorial, histogram):  # type: ignore[no-untyped-def]
    """Add mass to a block's histogram in proportion to the hidden counts' probabilities."""
    if key < 0 or mass <= 0.0:
        return
    place, holes = key % table.size, key // table.size
    value = hidden_ones(table, place, holes, log_factorial)[0]
    for s in range(holes + 1):
        term = table[place + s] - log_factorial[s] - log_factorial[holes - s]
        if term > -np.inf and value > -np.inf:
            histogram[place + s] += mass * np.exp(term + log_factorial[holes] - value)


@_compile
def make_masks(labels, masks):  # type: ignore[no-untyped-def]
    """Set the bits of each block's variables: masks[word, block], all zero before."""
    for j in range(labels.shape[0]):
        bit = np.uint64(1) << np.uint64(j % 64)
        for y in range(labels.shape[1]):
            masks[j // 64, labels[j, y]] |= bit


@_compile
def expect_with_holes(  # type: ignore[no-untyped-def]
    ones,
    gaps,
    first,
    last,
    weights,
    clamp,
    masks,
    labels,
    first_block,
    starts,
    sizes,
    table,
    log_prior,
    log_factorial,
    posterior,
    histogram,
):
    """Return the log-likelihood of some rows; write posteriors, add expected histograms.

    With an empty `histogram` the rows are only scored: `posterior` then holds log P(e | y), and
    `weights`, `clamp` and `log_prior` are not read.
    """
    place, hidden, blocks, buffer, class_of = new_counters(labels, first_block, starts)
    base, forbidden = _zero_scores(first_block, starts, table)
    memo = new_memo(last - first, sizes)
    log_likelihood = 0.0
    for row in range(first, last):
        n_touched = count_row(ones, gaps, row, masks, labels, starts, place, hidden, blocks, buffer)
        touched = blocks[:n_touched]
        joint, missing = posterior[row], forbidden.copy()
        joint[:] = base
        _add_scores(
            touched,
            class_of,
            starts,
            sizes,
            table,
            log_factorial,
            place,
            hidden,
            memo,
            joint,
            missing,
        )
        joint[missing > 0] = -np.inf
        if histogram.size:
            joint += log_prior
            known = clamp[row] if clamp.size else -1
            log_likelihood += weights[row] * settle_row(joint, log_prior, known)
            _add_counts(
                touched,
                class_of,
                starts,
                sizes,
                table,
                log_factorial,
                place,
                hidden,
                memo,
                weights[row] * joint,
                histogram,
            )
        forget_row(n_touched, starts, place, hidden, blocks)
    for slot in range(memo[0].size):
        _spread(memo[4][slot], memo[3][slot], table, log_factorial, histogram)
    return log_likelihood


@_compile
def score_singles(ones, gaps, first, last, base, on, hole, out):  # type: ignore[no-untyped-def]
    """Write scores where every variable is a block: base + Σ on[j] over ones + Σ hole[j]."""
    n_variables, n_classes = on.shape
    buffer = np.empty(n_variables, dtype=np.int32)
    for row in range(first, last):
        score = out[row]
        score[:] = base
        listed = ones_of(ones[0], ones[1], ones[2], row, buffer)
        for at in range(listed.size):
            add = on[listed[at]]
            for y in range(n_classes):
                score[y] += add[y]
        listed = ones_of(gaps[0], gaps[1], gaps[2], row, buffer)
        for at in range(listed.size):
            add = hole[listed[at]]
            for y in range(n_classes):
                score[y] += add[y]
