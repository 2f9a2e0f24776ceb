"""Compiled loops over persons: who solved which items, given how many.

Given the score, the covariance of two items follows from their chances π: with weights t, P(both) =
(t_i·π_j − t_j·π_i) / (t_i − t_j). The covariances of an item with all items sum to 0, which gives
those of items whose weights are too close for the difference.
"""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.urns.kernels import expected_ones, log_polynomials
from exchangeable.families.urns.series_kernels import margin_above
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill

_compile = compiled()

NEAR = 1e-5
"""Weights that differ by less than this share count as equal in covariances."""


class Items(NamedTuple):
    """Items by ascending weight.

    Attributes
    ----------
    order : array of shape (n_items,)
        The item at each position.
    weights : array of shape (n_items,)
        Their weights.
    """

    order: IntArray
    weights: FloatArray


@_compile
def add_covariances(items, weights, chances, mass, information):  # type: ignore[no-untyped-def]
    """Add the covariances of items given a score to the lower triangle.

    Weights are ascending, so that similar ones are neighbours.
    """
    n = items.size
    first, end = 0, 0
    for i in range(n):
        own, chance, line = weights[i], chances[i], information[items[i]]
        while own - weights[first] > NEAR * (own + weights[first]):
            first += 1
        end = max(end, i + 1)
        while end < n and weights[end] - own <= NEAR * (own + weights[end]):
            end += 1
        line[items[i]] += mass * chance * (1.0 - chance)
        for j in range(first):
            both = (own * chances[j] - weights[j] * chance) / (own - weights[j])
            line[items[j]] += mass * (both - chance * chances[j])
        if end - first > 1:
            rest = -chance * (1.0 - chance)
            for j in range(n):
                if j < first or j >= end:
                    both = (own * chances[j] - weights[j] * chance) / (own - weights[j])
                    rest -= both - chance * chances[j]
            shared = 0.5 * mass * rest / (end - first - 1)
            for j in range(first, end):
                if j != i:
                    information[items[max(i, j)], items[min(i, j)]] += shared


@_compile
def add_patterns(answered, all_items, expected, information):  # type: ignore[no-untyped-def]
    """Add expectations and covariances of items given the scores; return the sum of log F.

    Both are in the order of the items by ascending weight.
    """
    n_all = all_items.order.size
    items, weights = np.empty(n_all, np.int64), np.empty(n_all)
    log_e, chances, unit = np.empty(n_all + 1), np.empty(n_all), np.empty(n_all + 1)
    fill(unit, 0.0)
    log_norm = 0.0
    for p in range(answered.patterns.shape[0]):
        n = 0
        for i in range(n_all):
            if answered.patterns[p, all_items.order[i]]:
                items[n], weights[n] = i, all_items.weights[i]
                n += 1
        begin, end = answered.begins[p], answered.begins[p + 1]
        top = margin_above(answered.scores[end - 1], n) + 1
        log_polynomials(weights[:n], log_e[:top])
        for record in range(begin, end):
            score, mass = answered.scores[record], answered.weights[record]
            log_norm += mass * log_e[score]
            unit[score] = 1.0
            expected_ones(weights[:n], unit[: score + 1], log_e[:top], chances[:n])
            unit[score] = 0.0
            for i in range(n):
                expected[items[i]] += mass * chances[i]
            add_covariances(items[:n], weights[:n], chances[:n], mass, information)
    return log_norm
