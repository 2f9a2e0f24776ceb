"""Hidden trees whose leaves are blocks with statistics, or columns of any kind.

They are built on the families that provide these: blocks with statistics, and mixed kinds.

`RootedTree` and `RootedTrees` (`hidden_trees/rooted.py`) are hidden trees with any kind of leaves;
messages, edges and the search for completions only use *codes*, which identify the content of a
block, and their probabilities in each state. Hidden trees over counts number pairs of count and
missing entries (`Symbols`), which is fast. Here a code is a distinct row of a block, and a `Leaf`
is a `Model` of the block's variables whose classes are the states. A tree uses its methods
`score_examples` (once per distinct row), `shared_out` (the sums of rows with known class
memberships), `marginals`, `predictive`, `complete`, `draw`, and `alternatives`: completions among
which the best one is, for any weights of the states. A leaf is fitted by its own `Family`, to the
block's distinct rows (`LeafFit`), or by passes over its columns if rows come in chunks
(`streaming.py`). To support another model as a leaf, give it `shared_out` and name it in
`leaves.py`.
"""

from dataclasses import replace
from typing import Any

from exchangeable.families.contract import FamilySpec
from exchangeable.families.hidden_trees import SPECS as HIDDEN
from exchangeable.families.later import later
from exchangeable.families.mixed import KINDS

CANNOT = dict(HIDDEN[0].cannot)


def _tree(**own: Any) -> FamilySpec:
    """Return a family of hidden trees with leaves, given how it differs from that over counts."""
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
