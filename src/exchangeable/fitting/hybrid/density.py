"""Shared terms of all classes: they do not change P(y | x), but make P(x) a good density.

Adding v·x and u(n), where n is the number of ones, to the scores of all classes does not change P(y
| x). The likelihood of the rows is concave in v: its gradient is the frequency of each variable in
the rows minus that in the model. If variables are independent given the class, the likelihood of
the labels given rows with random missing entries is part of the objective; it depends on v because
a hidden variable adds log(1 + exp(slope + v)) to a class's score.
"""

from dataclasses import dataclass, replace

import numpy as np

from exchangeable.arrays import UNASSIGNED, FloatArray, IntArray
from exchangeable.data.observed import Observed
from exchangeable.families import normalised
from exchangeable.families.common.log_linear.scores import LogLinear
from exchangeable.fitting.hybrid.design import Design, settle
from exchangeable.fitting.hybrid.lbfgs import lbfgs
from exchangeable.fitting.hybrid.scores import reduced
from exchangeable.runtime.interrupts import GivenUp, giving_up

SMOOTHING = 0.5
"""Pseudo-rows with a variable on, and off, that are added to those observed."""
COUNT_ROWS = 8.0
"""Pseudo-rows, distributed as the model's own numbers of ones, that are added to those observed."""
N_MASKS = 16
"""Number of random masks."""
LABELS = 1000.0
"""Weight of labels given incomplete rows, relative to the rows."""
TOL, MAX_ITER = 1e-3, 100


def with_shared(scores: LogLinear, design: Design, n_jobs: int | None = None) -> LogLinear:
    """Return the scores with the shared terms that maximise the likelihood of the rows.

    Parameters
    ----------
    scores : LogLinear
        Scores of the classes.
    design : Design
        The rows, with their weights in P(x).
    n_jobs : int, optional
        Number of threads.
    """
    target = (design.ones + SMOOTHING) / (design.total + 2 * SMOOTHING)
    if scores.is_linear:
        try:
            with giving_up():
                hidden = Hidden.of(scores, design, n_jobs) if design.n_classes > 1 else None
                return _with_slopes(scores, target, hidden, n_jobs)
        except GivenUp:  # P(y | x) is the same without considering incomplete rows
            return _with_slopes(scores, target, None, n_jobs)
    scores = _with_slopes(scores, target, None, n_jobs)
    if not scores.by_count.size:
        return scores
    lengths = np.diff(design.rows.indptr)
    counts = np.bincount(lengths, design.weights, target.size + 1).astype(np.float64)
    scores = _with_counts(scores, counts, n_jobs)
    return _with_counts(_with_slopes(scores, target, None, n_jobs), counts, n_jobs)


