"""Mixtures whose components a small network decodes from points of a latent space.

They are composed of other families: what training leaves are trees, with or without edges, or
weighted urns. Training needs JAX, the extra ``neural``; what was trained does not.
"""

from exchangeable.families.contract import FamilySpec, SearchSpace
from exchangeable.families.neural.family import NeuralTrainer
from exchangeable.families.neural.settings import Neural
from exchangeable.families.trees.model import TreeModel

CANNOT = {
    "classes": "its components share one network, which classes would each need for themselves",
    "semi_supervised": "its components are not classes",
    "partial_fit": "its network is trained over all rows; use fit",
    "warm_start": "nothing of its network is left after a fit; use fit without it",
    "chunks": "its rows are dealt out at random many times; load X into memory",
    "accept": "its blocks are not learned",
    "pooling": "it has no prior but the network; held-out rows keep it from overfitting",
    "checkpoint": "its training goes on in memory alone; leave checkpoint away",
}
N_COMPONENTS = 8192
WORK = 2.0e9
"""Bytes that JAX, its compiler and the scores of a batch take, about."""


def _memory(n_rows: int, n_variables: int, n_components: int) -> float:
    """Return what a fit needs at least: rows as bytes, and the components twice."""
    return WORK + float(n_rows) * n_variables + 16.0 * n_components * n_variables


SPECS = (
    FamilySpec(
        name="neural independent",
        summary="independent variables, decoded by a network from points of a latent space",
        model=TreeModel,
        family=NeuralTrainer,
        blocks=("independent",),
        blocks_hint="its variables are independent in each component",
        cannot=CANNOT,
        search=SearchSpace(N_COMPONENTS, N_COMPONENTS, alone=True, climbs=False, unasked=False),
        memory=_memory,
        components=N_COMPONENTS,
        most_per_row=float("inf"),
        held_out=0.1,
        settings=Neural("independent"),
    ),
)
