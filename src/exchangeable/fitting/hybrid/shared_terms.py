"""The terms that all classes share, where columns are of any kind: they make P(x) a good density.

The likelihood of the rows is concave in the terms, except for how measurements spread. That
of the labels given rows with columns hidden at random counts as well: what is hidden adds the
logarithm of its total to a class's score.
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
"""How much labels, given rows with holes, count beside the rows."""


def typed_mixture(
    features: Features, scores: LogLinear, design: Design, n_jobs: int | None = None
) -> Mixture:
    """Return the mixture of linear scores whose shared terms make rows and labels likeliest.

    Parameters
    ----------
    features : Features
        What the rows of `design` are made of.
    scores : LogLinear
        Linear scores of the classes.
    design : Design
        The rows, weighed as they count in P(x).
    n_jobs : int, optional
        Number of threads.
    """
    # What is hidden of columns that depend on each other depends on what is known.
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
            if by_column.shape[1] == 1:  # two classes: the second is scored against the first
                by_column = np.concatenate([-by_column, by_column], axis=1)
            grown[:n_columns] += LABELS * by_column
            value += LABELS * loss
        return value, found.pull(grown) - found.slope

    terms, _ = lbfgs(objective, features.start(scores), TOL, MAX_ITER)
    return features.mixture(scores, terms)
