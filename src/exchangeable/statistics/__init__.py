"""Tractable statistics: the functions T with respect to which variables are exchangeable."""

from exchangeable.statistics.base import Statistic
from exchangeable.statistics.categorical import CategoricalCounts
from exchangeable.statistics.counts import BlockCounts, Count
from exchangeable.statistics.finite_state import FiniteState, Transitions
from exchangeable.statistics.nested import Nested, Pooled
from exchangeable.statistics.sequences import (
    FirstAndLast,
    LongestRun,
    Runs,
    SecondOrderTransitions,
)
from exchangeable.statistics.totals import AtLeast, WeightedSum

__all__ = [
    "AtLeast",
    "BlockCounts",
    "CategoricalCounts",
    "Count",
    "FiniteState",
    "FirstAndLast",
    "LongestRun",
    "Nested",
    "Pooled",
    "Runs",
    "SecondOrderTransitions",
    "Statistic",
    "Transitions",
    "WeightedSum",
]
