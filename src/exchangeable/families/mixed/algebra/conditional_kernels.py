"""Compiled loops over persons: who gave which answers, given their total."""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernels.cache import compiled
from exchangeable.runtime.kernels.loops import fill

_compile = compiled()


class Items(NamedTuple):
    """Items and the probabilities of their answers, as if they were independent.

    Attributes
    ----------
    starts, sizes : array of shape (n_items,)
        The start of each item's answers in `shares`, and their number.
    steps : array of shape (n_items,)
        The start of its answers above 0 among all such answers.
    shares : array of shape (n_answers,)
        The probabilities, which sum to one for each item.
    """

    starts: IntArray
    sizes: IntArray
    steps: IntArray
    shares: FloatArray


@_compile
def multiply(before, share, after):  # type: ignore[no-untyped-def]
    """Write the distribution of a total including one more item."""
    for t in range(before.size):
        value = 0.0
        for v in range(min(share.size, t + 1)):
            value += share[v] * before[t - v]
        after[t] = value


@_compile
def look_back(later, share, earlier):  # type: ignore[no-untyped-def]
    """Write what follows from each total so far, given what follows with one more item."""
    for t in range(later.size):
        value = 0.0
        for v in range(min(share.size, later.size - t)):
            value += share[v] * later[t + v]
        earlier[t] = value


@_compile
def product(first, second, shift):  # type: ignore[no-untyped-def]
    """Return Σ_t first[t]·second[t + shift]."""
    value = 0.0
    for t in range(first.size - shift):
        value += first[t] * second[t + shift]
    return value


@_compile
def add_pairs(members, items, before, after, information):  # type: ignore[no-untyped-def]
    """Add the mass of all pairs of answers of different items to the lower triangle."""
    width = before.shape[1]
    totals, moved = np.empty(width), np.empty(width)
    for i in range(members.size):
        first = members[i]
        for a in range(1, items.sizes[first]):
            fill(totals, 0.0)
            for t in range(width - a):
                totals[t + a] = before[i, t] * items.shares[items.starts[first] + a]
            for j in range(i + 1, members.size):
                second = members[j]
                begin, end = items.starts[second], items.starts[second] + items.sizes[second]
                for b in range(1, items.sizes[second]):
                    both = items.shares[begin + b] * product(totals, after[j + 1], b)
                    information[items.steps[second] + b - 1, items.steps[first] + a - 1] += both
                multiply(totals, items.shares[begin:end], moved)
                totals, moved = moved, totals


@_compile
def add_patterns(answered, items, expected, information):  # type: ignore[no-untyped-def]
    """Add expectations and covariances of answers given the totals; return the sum of log F."""
    n_all, n_steps, log_norm = items.sizes.size, expected.size, 0.0
    all_members, chances = np.empty(n_all, np.int64), np.empty(n_steps)
    for p in range(answered.patterns.shape[0]):
        n = 0
        for j in range(n_all):
            if answered.patterns[p, j]:
                all_members[n] = j
                n += 1
        members = all_members[:n]
        begin, end = answered.begins[p], answered.begins[p + 1]
        width = answered.scores[end - 1] + 1
        before, after = np.zeros((n + 1, width)), np.zeros((n + 1, width))
        before[0, 0] = 1.0
        for i in range(n):
            first = items.starts[members[i]]
            multiply(
                before[i], items.shares[first : first + items.sizes[members[i]]], before[i + 1]
            )
        for record in range(begin, end):
            score, mass = answered.scores[record], answered.weights[record]
            whole = before[n, score]
            log_norm += mass * np.log(whole)
            fill(after[n], 0.0)
            after[n, score] = 1.0 / whole
            for i in range(n - 1, -1, -1):
                first = items.starts[members[i]]
                share = items.shares[first : first + items.sizes[members[i]]]
                look_back(after[i + 1], share, after[i])
            for i in range(n):
                first, step = items.starts[members[i]], items.steps[members[i]]
                for v in range(1, items.sizes[members[i]]):
                    chance = items.shares[first + v] * product(before[i], after[i + 1], v)
                    chances[step + v - 1] = chance
                    expected[step + v - 1] += mass * chance
            subtract_products(members, items, chances, mass, information)
        fill(after[n], 0.0)
        for record in range(begin, end):
            score = answered.scores[record]
            after[n, score] = answered.weights[record] / before[n, score]
        for i in range(n - 1, -1, -1):
            first = items.starts[members[i]]
            share = items.shares[first : first + items.sizes[members[i]]]
            look_back(after[i + 1], share, after[i])
        add_pairs(members, items, before, after, information)
    return log_norm


@_compile
def subtract_products(members, items, chances, mass, information):  # type: ignore[no-untyped-def]
    """Add variances, and subtract the products of chances given a score."""
    for i in range(members.size):
        begin = items.steps[members[i]]
        for a in range(begin, begin + items.sizes[members[i]] - 1):
            information[a, a] += mass * chances[a]
            for j in range(i + 1):
                other = items.steps[members[j]]
                for b in range(other, min(other + items.sizes[members[j]] - 1, a + 1)):
                    information[a, b] -= mass * chances[a] * chances[b]
