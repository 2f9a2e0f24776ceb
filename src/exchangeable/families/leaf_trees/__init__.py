"""Hidden trees whose blocks show values of statistics, or columns of any kind.

They are composed of the families that have these: blocks with statistics, and mixed kinds.
"""

from dataclasses import replace
from typing import Any

from exchangeable.families.contract import FamilySpec
from exchangeable.families.hidden_trees import SPECS as HIDDEN
from exchangeable.families.later import later
from exchangeable.families.mixed import KINDS
from exchangeable.families.statistics import SPECS as STATISTICS

CANNOT = dict(HIDDEN[0].cannot) | {
    "device": "its leaves are models of several families, whose rows and sums make no one array; "
    "its passes are made on the processor",
}


def _tree(**own: Any) -> FamilySpec:
    """Return a family of hidden trees with leaves, given what it does not share with counts."""
    return replace(
        HIDDEN[0],
        model=later(f"{__name__}.model", "LeafModel"),
        family=later(f"{__name__}.family", "LeafFamily"),
        kinds=KINDS,
        other_kinds=None,
        **own,
    )


SPECS = (
    _tree(
        summary="one tree over blocks with a hidden state each, which show values of statistics",
        statistics=True,
        cannot=CANNOT
        | {name: STATISTICS[0].cannot[name] for name in ("command line", "accept", "relearn")},
    ),
    _tree(
        name="mixed tree",
        summary="columns of any kind: one tree over blocks with a hidden state each; n_components "
        "is the number of states",
        search=None,
        cannot=CANNOT,
    ),
)
