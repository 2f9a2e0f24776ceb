"""Items of a test whose total is a sufficient statistic: their parameters and sums.

P(x) = q(t)·Π_j ε_j(x_j) / F(t) with the total t = Σ_j x_j is Rasch's model if answers are 0 or 1,
and Masters' partial credit model if they are 0, 1, …, m_j. *Steps* are the answers above 0 of all
items, item by item; log ε of answer 0 is 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from exchangeable.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class ItemScale:
    """Items and the distribution of their total, for each class.

    Attributes
    ----------
    columns : array of shape (n_items,)
        Which columns the items are.
    highest : array of shape (n_items,)
        The highest answer of each.
    log_credits : array of shape (n_steps, n_classes)
        log ε; adding a multiple of the answers to a class changes nothing.
    log_totals : array of shape (n_totals, n_classes)
        log q of the totals 0, 1, …
    """

    columns: IntArray
    highest: IntArray
    log_credits: FloatArray
    log_totals: FloatArray

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.log_credits.shape[1])

    @cached_property
    def answers(self) -> IntArray:
        """The answer that each step represents."""
        return answers_of(self.highest)


def answers_of(highest: IntArray) -> IntArray:
    """Return the answer that each step represents.

    >>> answers_of(np.array([1, 3])).tolist()
    [1, 1, 2, 3]
    """
    return np.concatenate([np.arange(1, top + 1) for top in highest]).astype(np.int64)


def items_of(highest: IntArray) -> IntArray:
    """Return the item that each step belongs to.

    >>> items_of(np.array([1, 3])).tolist()
    [0, 1, 1, 1]
    """
    return np.repeat(np.arange(highest.size), highest)


class Answered(NamedTuple):
    """Persons grouped by answered items, and by their score on these.

    Attributes
    ----------
    patterns : array of shape (n_patterns, n_items)
        Which items were answered.
    begins : array of shape (n_patterns + 1,)
        First score of each pattern.
    scores : array of shape (n_scores,)
        The scores that occur, ascending in each pattern.
    weights : array of shape (n_scores,)
        The weight of the persons with this pattern and score.
    """

    patterns: npt.NDArray[np.bool_]
    begins: IntArray
    scores: IntArray
    weights: FloatArray

    def some(self, chosen: IntArray) -> "Answered":
        """Return some of the patterns with all their scores."""
        lengths = np.diff(self.begins)[chosen]
        begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        inside = np.repeat(self.begins[:-1][chosen] - begins[:-1], lengths) + np.arange(begins[-1])
        return Answered(self.patterns[chosen], begins, self.scores[inside], self.weights[inside])


class ConditionalSums(NamedTuple):
    """Sums over persons for the conditional likelihood of answers given the scores.

    Attributes
    ----------
    log_norm : float
        Σ log F(score), with F of the answered items.
    expected : array of shape (n_steps,)
        Expected number of answers of each step.
    information : array of shape (n_steps, n_steps)
        Their covariances: minus the second derivatives of the log-likelihood.
    """

    log_norm: float
    expected: FloatArray
    information: FloatArray


Conditional = Callable[[IntArray, FloatArray, Answered, int | None], ConditionalSums]
"""Computes these sums from the highest answers, log ε, persons, and the number of threads."""
