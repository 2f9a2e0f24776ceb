"""Hidden trees whose blocks show values of statistics, or columns of any kind.

They are composed of the families that have these: blocks with statistics, and mixed kinds.
"""

from dataclasses import replace

from exchangeable.families.hidden_trees import SPECS as HIDDEN
from exchangeable.families.leaf_trees.family import LeafFamily
from exchangeable.families.leaf_trees.model import LeafModel
from exchangeable.families.mixed import CANNOT as MIXED_CANNOT
from exchangeable.families.mixed import KINDS
from exchangeable.families.statistics import SPECS as STATISTICS

CANNOT = dict(HIDDEN[0].cannot) | {
    "device": "its leaves are models of several families, whose rows and sums make no one array; "
    "its passes are made on the processor",
    "chunks": "its tree and its leaves begin with the distinct rows of every block, which must be "
    "in memory; load X, or choose family='blocks'",
}
_TREE = replace(
    HIDDEN[0],
    model=LeafModel,
    family=LeafFamily,
    kinds=KINDS,
    other_kinds=None,
    search=None,
    cannot=CANNOT,
)
SPECS = (
    replace(
        _TREE,
        summary="one tree over blocks with a hidden state each, which show values of statistics",
        statistics=True,
        search=HIDDEN[0].search,
        cannot=CANNOT
        | {name: STATISTICS[0].cannot[name] for name in ("command line", "accept", "relearn")},
    ),
    replace(
        _TREE,
        name="mixed tree",
        summary="columns of any kind: one tree over blocks with a hidden state each; n_components "
        "is the number of states",
        cannot=CANNOT | {name: MIXED_CANNOT[name] for name in ("partial_fit", "chunks")},
    ),
)
