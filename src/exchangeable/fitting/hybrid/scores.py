"""Generative scores for conditional fits: linear scores from how often classes have each variable.

All are sums over the variables that are on, so they become part of the weights.
"""

from collections.abc import Callable, Sequence

import numpy as np

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.fitting.hybrid.design import Design

SMOOTHING = 1.0
"""Added to the weight of a class's rows in which a variable is on."""


def _multinomial(ones: FloatArray) -> FloatArray:
    """Return the log-share of each variable among the ones of each class."""
    smooth = ones + SMOOTHING
    return np.asarray(np.log(smooth / smooth.sum(axis=0)))


def _complement(ones: FloatArray) -> FloatArray:
    """Return minus the log-share of each variable among the ones of all other classes."""
    return -_multinomial(ones.sum(axis=1, keepdims=True) - ones)


SCORES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "multinomial": _multinomial,
    "complement": _complement,
}
"""Functions from the ones of the classes to slopes of shape (n_variables, n_classes), by name."""


def useful(names: Sequence[str], n_classes: int) -> tuple[str, ...]:
    """Return the scores that differ: with two classes, the complement of one is the other."""
    if n_classes <= 2 and len(names) > 1:
        return tuple(names[:1])
    return tuple(names)


class FoldSums:
    """How often each class has each variable on, by fold, so that any folds can be left out.

    Parameters
    ----------
    design : Design
        The rows.
    fold : array of shape (n_rows,)
        The fold of each row.
    n_folds : int
        Number of folds.
    """

    def __init__(self, design: Design, fold: IntArray, n_folds: int) -> None:
        n, k = design.rows.n_variables, design.n_classes
        lengths = np.diff(design.rows.indptr)
        group = np.repeat(fold * k + design.labels, lengths)
        cell = group * n + design.rows.indices
        weights = np.repeat(design.weights, lengths)
        sums = np.bincount(cell, weights, minlength=n_folds * k * n)
        self._by_fold = sums.reshape(n_folds, k, n)

    def without(self, *folds: int) -> FloatArray:
        """Return the ones, of shape (n_variables, n_classes), of all rows except some folds."""
        kept = [f for f in range(len(self._by_fold)) if f not in folds]
        return np.ascontiguousarray(self._by_fold[kept].sum(axis=0).T)


def slopes(names: Sequence[str], ones: FloatArray) -> list[FloatArray]:
    """Return the slopes of some scores, centred over classes: common terms have no effect.

    A variable that is never on has no effect either: its slopes are 0.
    """
    seen = ones.sum(axis=1, keepdims=True) > 0
    found = [SCORES[name](ones) for name in names]
    return [np.where(seen, slope - slope.mean(axis=1, keepdims=True), 0.0) for slope in found]


def reduced(scores: FloatArray) -> FloatArray:
    """Return scores in the form of conditional fits: for two classes, only the difference."""
    return scores[:, 1:] - scores[:, :1] if scores.shape[1] == 2 else scores
