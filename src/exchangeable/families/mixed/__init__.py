"""Columns of every kind: a component is a product of parts, each over columns of one kind."""

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.mixed.family import MixedFamily, UrnsFamily
from exchangeable.families.mixed.features import MixedFeatures
from exchangeable.families.mixed.model import MixedModel

CANNOT = {
    "partial_fit": "levels and transforms are decided from all rows at once; use fit",
    "chunks": "levels and transforms are decided from all rows; load X into memory",
    "accept": "its blocks are not learned",
    "relearn": "its blocks are not learned",
}
KINDS = ("binary", "nominal", "ordinal", "count", "continuous")
SPECS = (
    FamilySpec(
        name="mixed",
        summary="columns of any kind: categories, scales, counts and measurements",
        model=MixedModel,
        family=MixedFamily,
        blocks=("independent", "full", "given"),
        blocks_hint="which columns go together is not learned yet",
        shared_blocks=True,
        search=SearchSpace(pooling=(1.0, 1.0), blocks=("independent", "full")),
        features=MixedFeatures.of,
        kinds=KINDS,
        cannot=CANNOT,
    ),
    FamilySpec(
        name="polya",
        summary="columns of any kind; those of a block are draws from Pólya's urn, which makes "
        "what has occurred more probable: items that are alike, counts that come in bursts",
        model=MixedModel,
        family=UrnsFamily,
        blocks=("independent", "full", "given"),
        blocks_hint="which columns go together is not learned yet",
        shared_blocks=True,
        search=SearchSpace(pooling=(1.0, 1.0), blocks=("full",)),
        kinds=KINDS,
        cannot=CANNOT
        | {"hybrid": "scores of its urns are not log-linear; family='mixed' can be trained so"},
    ),
)
