"""Tractable probabilistic models made of exchangeable variables."""

from importlib.metadata import version

from exchangeable.component import EVM
from exchangeable.statistics import (
    BlockCounts,
    CategoricalCounts,
    Count,
    FiniteState,
    Nested,
    Pooled,
    Statistic,
    Transitions,
)

__version__ = version("exchangeable")

__all__ = [
    "EVM",
    "BlockCounts",
    "CategoricalCounts",
    "Count",
    "FiniteState",
    "Nested",
    "Pooled",
    "Statistic",
    "Transitions",
    "__version__",
]
