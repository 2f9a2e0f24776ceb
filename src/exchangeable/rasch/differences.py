"""Differences of items between groups or classes: differential item functioning (DIF)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from exchangeable.arrays import FloatArray
from exchangeable.rasch.parameters import ItemParameters, averages


@dataclass(frozen=True)
class ItemDifferences:
    """How much harder each item is in one group than in another; locations sum to zero.

    Attributes
    ----------
    names : tuple of str
        Names of the items.
    difference : array of shape (n_items,)
        Location in the first group minus location in the second.
    standard_error : array of shape (n_items,)
        Its standard error; NaN if unknown.
    """

    names: tuple[str, ...]
    difference: FloatArray
    standard_error: FloatArray

    @property
    def z(self) -> FloatArray:
        """Difference divided by standard error."""
        return np.asarray(self.difference / self.standard_error)

    @property
    def p_value(self) -> FloatArray:
        """Two-sided p-value of each item's difference."""
        return np.asarray(2.0 * stats.norm.sf(np.abs(self.z)))

    @property
    def adjusted_p_value(self) -> FloatArray:
        """The p-values, adjusted for the number of items by Holm's method."""
        known = np.flatnonzero(~np.isnan(self.p_value))
        order = known[np.argsort(self.p_value[known])]
        factors = np.arange(order.size, 0, -1)
        out = np.full(self.difference.size, np.nan)
        out[order] = np.minimum(np.maximum.accumulate(self.p_value[order] * factors), 1.0)
        return out

    def to_frame(self) -> Any:
        """Return the differences as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(
            {
                "item": list(self.names),
                "difference": self.difference,
                "standard error": self.standard_error,
                "z": self.z,
                "p": self.p_value,
                "p (Holm)": self.adjusted_p_value,
            }
        )

    def __str__(self) -> str:
        width = max(4, *map(len, self.names))
        lines = [f"{'item':{width}}  difference     s.e.        z       p  p (Holm)"]
        columns = (self.difference, self.standard_error, self.z, self.p_value)
        for name, *cells in zip(self.names, *columns, self.adjusted_p_value, strict=True):
            d, e, z, p, holm = cells
            lines.append(f"{name:{width}}  {d:10.4f}  {e:7.4f}  {z:7.2f}  {p:6.4f}  {holm:8.4f}")
        return "\n".join(lines)


def compare(first: ItemParameters, second: ItemParameters) -> ItemDifferences:
    """Return the differences between two groups that were fitted separately."""
    error = np.hypot(first.standard_errors[:, 0], second.standard_errors[:, 0])
    return ItemDifferences(first.names, (first.locations - second.locations)[:, 0], error)


def compare_classes(parameters: ItemParameters, first: int, second: int) -> ItemDifferences:
    """Return the differences between two classes of a mixture, whose errors are correlated.

    Parameters
    ----------
    parameters : ItemParameters
        The parameters of all classes.
    first, second : int
        The classes.
    """
    k = parameters.n_classes
    for y in (first, second):
        if not 0 <= y < k:
            raise ValueError(f"there is no class {y}; the model has classes 0 to {k - 1}")
    difference = parameters.locations[:, first] - parameters.locations[:, second]
    n, error = len(parameters.thresholds), np.full(difference.size, np.nan)
    if parameters.covariance is not None:
        mean = averages(parameters.highest)
        picked = np.zeros((mean.shape[0], k * n))
        picked[:, first * n : (first + 1) * n] += mean
        picked[:, second * n : (second + 1) * n] -= mean
        hidden = np.isnan(np.diag(parameters.covariance))
        known = np.where(hidden[:, None] | hidden, 0.0, parameters.covariance)
        variance = np.einsum("is,st,it->i", picked, known, picked)
        touched = np.abs(picked) @ (1.0 * hidden) > 0
        error = np.where(touched, np.nan, np.sqrt(np.maximum(variance, 0.0)))
    return ItemDifferences(parameters.names, difference, error)
