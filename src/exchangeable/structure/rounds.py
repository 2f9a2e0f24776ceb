"""Learning blocks from sums alone, in a few passes, for rows that are not in memory.

Evidence merging (`evidence.py`) joins neighbouring blocks of a fine sweep, so it only ever
considers *intervals* of the fine blocks. The evidence of an interval needs the histogram of its
counts, and histograms add up over chunks. `IntervalMerge` merges in the same order as
`merge_blocks` and caches the histogram of each interval. When it needs more, it requests all that
it can ever need or, while blocks are many, all that it may need soon. A pass serves all classes at
once, and one or two are enough.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from exchangeable.arrays import FloatArray
from exchangeable.partitions import Labels, Partition, log_factorials
from exchangeable.structure.condition_passes import split_in_passes
from exchangeable.structure.conditions import equal_means_from_sums
from exchangeable.structure.intervals import ClassSums, Intervals, Pass, interval_histogram
from exchangeable.structure.learner import EQUAL_MEANS_LEVEL, FAR_APART, BlockLearner
from exchangeable.structure.sweep import sweep_counts

AHEAD = 16
"""Number of blocks ahead of a merge for which histograms are requested."""
FEW_INTERVALS, MOST_INTERVALS = 1 << 9, 1 << 13
"""If at most this many intervals can ever be needed, all of them are requested: the first number is
for the first pass, after which many blocks have merged."""
MOST_ENTRIES = 1 << 21
"""Maximum number of entries, per class, of histograms requested in advance."""


class _Sums(NamedTuple):
    """For one interval: evidence, total weight, and sums of counts and of their squares."""

    evidence: float
    total: float
    counts: float
    squares: float


class IntervalMerge:
    """Merging of one class's neighbouring blocks while the evidence increases.

    Parameters
    ----------
    fine : Partition
        The initial blocks, in order of mean.
    prior : float
        The Dirichlet parameter of the evidence.
    limit : float
        Blocks whose rates of ones differ by more standard errors than this are never merged.
    """

    def __init__(self, fine: Partition, prior: float, limit: float = np.inf) -> None:
        self.fine, self.prior, self.limit = fine, prior, limit
        self._before = np.concatenate([[0], np.cumsum(fine.sizes)])
        self._known: dict[tuple[int, int], _Sums] = {}
        n = fine.n_blocks
        self._following = np.arange(1, n + 1)
        self._previous = np.arange(-1, n - 1)
        self._first = np.arange(n)
        self._gain = np.full(n, -np.inf)
        self._unknown = list(range(n - 1))
        self.done = n == 1

    def wanted(self) -> list[tuple[int, int]]:
        """Return the intervals to be counted next, none if merging has ended."""
        if self.done:
            return []
        starts, most = self._starts(), MOST_INTERVALS if self._known else FEW_INTERVALS
        if len(starts) * (len(starts) - 1) // 2 <= most:
            every = [pair for pair in itertools.combinations(starts, 2) if pair not in self._known]
            if sum(self._size(interval) + 1 for interval in every) <= MOST_ENTRIES:
                return every
        if not self._known:
            return self._within_reason(self._short_intervals(1, 2), self._short_intervals(3, AHEAD))
        needed = {
            interval for b in self._unknown for interval in self._pair(b)
        } - self._known.keys()
        return self._within_reason(sorted(needed), self._guesses())

    def learn(self, intervals: Sequence[tuple[int, int]], histograms: Sequence[FloatArray]) -> None:
        """Add the histograms of some intervals, and merge as far as they allow."""
        for interval, histogram in zip(intervals, histograms, strict=True):
            self._known[interval] = self._evidence(histogram)
        while not self.done and self._update():
            b = int(np.argmax(self._gain))
            if not self._gain[b] > 0.0:
                self.done = True
            else:
                self._join(b)

    def merged(self) -> Partition:
        """Return the final blocks."""
        first = self._first
        for b in range(first.size):
            first[b] = first[first[b]]
        into: Labels = np.unique(first, return_inverse=True)[1].astype(np.int32)
        return self.fine.merged(into)

    def _evidence(self, histogram: FloatArray) -> "_Sums":
        """Return the values that merging needs about an interval."""
        m, count = histogram.size - 1, np.flatnonzero(histogram)
        h, total = histogram[count], float(histogram.sum())
        log_factorial, a = log_factorials(self.fine.labels.size), self.prior
        evidence = (
            float((gammaln(h + a) - gammaln(a)).sum())
            + float(h @ (log_factorial[count] + log_factorial[m - count]))
            - total * log_factorial[m]
            - float(gammaln(total + a * (m + 1)) - gammaln(a * (m + 1)))
        )
        squares = float(h @ count.astype(np.float64) ** 2)
        return _Sums(evidence, total, float(h @ count), squares)

    def _pair(self, b: int) -> list[tuple[int, int]]:
        """Return the intervals of a block, of the next, and of both."""
        middle = int(self._following[b])
        end = int(self._following[middle])
        return [(b, middle), (middle, end), (b, end)]

    def _update(self) -> bool:
        """Compute the missing gains; return whether all intervals were known."""
        for b in list(self._unknown):
            intervals = self._pair(b)
            if not all(interval in self._known for interval in intervals):
                return False
            first, second, both = (self._known[interval] for interval in intervals)
            gain = both.evidence - first.evidence - second.evidence
            if gain > 0.0 and self._far_apart(intervals, first, second, both):
                gain = -np.inf
            self._gain[b] = gain
            self._unknown.remove(b)
        return True

    def _far_apart(
        self, intervals: list[tuple[int, int]], first: "_Sums", second: "_Sums", both: "_Sums"
    ) -> bool:
        """Whether two rates of ones differ by more than `limit` standard errors."""
        if self.limit == np.inf:
            return False
        m, m_second = (float(self._size(interval)) for interval in intervals[:2])
        once = first.counts / m - second.counts / m_second
        product = (both.squares - first.squares - second.squares) / 2
        squares = first.squares / m**2 + second.squares / m_second**2
        twice = squares - 2 * product / (m * m_second)
        return once * once > self.limit**2 * max(twice - once * once / first.total, 0.0)

    def _size(self, interval: tuple[int, int]) -> int:
        """Return the number of variables of an interval."""
        begin, end = interval
        return int(self._before[end] - self._before[begin])

    def _join(self, b: int) -> None:
        """Merge a block with the next."""
        other, n = int(self._following[b]), self._first.size
        self._first[other] = b
        self._following[b] = self._following[other]
        self._gain[other] = self._gain[b] = -np.inf
        if self._following[b] < n:
            self._previous[self._following[b]] = b
            self._unknown.append(b)
        if self._previous[b] >= 0:
            self._unknown.append(int(self._previous[b]))

    def _within_reason(
        self, needed: list[tuple[int, int]], guesses: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Return the needed intervals, and as many of the guesses as `MOST_ENTRIES` allows."""
        asked = dict.fromkeys(needed)
        entries = sum(self._size(interval) + 1 for interval in needed)
        for interval in guesses:
            entries += self._size(interval) + 1
            if entries > MOST_ENTRIES:
                break
            if interval not in self._known:
                asked[interval] = None
        return list(asked)

    def _short_intervals(self, fewest: int, most: int) -> list[tuple[int, int]]:
        n = self.fine.n_blocks
        return [(b, b + k) for k in range(fewest, most + 1) for b in range(n - k + 1)]

    def _starts(self) -> list[int]:
        """Return the first fine block of every current block, and the end."""
        starts, b = [], 0
        while b < self._first.size:
            starts.append(b)
            b = int(self._following[b])
        return [*starts, self._first.size]

    def _guesses(self) -> list[tuple[int, int]]:
        """Return the intervals that will be needed if the currently best merges happen."""
        starts = self._starts()
        position = {b: i for i, b in enumerate(starts)}
        open_pairs = set(self._unknown)
        likely = [b for b in starts[:-1] if self._gain[b] > 0.0 or b in open_pairs]
        likely.sort(key=lambda b: -np.inf if b in open_pairs else -self._gain[b])
        used: set[int] = set()
        joined = []
        for b in likely:
            i = position[b]
            if i + 1 < len(starts) - 1 and not {i, i + 1} & used:
                used |= {i, i + 1}
                joined.append((i, i + 2))
        ends = dict(joined)
        last = len(starts) - 1
        guesses: dict[tuple[int, int], None] = {}
        for ahead in range(AHEAD + 1):
            for i, j in joined:
                begin, end = max(i - ahead, 0), min(j + ahead, last)
                guesses[starts[i], starts[end]] = None
                guesses[starts[begin], starts[j]] = None
                if ahead == 1 and j in ends:  # the next pair, joined as well
                    guesses[starts[i], starts[ends[j]]] = None
        # Neighbours of an interval are compared with it as they are.
        singles = [(starts[i], starts[i + 1]) for i in range(last)]
        return [*guesses, *singles]


