"""Fewer parameters for many plain trees: they are merged, and their log-odds made of factors."""

import numpy as np

from exchangeable.families.mixture import Mixture
from exchangeable.families.trees.factoring import edges_shared, factored
from exchangeable.families.trees.merging import merged
from exchangeable.families.trees.model import TreeModel


def compact(
    mixture: Mixture, n_parameters: int, rank: int | None, rng: np.random.Generator
) -> Mixture | None:
    """Return a mixture near to another with at most this many parameters, None if there is none.

    Parameters
    ----------
    mixture : Mixture
        Of plain trees.
    n_parameters : int
        The largest number of parameters.
    rank : int or None
        That of the factors of which log-odds are made; None where these stay as they are.
    rng : Generator
        Draws the trees to begin with.
    """
    model: TreeModel = mixture.model  # type: ignore[assignment]
    n, k = model.slope.shape
    kinds, _ = edges_shared(model)
    n_kinds = max(1, kinds.shape[1])
    lines = n * n_kinds + int((kinds < n).sum())
    if rank is None:
        count = (n_parameters + 1) * n_kinds // (lines + n_kinds)
    elif rank < lines // n_kinds:
        count = (n_parameters + 1 - lines * (rank + 1)) // (rank + 1)
    else:
        return None
    if count < n_kinds:
        return None
    few = merged(mixture, count, rng) if count < k else mixture
    smaller = few if rank is None else factored(few, rank)
    return smaller if smaller.n_parameters <= n_parameters else None
