"""Weighted urns: given how many variables of a block are on, heavier ones are on more often."""

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.later import later

SPECS = (
    FamilySpec(
        name="urns",
        summary="blocks whose variables have weights: given how many are on, heavier ones are "
        "on more often",
        model=later(f"{__name__}.model", "UrnModel"),
        family=later(f"{__name__}.family", "UrnFamily"),
        blocks=("full", "evidence", "welch", "given"),
        blocks_hint="with one variable in each urn its weight means nothing; family='blocks' has "
        "single variables",
        pooling=8.0,
        needs_smoothing=True,
        search=SearchSpace(nanoseconds=6.0),
        normalise=later(f"{__name__}.normalising", "normalise"),
        conditional=later(f"{__name__}.conditional", "conditional"),
    ),
)
