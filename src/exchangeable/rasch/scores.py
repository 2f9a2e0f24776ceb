"""The distribution of raw scores: the share of persons with each total of all items."""

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.items import Answered
from exchangeable.rasch import kernels

MOST_STEPS = 1000
ENOUGH = 1e-9


def score_distribution(
    highest: IntArray, log_credits: FloatArray, answered: Answered
) -> FloatArray:
    """Return the maximum likelihood distribution of totals.

    If all answers are known these are the relative frequencies. Otherwise persons are distributed
    over their possible totals, given the items, by EM; no shape is assumed.

    Parameters
    ----------
    highest : array of shape (n_items,)
        The highest answer of each item.
    log_credits : array of shape (n_steps,)
        log ε of all steps, centred.
    answered : Answered
        The answers, with extreme scores.
    """
    width = int(highest.sum()) + 1
    mass = answered.weights / answered.weights.max()  # neither tiny nor huge
    whose = np.repeat(np.arange(len(answered.patterns)), np.diff(answered.begins))
    known = answered.patterns[whose]
    whole = known.all(axis=1)
    fixed = np.bincount(answered.scores[whole], mass[whole], minlength=width)
    if whole.all():
        return np.asarray(fixed / fixed.sum())
    begins = np.concatenate([[0], np.cumsum(highest)[:-1]]).astype(np.int64)
    items = kernels.Items(begins, highest, np.ascontiguousarray(log_credits))
    lacking = int((~known @ highest).max())
    ways, every = np.empty((int((~whole).sum()), lacking + 1)), np.empty((1, width))
    kernels.spread_scores(known[~whole], items, ways)
    kernels.spread_scores(np.zeros((1, highest.size), dtype=bool), items, every)
    scores, weights = answered.scores[~whole], mass[~whole]
    totals = scores[:, None] + np.arange(lacking + 1)
    log_chances = ways - every[0, np.minimum(totals, width - 1)]
    chances = np.exp(log_chances - log_chances.max(axis=1, keepdims=True))
    total, shares = mass.sum(), np.full(width, 1.0 / width)
    for _ in range(MOST_STEPS):
        new = fixed.astype(np.float64)
        kernels.share_out(chances, scores, weights, shares, new)
        new /= total
        moved = np.abs(new - shares).max()
        shares = new
        if moved < ENOUGH:
            break
    return np.asarray(shares)
