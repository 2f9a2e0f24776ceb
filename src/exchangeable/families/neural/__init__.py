"""Mixtures whose components are decoded by a small network from points of a latent space.

They are built on other families: the result of training consists of trees, with or without edges,
or of weighted urns. Training needs JAX, the extra ``neural``; the trained model does not.
"""

from collections.abc import Mapping
from typing import Any

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.later import later
from exchangeable.families.neural.settings import Neural
from exchangeable.families.trees.limits import MOST_VARIABLES

CANNOT = {
    "accept": "its blocks are not learned",
    "relearn": "its blocks are not learned",
    "pooling": "its components are functions of one network, not of sums to which pseudo-rows "
    "could be added; held-out rows keep it from overfitting",
    "hybrid": "its classes are mixtures, whose scores are logarithms of sums over components, not "
    "log-linear in its parameters; choose another family",
}
N_COMPONENTS, CLASS_COMPONENTS = 8192, 1024
FIRST_COMPONENTS = 2048
"""In a search, these are trained in half of the time."""


STEPS = {"n_components": (4.0, 2.0), "learning_rate": (2.5, 1.6), "latent": (2.0, 1.4)}
"""What a search varies, and by which factors."""
TREE_STEPS = {**STEPS, "trees": (4.0, 2.0)}


START_UP = 3.0
"""Compile time in seconds, approximately."""
POWER = 0.25
"""More rows need fewer passes, and more variables use a machine better."""


def _space(
    like: str,
    nanoseconds: float,
    power: float = 1.0,
    squared: float = 0.0,
    steps: Mapping[str, tuple[float, ...]] = STEPS,
) -> SearchSpace:
    return SearchSpace(
        FIRST_COMPONENTS,
        N_COMPONENTS,
        alone=True,
        steps=steps,
        nanoseconds=nanoseconds,
        power=power,
        squared=squared,
        growth=0.6,
        start_up=START_UP,
        like=like,
    )


COMMON: dict[str, Any] = {
    "needs": "jax",
    "memory": later(f"{__name__}.family", "work"),
    "components": N_COMPONENTS,
    "class_components": CLASS_COMPONENTS,
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
        goes_on=later(f"{__name__}.anchored", "AnchoredTrees"),
        compact=later("exchangeable.families.trees.compact", "compact"),
        compact_model=later("exchangeable.families.trees.factored", "FactoredTrees"),
        search=_space("urns", 117_000.0, POWER),
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
        goes_on=later(f"{__name__}.anchored", "AnchoredUrns"),
        search=_space("urns", 15.0, squared=0.08),
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
        goes_on=later(f"{__name__}.anchored", "AnchoredTrees"),
        compact=later("exchangeable.families.trees.compact", "compact"),
        compact_model=later("exchangeable.families.trees.factored", "FactoredTrees"),
        search=_space("tree", 234_000.0, POWER, steps=TREE_STEPS),
        **COMMON,
    ),
)
