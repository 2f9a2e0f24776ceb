"""Blocks that are exchangeable with respect to any statistic, beside the paper's blocks.

It is composed of the paper's family, which has the variables that no statistic reads.
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
        cannot={
            "device": "a statistic may be anything that Python computes; passes over its values "
            "are made on the processor",
            "command line": "options cannot say which statistic a block has; use Python",
            "hybrid": "its scores are not log-linear in the variables; leave statistics away",
            "accept": "lists of blocks have no settings",
            "relearn": "lists of blocks have no settings",
        },
    ),
)
