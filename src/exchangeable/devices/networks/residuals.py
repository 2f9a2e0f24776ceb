"""The dependence that independent variables leave unexplained, for every pair.

Let each component p of a mixture of independent variables have one more factor, exp(θ·(x_i −
μ_pi)·(x_j − μ_pj)), with the same θ. At θ = 0 the derivative of the log-likelihood is Σ_x Σ_p P(p |
x)·(x_i − μ_pi)·(x_j − μ_pj). Its square, divided by twice the information, approximates the gain of
the factor.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from exchangeable.devices.networks.batches import FloatArray, Symbols
from exchangeable.devices.networks.decoder import Layers, decode
from exchangeable.devices.networks.head import LARGEST, SHARE_CELLS, Head
from exchangeable.devices.networks.scores import SCORES
from exchangeable.devices.networks.steps import SCAN
from exchangeable.devices.programs import program

LEAST_INFORMATION = 4.0
"""Added to the information of each pair, so that rare pairs are not chosen by chance."""


@program("head")
def pair_sums(
    head: Head, outputs: Any, constants: Any, log_shares: Any, batches: tuple[Any, Any], key: Any
) -> tuple[Any, Any]:
    """Return the sums over rows of x_i·x_j − x_i·m_j − m_i·x_j, and each component's share.

    Here m_i is the posterior mean of μ_i. Missing entries are drawn, given the others.
    """
    means = jax.nn.sigmoid(jnp.clip(outputs, -LARGEST, LARGEST))

    def one(batch: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        rows, weights, key = batch
        if head.holes:
            rows = _completed(head, outputs, constants, log_shares, rows, key)
        scores = SCORES[head.kind](head, constants, outputs, rows) + log_shares
        posterior = jax.nn.softmax(scores, axis=1) * weights[:, None]
        on = (rows == 1).astype(jnp.float32)
        mixed = on.T @ (posterior @ means)
        return (on * weights[:, None]).T @ on - mixed - mixed.T, posterior.sum(axis=0)

    keys = jax.random.split(key, batches[0].shape[0])
    sums, shares = jax.lax.map(one, (*batches, keys))
    return sums.sum(axis=0), shares.sum(axis=0)


def _completed(
    head: Head, outputs: Any, constants: Any, log_shares: Any, rows: Any, key: Any
) -> Any:
    """Return rows with missing entries drawn from the mixture, given the known ones."""
    component, value = jax.random.split(key)
    scores = SCORES[head.kind](head, constants, outputs, rows) + log_shares
    drawn = jax.random.categorical(component, scores, axis=1)
    chances = jax.nn.sigmoid(jnp.clip(outputs[drawn], -LARGEST, LARGEST))
    filled = jax.random.bernoulli(value, chances).astype(rows.dtype)
    return jnp.where(rows < 0, filled, rows)


def pair_gains(
    head: Head,
    layers: Layers,
    constants: Any,
    points: tuple[Any, Any],
    rows: Symbols,
    device: Any,
) -> FloatArray:
    """Return the approximate gain in log-likelihood of an edge between each two variables.

    Parameters
    ----------
    head : Head
        That of independent variables.
    layers : list of (weights, offset)
        The decoder.
    constants : dict of arrays
        What else scores depend on.
    points : tuple of arrays
        Points of the latent space, and the logarithms of their shares.
    rows : Symbols
        Rows, and how much each counts.
    device : jax device
        Where to sum.
    """
    size = max(1, min(rows.weights.size // SCAN + 1, SHARE_CELLS // 8 // len(points[0])))
    with jax.default_device(device):
        outputs = decode(layers, points[0], head.groups)
        found = [
            pair_sums(head, outputs, constants, points[1], batch, jax.random.key(number))
            for number, batch in enumerate(rows.batches(size, SCAN))
        ]
    sums, shares = (
        sum(np.asarray(each, dtype=np.float64) for each in part)
        for part in zip(*found, strict=True)
    )
    odds = np.clip(np.asarray(outputs, dtype=np.float64), -LARGEST, LARGEST)
    means = 1 / (1 + np.exp(-odds))
    spread = means * (1 - means)
    slope = sums + (means.T * shares) @ means
    gains = slope**2 / (2 * ((spread.T * shares) @ spread + LEAST_INFORMATION))
    np.fill_diagonal(gains, 0.0)
    return np.asarray(gains)
