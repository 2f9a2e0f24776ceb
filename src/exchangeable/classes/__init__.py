"""Latent class analysis over fitted mixtures: what a methods section needs.

``ExchangeableMixture.select`` chooses the number of classes, ``fit(X, covariates=Z)`` regresses
membership on covariates while classes are fitted, ``profiles()`` says what classes are like. The
functions of this module take a fitted mixture and its rows.
"""

from exchangeable.classes.analysis import Analysis, analyse
from exchangeable.classes.assignments import Classification, classification
from exchangeable.classes.criteria import Criteria, criteria_of
from exchangeable.classes.distal import Outcome, Outcomes, outcomes
from exchangeable.classes.errors import StandardErrors, standard_errors
from exchangeable.classes.likelihood_ratio import LikelihoodRatioTest, likelihood_ratio_test
from exchangeable.classes.profiles import Profiles
from exchangeable.classes.selection import Selection, Tried
from exchangeable.classes.three_step import Effects, covariate_effects

__all__ = [
    "Analysis",
    "Classification",
    "Criteria",
    "Effects",
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
    "likelihood_ratio_test",
    "outcomes",
    "standard_errors",
]
