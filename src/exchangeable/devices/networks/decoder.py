"""The decoder: a small network from points of the latent space to parameters of components."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.scipy.special import ndtri

Layers = list[tuple[Any, Any]]
EDGE = 1e-6
"""Points keep this distance from the faces of the unit cube, where quantiles are infinite."""
LEAK = 0.01
LAST_SCALE = 0.3
"""Scale of the last layer's initial weights: components start close to the means of the rows."""


def new_layers(
    rng: np.random.Generator, latent: int, hidden: tuple[int, ...], bias: npt.NDArray[np.float64]
) -> Layers:
    """Return the initial weights, uniform in ±√(6 / fan-in), with a given last bias.

    The bias has a line for each group of points; all groups share the last layer's other inputs.
    """
    sizes = [latent, *hidden, bias.size]
    layers = []
    for number, (fan_in, width) in enumerate(itertools.pairwise(sizes)):
        limit = np.sqrt(6.0 / fan_in)
        last = number == len(hidden)
        weights = rng.uniform(-limit, limit, (fan_in, width)) * (LAST_SCALE if last else 1.0)
        offset = bias.ravel() if last else np.zeros(width)
        layers.append((weights.astype(np.float32), offset.astype(np.float32)))
    return layers


def repeated(layers: Layers, times: int) -> Layers:
    """Return layers whose outputs are those of others, several times over.

    >>> weights, offset = repeated([(np.eye(2), np.array([3.0, 4.0]))], 2)[-1]
    >>> weights.shape, offset.tolist()
    ((2, 4), [3.0, 4.0, 3.0, 4.0])
    """
    weights, offset = (np.asarray(each) for each in layers[-1])
    return [*layers[:-1], (np.tile(weights, (1, times)), np.tile(offset, times))]


def latent_points(uniform: Any, shift: Any) -> Any:
    """Return points of the unit cube, shifted around it, as points of a normal distribution."""
    moved = uniform + shift
    return ndtri(jnp.clip(moved - jnp.floor(moved), EDGE, 1 - EDGE))


def hidden_layer(layers: Layers, points: Any) -> Any:
    """Return the input of the last layer at some points."""
    for weights, offset in layers[:-1]:
        points = jax.nn.leaky_relu(points @ weights + offset, LEAK)
    return points


def decode(layers: Layers, points: Any, groups: int) -> Any:
    """Return the outputs of the network, one line for each point.

    Point p is in group p modulo the number of groups, and uses the group's part of the last layer.
    """
    points = hidden_layer(layers, points)
    weights, offset = layers[-1]
    if groups == 1:
        return points @ weights + offset
    by_group = points.reshape(-1, groups, points.shape[1])
    own = weights.reshape(points.shape[1], groups, -1)
    outputs = jnp.einsum("pgh,hgo->pgo", by_group, own) + offset.reshape(groups, -1)
    return outputs.reshape(points.shape[0], -1)
