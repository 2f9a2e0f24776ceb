"""Merging neighbouring blocks while the Dirichlet-multinomial evidence increases.

A block of m variables with count histogram h over rows of total weight N has the evidence

    Σ_l [lnΓ(h_l + a) − lnΓ(a)] − [lnΓ(N + a(m+1)) − lnΓ(a(m+1))] − Σ_l h_l·ln C(m, l)

All partitions have the same number of free parameters, so evidences can be compared without a
penalty.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.partitions import Labels
from exchangeable.runtime.kernels.cache import compiled, for_kernels
from exchangeable.runtime.kernels.loops import inlined, where_largest

_compile = compiled()
_helper = for_kernels()


class _Sample(NamedTuple):
    """The constants of a class on which the evidence of every block depends.

    Attributes
    ----------
    weights : array of shape (n_rows,) or (0,)
        Weight of each row; empty if all are 1.
    total : float
        Total weight of the rows.
    prior : float
        The Dirichlet parameter a.
    log_factorial : array
        ln l! for l up to the number of variables.
    log_rising : array
        lnΓ(h + a) − lnΓ(a) for whole h, used if rows have no weights.
    """

    weights: FloatArray
    total: float
    prior: float
    log_factorial: FloatArray
    log_rising: FloatArray


class _Workspace(NamedTuple):
    """The state of merging, for every block.

    Attributes
    ----------
    histogram : array of shape (2, n_counts)
        Workspace for the weight of each count, all zero.
    first : array of shape (n_blocks,)
        The first block of the merged block that it belongs to.
    previous, following : array of shape (n_blocks,)
        Its neighbours, by the first of their blocks.
    alone, together : array of shape (n_blocks,)
        The evidence by itself, and merged with the following one.
    gain : array of shape (n_blocks,)
        The gain in evidence from merging it with the following one.
    """

    histogram: FloatArray
    first: IntArray
    previous: IntArray
    following: IntArray
    alone: FloatArray
    together: FloatArray
    gain: FloatArray


@_helper
def _block_evidence(first, second, m, sample, histogram):  # type: ignore[no-untyped-def]
    """Return the evidence of a block whose counts are the sums of two lines of counts.

    `histogram` is a workspace of two lines, all zero before and after. The two halves of the rows
    are added to different lines, so that an addition need not wait for the previous one.
    """
    weights, total, prior, log_factorial, log_rising = sample
    highest = 0
    if weights.size == 0:
        half = first.size // 2
        for i in range(half):
            count, other = first[i] + second[i], first[half + i] + second[half + i]
            histogram[0, count] += 1.0
            histogram[1, other] += 1.0
            highest = max(highest, count, other)
        if first.size % 2:
            count = first[-1] + second[-1]
            histogram[0, count] += 1.0
            highest = max(highest, count)
    else:
        for i in range(first.size):
            count = first[i] + second[i]
            histogram[0, count] += weights[i]
            highest = max(highest, count)
    evidence = 0.0
    for count in range(highest + 1):
        h = histogram[0, count] + histogram[1, count]
        if h > 0.0:
            if weights.size == 0:
                evidence += log_rising[int(h)]
            else:
                evidence += math.lgamma(h + prior) - math.lgamma(prior)
            evidence += h * (log_factorial[count] + log_factorial[m - count])
            histogram[0, count] = histogram[1, count] = 0.0
    evidence -= total * log_factorial[m]
    return evidence - (math.lgamma(total + prior * (m + 1)) - math.lgamma(prior * (m + 1)))


@inlined
def _far_apart(first, second, m_first, m_second, weights, limit):  # type: ignore[no-untyped-def]
    """Whether the rates of ones of two blocks differ by more than `limit` standard errors."""
    if limit == np.inf:
        return False
    total, once, twice = 0.0, 0.0, 0.0
    for i in range(first.size):
        w = weights[i] if weights.size else 1.0
        difference = first[i] / m_first - second[i] / m_second
        total += w
        once += w * difference
        twice += w * difference * difference
    return once * once > limit * limit * max(twice - once * once / total, 0.0)


@_compile
def _merge(counts, sizes, sample, limit, nothing, workspace):  # type: ignore[no-untyped-def]
    """Merge neighbours while it pays; write, for each initial block, the first block of its group.

    Overwrites `counts` and `sizes`: line b of the counts ends as that of the merged block that
    starts at b. `nothing` is a line of counts that are all zero.
    """
    n_blocks = sizes.size
    histogram, first, previous, following, alone, together, gain = workspace
    for b in range(n_blocks):
        alone[b] = _block_evidence(counts[b], nothing, sizes[b], sample, histogram)
    begin, end = 0, n_blocks - 1
    while True:
        # The pairs whose gain is not known: all at first, then the two next to a new block.
        b = begin
        while b <= end and following[b] < n_blocks:
            other = following[b]
            size = sizes[b] + sizes[other]
            together[b] = _block_evidence(counts[b], counts[other], size, sample, histogram)
            gain[b] = together[b] - alone[b] - alone[other]
            if gain[b] > 0.0 and _far_apart(
                counts[b], counts[other], sizes[b], sizes[other], sample.weights, limit
            ):
                gain[b] = -np.inf
            b = other
        b = where_largest(gain)
        if not gain[b] > 0.0:
            break
        other = following[b]
        first[other] = b
        line, added = counts[b], counts[other]
        for i in range(line.size):
            line[i] += added[i]
        sizes[b] += sizes[other]
        alone[b] = together[b]
        following[b] = following[other]
        gain[other] = gain[b] = -np.inf
        if following[b] < n_blocks:
            previous[following[b]] = b
        begin, end = max(previous[b], 0), b
    for b in range(n_blocks):
        first[b] = first[first[b]]


def merge_blocks(
    counts: npt.NDArray[np.int32],
    sizes: IntArray,
    weights: FloatArray,
    prior: float,
    log_factorial: FloatArray,
    limit: float = np.inf,
) -> Labels:
    """Return the merged block of each block; blocks are in order of mean.

    Parameters
    ----------
    counts : array of shape (n_blocks, n_rows)
        Number of ones of each row in each block; overwritten.
    sizes : array of shape (n_blocks,)
        Number of variables of each block.
    weights : array of shape (n_rows,) or (0,)
        Weight of each row; empty if all are 1.
    prior : float
        The Dirichlet parameter a.
    log_factorial : array
        ln l! for l up to the number of variables.
    limit : float
        Blocks whose rates of ones differ by more standard errors than this are never merged: their
        means are not equal, whatever else favours merging them.

    Examples
    --------
    Two halves of an exchangeable block whose rows are all on or all off belong together; a third
    block that varies independently does not.

    >>> import numpy as np
    >>> from exchangeable.partitions import log_factorials
    >>> counts = np.array([[0, 2] * 20, [0, 2] * 20, [1, 1] * 20], dtype=np.int32)
    >>> merge_blocks(counts, np.array([2, 2, 2]), np.empty(0), 0.1, log_factorials(6)).tolist()
    [0, 0, 1]
    """
    total = float(weights.sum()) if weights.size else float(counts.shape[1])
    whole = np.arange(counts.shape[1] if weights.size == 0 else 0)
    log_rising = np.concatenate([[0.0], np.cumsum(np.log(prior + whole))])
    sample = _Sample(weights, total, float(prior), log_factorial, log_rising)
    n_blocks = sizes.size
    workspace = _Workspace(
        histogram=np.zeros((2, log_factorial.size)),
        first=np.arange(n_blocks),
        previous=np.arange(-1, n_blocks - 1),
        following=np.arange(1, n_blocks + 1),
        alone=np.empty(n_blocks),
        together=np.full(n_blocks, -np.inf),
        gain=np.full(n_blocks, -np.inf),
    )
    nothing = np.zeros(counts.shape[1], dtype=counts.dtype)
    _merge(counts, sizes.astype(np.int64), sample, float(limit), nothing, workspace)
    return np.unique(workspace.first, return_inverse=True)[1].astype(np.int32)
