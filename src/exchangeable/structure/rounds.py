"""Learning blocks where the rows cannot be held: from sums alone, a few passes at a time.

Evidence merging (`evidence.py`) joins neighbouring blocks of a fine sweep, so that whatever it ever
looks at is a *run* of the fine blocks. The evidence of a run needs the histogram of its counts, and
histograms add up over chunks. `RunMerge` merges in the same order as `merge_blocks`, keeps what is
known of each run, and when it needs more asks for all it may soon need: a pass answers for all
classes at once, and a handful of passes are enough.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import gammaln

from exchangeable.arrays import FloatArray
from exchangeable.partitions import Labels, Partition, log_factorials
from exchangeable.structure.conditions import equal_means_from_sums, split_by_variance
from exchangeable.structure.intervals import ClassSums, Runs
from exchangeable.structure.learner import EQUAL_MEANS_LEVEL, FAR_APART, BlockLearner
from exchangeable.structure.sweep import sweep_counts

Count = Callable[[list[Runs]], list[FloatArray]]
"""A pass: the histograms of the runs of every class."""

AHEAD = 4
"""How many blocks ahead of a merge are asked for."""
MOST_ENTRIES = 1 << 21
"""What is asked for in advance has no more entries than this, a class."""


class RunMerge:
    """Merging of one class's neighbouring blocks while the evidence grows.

    Parameters
    ----------
    fine : Partition
        The blocks to begin with, in order of mean.
    prior : float
        The Dirichlet parameter of the evidence.
    limit : float
        Blocks whose rates of ones differ by more standard errors than this are never merged.
    """

    def __init__(self, fine: Partition, prior: float, limit: float = np.inf) -> None:
        self.fine, self.prior, self.limit = fine, prior, limit
        self._before = np.concatenate([[0], np.cumsum(fine.sizes)])
        self._known: dict[tuple[int, int], tuple[float, float, float, float]] = {}
        n = fine.n_blocks
        self._following = np.arange(1, n + 1)
        self._previous = np.arange(-1, n - 1)
        self._first = np.arange(n)
        self._gain = np.full(n, -np.inf)
        self._unknown = list(range(n - 1))
        self.done = n == 1

    def wanted(self) -> list[tuple[int, int]]:
        """Return the runs to be counted next, none if merging has ended."""
        if self.done:
            return []
        if not self._known:
            return self._within_reason(self._short_runs(1, 2), self._short_runs(3, AHEAD))
        needed = {run for b in self._unknown for run in self._pair(b)} - self._known.keys()
        return self._within_reason(sorted(needed), self._guesses())

    def learn(self, runs: Sequence[tuple[int, int]], histograms: Sequence[FloatArray]) -> None:
        """Take in the histograms of some runs, and merge as far as they allow."""
        for run, histogram in zip(runs, histograms, strict=True):
            self._known[run] = self._evidence(histogram)
        while not self.done and self._update():
            b = int(np.argmax(self._gain))
            if not self._gain[b] > 0.0:
                self.done = True
            else:
                self._join(b)

    def merged(self) -> Partition:
        """Return the blocks that merging has ended with."""
        first = self._first
        for b in range(first.size):
            first[b] = first[first[b]]
        into: Labels = np.unique(first, return_inverse=True)[1].astype(np.int32)
        return self.fine.merged(into)

    def _evidence(self, histogram: FloatArray) -> tuple[float, float, float, float]:
        """Return evidence, total weight, and sums of counts and of their squares."""
        m, count = histogram.size - 1, np.flatnonzero(histogram)
        h, total = histogram[count], float(histogram.sum())
        log_factorial, a = log_factorials(self.fine.labels.size), self.prior
        evidence = (
            float((gammaln(h + a) - gammaln(a)).sum())
            + float(h @ (log_factorial[count] + log_factorial[m - count]))
            - total * log_factorial[m]
            - float(gammaln(total + a * (m + 1)) - gammaln(a * (m + 1)))
        )
        return evidence, total, float(h @ count), float(h @ count.astype(np.float64) ** 2)

    def _pair(self, left: int) -> list[tuple[int, int]]:
        """Return the runs that the merge of a block with the next is about."""
        middle = int(self._following[left])
        end = int(self._following[middle])
        return [(left, middle), (middle, end), (left, end)]

    def _update(self) -> bool:
        """Compute the gains that are not known yet; say whether all runs were."""
        for left in list(self._unknown):
            runs = self._pair(left)
            if not all(run in self._known for run in runs):
                return False
            one, other, both = (self._known[run] for run in runs)
            gain = both[0] - one[0] - other[0]
            if gain > 0.0 and self._far_apart(runs, one, other, both):
                gain = -np.inf
            self._gain[left] = gain
            self._unknown.remove(left)
        return True

    def _far_apart(
        self,
        runs: list[tuple[int, int]],
        one: tuple[float, float, float, float],
        other: tuple[float, float, float, float],
        both: tuple[float, float, float, float],
    ) -> bool:
        """Whether two rates of ones differ by more than `limit` standard errors."""
        if self.limit == np.inf:
            return False
        m, m_other = (float(self._size(run)) for run in runs[:2])
        once = one[2] / m - other[2] / m_other
        product = (both[3] - one[3] - other[3]) / 2
        twice = one[3] / m**2 + other[3] / m_other**2 - 2 * product / (m * m_other)
        return once * once > self.limit**2 * max(twice - once * once / one[1], 0.0)

    def _size(self, run: tuple[int, int]) -> int:
        return int(self._before[run[1]] - self._before[run[0]])

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
        """Return what is needed, and of the guesses as many as there is room for."""
        asked = dict.fromkeys(needed)
        entries = sum(self._size(run) + 1 for run in needed)
        for run in guesses:
            entries += self._size(run) + 1
            if entries > MOST_ENTRIES:
                break
            if run not in self._known:
                asked[run] = None
        return list(asked)

    def _short_runs(self, fewest: int, most: int) -> list[tuple[int, int]]:
        n = self.fine.n_blocks
        return [(b, b + k) for k in range(fewest, most + 1) for b in range(n - k + 1)]

    def _starts(self) -> list[int]:
        """Return the first fine block of every block there is now, and the end."""
        found, b = [], 0
        while b < self._first.size:
            found.append(b)
            b = int(self._following[b])
        return [*found, self._first.size]

    def _guesses(self) -> list[tuple[int, int]]:
        """Return the runs that will be needed if those merges happen that look best now."""
        starts = self._starts()
        place = {b: i for i, b in enumerate(starts)}
        open_pairs = set(self._unknown)
        likely = [b for b in starts[:-1] if self._gain[b] > 0.0 or b in open_pairs]
        likely.sort(key=lambda b: -np.inf if b in open_pairs else -self._gain[b])
        used: set[int] = set()
        joined = []
        for b in likely:
            i = place[b]
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
        # Neighbours of a run are compared with it as they are.
        singles = [(starts[i], starts[i + 1]) for i in range(last)]
        return [*guesses, *singles]


def merge_in_rounds(merges: Sequence[RunMerge], count: Count) -> list[Partition]:
    """Run several merges to their ends, each pass answering what all of them ask."""
    while True:
        asked = [merge.wanted() for merge in merges]
        if not any(asked):
            return [merge.merged() for merge in merges]
        runs = [Runs.of(merge.fine, want) for merge, want in zip(merges, asked, strict=True)]
        for merge, want, each, found in zip(merges, asked, runs, count(runs), strict=True):
            if want:
                merge.learn(want, each.split(found))


def check_learner(learner: BlockLearner) -> None:
    """Refuse what cannot be learned from sums."""
    if 3 in learner.settings.conditions:
        raise ValueError(
            f"conditions={tuple(learner.settings.conditions)!r}: condition 3 needs the rows in "
            "memory; of rows in chunks or on a cluster blocks are learned by (1,) or (1, 2)"
        )


def learn_from_sums(
    learner: BlockLearner, sums: Sequence[ClassSums], n_variables: int, count: Count
) -> list[Partition]:
    """Return what `BlockLearner.learn` finds for every class, from sums over its rows."""
    settings = learner.settings
    one_block = Partition.from_labels(np.zeros(n_variables, dtype=np.int32))
    if learner.name == "independent":
        return [Partition.from_labels(np.arange(n_variables))] * len(sums)
    if learner.name == "full":
        return [one_block] * len(sums)
    found = []
    for total, ones, counted, squared in sums:
        level = settings.significance if learner.name == "welch" else settings.start
        alike = learner.name == "evidence" and (
            equal_means_from_sums(ones, counted, squared) > EQUAL_MEANS_LEVEL
        )
        if total <= 1 or alike:
            found.append(one_block)
        else:
            found.append(Partition.from_labels(sweep_counts(ones, total, level)))
    if learner.name == "evidence":
        merges = [RunMerge(fine, settings.prior, FAR_APART) for fine in found]
        found = merge_in_rounds(merges, count)
    return _split(learner, found, [ones for _, ones, *_ in sums], [total for total, *_ in sums])


def propose_from_sums(
    learner: BlockLearner, moments: FloatArray, totals: FloatArray, n: float, count: Count
) -> list[list[Partition]]:
    """Return what `BlockLearner.propose` does, from sums over the posteriors."""
    if not learner.needs_moments:
        nobody: list[ClassSums] = [(0.0, np.empty(0), 0.0, 0.0)] * totals.size
        return [learn_from_sums(learner, nobody, moments.shape[1], count)]
    swept = learner.sweeps(moments, n)
    proposals = [swept[0]]
    if learner.name == "evidence":
        merges = [RunMerge(fine, learner.settings.prior) for fine in swept[-1]]
        proposals.append(merge_in_rounds(merges, count))
    return [_split(learner, each, list(moments[0].T), totals) for each in proposals]


def _split(
    learner: BlockLearner,
    partitions: list[Partition],
    ones: Sequence[FloatArray],
    totals: Sequence[float] | FloatArray,
) -> list[Partition]:
    """Split the blocks of each class by condition 2, if that is switched on."""
    if 2 not in learner.settings.conditions:
        return partitions
    return [
        split_by_variance(partition, own, float(total), learner.settings.significance)
        if total > 1
        else partition
        for partition, own, total in zip(partitions, ones, totals, strict=True)
    ]
