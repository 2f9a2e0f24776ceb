"""Shared terms of all classes, for columns of any kind: they make P(x) a good density.

The likelihood of the rows is concave in these terms, except for the variance of measurements. The
likelihood of the labels given rows with randomly hidden columns is part of the objective: a hidden
column adds the logarithm of its total to a class's score.
"""

import numpy as np
from scipy.special import logsumexp

from exchangeable.arrays import FloatArray
from exchangeable.families.common.features import Features
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.hybrid.density import MAX_ITER, TOL, Hidden
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.lbfgs import lbfgs

LABELS = 300.0
"""Weight of labels given incomplete rows, relative to the rows."""


def typed_mixture(
    features: Features, scores: LogLinear, design: Design, n_jobs: int | None = None
) -> Mixture:
    """Return the mixture for linear scores, with the best shared terms for rows and labels.

    Parameters
    ----------
    features : Features
        The features that the rows of `design` consist of.
    scores : LogLinear
        Linear scores of the classes.
    design : Design
        The rows, with their weights in P(x).
    n_jobs : int, optional
        Number of threads.
    """
    # If columns depend on each other, hidden ones depend on known ones.
    hidden = None
    if design.n_classes > 1:
        hidden = Hidden.of(scores, design, n_jobs, features.columns, never=features.together)

    def objective(terms: FloatArray) -> tuple[float, FloatArray]:
        found = features.shared(scores, terms)
        totals = scores.base + found.log_totals.sum(axis=0)
        log_total = float(logsumexp(totals))
        grown = np.tile(np.exp(totals - log_total), (len(found.log_totals), 1))
        value = log_total - found.gain
        if hidden is not None:
            n_columns = hidden.masks.shape[1]
            loss, by_column = hidden.by_column(found.log_totals[:n_columns])
            if by_column.shape[1] == 1:  # two classes: the second is scored relative to the first
                by_column = np.concatenate([-by_column, by_column], axis=1)
            grown[:n_columns] += LABELS * by_column
            value += LABELS * loss
        return value, found.pull(grown) - found.slope

    terms, _ = lbfgs(objective, features.start(scores), TOL, MAX_ITER)
    return features.mixture(scores, terms)
