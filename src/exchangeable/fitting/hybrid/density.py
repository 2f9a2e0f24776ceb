"""What all classes share: P(y | x) does not depend on it, and it makes P(x) a good density.

Adding v·x and u(n), n being the number of ones, to the scores of all classes leaves P(y | x) alone.
The likelihood of the rows is concave in v: its gradient is how often each variable is on in the
rows, minus how often in the model. Where variables are independent given the class, the likelihood
of the labels given rows with random holes counts as well, which also depends on v: what is hidden
adds log(1 + exp(slope + v)) to a class's score.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_softmax

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray
from exchangeable.data.observed import Observed
from exchangeable.families import normalised
from exchangeable.families.common.log_linear import LogLinear
from exchangeable.fitting.hybrid.design import Design
from exchangeable.fitting.hybrid.lbfgs import lbfgs

SMOOTHING = 0.5
"""Rows with a variable on, and off, that are added to those seen."""
COUNT_ROWS = 8.0
"""Rows distributed as the model's own numbers of ones that are added to those seen."""
N_MASKS = 16
"""Ways in which variables are hidden."""
LABELS = 300.0
"""How much labels, given rows with holes, count beside the rows."""
TOL, MAX_ITER = 1e-3, 100


def with_shared(scores: LogLinear, design: Design, n_jobs: int | None = None) -> LogLinear:
    """Return the scores with the shared terms under which the rows are likeliest.

    Parameters
    ----------
    scores : LogLinear
        Scores of the classes.
    design : Design
        The rows, weighed as they count in P(x).
    n_jobs : int, optional
        Number of threads.
    """
    target = (design.ones + SMOOTHING) / (design.total + 2 * SMOOTHING)
    if scores.is_linear:
        return _with_slopes(scores, target, Hidden.of(scores, design, n_jobs), n_jobs)
    scores = _with_slopes(scores, target, None, n_jobs)
    if not scores.by_count.size:
        return scores
    lengths = np.diff(design.rows.indptr)
    counts = np.bincount(lengths, design.weights, target.size + 1).astype(np.float64)
    scores = _with_counts(scores, counts, n_jobs)
    return _with_counts(_with_slopes(scores, target, None, n_jobs), counts, n_jobs)


@dataclass(frozen=True)
class Hidden:
    """Rows some of whose variables are hidden, in several ways.

    Attributes
    ----------
    masks : array of shape (n_masks, n_variables)
        1 where a variable is hidden.
    known : array of shape (n_masks, n_rows, n_classes)
        What the known variables of each row score.
    labels : array of shape (n_rows,)
        The classes of the rows.
    weights : array of shape (n_rows,)
        Their weights, which add up to one over all masks.
    """

    masks: FloatArray
    known: FloatArray
    labels: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, scores: LogLinear, design: Design, n_jobs: int | None = None) -> "Hidden":
        """Hide a random half of the variables, some more and some less, in several ways."""
        rng = np.random.default_rng(0)
        shares = np.linspace(0.2, 0.8, N_MASKS)[:, None]
        masks = (rng.random((N_MASKS, design.rows.n_variables)) < shares).astype(np.float64)
        known = [
            design.scores((1.0 - mask)[:, None] * scores.slope, scores.base, n_jobs)
            for mask in masks
        ]
        weights = design.weights / (design.total * N_MASKS)
        return cls(masks, np.stack(known), design.labels, weights)

    def loss(self, slope: FloatArray) -> tuple[float, FloatArray]:
        """Return the average loss, and its gradient by what is added to all columns of `slope`."""
        hidden = self.masks @ np.logaddexp(0.0, slope)
        joint = self.known + hidden[:, None]
        log_posterior = log_softmax(joint, axis=2)
        rows = np.arange(self.labels.size)
        loss = -float((log_posterior[:, rows, self.labels] @ self.weights).sum())
        residual = np.exp(log_posterior)
        residual[:, rows, self.labels] -= 1.0
        by_mask = np.einsum("mnk,n->mk", residual, self.weights)
        return loss, ((self.masks.T @ by_mask) * expit(slope)).sum(axis=1)


def _with_slopes(
    scores: LogLinear, target: FloatArray, hidden: Hidden | None, n_jobs: int | None
) -> LogLinear:
    """Add v under which each variable is on as often as in the rows."""
    nothing = np.zeros(1)
    scale = np.sqrt(target * (1 - target))
    start = np.zeros_like(target)
    if scores.is_linear:
        start = np.log(target) - np.log1p(-target) - scores.slope.mean(axis=1)

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        v = z / scale
        moved = scores.plus(nothing, v[:, None])
        log_total, means = _moments(moved, n_jobs)
        value, gradient = log_total - float(v @ target), means - target
        if hidden is not None:
            loss, by_slope = hidden.loss(moved.slope)
            value, gradient = value + LABELS * loss, gradient + LABELS * by_slope
        return value, gradient / scale

    found, _ = lbfgs(objective, start * scale, TOL, MAX_ITER)
    return scores.plus(nothing, (found / scale)[:, None])


def _moments(scores: LogLinear, n_jobs: int | None) -> tuple[float, FloatArray]:
    """Return log Z, and how probable each variable is to be on."""
    if scores.is_linear:
        log_totals = scores.base + np.logaddexp(0.0, scores.slope).sum(axis=0)
        log_total = float(np.logaddexp.reduce(log_totals))
        return log_total, expit(scores.slope) @ np.exp(log_totals - log_total)
    mixture, log_total = normalised(scores, n_jobs)
    n, k = scores.slope.shape
    nothing = Observed.from_symbols(np.full((1, n), UNASSIGNED, dtype=np.int8))
    means = np.stack([mixture.model.marginals(nothing, y)[0] for y in range(k)], axis=1)
    return log_total, means @ np.exp(mixture.log_prior)


def _with_counts(scores: LogLinear, counts: FloatArray, n_jobs: int | None) -> LogLinear:
    """Add u under which the numbers of ones are distributed as in the rows, nearly."""
    mixture, _ = normalised(scores, n_jobs)
    by_class = [blocks[0] for blocks in mixture.model.count_probabilities()]
    share = np.maximum(np.exp(mixture.log_prior) @ np.stack(by_class), 1e-300)
    u = np.log((counts + COUNT_ROWS * share) / (counts.sum() + COUNT_ROWS)) - np.log(share)
    return replace(scores, by_count=scores.by_count + u[:, None])
