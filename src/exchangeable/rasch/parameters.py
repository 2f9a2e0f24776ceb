"""Item parameters in psychometric form: thresholds and locations that sum to zero."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from exchangeable.arrays import FloatArray, IntArray
from exchangeable.families.items import answers_of, items_of
from exchangeable.rasch.answers import step_names


@dataclass(frozen=True)
class ItemParameters:
    """Difficulties of items, for one class or several, with their covariances.

    The threshold of a step is the ability at which a person is as likely to reach it as to stay one
    answer below. The location of an item is the mean of its thresholds: its difficulty, if it is
    binary. In each class locations sum to zero. Parameters without a finite estimate are NaN.

    Attributes
    ----------
    names : tuple of str
        Names of the items.
    highest : array of shape (n_items,)
        The highest answer of each item.
    thresholds : array of shape (n_steps, n_classes)
        Thresholds of all steps, item by item.
    covariance : array of shape (n_classes * n_steps, n_classes * n_steps) or None
        Covariances of all thresholds, class by class; None if no rows were given to estimate them.
    """

    names: tuple[str, ...]
    highest: IntArray
    thresholds: FloatArray
    covariance: FloatArray | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.thresholds.shape[1])

    @property
    def locations(self) -> FloatArray:
        """Location of each item in each class, shape (n_items, n_classes)."""
        return np.asarray(averages(self.highest) @ np.where(self._none, 0.0, self.thresholds)) + (
            np.where(averages(self.highest) @ (1.0 * self._none) > 0, np.nan, 0.0)
        )

    @property
    def standard_errors(self) -> FloatArray:
        """Standard error of each location, shape (n_items, n_classes); NaN if unknown."""
        return self._errors(averages(self.highest))

    @property
    def threshold_errors(self) -> FloatArray:
        """Standard error of each threshold, shape (n_steps, n_classes); NaN if unknown."""
        return self._errors(np.eye(len(self.thresholds)))

    def intervals(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return confidence limits of the locations, by the normal distribution.

        Parameters
        ----------
        level : float
            The confidence level.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}")
        reach = stats.norm.ppf(0.5 + level / 2) * self.standard_errors
        return self.locations - reach, self.locations + reach

    def rows(self) -> list[dict[str, Any]]:
        """Return one entry per step and class, for tables."""
        steps, errors = step_names(self.names, self.highest), self.threshold_errors
        return [
            {
                "class": y,
                "item": self.names[j],
                "step": steps[s],
                "threshold": float(self.thresholds[s, y]),
                "standard error": float(errors[s, y]),
            }
            for y in range(self.n_classes)
            for s, j in enumerate(items_of(self.highest))
        ]

    def to_frame(self) -> Any:
        """Return the thresholds as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __str__(self) -> str:
        steps, errors = step_names(self.names, self.highest), self.threshold_errors
        width = max(4, *map(len, steps))
        titles = [f"class {y}" for y in range(self.n_classes)]
        if self.n_classes == 1:
            titles = ["difficulty" if (self.highest == 1).all() else "threshold"]
        lines = [f"{'item':{width}}" + "".join(f"  {title:>10}  {'s.e.':>7}" for title in titles)]
        for s, step in enumerate(steps):
            cells = zip(self.thresholds[s], errors[s], strict=True)
            lines.append(f"{step:{width}}" + "".join(f"  {a:10.4f}  {b:7.4f}" for a, b in cells))
        return "\n".join(lines)

    @property
    def _none(self) -> Any:
        return np.isnan(self.thresholds)

    def _errors(self, weights: FloatArray) -> FloatArray:
        """Return standard errors of weighted sums of the thresholds of a class."""
        out = np.full((len(weights), self.n_classes), np.nan)
        if self.covariance is None:
            return out
        n = len(self.thresholds)
        for y in range(self.n_classes):
            own = self.covariance[y * n : (y + 1) * n, y * n : (y + 1) * n]
            missing = np.isnan(np.diag(own))
            known = np.where(missing[:, None] | missing[None, :], 0.0, own)
            variance = np.einsum("is,st,it->i", weights, known, weights)
            touched = (np.abs(weights) @ (1.0 * missing)) > 0
            out[:, y] = np.where(touched, np.nan, np.sqrt(np.maximum(variance, 0.0)))
        return out


def among(
    found: ItemParameters,
    names: tuple[str, ...],
    highest: IntArray,
    used: npt.NDArray[np.bool_],
) -> ItemParameters:
    """Return the parameters of all items, NaN for those that were not used."""
    if used.all():
        return found
    k, n = found.n_classes, int(highest.sum())
    kept = np.flatnonzero(used[items_of(highest)])
    thresholds = np.full((n, k), np.nan)
    thresholds[kept] = found.thresholds
    covariance = None
    if found.covariance is not None:
        covariance = np.full((k * n, k * n), np.nan)
        places = (np.arange(k)[:, None] * n + kept).ravel()
        covariance[np.ix_(places, places)] = found.covariance
    return ItemParameters(names, highest, thresholds, covariance)


def averages(highest: IntArray) -> FloatArray:
    """Return the matrix that maps thresholds to locations, shape (n_items, n_steps)."""
    items = items_of(highest)
    return np.asarray((np.arange(highest.size)[:, None] == items) / highest[items])


def differences(highest: IntArray) -> FloatArray:
    """Return the matrix that maps log ε to thresholds, shape (n_steps, n_steps)."""
    answers = answers_of(highest)
    matrix = -np.eye(answers.size)
    later = np.flatnonzero(answers > 1)
    matrix[later, later - 1] = 1.0
    return matrix


def centring(highest: IntArray) -> FloatArray:
    """Return the matrix that maps thresholds to those whose locations sum to zero."""
    n_steps = int(highest.sum())
    return np.asarray(np.eye(n_steps) - averages(highest).sum(axis=0) / highest.size)


def to_thresholds(highest: IntArray) -> FloatArray:
    """Return the matrix that maps log ε to centred thresholds.

    >>> to_thresholds(np.array([1, 1])).tolist()
    [[-0.5, 0.5], [0.5, -0.5]]
    """
    return centring(highest) @ differences(highest)


def to_credits(highest: IntArray, thresholds: FloatArray) -> FloatArray:
    """Return log ε of given thresholds: minus their sum up to each step.

    >>> to_credits(np.array([1, 2]), np.array([0.5, -1.0, 2.0])).tolist()
    [-0.5, 1.0, -1.0]
    """
    sums = np.cumsum(thresholds, axis=0)
    before = np.concatenate([[0], np.cumsum(highest)[:-1]]).astype(np.int64)
    padded = np.concatenate([np.zeros_like(sums[:1]), sums])
    return np.asarray(np.repeat(padded[before], highest, axis=0) - sums)
