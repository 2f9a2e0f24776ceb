"""Tractable statistics: the functions T with respect to which variables are exchangeable."""

from exchangeable.statistics.base import Statistic
from exchangeable.statistics.categorical import CategoricalCounts
from exchangeable.statistics.counts import BlockCounts, Count
from exchangeable.statistics.finite_state import FiniteState, Transitions
from exchangeable.statistics.nested import Nested, Pooled

__all__ = [
    "BlockCounts",
    "CategoricalCounts",
    "Count",
    "FiniteState",
    "Nested",
    "Pooled",
    "Statistic",
    "Transitions",
]
