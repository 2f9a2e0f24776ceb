"""The pass of EM over rows whose scores are a linear term, pairs along a forest, and look-ups.

The score of a row in class y is ``base[y] + Σ_j slope[j, y] + Σ_j pair[j, y]·x[parent[j, y]]``, the
sums over the row's ones, plus a look-up by the number of ones, of the row (`by_count`) or of each
block. A root's parent is the number of variables. What is not in use is empty.
"""

import numpy as np
from numba import njit

from exchangeable.data.row_kernels import ones_of
from exchangeable.families.common.posteriors import settle_row

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def _add_scores(ones, on, slope, parent, pair, joint):  # type: ignore[no-untyped-def]
    """Add the linear term and the pairs; `on` holds the row as numbers, with a 0 at its end."""
    for at in range(ones.size):
        add = slope[ones[at]]
        for y in range(joint.size):
            joint[y] += add[y]
    if parent.size:
        for at in range(ones.size):
            add, other = pair[ones[at]], parent[ones[at]]
            for y in range(joint.size):
                joint[y] += add[y] * on[other[y]]


@_compile
def _place(ones, labels, starts, place):  # type: ignore[no-untyped-def]
    """Write where each block's count stands in the table."""
    if not starts.size:
        return
    place[:] = starts
    for at in range(ones.size):
        block = labels[ones[at]]
        for y in range(block.size):
            place[block[y]] += 1


@_compile
def _add_sums(ones, on, parent, mass, sums, pair_sums):  # type: ignore[no-untyped-def]
    """Add a row's posteriors to the sums of its ones, and of its pairs along the forest."""
    for at in range(ones.size):
        once = sums[ones[at]]
        for y in range(mass.size):
            once[y] += mass[y]
    if parent.size:
        for at in range(ones.size):
            once, other = pair_sums[ones[at]], parent[ones[at]]
            for y in range(mass.size):
                once[y] += mass[y] * on[other[y]]


@_compile
def score_forest(  # type: ignore[no-untyped-def]
    rows,
    first,
    last,
    base,
    slope,
    parent,
    pair,
    by_count,
    labels,
    first_block,
    starts,
    table,
    out,
):
    """Write the scores of some rows."""
    n_variables = slope.shape[0]
    buffer = np.empty(n_variables, dtype=np.int32)
    on = np.zeros(n_variables + 1)
    place = np.empty(starts.size, dtype=np.int64)
    for row in range(first, last):
        ones = ones_of(rows, row, buffer)
        joint = out[row]
        _score_row(
            ones,
            on,
            base,
            slope,
            parent,
            pair,
            by_count,
            labels,
            first_block,
            starts,
            table,
            place,
            joint,
        )
        on[ones] = 0.0


@_compile
def _score_row(  # type: ignore[no-untyped-def]
    ones,
    on,
    base,
    slope,
    parent,
    pair,
    by_count,
    labels,
    first_block,
    starts,
    table,
    place,
    joint,
):
    """Write one row's scores, leaving its ones set in `on` and its counts in `place`."""
    on[ones] = 1.0
    joint[:] = base
    _add_scores(ones, on, slope, parent, pair, joint)
    if by_count.size:
        add = by_count[ones.size]
        for y in range(joint.size):
            joint[y] += add[y]
    if starts.size:
        _place(ones, labels, starts, place)
        for y in range(joint.size):
            for b in range(first_block[y], first_block[y + 1]):
                joint[y] += table[place[b]]


@_compile
def expect_forest(  # type: ignore[no-untyped-def]
    rows,
    first,
    last,
    weights,
    clamp,
    log_prior,
    base,
    slope,
    parent,
    pair,
    by_count,
    labels,
    first_block,
    starts,
    table,
    given,
    posterior,
    sums,
    pair_sums,
    count_sums,
    histogram,
):
    """Return the log-likelihood of some rows; write posteriors and add up what they weigh.

    ``sums[j, y]`` gets the posteriors of the rows with variable j on, ``pair_sums[j, y]`` those
    with j and its parent on, ``count_sums[l, y]`` those with l ones, `histogram` those with each
    count in each block. `base` includes the classes' log-probabilities. Posteriors that are `given`
    are kept, and the log-likelihood is left 0.
    """
    n_variables, n_classes = slope.shape
    buffer = np.empty(n_variables, dtype=np.int32)
    on = np.zeros(n_variables + 1)
    place = np.zeros(starts.size, dtype=np.int64)
    mass = np.empty(n_classes)
    log_likelihood = 0.0
    for row in range(first, last):
        ones = ones_of(rows, row, buffer)
        joint = posterior[row]
        if given:
            on[ones] = 1.0
            _place(ones, labels, starts, place)
        else:
            _score_row(
                ones,
                on,
                base,
                slope,
                parent,
                pair,
                by_count,
                labels,
                first_block,
                starts,
                table,
                place,
                joint,
            )
            known = clamp[row] if clamp.size else -1
            log_likelihood += weights[row] * settle_row(joint, log_prior, known)
        for y in range(n_classes):
            mass[y] = weights[row] * joint[y]
        _add_sums(ones, on, parent, mass, sums, pair_sums)
        on[ones] = 0.0
        if by_count.size:
            count_sums[ones.size] += mass
        if starts.size:
            for y in range(n_classes):
                for b in range(first_block[y], first_block[y + 1]):
                    histogram[place[b]] += mass[y]
    return log_likelihood


@_compile
def add_pairs(rows, members, mass, total):  # type: ignore[no-untyped-def]
    """Add the mass of the rows in `members` to total[i, j] for all their ones i ≤ j."""
    buffer = np.empty(total.shape[0], dtype=np.int32)
    for at in range(members.size):
        ones = np.sort(ones_of(rows, members[at], buffer))
        w = mass[at]
        for a in range(ones.size):
            line = total[ones[a]]
            for b in range(a, ones.size):
                line[ones[b]] += w
