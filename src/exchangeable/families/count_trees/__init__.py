"""Trees over the counts of blocks, built on the paper's blocks, from whose fit they start."""

from dataclasses import replace
from typing import Any

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.later import later


def _blocks_first(problem: Any) -> tuple[str, Any]:
    """Return the problem of the blocks whose counts the trees connect."""
    return "blocks", replace(problem, pooling=None, shrinkage=0.0, relearns=True, valid=None)


SPECS = (
    FamilySpec(
        name="count tree",
        summary="a tree over the blocks of each component: how many are on in one depends on "
        "how many are on in another",
        model=later(f"{__name__}.model", "CountTreeModel"),
        family=later(f"{__name__}.family", "CountTreeFamily"),
        blocks=("evidence", "welch", "full", "given"),
        blocks_hint="family='tree' is a tree over single variables",
        pooling=8.0,
        shrinkage=4.0,
        needs_smoothing=True,
        before=_blocks_first,
        search=SearchSpace(8, nanoseconds=60.0),
        cannot={
            "device": "each class has bins and edges of its own, which do not make one array; its "
            "passes are made on the processor",
            "hybrid": "weights of single variables make the variables of a block unequal, and a "
            "tree over counts has only blocks of equal ones; choose another family",
            "relearn": "its blocks are always learned before its trees, and stay while those are",
        },
    ),
)
