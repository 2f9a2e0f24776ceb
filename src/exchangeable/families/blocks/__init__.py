"""The paper's family: independent blocks of exchangeable variables."""

from exchangeable.families.blocks.classes import BlockClasses
from exchangeable.families.blocks.family import BlockFamily
from exchangeable.families.blocks.model import BlockModel
from exchangeable.families.blocks.online import BlockStream
from exchangeable.families.contract import FamilySpec

DRAWN = (
    "the first parameters are counted in rows whose holes are drawn one after the other, in the "
    "order of all distinct rows; load X into memory"
)

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
        cannot={"holes in chunks": DRAWN},
    ),
)
