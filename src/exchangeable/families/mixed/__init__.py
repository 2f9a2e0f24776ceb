"""Columns of every kind: a component is a product of parts, each over columns of one kind."""

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.mixed.family import MixedFamily
from exchangeable.families.mixed.model import MixedModel

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
        kinds=("binary", "nominal", "ordinal", "count", "continuous"),
        cannot={
            "partial_fit": "levels and transforms are decided from all rows at once; use fit",
            "chunks": "levels and transforms are decided from all rows; load X into memory",
            "accept": "its blocks are not learned",
            "relearn": "its blocks are not learned",
            "hybrid": "columns of other kinds than binary have no weights in such scores yet",
        },
    ),
)
