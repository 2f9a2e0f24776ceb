"""The conditional likelihood of Rasch's model: binary items given how many were solved."""

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.items import Answered, ConditionalSums
from exchangeable.families.urns import conditional_kernels as kernels
from exchangeable.runtime.threads import row_ranges, run

CHUNK = 512
"""Number of patterns that a thread works on at a time."""


def conditional(
    highest: IntArray, log_credits: FloatArray, answered: Answered, n_jobs: int | None = None
) -> ConditionalSums:
    """Compute the sums for the likelihood given the scores; all items must be binary.

    >>> persons = Answered(np.ones((1, 3), bool), np.array([0, 1]), np.array([1]), np.ones(1))
    >>> conditional(np.ones(3, int), np.log([1.0, 2.0, 3.0]), persons).expected.round(4).tolist()
    [0.1667, 0.3333, 0.5]
    """
    n = highest.size
    order = np.argsort(log_credits, kind="stable")
    weights = np.exp(log_credits - log_credits.mean())
    items = kernels.Items(order, weights[order])

    def one(span: tuple[int, int]) -> tuple[float, FloatArray, FloatArray]:
        expected, information = np.zeros(n), np.zeros((n, n))
        part = answered.some(np.arange(*span))
        log_norm = kernels.add_patterns(part, items, expected, information)
        return log_norm, expected, information

    results = run(one, row_ranges(len(answered.patterns), CHUNK), n_jobs)
    expected, information = np.empty(n), np.empty((n, n))
    expected[order] = np.sum([each[1] for each in results], axis=0)
    lower = np.sum([each[2] for each in results], axis=0)
    information[np.ix_(order, order)] = lower + np.tril(lower, -1).T
    middle = log_credits.mean() * float(answered.weights @ answered.scores)
    log_norm = float(sum(each[0] for each in results)) + middle
    return ConditionalSums(log_norm, expected, information)
