"""Tractable probabilistic models made of exchangeable variables."""

TYPE_CHECKING = False  # what `typing` imports takes longer than all that is imported here
if TYPE_CHECKING:
    from typing import Any

    from exchangeable.data.missing import with_missing
    from exchangeable.data.packed import PackedBits
    from exchangeable.data.stream.passes import write_packed
    from exchangeable.estimators.classifier import ExchangeableClassifier
    from exchangeable.estimators.density import ExchangeableDensity
    from exchangeable.estimators.imputer import ExchangeableImputer
    from exchangeable.estimators.kinds import Kinds
    from exchangeable.estimators.mixture import ExchangeableMixture
    from exchangeable.estimators.rasch import RaschModel
    from exchangeable.evm import EVM
    from exchangeable.families import Neural
    from exchangeable.fitting.hybrid.settings import Hybrid
    from exchangeable.fitting.trainings import Chosen, Generative
    from exchangeable.persistence import ModelFileError, load, save
    from exchangeable.statistics import (
        AtLeast,
        BlockCounts,
        CategoricalCounts,
        Count,
        FiniteState,
        FirstAndLast,
        LongestRun,
        Nested,
        Pooled,
        Runs,
        SecondOrderTransitions,
        Statistic,
        Transitions,
        WeightedSum,
    )
    from exchangeable.structure.blocks import Blocks
    from exchangeable.structure.exchangeability import exchangeability_report

    __version__: str

_MODULES = {
    "AtLeast": "statistics",
    "BlockCounts": "statistics",
    "Blocks": "structure.blocks",
    "CategoricalCounts": "statistics",
    "Chosen": "fitting.trainings",
    "Count": "statistics",
    "EVM": "evm",
    "ExchangeableClassifier": "estimators.classifier",
    "ExchangeableDensity": "estimators.density",
    "ExchangeableImputer": "estimators.imputer",
    "ExchangeableMixture": "estimators.mixture",
    "FiniteState": "statistics",
    "FirstAndLast": "statistics",
    "Generative": "fitting.trainings",
    "Hybrid": "fitting.hybrid.settings",
    "Kinds": "estimators.kinds",
    "LongestRun": "statistics",
    "ModelFileError": "persistence",
    "Nested": "statistics",
    "Neural": "families",
    "PackedBits": "data.packed",
    "Pooled": "statistics",
    "RaschModel": "estimators.rasch",
    "Runs": "statistics",
    "SecondOrderTransitions": "statistics",
    "Statistic": "statistics",
    "Transitions": "statistics",
    "WeightedSum": "statistics",
    "exchangeability_report": "structure.exchangeability",
    "load": "persistence",
    "save": "persistence",
    "with_missing": "data.missing",
    "write_packed": "data.stream.passes",
}
"""Where the public names are: modules are imported when a name of theirs is first used."""

__all__ = [
    "EVM",
    "AtLeast",
    "BlockCounts",
    "Blocks",
    "CategoricalCounts",
    "Chosen",
    "Count",
    "ExchangeableClassifier",
    "ExchangeableDensity",
    "ExchangeableImputer",
    "ExchangeableMixture",
    "FiniteState",
    "FirstAndLast",
    "Generative",
    "Hybrid",
    "Kinds",
    "LongestRun",
    "ModelFileError",
    "Nested",
    "Neural",
    "PackedBits",
    "Pooled",
    "RaschModel",
    "Runs",
    "SecondOrderTransitions",
    "Statistic",
    "Transitions",
    "WeightedSum",
    "__version__",
    "exchangeability_report",
    "load",
    "save",
    "with_missing",
    "write_packed",
]


def __getattr__(name: str) -> "Any":
    value: Any
    if name == "__version__":
        from importlib.metadata import version

        value = version("exchangeable")
    elif name in _MODULES:
        from importlib import import_module

        module = _MODULES[name]
        if module.startswith("structure."):  # families import from there, and must come first
            import_module("exchangeable.families")
        value = getattr(import_module(f"exchangeable.{module}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
