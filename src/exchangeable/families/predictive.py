"""Distributions of one variable in every row: probabilities of values, or normal distributions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from exchangeable.arrays import FloatArray, IntArray


class Normals(NamedTuple):
    """Mixtures of normal distributions, one per row: the distribution of a measurement.

    Attributes
    ----------
    weights, mean, variance : arrays of shape (n_rows, n_normals)
        Weight, mean and variance of each component.
    """

    weights: FloatArray
    mean: FloatArray
    variance: FloatArray

    @property
    def mixture(self) -> "Normals":
        """The mixtures themselves."""
        return self


class Normal(NamedTuple):
    """Normal distributions, one per row: the distribution of a measurement."""

    mean: FloatArray
    variance: FloatArray

    @property
    def mixture(self) -> Normals:
        """The same as mixtures of one component."""
        mean, variance = self.mean[:, None], self.variance[:, None]
        return Normals(np.ones(mean.shape), mean, variance)


def averaged(
    each: Sequence[FloatArray | Normal | Normals], shares: FloatArray, own: IntArray | None = None
) -> FloatArray | Normals:
    """Return the mixture of a variable's distributions in the classes, by the classes' shares.

    Parameters
    ----------
    each : sequence of arrays, Normal or Normals
        The distributions in each class.
    shares : array of shape (n_rows, n_classes)
        Probability of each class.
    own : array of shape (n_rows,), optional
        The line of each row in the distributions; by default there is a line per row.

    Examples
    --------
    >>> averaged([np.array([[1.0]]), np.array([[0.0, 1.0]])], np.array([[0.25, 0.75]])).tolist()
    [[0.25, 0.75]]
    """
    lines = slice(None) if own is None else own
    normals = [answer.mixture for answer in each if isinstance(answer, Normal | Normals)]
    if normals:
        weights = [shares[:, y, None] * part.weights[lines] for y, part in enumerate(normals)]
        return Normals(
            np.concatenate(weights, axis=1),
            np.concatenate([part.mean[lines] for part in normals], axis=1),
            np.concatenate([part.variance[lines] for part in normals], axis=1),
        )
    tables = [np.asarray(answer) for answer in each]
    total = np.zeros((len(shares), max(table.shape[1] for table in tables)))
    for y, table in enumerate(tables):
        total[:, : table.shape[1]] += shares[:, y, None] * table[lines]
    return total
