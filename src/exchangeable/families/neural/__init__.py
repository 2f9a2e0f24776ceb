"""Mixtures whose components a small network decodes from points of a latent space.

They are composed of other families: what training leaves are trees, with or without edges, or
weighted urns. Training needs JAX, the extra ``neural``; what was trained does not.
"""

from collections.abc import Mapping
from typing import Any

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.later import later
from exchangeable.families.neural.settings import Neural
from exchangeable.families.trees.limits import MOST_VARIABLES

CANNOT = {
    "classes": "its components share one network, which classes would each need for themselves",
    "semi_supervised": "its components are not classes",
    "partial_fit": "its network is trained over all rows; use fit",
    "warm_start": "nothing of its network is left after a fit; use fit without it",
    "chunks": "its rows are dealt out at random many times; load X into memory",
    "accept": "its blocks are not learned",
    "relearn": "its blocks are not learned",
    "pooling": "it has no prior but the network; held-out rows keep it from overfitting",
    "checkpoint": "its training goes on in memory alone; leave checkpoint away",
}
N_COMPONENTS = 8192


STEPS = {"learning_rate": (2.5, 1.6), "latent": (2.0, 1.4)}
"""What a search tries, and by which factors."""
TREE_STEPS = {**STEPS, "trees": (4.0, 2.0)}


START_UP = 6.0
"""Seconds that it takes to compile, about."""


def _space(
    nanoseconds: float, squared: float = 0.0, steps: Mapping[str, tuple[float, ...]] = STEPS
) -> SearchSpace:
    return SearchSpace(
        N_COMPONENTS,
        N_COMPONENTS,
        alone=True,
        steps=steps,
        nanoseconds=nanoseconds,
        squared=squared,
        start_up=START_UP,
    )


COMMON: dict[str, Any] = {
    "needs": "jax",
    "memory": later(f"{__name__}.family", "work"),
    "components": N_COMPONENTS,
    "most_per_row": float("inf"),
    "held_out": 0.1,
    "cannot": CANNOT,
}
SPECS = (
    FamilySpec(
        name="neural independent",
        summary="independent variables, decoded by a network from points of a latent space",
        model=later("exchangeable.families.trees.model", "TreeModel"),
        family=later(f"{__name__}.family", "IndependentTrainer"),
        blocks=("independent",),
        blocks_hint="its variables are independent in each component",
        settings=Neural("independent"),
        refits="tree",
        search=_space(3.0),
        **COMMON,
    ),
    FamilySpec(
        name="neural urns",
        summary="urns of weighted variables, decoded by a network from points of a latent space",
        model=later("exchangeable.families.urns.model", "UrnModel"),
        family=later(f"{__name__}.family", "UrnTrainer"),
        blocks=("full",),
        blocks_hint="each of its components is one urn of all variables",
        most_variables=MOST_VARIABLES,
        settings=Neural("urns"),
        refits="urns",
        search=_space(9.0, 0.05),
        **COMMON,
    ),
    FamilySpec(
        name="neural tree",
        summary="trees over the variables, decoded by a network from points of a latent space",
        model=later("exchangeable.families.trees.model", "TreeModel"),
        family=later(f"{__name__}.family", "TreeTrainer"),
        blocks=("independent",),
        blocks_hint="the nodes of its trees are the variables",
        most_variables=MOST_VARIABLES,
        settings=Neural("tree"),
        refits="tree",
        search=_space(7.0, steps=TREE_STEPS),
        **COMMON,
    ),
)