@dataclass(frozen=True)
class Hidden:
    """Rows with some of their variables hidden, by several masks.

    Attributes
    ----------
    masks : array of shape (n_masks, n_variables)
        1 if a variable is hidden, or a column of which variables are features.
    known : array of shape (n_masks, n_rows, width)
        Scores of the known variables of each row; for two classes, of the second relative to the
        first.
    labels, weights : arrays of shape (n_masks * n_rows,)
        The classes of the rows, and their weights, which sum to one over all masks.
    n_jobs : int, optional
        Number of threads.
    """

    masks: FloatArray
    known: FloatArray
    labels: IntArray
    weights: FloatArray
    n_jobs: int | None = None

    @classmethod
    def of(
        cls,
        scores: LogLinear,
        design: Design,
        n_jobs: int | None = None,
        columns: IntArray | None = None,
        never: IntArray | None = None,
    ) -> "Hidden":
        """Hide a random part of the variables, about a half, by several masks.

        `columns` is the column of which each variable is a feature, if columns are hidden as a
        whole; `never` marks variables that are always known.
        """
        columns = np.arange(design.n_variables) if columns is None else columns
        rng = np.random.default_rng(0)
        shares = np.linspace(0.2, 0.8, N_MASKS)[:, None]
        masks = rng.random((N_MASKS, int(columns.max(initial=-1)) + 1)) < shares
        if never is not None:
            masks[:, never] = False
        base, slope = reduced(scores.base[None])[0], reduced(scores.slope)
        known = [
            design.scores(np.where(mask[columns, None], 0.0, slope), base, n_jobs) for mask in masks
        ]
        weights = np.tile(design.weights / (design.total * N_MASKS), N_MASKS)
        labels = np.tile(design.labels, N_MASKS)
        return cls(masks.astype(np.float64), np.stack(known), labels, weights, n_jobs)

    def by_column(self, log_totals: FloatArray) -> tuple[float, FloatArray]:
        """Return the average loss, and its gradient with respect to the scores of hidden columns.

        The gradient has the width of conditional fits: for two classes, only the second.
        """
        residuals = self.known + (self.masks @ reduced(log_totals))[:, None]
        by_row = residuals.reshape(self.labels.size, -1)
        loss = settle(by_row, self.labels, self.weights, self.n_jobs)
        by_mask = np.ones(residuals.shape[1]) @ residuals
        return loss, self.masks.T @ by_mask

    def loss(self, log_totals: FloatArray, chances: FloatArray) -> tuple[float, FloatArray]:
        """Return the average loss, and its gradient by a shift of all slopes of a variable.

        Parameters
        ----------
        log_totals : array of shape (n_variables, n_classes)
            What a variable adds to the scores of the classes if it is hidden.
        chances : array of shape (n_variables, n_classes)
            The probability that it is on.
        """
        loss, gradient = self.by_column(log_totals)
        return loss, np.einsum("jk,jk->j", gradient, reduced(chances))


def _with_slopes(
    scores: LogLinear, target: FloatArray, hidden: Hidden | None, n_jobs: int | None
) -> LogLinear:
    """Add v such that each variable is on as often as in the rows."""
    nothing = np.zeros(1)
    scale = np.sqrt(target * (1 - target))
    start = np.zeros_like(target)
    if scores.is_linear:
        start = np.log(target) - np.log1p(-target) - scores.slope.mean(axis=1)

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        v = z / scale
        moved = scores.plus(nothing, v[:, None])
        if not scores.is_linear:
            log_total, means = _moments(moved, n_jobs)
            return log_total - float(v @ target), (means - target) / scale
        log_totals, chances = _switched(moved.slope)
        by_class = moved.base + log_totals.sum(axis=0)
        log_total = float(np.logaddexp.reduce(by_class))
        means = chances @ np.exp(by_class - log_total)
        value, gradient = log_total - float(v @ target), means - target
        if hidden is not None:
            loss, by_slope = hidden.loss(log_totals, chances)
            value, gradient = value + LABELS * loss, gradient + LABELS * by_slope
        return value, gradient / scale

    found, _ = lbfgs(objective, start * scale, TOL, MAX_ITER)
    return scores.plus(nothing, (found / scale)[:, None])


def _switched(slope: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log(1 + exp(slope)), and its derivative: the probability of a one."""
    small = np.exp(-np.abs(slope))
    return np.maximum(slope, 0.0) + np.log1p(small), np.where(slope > 0, 1.0, small) / (1.0 + small)


def _moments(scores: LogLinear, n_jobs: int | None) -> tuple[float, FloatArray]:
    """Return log Z, and the probability of each variable being on."""
    mixture, log_total = normalised(scores, n_jobs)
    n, k = scores.slope.shape
    nothing = Observed.from_symbols(np.full((1, n), UNASSIGNED, dtype=np.int8))
    means = np.stack([mixture.model.marginals(nothing, y)[0] for y in range(k)], axis=1)
    return log_total, means @ np.exp(mixture.log_prior)


def _with_counts(scores: LogLinear, counts: FloatArray, n_jobs: int | None) -> LogLinear:
    """Add u such that the number of ones is distributed nearly as in the rows."""
    mixture, _ = normalised(scores, n_jobs)
    by_class = [blocks[0] for blocks in mixture.model.count_probabilities()]
    share = np.maximum(np.exp(mixture.log_prior) @ np.stack(by_class), 1e-300)
    u = np.log((counts + COUNT_ROWS * share) / (counts.sum() + COUNT_ROWS)) - np.log(share)
    return replace(scores, by_count=scores.by_count + u[:, None])
