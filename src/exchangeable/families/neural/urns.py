"""Weighted urns as components: outputs are log-weights, and a correction for each count.

For weights θ and independent variables with odds θ, let B(l) be the probability of l ones. An urn
whose counts have probabilities q(l) ∝ B(l)·exp(c_l) scores a row with n ones as the independent
variables do, plus c_n − log Σ_l B(l)·exp(c_l). So training starts with independent variables, c =
0, and needs B only where it is not negligible.
"""

import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.devices.networks.head import LARGEST, Head
from exchangeable.families.contract import Model
from exchangeable.families.neural.components import Component, odds_of
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition


class Urns(Component):
    """Weighted urns in each component; see the module."""

    def __init__(self, means: FloatArray, n_columns: int) -> None:
        self.n_variables = means.size
        self.head = Head("odds and counts", n_columns, False)
        self.bias = np.pad(odds_of(means, n_columns), (0, n_columns + 1))[None]
        self.constants = {"real": (np.arange(n_columns) < means.size).astype(np.float32)}

    def model(self, outputs: FloatArray) -> Model:
        """Return urns of all variables."""
        n, width, k = self.n_variables, outputs.shape[1] // 2, len(outputs)
        weights = np.ascontiguousarray(np.clip(outputs[:, :n].T, -LARGEST, LARGEST))
        extra = np.clip(outputs[:, width : width + n + 1], -LARGEST, LARGEST)
        partitions = [Partition.from_labels(np.zeros(n, dtype=np.int64))] * k
        even = UrnModel.make(partitions, weights, [np.zeros(n + 1)] * k)
        log_e = np.stack([each.log_e for each in even.polynomials])
        return UrnModel.make(partitions, weights, list(normalised(log_e + extra)))


def normalised(log_masses: FloatArray) -> FloatArray:
    """Return lines of logarithms, shifted such that the exponentials of each line sum to one."""
    highest = log_masses.max(axis=1, keepdims=True)
    totals = np.exp(log_masses - highest).sum(axis=1, keepdims=True)
    return np.asarray(log_masses - highest - np.log(totals))
