"""Tractable probabilistic models made of exchangeable variables."""

from importlib.metadata import version

from exchangeable.component import EVM
from exchangeable.engines.chunked import write_packed
from exchangeable.engines.packed import PackedBits
from exchangeable.missing import with_missing
from exchangeable.models.classifier import ExchangeableClassifier
from exchangeable.models.density import ExchangeableDensity
from exchangeable.models.imputer import ExchangeableImputer
from exchangeable.models.mixture import ExchangeableMixture
from exchangeable.persistence import ModelFileError, load, save
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
from exchangeable.structure.exchangeability import exchangeability_report

__version__ = version("exchangeable")

__all__ = [
    "EVM",
    "BlockCounts",
    "CategoricalCounts",
    "Count",
    "ExchangeableClassifier",
    "ExchangeableDensity",
    "ExchangeableImputer",
    "ExchangeableMixture",
    "FiniteState",
    "ModelFileError",
    "Nested",
    "PackedBits",
    "Pooled",
    "Statistic",
    "Transitions",
    "__version__",
    "exchangeability_report",
    "load",
    "save",
    "with_missing",
    "write_packed",
]
