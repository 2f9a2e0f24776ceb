"""Rasch and partial credit models: what a methods section needs, over families with totals.

`RaschModel` (in `exchangeable`) fits and answers; what it returns is described here.
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
