"""Weighted urns: in a block heavier variables are on more often, given how many are."""

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.urns.conditional import conditional
from exchangeable.families.urns.family import UrnFamily
from exchangeable.families.urns.model import UrnModel
from exchangeable.families.urns.normalising import normalise

SPECS = (
    FamilySpec(
        name="urns",
        summary="blocks whose variables have weights: given how many are on, heavier ones are "
        "on more often",
        model=UrnModel,
        family=UrnFamily,
        blocks=("full", "evidence", "welch", "given"),
        blocks_hint="with one variable in each urn its weight means nothing; family='blocks' has "
        "single variables",
        pooling=8.0,
        needs_smoothing=True,
        cannot={
            "accept": "its components change their blocks all at once",
        },
        search=SearchSpace(),
        normalise=normalise,
        conditional=conditional,
    ),
)
