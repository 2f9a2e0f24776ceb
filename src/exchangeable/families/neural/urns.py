"""Weighted urns as components: outputs are log-weights, and how likely each count is made.

With weights θ and independent variables of odds θ, let B(l) be the probability of l ones. An urn
whose counts have probabilities q(l) ∝ B(l)·exp(c_l) scores a row with n ones as the independent
variables do, plus c_n − log Σ_l B(l)·exp(c_l). So training begins as one of independent variables,
c = 0, and needs B only where it is not negligible.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from exchangeable.arrays import FloatArray
from exchangeable.families.contract import Model
from exchangeable.families.neural.components import LARGEST, Component, Head, padded
from exchangeable.families.urns.model import UrnModel
from exchangeable.partitions import Partition

LEAST = 1e-37
"""Added to sums of probabilities, so that their logarithm is a number."""


class Urns(Component):
    """Weighted urns in each component; see the module."""

    def __init__(self, means: FloatArray, n_columns: int) -> None:
        self.n_variables = means.size
        self.head = Head("urns", n_columns, False)
        odds = padded(np.log(means) - np.log1p(-means), n_columns)
        self.bias = np.concatenate([odds, np.zeros(n_columns + 1)])[None]
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
    """Return lines of logarithms, shifted so that each line's masses add up to one."""
    highest = log_masses.max(axis=1, keepdims=True)
    totals = np.exp(log_masses - highest).sum(axis=1, keepdims=True)
    return np.asarray(log_masses - highest - np.log(totals))


def score_urns(head: Head, constants: dict[str, Any], outputs: Any, rows: Any) -> Any:
    """Return log P of each row at each point."""
    n = head.n_variables
    odds = jnp.clip(outputs[:, :n], -LARGEST, LARGEST)
    extra = jnp.clip(outputs[:, n:], -LARGEST, LARGEST)
    on = (rows == 1).astype(jnp.float32)
    counted = jax.nn.one_hot(on.sum(axis=1).astype(jnp.int32), n + 1)
    by_count = count_probabilities(jax.nn.sigmoid(odds) * constants["real"])
    highest = extra.max(axis=1, keepdims=True)
    masses = (by_count * jnp.exp(extra - highest)).sum(axis=1)
    base = -(jax.nn.softplus(odds) @ constants["real"]) - highest[:, 0] - jnp.log(masses + LEAST)
    return on @ odds.T + counted @ extra.T + base


def count_probabilities(chances: Any) -> Any:
    """Return how probable each number of ones is among independent variables, for each point.

    Sums of products of probabilities lose no precision. They are made block by block, and made
    anew for gradients, which would otherwise need the square of the variables of each point.
    """
    n = chances.shape[1]
    size = math.isqrt(n - 1) + 1
    count = -(-n // size)
    blocks = jnp.pad(chances.T, ((0, size * count - n), (0, 0))).reshape(count, size, -1)

    def variable(so_far: Any, chance: Any) -> tuple[Any, None]:
        more = jnp.pad(so_far[:, :-1], ((0, 0), (1, 0)))
        return so_far + chance[:, None] * (more - so_far), None

    @jax.checkpoint
    def block(so_far: Any, chances: Any) -> tuple[Any, None]:
        return jax.lax.scan(variable, so_far, chances)[0], None

    none = jnp.zeros((chances.shape[0], n + 1)).at[:, 0].set(1.0)
    return jax.lax.scan(block, none, blocks)[0]
