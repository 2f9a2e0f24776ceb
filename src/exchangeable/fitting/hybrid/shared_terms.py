"""The terms that all classes share, where columns are of any kind: they make P(x) a good density.

The likelihood of the rows is concave in the terms, except for how measurements spread. That
of the labels given rows with columns hidden at random counts as well: what is hidden adds the
logarithm of its total to a class's score.
"""

import numpy as np
from scipy.special import log_softmax, logsumexp

from exchangeable.arrays import FloatArray
from exchangeable.families.common.features import Features
from exchangeable.families.common.log_linear import LogLinear
from exchangeable.families.mixture import Mixture
from exchangeable.fitting.hybrid.density import MAX_ITER, N_MASKS, TOL
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
    n_columns = int(features.columns.max(initial=-1)) + 1
    rng = np.random.default_rng(0)
    masks = rng.random((N_MASKS, n_columns)) < np.linspace(0.2, 0.8, N_MASKS)[:, None]
    masks[:, features.together] = False  # what is hidden of these depends on what is known
    known = np.stack(
        [
            design.scores(
                np.where(mask[features.columns, None], 0.0, scores.slope), scores.base, n_jobs
            )
            for mask in masks
        ]
    )
    weights = design.weights / (design.total * N_MASKS)
    hidden, rows = masks.astype(np.float64), np.arange(design.labels.size)

    def objective(terms: FloatArray) -> tuple[float, FloatArray]:
        found = features.shared(scores, terms)
        totals = scores.base + found.log_totals.sum(axis=0)
        log_total = float(logsumexp(totals))
        grown = np.tile(np.exp(totals - log_total), (len(found.log_totals), 1))
        joint = known + (hidden @ found.log_totals[:n_columns])[:, None]
        log_posterior = log_softmax(joint, axis=2)
        loss = -float((log_posterior[:, rows, design.labels] @ weights).sum())
        residual = np.exp(log_posterior)
        residual[:, rows, design.labels] -= 1.0
        grown[:n_columns] += LABELS * (hidden.T @ np.einsum("mnk,n->mk", residual, weights))
        value = log_total - found.gain + LABELS * loss
        return value, found.pull(grown) - found.slope

    terms, _ = lbfgs(objective, features.start(scores), TOL, MAX_ITER)
    return features.mixture(scores, terms)
