"""Trees with given log-linear scores: the closed form of conditional training."""

import numpy as np

from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.mixture import Mixture, weighed
from exchangeable.families.trees.model import TreeModel


def normalise(scores: LogLinear, n_jobs: int | None = None) -> tuple[Mixture, float] | None:
    """Return trees with log P(x, y) = score − log Z, and log Z.

    Without look-ups, Z is computed by a pass of messages up the tree; with look-ups t by the number
    of ones, Z = Σ_n exp(t(n))·F(n) and q(n) = exp(t(n))·F(n) / Z, where F is the tree's polynomial.
    """
    if scores.tables.values.size or not scores.pair.size:
        return None
    nothing = np.zeros_like(scores.base)
    forest = (scores.slope, scores.parent, scores.pair)
    if not scores.by_count.size:
        log_totals = TreeModel.make(nothing, *forest).log_totals()
        return weighed(TreeModel.make(-log_totals, *forest), scores.base + log_totals)
    middle = scores.slope.mean(axis=0)  # look-ups make up for the scale of the slopes
    forest = (scores.slope - middle, scores.parent, scores.pair)
    counts = np.arange(scores.by_count.shape[0])[:, None]
    flat = TreeModel.make(nothing, *forest, scores.by_count, n_jobs)
    mass = scores.by_count + middle * counts + flat.counts[0]
    log_totals = np.logaddexp.reduce(mass, axis=0)
    model = TreeModel.make(nothing, *forest, mass - log_totals, n_jobs)
    return weighed(model, scores.base + log_totals)
