"""The paper's block learner: sort the variables by mean and cut where Welch's t-test rejects."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from scipy.special import stdtrit

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.partitions import Labels, Partition
from exchangeable.runtime.kernels.bits import bits_of_float
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill, helper, inlined
from exchangeable.runtime.threads import row_ranges, run
from exchangeable.structure.student import two_sided_p

_compile = compiled()

LINES_TOGETHER = 16384
"""Variables, over all classes, that one thread sweeps at a time."""


class Level(NamedTuple):
    """A significance level, and the range of t for which the p-value must be computed.

    Attributes
    ----------
    significance : float
        Smaller p-values separate.
    surely_kept, surely_rejected : float
        Below the first nothing is separated, above the second everything is, whatever the degrees
        of freedom.
    """

    significance: float
    surely_kept: float
    surely_rejected: float

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, n: float, significance: float) -> Self:
        """Return a level for means of n values."""
        surely_rejected = -stdtrit(n - 1, significance / 2)
        surely_kept = -stdtrit(2 * n - 2, significance / 2)
        # A little slack leaves borderline cases to the p-value.
        return cls(
            float(significance),
            float(surely_kept * (1 - 1e-9)),
            float(surely_rejected * (1 + 1e-9)),
        )


@inlined
def _welch_rejects(mean_a, var_a, mean_b, var_b, n, level):  # type: ignore[no-untyped-def]
    """Whether Welch's test of two means, each of n values, rejects at a level (`Level`).

    The degrees of freedom are between n − 1 and 2n − 2, so that most cases are decided by two
    critical values and only the few in between need the p-value.
    """
    difference = abs(mean_a - mean_b)
    spread = (var_a + var_b) / n
    if spread <= 0.0:
        return difference > 0.0
    t = difference / np.sqrt(spread)
    significance, surely_kept, surely_rejected = level[0], level[1], level[2]
    if t <= surely_kept:
        return False
    if t > surely_rejected:
        return True
    share = var_a / (var_a + var_b)  # so that tiny variances are not squared
    df = (n - 1) / (share**2 + (1 - share) ** 2)
    return two_sided_p(t, df) < significance


@helper
def _sweep(mean, variance, order, n, level, block):  # type: ignore[no-untyped-def]
    """Write the block of each of the variables, given in increasing order of mean.

    Returns the number of blocks.
    """
    reference, number = order[0], 0
    block[reference] = number
    for i in range(1, order.size):
        j, before = order[i], order[i - 1]
        if mean[j] != mean[before] and _welch_rejects(
            mean[j], variance[j], mean[reference], variance[reference], n, level
        ):
            number += 1
            reference = j
        block[j] = number
    return number + 1


def sweep_sorted(mean: FloatArray, variance: FloatArray, n: float, significance: float) -> Labels:
    """Return the block of each variable, given in increasing order of mean.

    The first variable of a block is its reference. A variable whose mean differs from its
    predecessor's is tested against the reference, and starts a new block if the test rejects.

    Parameters
    ----------
    mean, variance : array of shape (n_variables,)
        Estimates over n values; the variance is the unbiased one.
    n : float
        Number of values behind each mean; with one or fewer no test is possible.
    significance : float
        Smaller p-values separate.
    """
    block = np.zeros(mean.size, dtype=np.int32)
    if n > 1:
        order = np.arange(mean.size)
        _sweep(mean, variance, order, float(n), np.array(Level.of(n, significance)), block)
    return block


def sweep(mean: FloatArray, variance: FloatArray, n: float, significance: float) -> Labels:
    """Return the block of each variable by the sweep, blocks numbered by increasing mean.

    Examples
    --------
    >>> import numpy as np
    >>> mean = np.array([0.5, 0.1, 0.52, 0.1])
    >>> sweep(mean, mean * (1 - mean), n=100, significance=0.1).tolist()
    [1, 0, 1, 0]
    """
    order = np.argsort(mean, kind="stable")
    labels = np.empty(mean.size, dtype=np.int32)
    labels[order] = sweep_sorted(mean[order], variance[order], n, significance)
    return labels


@inlined
def _merge_sort(mean, members, buffer):  # type: ignore[no-untyped-def]
    """Sort variables by mean, in runs of 1, 2, 4, …; the order of equal ones is kept."""
    length = 1
    while length < members.size:
        for begin in range(0, members.size, 2 * length):
            middle = min(begin + length, members.size)
            end = min(begin + 2 * length, members.size)
            left, right = begin, middle
            for i in range(begin, end):
                from_left = right == end or (
                    left < middle and mean[members[left]] <= mean[members[right]]
                )
                buffer[i] = members[left] if from_left else members[right]
                left, right = left + from_left, right + (not from_left)
        for i in range(members.size):
            members[i] = buffer[i]
        length *= 2


@inlined
def _is_sorted(mean, order):  # type: ignore[no-untyped-def]
    """Whether no variable has a lower mean than the one before it."""
    falls = 0
    for i in range(1, order.size):
        falls += mean[order[i]] < mean[order[i - 1]]
    return falls == 0


class Blocks(NamedTuple):
    """The blocks of every class at several levels, where their partitions are to be.

    Attributes
    ----------
    labels, sizes, starts : arrays of shape (n_levels, n_classes, n_variables)
        What a `Partition` has; of sizes and starts there are as many as blocks.
    n_blocks : array of shape (n_levels, n_classes)
        Number of blocks.
    """

    labels: Labels
    sizes: IntArray
    starts: IntArray
    n_blocks: IntArray

    @classmethod
    def room(cls, n_levels: int, n_classes: int, n_variables: int) -> Self:
        """Return room for them, nothing written yet."""
        shape = n_levels, n_classes, n_variables
        sizes, starts = np.empty((2, *shape), dtype=np.int64)
        n_blocks = np.empty(shape[:2], dtype=np.int64)
        return cls(np.empty(shape, dtype=np.int32), sizes, starts, n_blocks)

    def partitions(self, level: int) -> list[Partition]:
        """Return the partitions of all classes at a level."""
        labels, sizes, starts = self.labels[level], self.sizes[level], self.starts[level]
        return [
            Partition(labels[y], sizes[y, :count], starts[y, :count])
            for y, count in enumerate(self.n_blocks[level].tolist())
        ]


@_compile
def _estimate(moments, first, n, low, mean, variance, key):  # type: ignore[no-untyped-def]
    """Write the means and variances of the classes from `first` on, and what they are sorted by.

    A key has the bits of a mean, which is not negative, and in place of the last of them, those of
    `low`, the number of the variable.
    """
    for y in range(mean.shape[0]):
        for j in range(mean.shape[1]):
            average = moments[0, j, first + y] / n
            spread = moments[1, j, first + y] - n * average**2
            mean[y, j], variance[y, j] = average, max(spread, 0.0) / max(n - 1.0, 1e-300)
            key[y, j] = bits_of_float(average) & ~low | j


@_compile
def _sweep_classes(mean, variance, key, first, n, levels, low, blocks):  # type: ignore[no-untyped-def]
    """Write the blocks of the classes from `first` on (`Blocks`), given their keys in order.

    Where means differ only in bits that keys do not have, they are sorted once more.
    """
    order, buffer = np.empty(mean.shape[1], np.int64), np.empty(mean.shape[1], np.int64)
    for y in range(mean.shape[0]):
        for i in range(order.size):
            order[i] = key[y, i] & low
        if not _is_sorted(mean[y], order):
            _merge_sort(mean[y], order, buffer)
        for i in range(levels.shape[0]):
            labels, size = blocks.labels[i, first + y], blocks.sizes[i, first + y]
            start, total = blocks.starts[i, first + y], 0
            n_blocks = _sweep(mean[y], variance[y], order, n, levels[i], labels)
            fill(size[:n_blocks], 0)
            for j in range(labels.size):
                size[labels[j]] += 1
            for b in range(n_blocks):
                start[b] = total
                total += size[b] + 1
            blocks.n_blocks[i, first + y] = n_blocks


def sweep_each(
    moments: FloatArray, n: float, levels: Sequence[float], n_jobs: int | None = None
) -> list[list[Partition]]:
    """Return the partitions that `sweep` finds for every class, at several levels of significance.

    Parameters
    ----------
    moments : array of shape (2, n_variables, n_classes)
        Sums of n values, none negative, of every variable and class, and sums of their squares.
    n : float
        Number of values.
    levels : sequence of float
        Levels of significance.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    list of lists of Partition
        For each level those of all classes.
    """
    _, n_variables, n_classes = moments.shape
    moments = np.ascontiguousarray(moments)
    if n <= 1:
        return [[Partition.whole(n_variables)] * n_classes for _ in levels]
    blocks = Blocks.room(len(levels), n_classes, n_variables)
    limits = np.array([Level.of(n, level) for level in levels])
    low = (1 << max(n_variables - 1, 1).bit_length()) - 1

    def some(span: tuple[int, int]) -> None:
        first, last = span
        mean, variance = np.empty((2, last - first, n_variables))
        key = np.empty((last - first, n_variables), dtype=np.int64)
        _estimate(moments, first, float(n), low, mean, variance, key)
        key.sort(axis=1)  # vector instructions, where the processor has them
        _sweep_classes(mean, variance, key, first, float(n), limits, low, blocks)

    run(some, row_ranges(n_classes, 1 + LINES_TOGETHER // n_variables), n_jobs)
    return [blocks.partitions(level) for level in range(len(levels))]


@_compile
def _tally(ones, tally):  # type: ignore[no-untyped-def]
    """Count the variables with each number of ones; return whether all are whole and have room."""
    for j in range(ones.size):
        count = np.int64(ones[j])
        if count != ones[j] or count >= tally.size:
            return False
        tally[count] += 1
    return True


@_compile
def _assign(ones, block, labels):  # type: ignore[no-untyped-def]
    """Write the block of each variable, given the block of each number of ones."""
    for j in range(ones.size):
        labels[j] = block[np.int64(ones[j])]


def sweep_counts(ones: FloatArray, n: float, significance: float) -> Partition:
    """Return the blocks of 0/1 variables from the weight of the rows, of n, that have each on.

    Whole numbers are sorted by counting, and variables with equal numbers share one test, so that
    the cost is a pass over the variables whatever their number.
    """
    ones = np.ascontiguousarray(ones, dtype=np.float64)
    most = int(n) if n <= max(1_000_000, 10 * ones.size) else 0
    tally = np.zeros(most + 1, dtype=np.int64)
    if not most or not _tally(ones, tally):
        labels = sweep(ones / n, _bernoulli_variance(ones / n, n), n, significance)
        return Partition.from_labels(labels)
    present = np.flatnonzero(tally)
    mean = present / n
    block, labels = np.zeros(most + 1, dtype=np.int32), np.empty(ones.size, dtype=np.int32)
    of_count = sweep_sorted(mean, _bernoulli_variance(mean, n), n, significance)
    block[present] = of_count
    _assign(ones, block, labels)
    begins = np.flatnonzero(np.diff(of_count, prepend=-1))  # a block is a run of counts
    return Partition.of_sizes(labels, np.add.reduceat(tally[present], begins))


def _bernoulli_variance(mean: FloatArray, n: float) -> FloatArray:
    """Return the unbiased variance of n 0/1 values with the given mean."""
    return np.maximum(mean * (1.0 - mean), 0.0) * (n / (n - 1.0)) if n > 1 else np.zeros_like(mean)
