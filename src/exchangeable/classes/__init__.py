"""Latent class analysis with fitted mixtures: what the methods section of a paper needs.

``ExchangeableMixture.select`` chooses the number of classes, ``fit(X, covariates=Z)`` regresses
membership on covariates while fitting classes, and ``profiles()`` describes the classes. The
functions of this module take a fitted mixture and its rows.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exchangeable.classes.analysis import Analysis, analyse
    from exchangeable.classes.assignments import Classification, classification
    from exchangeable.classes.criteria import Criteria, criteria_of
    from exchangeable.classes.profiles import Profiles
    from exchangeable.classes.regression.distal import Outcome, Outcomes, outcomes
    from exchangeable.classes.regression.three_step import Effects, covariate_effects
    from exchangeable.classes.selection import Selection, Tried
    from exchangeable.classes.uncertainty.errors import StandardErrors, standard_errors
    from exchangeable.classes.uncertainty.item_errors import ItemErrors, item_errors
    from exchangeable.classes.uncertainty.likelihood_ratio import (
        LikelihoodRatioTest,
        likelihood_ratio_test,
    )

_MODULES = {
    "Analysis": "analysis",
    "Classification": "assignments",
    "Criteria": "criteria",
    "Effects": "regression.three_step",
    "ItemErrors": "uncertainty.item_errors",
    "LikelihoodRatioTest": "uncertainty.likelihood_ratio",
    "Outcome": "regression.distal",
    "Outcomes": "regression.distal",
    "Profiles": "profiles",
    "Selection": "selection",
    "StandardErrors": "uncertainty.errors",
    "Tried": "selection",
    "analyse": "analysis",
    "classification": "assignments",
    "covariate_effects": "regression.three_step",
    "criteria_of": "criteria",
    "item_errors": "uncertainty.item_errors",
    "likelihood_ratio_test": "uncertainty.likelihood_ratio",
    "outcomes": "regression.distal",
    "standard_errors": "uncertainty.errors",
}
"""The module of each name: estimators need some of these modules, and imports take time."""

__all__ = [
    "Analysis",
    "Classification",
    "Criteria",
    "Effects",
    "ItemErrors",
    "LikelihoodRatioTest",
    "Outcome",
    "Outcomes",
    "Profiles",
    "Selection",
    "StandardErrors",
    "Tried",
    "analyse",
    "classification",
    "covariate_effects",
    "criteria_of",
    "item_errors",
    "likelihood_ratio_test",
    "outcomes",
    "standard_errors",
]


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