def merge_in_rounds(merges: Sequence[IntervalMerge], over: Pass) -> list[Partition]:
    """Run several merges to the end; each pass serves the requests of all of them."""
    while True:
        asked = [merge.wanted() for merge in merges]
        if not any(asked):
            return [merge.merged() for merge in merges]
        wanted = [Intervals.of(merge.fine, want) for merge, want in zip(merges, asked, strict=True)]
        counted = over(partial(interval_histogram, wanted=wanted))
        answers = zip(merges, asked, wanted, counted, strict=True)
        for merge, want, intervals, histogram in answers:
            if want:
                merge.learn(want, intervals.split(histogram))


def learn_from_sums(
    learner: BlockLearner, sums: Sequence[ClassSums], n_variables: int, over: Pass
) -> list[Partition]:
    """Return the result of `BlockLearner.learn` for every class, from sums over its rows."""
    settings = learner.settings
    one_block = Partition.whole(n_variables)
    if learner.name == "independent":
        return [Partition.from_labels(np.arange(n_variables))] * len(sums)
    if learner.name == "full":
        return [one_block] * len(sums)
    partitions = []
    for total, ones, counts, squares in sums:
        level = settings.significance if learner.name == "welch" else settings.start
        alike = learner.name == "evidence" and (
            equal_means_from_sums(ones, counts, squares) > EQUAL_MEANS_LEVEL
        )
        if total <= 1 or alike:
            partitions.append(one_block)
        else:
            partitions.append(sweep_counts(ones, total, level))
    if learner.name == "evidence":
        merges = [IntervalMerge(fine, settings.prior, FAR_APART) for fine in partitions]
        partitions = merge_in_rounds(merges, over)
    every_ones, totals = [ones for _, ones, *_ in sums], [total for total, *_ in sums]
    return split_in_passes(learner, partitions, every_ones, totals, over)


def propose_from_sums(
    learner: BlockLearner, moments: FloatArray, totals: FloatArray, n: float, over: Pass
) -> list[list[Partition]]:
    """Return the result of `BlockLearner.propose`, from sums over the posteriors."""
    if not learner.needs_moments:
        nothing: list[ClassSums] = [(0.0, np.empty(0), 0.0, 0.0)] * totals.size
        return [learn_from_sums(learner, nothing, moments.shape[1], over)]
    swept = learner.sweeps(moments, n)
    proposals = [swept[0]]
    if learner.name == "evidence":
        merges = [IntervalMerge(fine, learner.settings.prior) for fine in swept[-1]]
        proposals.append(merge_in_rounds(merges, over))
    return [split_in_passes(learner, each, list(moments[0].T), totals, over) for each in proposals]
