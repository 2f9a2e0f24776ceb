"""Hidden trees whose blocks show values of statistics, or columns of any kind.

They are composed of the families that have these: blocks with statistics, and mixed kinds.

`RootedTree` and `RootedTrees` (`hidden_trees/rooted.py`) are hidden trees whatever their blocks
show; messages, edges and the search for completions know only *codes*: what a block shows, and how
probable that is in each state. Hidden trees over counts number counts and holes (`Symbols`), and
are the fast way. Here a code is a distinct row of a block, and a `Leaf` is a `Model` of the block's
variables whose classes are the states. Of it a tree asks `score_examples` (once per distinct row),
`shared_out` (the sums of rows of which it is known how much is of each class), `marginals`,
`predictive`, `complete`, `draw`, and `alternatives`: completions among which the best is, whatever
states weigh. A leaf is fitted by its own `Family`, to the block's distinct rows (`LeafFit`), or
where rows come in chunks to passes over its columns (`streaming.py`). To let another model be a
leaf, give it `shared_out` and name it in `leaves.py`.
"""

from dataclasses import replace
from typing import Any

from exchangeable.families.contract import FamilySpec
from exchangeable.families.hidden_trees import SPECS as HIDDEN
from exchangeable.families.later import later
from exchangeable.families.mixed import KINDS

CANNOT = dict(HIDDEN[0].cannot)


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
        cannot=CANNOT,
    ),
    _tree(
        name="mixed tree",
        summary="columns of any kind: one tree over blocks with a hidden state each; n_components "
        "is the number of states",
        search=None,
        cannot=CANNOT,
    ),
)
