"""Inner loops over rows whose scores are a linear term, pairs along a forest, and look-ups.

The score of a row in class y is ``base[y] + Σ_j slope[j, y] + Σ_j pair[j, y]·x[parent[j, y]]``,
with sums over the row's ones, plus a look-up by the number of ones, of the row (`by_count`) or of
each block (`tables`). A root's parent is the number of variables. Unused arrays are empty.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.data.row_kernels import ones_of
from exchangeable.families.common.posteriors import settle_row
from exchangeable.families.common.tables import TableArrays
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.lanes import N_LANES, load, load_at, plus, store, times
from exchangeable.runtime.kernels.loops import copy, fill, inlined

_compile = compiled()

FEW = 4
"""If at most this many classes have a share in a row, sums are updated for these only."""


class LogLinearArrays(NamedTuple):
    """`LogLinear` in the form of the kernels."""

    base: FloatArray
    slope: FloatArray
    parent: npt.NDArray[np.int32]
    pair: FloatArray
    by_count: FloatArray
    tables: TableArrays


class SumArrays(NamedTuple):
    """Sums of posteriors that `expect_rows` updates.

    Attributes
    ----------
    ones, pairs : arrays of shape (n_variables, n_classes)
        For the rows with a variable on, and with a variable and its parent on.
    counts : array of shape (n_variables + 1, n_classes)
        For the rows with each number of ones.
    histogram : array
        For the rows with each count in each block, laid out as the tables.
    """

    ones: FloatArray
    pairs: FloatArray
    counts: FloatArray
    histogram: FloatArray


class _Workspace(NamedTuple):
    """Of one row: its ones as numbers with a 0 at the end, and each block's entry in the tables."""

    on: FloatArray
    entry: IntArray
    buffer: npt.NDArray[np.int32]


@inlined
def _new_workspace(model):  # type: ignore[no-untyped-def]
    n_variables = model.slope.shape[0]
    on, entry = np.empty(n_variables + 1), np.empty(model.tables.starts.size, np.int64)
    fill(on, 0.0)
    return _Workspace(on, entry, np.empty(n_variables, np.int32))


@inlined
def _switch(on, ones, value):  # type: ignore[no-untyped-def]
    for k in range(ones.size):
        on[ones[k]] = value


@inlined
def _add_terms(ones, on, slope, parent, pair, joint):  # type: ignore[no-untyped-def]
    """Add the linear term and the pairs: first of eight classes at a time, then of those left."""
    n_classes, has_pairs = joint.size, parent.size > 0
    whole = n_classes - n_classes % N_LANES
    for y in range(0, whole, N_LANES):
        score = load(joint, y)
        for k in range(ones.size):
            score = plus(score, load(slope, ones[k] * n_classes + y))
        if has_pairs:
            for k in range(ones.size):
                position = ones[k] * n_classes + y
                score = plus(score, times(load(pair, position), load_at(on, parent, position)))
        store(joint, y, score)
    for k in range(ones.size):
        position = ones[k] * n_classes
        for y in range(whole, n_classes):
            joint[y] += slope[position + y]
    if has_pairs:
        for k in range(ones.size):
            position = ones[k] * n_classes
            for y in range(whole, n_classes):
                joint[y] += pair[position + y] * on[np.uint32(parent[position + y])]


@inlined
def _find_entries(ones, labels, starts, entry):  # type: ignore[no-untyped-def]
    """Write the entry of each block's count in the tables."""
    copy(starts, entry)
    for k in range(ones.size):
        for y in range(labels.shape[1]):
            entry[labels[ones[k], y]] += 1


@inlined
def _add_tables(entry, first_block, values, joint):  # type: ignore[no-untyped-def]
    """Add the look-ups by the counts in the blocks."""
    for y in range(joint.size):
        for b in range(first_block[y], first_block[y + 1]):
            joint[y] += values[entry[b]]


@_compile
def score_rows(rows, first, last, model, out):  # type: ignore[no-untyped-def]
    """Write the scores of the rows first..last."""
    # Arrays are taken out of their tuples once: doing so for each row would cost time.
    on, entry, buffer = _new_workspace(model)
    base, by_count = model.base, model.by_count
    slope, parent, pair = model.slope.ravel(), model.parent.ravel(), model.pair.ravel()
    labels, first_block, starts, values = model.tables
    for row in range(first, last):
        ones, joint = ones_of(rows, row, buffer), out[row]
        _switch(on, ones, 1.0)
        copy(base, joint)
        _add_terms(ones, on, slope, parent, pair, joint)
        if by_count.size:
            for y in range(joint.size):
                joint[y] += by_count[ones.size, y]
        if entry.size:
            _find_entries(ones, labels, starts, entry)
            _add_tables(entry, first_block, values, joint)
        _switch(on, ones, 0.0)


