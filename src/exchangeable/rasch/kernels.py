"""Compiled loops over persons: abilities at which the expected score equals the observed one."""

from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.runtime.kernels.cache import compiled

_compile = compiled()

MOST_STEPS = 200
FARTHEST = 60.0
"""Abilities are searched between minus and plus this."""


class Items(NamedTuple):
    """Items in the form that the loops need.

    Attributes
    ----------
    begins, highest : array of shape (n_items,)
        First step of each item, and number of steps.
    log_credits : array of shape (n_steps,)
        log ε of all steps.
    """

    begins: IntArray
    highest: IntArray
    log_credits: FloatArray


@_compile
def moments(pattern, items, ability, out):  # type: ignore[no-untyped-def]
    """Write mean, variance and third central moment of the score on the answered items."""
    mean, variance, third = 0.0, 0.0, 0.0
    for j in range(items.highest.size):
        if not pattern[j]:
            continue
        first, top = items.begins[j], items.highest[j]
        largest = 0.0
        for v in range(1, top + 1):
            largest = max(largest, items.log_credits[first + v - 1] + v * ability)
        whole = np.exp(-largest)
        one, two, three = 0.0, 0.0, 0.0
        for v in range(1, top + 1):
            mass = np.exp(items.log_credits[first + v - 1] + v * ability - largest)
            whole += mass
            one += v * mass
            two += v * v * mass
            three += v * v * v * mass
        one, two, three = one / whole, two / whole, three / whole
        mean += one
        variance += two - one * one
        third += three - 3.0 * one * two + 2.0 * one * one * one
    out[0], out[1], out[2] = mean, variance, third


@_compile
def solve_abilities(patterns, scores, items, weighted, abilities, errors):  # type: ignore[no-untyped-def]
    """Write the ability of each pattern and score, and its standard error.

    With `weighted` this is Warm's weighted likelihood estimate, which is finite for all scores;
    otherwise maximum likelihood, for scores that are not extreme.
    """
    expected = np.empty(3)
    for r in range(scores.size):
        low, high, ability = -FARTHEST, FARTHEST, 0.0
        for _ in range(MOST_STEPS):
            moments(patterns[r], items, ability, expected)
            slope = scores[r] - expected[0]
            if weighted and expected[1] > 0.0:
                slope += 0.5 * expected[2] / expected[1]
            if slope > 0.0:
                low = ability
            else:
                high = ability
            step = slope / max(expected[1], 1e-300)
            tried = ability + min(max(step, -2.0), 2.0)
            if not (low < tried < high):
                tried = 0.5 * (low + high)
            moved = abs(tried - ability)
            ability = tried
            if moved < 1e-10 * (1.0 + abs(ability)):
                break
        moments(patterns[r], items, ability, expected)
        abilities[r], errors[r] = ability, 1.0 / np.sqrt(expected[1])


@_compile
def spread_scores(patterns, items, out):  # type: ignore[no-untyped-def]
    """Write the log of the ε-weighted number of ways in which the other items give each total.

    It is −inf if there are none.
    """
    width = out.shape[1]
    before, after = np.zeros(width), np.zeros(width)
    for r in range(patterns.shape[0]):
        for t in range(width):
            before[t], after[t] = -np.inf, -np.inf
        before[0] = 0.0
        degree = 0
        for j in range(items.highest.size):
            if patterns[r, j]:
                continue
            degree += items.highest[j]
            for t in range(degree + 1):
                top = before[t]
                for v in range(1, min(items.highest[j], t) + 1):
                    top = max(top, before[t - v] + items.log_credits[items.begins[j] + v - 1])
                value = np.exp(before[t] - top)
                for v in range(1, min(items.highest[j], t) + 1):
                    log_ways = before[t - v] + items.log_credits[items.begins[j] + v - 1]
                    value += np.exp(log_ways - top)
                after[t] = top + np.log(value)
            before, after = after, before
        for t in range(width):
            out[r, t] = before[t] if t <= degree else -np.inf


@_compile
def share_out(chances, scores, weights, shares, out):  # type: ignore[no-untyped-def]
    """Distribute the weight of persons over their possible totals, by the totals' probabilities.

    `chances` is the probability of each person's score given a total, up to a factor per person.
    """
    for r in range(scores.size):
        end = min(chances.shape[1], shares.size - scores[r])
        whole = 0.0
        for u in range(end):
            whole += chances[r, u] * shares[scores[r] + u]
        for u in range(end):
            out[scores[r] + u] += weights[r] * chances[r, u] * shares[scores[r] + u] / whole
