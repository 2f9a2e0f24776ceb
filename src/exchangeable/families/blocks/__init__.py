"""The paper's family: independent blocks of exchangeable variables."""

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.later import later

SPECS = (
    FamilySpec(
        name="blocks",
        summary="blocks of exchangeable variables, independent of each other (the paper's model)",
        model=later(f"{__name__}.model", "BlockModel"),
        family=later(f"{__name__}.family", "BlockFamily"),
        direct=later(f"{__name__}.classes", "BlockClasses"),
        stream=later(f"{__name__}.online", "BlockStream"),
        blocks=("evidence", "welch", "independent", "full", "given"),
        relearns=True,
        search=SearchSpace(nanoseconds=16.0),
        normalise=later(f"{__name__}.normalising", "normalise"),
        other_kinds="mixed",
    ),
)
