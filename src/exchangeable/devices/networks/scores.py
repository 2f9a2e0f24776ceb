"""Scores of rows under decoded components: independent variables, weighted urns, and trees.

Every function takes the shape of the components, constants, the outputs of the decoder and rows of
0, 1 and −1 (missing), and returns log P(known entries) of each row at each point.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from exchangeable.devices.networks.head import LARGEST, Head

IMPOSSIBLE = -1e30
LEAST = 1e-37
"""Added to sums of probabilities, so that their logarithm is finite."""


def score_independent(head: Head, constants: dict[str, Any], outputs: Any, rows: Any) -> Any:
    """Return log P(known entries) of each row at each point; a −1 in a row is not known."""
    slope = jnp.clip(outputs, -LARGEST, LARGEST)
    off = jax.nn.softplus(slope)
    on = (rows == 1).astype(jnp.float32)
    if head.holes:
        known = (rows >= 0).astype(jnp.float32)
        return on @ slope.T - known @ off.T
    return on @ slope.T - off @ constants["real"]


def score_urns(head: Head, constants: dict[str, Any], outputs: Any, rows: Any) -> Any:
    """Return log P of each row at each point."""
    n = head.n_variables
    odds = jnp.clip(outputs[:, :n], -LARGEST, LARGEST)
    extra = jnp.clip(outputs[:, n:], -LARGEST, LARGEST)
    on = (rows == 1).astype(jnp.float32)
    counted = jax.nn.one_hot(on.sum(axis=1).astype(jnp.int32), n + 1)
    real = constants["real"]
    by_count = count_probabilities(
        jax.nn.sigmoid(odds) * real, jax.nn.sigmoid(-odds) * real + (1 - real)
    )
    highest = extra.max(axis=1, keepdims=True)
    masses = (by_count * jnp.exp(extra - highest)).sum(axis=1)
    base = -(jax.nn.softplus(odds) @ constants["real"]) - highest[:, 0] - jnp.log(masses + LEAST)
    return on @ odds.T + counted @ extra.T + base


def count_probabilities(on: Any, off: Any) -> Any:
    """Return the probability of each number of ones among independent variables, for each point.

    `on` and `off` are the probabilities of each variable at each point. Sums of products of
    probabilities lose no precision. They are computed block by block, and again for gradients,
    which would otherwise need memory quadratic in the number of variables for each point.
    """
    n = on.shape[1]
    size = math.isqrt(n - 1) + 1
    count = -(-n // size)
    missing = ((0, size * count - n), (0, 0))
    blocks = (
        jnp.pad(on.T, missing).reshape(count, size, -1),
        jnp.pad(off.T, missing, constant_values=1.0).reshape(count, size, -1),
    )

    def variable(so_far: Any, chances: Any) -> tuple[Any, None]:
        on, off = chances
        more = jnp.pad(so_far[:, :-1], ((0, 0), (1, 0)))
        return off[:, None] * so_far + on[:, None] * more, None

    @jax.checkpoint
    def block(so_far: Any, chances: Any) -> tuple[Any, None]:
        return jax.lax.scan(variable, so_far, chances)[0], None

    none = jnp.zeros((on.shape[0], n + 1)).at[:, 0].set(1.0)
    return jax.lax.scan(block, none, blocks)[0]


def score_trees(head: Head, constants: dict[str, Any], outputs: Any, rows: Any) -> Any:
    """Return log P(known entries) of each row at each point; a −1 in a row is not known."""
    n, count = head.n_variables, head.groups
    by_tree = jnp.swapaxes(outputs.reshape(-1, count, 2, n), 0, 1)
    off = jnp.clip(by_tree[:, :, 0], -LARGEST, LARGEST)
    on = jnp.clip(by_tree[:, :, 1], -LARGEST, LARGEST)
    if head.holes:
        scores = [
            _score_holes(off[g], on[g], constants["parent"][g], constants["levels"][g], rows)
            for g in range(count)
        ]
        return jnp.stack(scores, axis=-1).reshape(rows.shape[0], -1)
    x = (rows == 1).astype(jnp.float32)
    wide = jnp.pad(x, ((0, 0), (0, 1)))

    def one(off: Any, on: Any, parent: Any) -> Any:
        edge = (parent < n).astype(jnp.float32)
        below = edge * (jax.nn.softplus(off) - jax.nn.softplus(on))
        slope = off + jnp.zeros((off.shape[0], n + 1)).at[:, parent].add(below)[:, :n]
        base = -(jax.nn.softplus(off) @ constants["real"])
        both = x * wide[:, parent]
        return x @ slope.T + both @ (edge * (on - off)).T + base

    scores = jax.vmap(one)(off, on, constants["parent"])
    return jnp.moveaxis(scores, 0, -1).reshape(rows.shape[0], -1)


def _score_holes(off: Any, on: Any, parent: Any, levels: Any, rows: Any) -> Any:
    """Return the scores of rows with holes for the points of one tree, by messages upwards."""
    n = rows.shape[1]
    shape = (rows.shape[0], off.shape[0], n + 1)
    below = [jnp.zeros(shape), jnp.zeros(shape)]
    for nodes in levels:
        symbols = rows[:, None, nodes]
        states = [jnp.where(symbols != 1 - v, below[v][:, :, nodes], IMPOSSIBLE) for v in range(2)]
        for given, odds in enumerate((off[:, nodes], on[:, nodes])):
            message = jnp.logaddexp(
                states[0] - jax.nn.softplus(odds), states[1] - jax.nn.softplus(-odds)
            )
            below[given] = below[given].at[:, :, parent[nodes]].add(message)
    return below[0][:, :, n]


SCORES = {
    "odds": score_independent,
    "conditional odds": score_trees,
    "odds and counts": score_urns,
}
"""How components score rows, by what the outputs of the decoder stand for."""
