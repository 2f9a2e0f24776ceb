"""Fewer parameters for many plain trees: merging them, and factorising their log-odds."""

import numpy as np

from exchangeable.families.mixture import Mixture
from exchangeable.families.trees.factoring import edges_shared, factored
from exchangeable.families.trees.merging import merged
from exchangeable.families.trees.model import TreeModel


def compact(
    mixture: Mixture, n_parameters: int, rank: int | None, rng: np.random.Generator
) -> Mixture | None:
    """Return a similar mixture with at most this many parameters, None if there is none.

    Parameters
    ----------
    mixture : Mixture
        A mixture of plain trees.
    n_parameters : int
        The maximum number of parameters.
    rank : int or None
        The rank of the factors of log-odds; None if these are not factorised.
    rng : Generator
        Generates the initial trees.
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
