"""The contract of a family of distributions, over which everything else is written.

A *model* holds the parameters of several distributions over the same variables, one per class or
component, and answers four questions about rows with missing entries. A *family* turns sums over
rows into parameters. A *specification* holds the family's name and what it supports. All other
modules (EM, search, averages, queries, files, command line, page) use these three and refer to no
specific family.
"""

from exchangeable.families.family import Begun, Family, Trainer
from exchangeable.families.model import (
    MOST_CELLS,
    Arrays,
    Completions,
    Model,
    single_variables,
)
from exchangeable.families.predictive import Normal, Normals, averaged
from exchangeable.families.spec import NUMBER, FamilySpec, SearchSpace, least_memory

__all__ = [
    "MOST_CELLS",
    "NUMBER",
    "Arrays",
    "Begun",
    "Completions",
    "Family",
    "FamilySpec",
    "Model",
    "Normal",
    "Normals",
    "SearchSpace",
    "Trainer",
    "averaged",
    "least_memory",
    "single_variables",
]
