"""The paper's family: independent blocks of exchangeable variables."""

from exchangeable.families.blocks.classes import BlockClasses
from exchangeable.families.blocks.family import BlockFamily
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.blocks.online import BlockStream
from exchangeable.families.contract import FamilySpec

SPECS = (
    FamilySpec(
        name="blocks",
        summary="blocks of exchangeable variables, independent of each other (the paper's model)",
        model=BlockModel,
        family=BlockFamily,
        direct=BlockClasses,
        stream=BlockStream,
        blocks=("evidence", "welch", "independent", "full", "given"),
        relearns=True,
        other_kinds="mixed",
    ),
)
