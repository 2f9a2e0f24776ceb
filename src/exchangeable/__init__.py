"""Tractable probabilistic models made of exchangeable variables."""

# ruff: noqa: E402
from importlib.metadata import version

from exchangeable.runtime.kernel_cache import find_room, guard_caches

find_room()  # before the first kernel is declared

from exchangeable.data.missing import with_missing
from exchangeable.data.packed import PackedBits
from exchangeable.data.stream.passes import write_packed
from exchangeable.estimators.classifier import ExchangeableClassifier
from exchangeable.estimators.density import ExchangeableDensity
from exchangeable.estimators.imputer import ExchangeableImputer
from exchangeable.estimators.kinds import Kinds
from exchangeable.estimators.mixture import ExchangeableMixture
from exchangeable.evm import EVM
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
from exchangeable.structure.blocks import Blocks
from exchangeable.structure.exchangeability import exchangeability_report

guard_caches()

__version__ = version("exchangeable")

__all__ = [
    "EVM",
    "BlockCounts",
    "Blocks",
    "CategoricalCounts",
    "Count",
    "ExchangeableClassifier",
    "ExchangeableDensity",
    "ExchangeableImputer",
    "ExchangeableMixture",
    "FiniteState",
    "Kinds",
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
