"""Latent class analysis over fitted mixtures: what a methods section needs.

``ExchangeableMixture.select`` chooses the number of classes, ``fit(X, covariates=Z)`` regresses
membership on covariates while classes are fitted, ``profiles()`` says what classes are like. The
functions of this module take a fitted mixture and its rows.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exchangeable.classes.analysis import Analysis, analyse
    from exchangeable.classes.assignments import Classification, classification
    from exchangeable.classes.criteria import Criteria, criteria_of
    from exchangeable.classes.distal import Outcome, Outcomes, outcomes
    from exchangeable.classes.errors import StandardErrors, standard_errors
    from exchangeable.classes.item_errors import ItemErrors, item_errors
    from exchangeable.classes.likelihood_ratio import LikelihoodRatioTest, likelihood_ratio_test
    from exchangeable.classes.profiles import Profiles
    from exchangeable.classes.selection import Selection, Tried
    from exchangeable.classes.three_step import Effects, covariate_effects

_MODULES = {
    "Analysis": "analysis",
    "Classification": "assignments",
    "Criteria": "criteria",
    "Effects": "three_step",
    "ItemErrors": "item_errors",
    "LikelihoodRatioTest": "likelihood_ratio",
    "Outcome": "distal",
    "Outcomes": "distal",
    "Profiles": "profiles",
    "Selection": "selection",
    "StandardErrors": "errors",
    "Tried": "selection",
    "analyse": "analysis",
    "classification": "assignments",
    "covariate_effects": "three_step",
    "criteria_of": "criteria",
    "item_errors": "item_errors",
    "likelihood_ratio_test": "likelihood_ratio",
    "outcomes": "distal",
    "standard_errors": "errors",
}
"""Where the names are: estimators need some of these modules, and imports take time."""

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
