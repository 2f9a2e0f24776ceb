"""Blocks that are exchangeable with respect to any statistic, beside the paper's blocks.

It is built on the paper's family, which models the variables that no statistic reads.
"""

from exchangeable.families.contract import FamilySpec
from exchangeable.families.later import later

SPECS = (
    FamilySpec(
        name="blocks",
        summary="blocks with statistics that users name, and blocks of exchangeable variables",
        model=later(f"{__name__}.model", "MixedBlocksModel"),
        family=later(f"{__name__}.family", "StatisticFamily"),
        blocks=("evidence", "welch", "independent", "full", "given"),
        relearns=True,
        statistics=True,
        features=later(f"{__name__}.features", "StatisticFeatures.of"),
    ),
)