@inlined
def _list_active(mass, active):  # type: ignore[no-untyped-def]
    """Write the classes with some mass, if they are few; return their number, or −1."""
    n_active = 0
    for y in range(mass.size):
        if mass[y] != 0.0:
            if n_active == FEW:
                return -1
            active[n_active] = y
            n_active += 1
    return n_active


@inlined
def _add_sums(ones, on, parent, mass, one_sums, pair_sums):  # type: ignore[no-untyped-def]
    """Add a row's posteriors to the sums of its ones, and of its pairs along the forest."""
    n_classes, has_pairs = mass.size, parent.size > 0
    whole = n_classes - n_classes % N_LANES
    for y in range(0, whole, N_LANES):
        share = load(mass, y)
        for k in range(ones.size):
            position = ones[k] * n_classes + y
            store(one_sums, position, plus(load(one_sums, position), share))
            if has_pairs:
                both = times(share, load_at(on, parent, position))
                store(pair_sums, position, plus(load(pair_sums, position), both))
    for k in range(ones.size):
        position = ones[k] * n_classes
        for y in range(whole, n_classes):
            one_sums[position + y] += mass[y]
        if has_pairs:
            for y in range(whole, n_classes):
                pair_sums[position + y] += mass[y] * on[np.uint32(parent[position + y])]


@inlined
def _add_few(ones, on, parent, mass, active, n_active, one_sums, pair_sums):  # type: ignore[no-untyped-def]
    """Do the same if only some classes have any posterior."""
    for i in range(n_active):
        y = active[i]
        share = mass[y]
        for k in range(ones.size):
            one_sums[ones[k] * mass.size + y] += share
        if parent.size:
            for k in range(ones.size):
                position = ones[k] * mass.size + y
                pair_sums[position] += share * on[np.uint32(parent[position])]


@_compile
def expect_rows(rows, first, last, model, priors, fixed, posterior, sums):  # type: ignore[no-untyped-def]
    """Return the log-likelihood of the rows first..last; write posteriors and add their sums.

    The model's `base` includes the log-probabilities of the classes. Posteriors that are `fixed`
    are read instead of written, and the log-likelihood is 0.
    """
    on, entry, buffer = _new_workspace(model)
    base, by_count = model.base, model.by_count
    slope, parent, pair = model.slope.ravel(), model.parent.ravel(), model.pair.ravel()
    labels, first_block, starts, values = model.tables
    weights, clamp, log_prior = priors
    one_sums, pair_sums = sums.ones.ravel(), sums.pairs.ravel()
    count_sums, histogram = sums.counts, sums.histogram
    n_classes = base.size
    mass, active = np.empty(n_classes), np.empty(FEW, np.int64)
    log_likelihood = 0.0
    for row in range(first, last):
        ones, joint = ones_of(rows, row, buffer), posterior[row]
        _switch(on, ones, 1.0)
        if entry.size:
            _find_entries(ones, labels, starts, entry)
        if not fixed:
            copy(base, joint)
            _add_terms(ones, on, slope, parent, pair, joint)
            if by_count.size:
                for y in range(n_classes):
                    joint[y] += by_count[ones.size, y]
            if entry.size:
                _add_tables(entry, first_block, values, joint)
            known = clamp[row] if clamp.size else -1
            log_likelihood += weights[row] * settle_row(joint, log_prior, known)
        for y in range(n_classes):
            mass[y] = weights[row] * joint[y]
        n_active = _list_active(mass, active)
        if n_active < 0:
            _add_sums(ones, on, parent, mass, one_sums, pair_sums)
        else:
            _add_few(ones, on, parent, mass, active, n_active, one_sums, pair_sums)
        _switch(on, ones, 0.0)
        if by_count.size:
            for y in range(n_classes):
                count_sums[ones.size, y] += mass[y]
        if entry.size:
            for y in range(n_classes):
                for b in range(first_block[y], first_block[y + 1]):
                    histogram[entry[b]] += mass[y]
    return log_likelihood


@_compile
def add_pairs(rows, members, mass, total):  # type: ignore[no-untyped-def]
    """Add the mass of the rows in `members` to total[i, j] for all their ones i ≤ j."""
    buffer = np.empty(total.shape[0], dtype=np.int32)
    for i in range(members.size):
        ones = ones_of(rows, members[i], buffer)
        w = mass[i]
        for a in range(ones.size):
            one = ones[a]
            line = total[one]
            for b in range(a, ones.size):
                other = ones[b]
                if other >= one:
                    line[other] += w
                else:  # the ones of a row need not be sorted
                    total[other, one] += w
