"""Latent class analysis over fitted mixtures: what a methods section needs."""

from exchangeable.classes.criteria import Criteria, criteria_of
from exchangeable.classes.likelihood_ratio import LikelihoodRatioTest, likelihood_ratio_test
from exchangeable.classes.selection import Selection, Tried

__all__ = [
    "Criteria",
    "LikelihoodRatioTest",
    "Selection",
    "Tried",
    "criteria_of",
    "likelihood_ratio_test",
]
