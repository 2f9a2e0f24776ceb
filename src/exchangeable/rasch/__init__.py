"""Rasch and partial credit models: estimates, tests and abilities, as psychometrics needs them.

`RaschModel` (in `exchangeable`) is the estimator; what it returns is defined here.
"""

from exchangeable.rasch.andersen import AndersenTest
from exchangeable.rasch.differences import ItemDifferences
from exchangeable.rasch.fitted import item_parameters
from exchangeable.rasch.parameters import ItemParameters
from exchangeable.rasch.persons import Abilities, Population

__all__ = [
    "Abilities",
    "AndersenTest",
    "ItemDifferences",
    "ItemParameters",
    "Population",
    "item_parameters",
]
