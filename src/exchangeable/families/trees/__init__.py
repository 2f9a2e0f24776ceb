"""Trees over the variables: plain (Chow-Liu), or weighted by the number of ones.

Weighted trees are built on weighted urns, from whose fit they start.
"""

from dataclasses import replace
from typing import Any

from exchangeable.families.contract import NUMBER, FamilySpec, SearchSpace, least_memory
from exchangeable.families.later import later
from exchangeable.families.trees.limits import MOST_VARIABLES

CANNOT = {
    "accept": "its blocks are not learned",
    "relearn": "its blocks are not learned",
}


def _urns_first(problem: Any) -> tuple[str, Any]:
    """Return the problem of the weighted urns from which weighted trees start."""
    return "urns", replace(problem, shrinkage=0.0)


def _memory(n_rows: int, n_variables: int, n_components: int) -> float:
    """Return the least memory of a fit: the masses of all pairs, for every component."""
    pairs = NUMBER * n_components * float(n_variables) ** 2
    return least_memory(n_rows, n_variables, n_components) + pairs


def _weighted_memory(n_rows: int, n_variables: int, n_components: int) -> float:
    """Return the least memory of a fit: the masses of all pairs, for one component at a time."""
    pairs = 2 * NUMBER * float(n_variables) ** 2
    return least_memory(n_rows, n_variables, n_components) + pairs


SPECS = (
    FamilySpec(
        name="tree",
        summary="a tree over the variables of each component (mixtures of Chow-Liu trees)",
        model=later(f"{__name__}.model", "TreeModel"),
        family=later(f"{__name__}.family", "TreeFamily"),
        blocks=("independent",),
        blocks_hint="its nodes are the variables; family='count tree' has blocks as nodes",
        pooling=8.0,
        shrinkage=32.0,
        needs_smoothing=True,
        most_variables=MOST_VARIABLES,
        memory=_memory,
        cannot=CANNOT,
        search=SearchSpace(nanoseconds=5.0, pairs=65.0),
        normalise=later(f"{__name__}.normalising", "normalise"),
    ),
    FamilySpec(
        name="weighted tree",
        summary="a tree over the variables, and a distribution of how many are on",
        model=later(f"{__name__}.model", "TreeModel"),
        family=later(f"{__name__}.family", "WeightedTreeFamily"),
        blocks=("full",),
        blocks_hint="its tree is over all variables; family='count tree' has blocks as nodes",
        pooling=8.0,
        shrinkage=200.0,
        needs_smoothing=True,
        most_variables=MOST_VARIABLES,
        memory=_weighted_memory,
        before=_urns_first,
        cannot=CANNOT,
        search=SearchSpace(nanoseconds=20.0, pairs=50.0),
        normalise=later(f"{__name__}.normalising", "normalise"),
    ),
)
