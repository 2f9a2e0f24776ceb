"""The conditional likelihood of the partial credit model: answers given their total."""

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.items import Answered, ConditionalSums, answers_of
from exchangeable.families.mixed.algebra import conditional_kernels as kernels
from exchangeable.runtime.threads import row_ranges, run

CHUNK = 64
"""Number of patterns that a thread works on at a time."""
WIDEST = 30.0
"""The common shift of all thresholds is searched within this."""


def conditional(
    highest: IntArray, log_credits: FloatArray, answered: Answered, n_jobs: int | None = None
) -> ConditionalSums:
    """Compute the sums for the likelihood given the scores, for items with any number of answers.

    >>> persons = Answered(np.ones((1, 2), bool), np.array([0, 1]), np.array([2]), np.ones(1))
    >>> credits = np.log([2.0, 1.0, 3.0])  # x = (1, 1) or (0, 2), with weights 2 and 3
    >>> conditional(np.array([1, 2]), credits, persons).expected.round(4).tolist()
    [0.4, 0.4, 0.6]
    """
    answers = answers_of(highest)
    possible = answered.patterns.astype(np.int64) @ highest
    share = (
        answered.weights
        @ answered.scores
        / (answered.weights @ np.repeat(possible, np.diff(answered.begins)))
    )
    shift = _shift(highest, log_credits, answers, float(share))
    items, log_sums = _items(highest, log_credits + shift * answers)
    n = log_credits.size

    def one(span: tuple[int, int]) -> tuple[float, FloatArray, FloatArray]:
        expected, information = np.zeros(n), np.zeros((n, n))
        part = answered.some(np.arange(*span))
        log_norm = kernels.add_patterns(part, items, expected, information)
        return log_norm, expected, information

    results = run(one, row_ranges(len(answered.patterns), CHUNK), n_jobs)
    persons = np.add.reduceat(answered.weights, answered.begins[:-1])
    scaled = float(persons @ (answered.patterns @ log_sums))
    moved = shift * float(answered.weights @ answered.scores)
    information = np.sum([each[2] for each in results], axis=0)
    return ConditionalSums(
        float(sum(each[0] for each in results)) + scaled - moved,
        np.sum([each[1] for each in results], axis=0),
        information + np.tril(information, -1).T,
    )


def _items(highest: IntArray, log_credits: FloatArray) -> tuple[kernels.Items, FloatArray]:
    """Return the items in the form of the kernels, and the logarithms of the sums of their ε."""
    begins = np.concatenate([[0], np.cumsum(highest)[:-1]]).astype(np.int64)
    raised = np.insert(log_credits, begins, 0.0)
    starts = begins + np.arange(highest.size)
    sizes = highest + 1
    log_sums = np.logaddexp.reduceat(raised, starts)
    shares = np.exp(raised - np.repeat(log_sums, sizes))
    return kernels.Items(starts, sizes, begins, shares), log_sums


def _shift(highest: IntArray, log_credits: FloatArray, answers: IntArray, share: float) -> float:
    """Return the shift for which the mean total is a given share of the highest one."""
    wanted, middle = share * float(highest.sum()), -float(np.mean(log_credits / answers))
    low, high = middle - WIDEST, middle + WIDEST
    for _ in range(40):
        middle = 0.5 * (low + high)
        items, _ = _items(highest, log_credits + middle * answers)
        scores = np.concatenate([np.arange(top + 1) for top in highest])
        low, high = (middle, high) if float(items.shares @ scores) < wanted else (low, middle)
    return 0.5 * (low + high)
